# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/data/torch: small files of PyTorch and NumPy whose contents tst_checkpoint_cases knows, and
tests/data/reference/gguf_blocks.json, blocks of random bytes with what the gguf package decodes from them.

    python make_checkpoints.py TESTS_DATA          needs torch, numpy and gguf
"""
import collections, io, json, pathlib, sys, zipfile

import numpy as np


class Stream(io.RawIOBase):
    """A file that cannot be sought in: zipfile then writes sizes behind the data."""

    def __init__(self):
        self.data = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.data += data
        return len(data)


def streamed(source: bytes) -> bytes:
    """The same archive with 64-bit sizes and data descriptors throughout."""
    out = Stream()
    with zipfile.ZipFile(io.BytesIO(source)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            with new.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                member.write(old.read(name))
    return bytes(out.data)


def torch_files(folder):
    import torch

    weight = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 4
    state = collections.OrderedDict(count=torch.tensor([3, 1, 4], dtype=torch.int64), weight=weight)
    torch.save(state, folder / "zip.pt")
    torch.save(state, folder / "legacy.pt", _use_new_zipfile_serialization=False)
    views = {"plain": weight, "view": weight.t().contiguous().t(), "column": weight[:, 1], "part": weight[1:, 1:3],
             "repeated": torch.tensor([[5.0], [7.0]]).expand(2, 3)}
    torch.save(views, folder / "views.pt")
    torch.save(views, folder / "views-legacy.pt", _use_new_zipfile_serialization=False)
    (folder / "streamed.pt").write_bytes(streamed((folder / "zip.pt").read_bytes()))
    module = torch.nn.Sequential(collections.OrderedDict(first=torch.nn.Linear(2, 3), second=torch.nn.LayerNorm(3)))
    with torch.no_grad():
        for n, parameter in enumerate(module.parameters()):
            parameter.copy_(torch.full_like(parameter, n + 1))
    torch.save(module, folder / "module.pt")
    torch.save({"model": module, "epoch": 3, "optimizer": {"state": {0: {"exp_avg": torch.ones(3, 2)}}}},
               folder / "module-in-dict.pt")
    types = {}
    for name in ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64", "int32", "int16",
                 "int8", "uint8"):
        types[name] = torch.tensor([0.0, 1.0, 2.0, 4.0, 0.5 if "float" in name else 8.0]).to(getattr(torch, name))
    types["bool"] = torch.tensor([False, True])
    torch.save(types, folder / "types.pt")


def numpy_files(folder):
    table = np.arange(12, dtype=np.float32).reshape(4, 3) / 2
    plain = io.BytesIO()
    np.savez(plain, table=table, big=table.astype(">f4"), fortran=np.asfortranarray(table), half=table.astype(np.float16))
    (folder / "streamed.npz").write_bytes(streamed(plain.getvalue()))
    np.savez(folder / "mixed.npz", table=table, scalar=np.float32(2.5), empty=np.zeros((0, 3), np.float32),
             words=np.array(["a", "b"]), objects=np.array([None, {}], dtype=object))


def gguf_blocks(path):
    import gguf

    random = np.random.default_rng(7)
    rows = []
    for name in ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"):
        kind = gguf.GGMLQuantizationType[name]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        data = random.integers(0, 256, (3, size), dtype=np.uint8)
        # Scales of a sensible size, so that no value is infinite.
        for at in {"Q6_K": [208]}.get(name, [0, 2] if name in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else [0]):
            data[:, at : at + 2] = random.normal(0, 0.1, (3, 1)).astype(np.float16).view(np.uint8)
        values = gguf.dequantize(data, kind)
        rows.append({"type": name, "bytes": data.tobytes().hex(), "values": [float(x) for x in values.ravel()]})
    path.write_text(json.dumps(rows) + "\n")


if __name__ == "__main__":
    data = pathlib.Path(sys.argv[1])
    (data / "torch").mkdir(exist_ok=True)
    torch_files(data / "torch")
    numpy_files(data / "torch")
    gguf_blocks(data / "reference" / "gguf_blocks.json")
