# SPDX-License-Identifier: GPL-3.0-or-later
"""The last layer of a BERT of BERT-base's sizes: posiscope-cli's real forward pass against PyTorch's on the same weights,
words and threads, in turn; and the command's peak memory at 32 and at 128 words.

PyTorch's side is the quickest we know: fused attention in the layers whose maps nobody asked for, logits and softmax in
the last, the best of several batch sizes, weights in memory. Ours includes reading the weights.

Run it with a PyTorch of the same BLAS as the engine's LibTorch (Debian's python3-torch with OpenBLAS, and OPENBLAS_CORETYPE
set, which counts for both), and with pip's, which has MKL.

usage: bench_last_layer.py [THREADS [WORDS [ROUNDS]]]   (a release build; python needs tests/bench/requirements.txt)
"""
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn.functional import gelu, layer_norm, linear

try:
    from torch.nn.functional import scaled_dot_product_attention
except ImportError:  # before PyTorch 2

    def scaled_dot_product_attention(q, k, v):
        return torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]), -1) @ v


ROOT = Path(__file__).resolve().parents[2]
CLI = ROOT / "build/release/bin/posiscope-cli"
HIDDEN, HEADS, INNER, LAYERS, ROWS, LENGTH = 768, 12, 3072, 12, 2000, 128


def make_checkpoint(folder: Path):
    torch.manual_seed(11)

    def normal(*shape, mean=0.0, deviation=0.04):
        return torch.randn(*shape) * deviation + mean

    w = {
        "embeddings.word_embeddings.weight": normal(ROWS, HIDDEN),
        "embeddings.position_embeddings.weight": normal(512, HIDDEN),
        "embeddings.token_type_embeddings.weight": normal(2, HIDDEN),
    }

    def norm(name):
        w[name + ".weight"], w[name + ".bias"] = normal(HIDDEN, mean=0.9), normal(HIDDEN)

    norm("embeddings.LayerNorm")
    for n in range(LAYERS):
        p = f"encoder.layer.{n}."
        for name, out, size in (
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", INNER, HIDDEN),
            ("output.dense", HIDDEN, INNER),
        ):
            w[p + name + ".weight"], w[p + name + ".bias"] = normal(out, size), normal(out)
        norm(p + "attention.output.LayerNorm")
        norm(p + "output.LayerNorm")
    save_file(w, folder / "model.safetensors")
    config = {
        "model_type": "bert", "vocab_size": ROWS, "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "intermediate_size": INNER, "max_position_embeddings": 512,
        "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return w


def by_head(x):
    return x.view(x.shape[0], LENGTH, HEADS, -1).transpose(1, 2)


def last_layer(w, words, size):
    """Mean logits and probabilities of the last layer, words in batches of `size`."""
    logits, probabilities = torch.zeros(2, HEADS, LENGTH, LENGTH, dtype=torch.float64)
    for batch in torch.tensor(words).split(size):
        x = w["embeddings.word_embeddings.weight"][batch][:, None] + w["embeddings.position_embeddings.weight"][:LENGTH]
        x = x + w["embeddings.token_type_embeddings.weight"][0]
        x = layer_norm(x, (HIDDEN,), w["embeddings.LayerNorm.weight"], w["embeddings.LayerNorm.bias"], 1e-12)
        for n in range(LAYERS):
            p = f"encoder.layer.{n}."

            def part(name, x):
                return linear(x, w[p + name + ".weight"], w[p + name + ".bias"])

            def norm(name, x):
                return layer_norm(x, (HIDDEN,), w[p + name + ".weight"], w[p + name + ".bias"], 1e-12)

            q, k = by_head(part("attention.self.query", x)), by_head(part("attention.self.key", x))
            if n == LAYERS - 1:
                scores = (q @ k.transpose(2, 3)) / math.sqrt(HIDDEN // HEADS)
                logits += scores.sum(0)
                probabilities += torch.softmax(scores, -1).sum(0)
                break
            y = scaled_dot_product_attention(q, k, by_head(part("attention.self.value", x)))
            y = y.transpose(1, 2).reshape(x.shape)
            x = norm("attention.output.LayerNorm", x + part("attention.output.dense", y))
            x = norm("output.LayerNorm", x + part("output.dense", gelu(part("intermediate.dense", x))))
    return (logits / len(words)).numpy(), (probabilities / len(words)).numpy()


def ours(folder, words, threads, out):
    command = [CLI, "probe", folder, "--layer", str(LAYERS - 1), "--length", str(LENGTH), "--word-ids",
               ",".join(map(str, words)), "--no-errors", "--threads", str(threads), "--device", "cpu", "--json", "--out", out]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads(result.stdout)
    report["processor_s"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return report


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 32
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    torch.set_num_threads(threads)
    words = list(range(10, 10 + count))
    with tempfile.TemporaryDirectory() as name, torch.inference_mode():
        folder, out = Path(name) / "model", Path(name) / "maps"
        folder.mkdir()
        w = make_checkpoint(folder)
        memory = {}
        for n in (32, 128):  # each thread has a whole batch from about 20 words on
            ours(folder, list(range(10, 10 + n)), threads, out)
            memory[n] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        first = {}
        for size in (1, 2, 4, 8, 16, 32):
            if size > count:
                continue
            start = time.perf_counter()
            last_layer(w, words[: max(size, 8)], size)
            first[size] = (time.perf_counter() - start) / max(size, 8)
        size = min(first, key=first.get)
        pairs, processor_pairs = [], []
        for _ in range(rounds):
            report = ours(folder, words, threads, out)
            start, processor = time.perf_counter(), time.process_time()
            logits, probabilities = last_layer(w, words, size)
            pairs.append((report["timing"]["probe_s"], time.perf_counter() - start))
            processor_pairs.append((report["processor_s"], time.process_time() - processor))
        found = np.load(out / "attention_logits.npy")
        line = {
            "benchmark": "last_layer", "threads": threads, "words": count, "length": LENGTH,
            "kernels": report["kernels"], "device": report["device"], "way": report["way"],
            "torch": torch.__version__, "mkl": torch.backends.mkl.is_available(),
            "openblas_coretype": os.environ.get("OPENBLAS_CORETYPE"),
            "posiscope_s": [a for a, _ in pairs], "pytorch_s": [b for _, b in pairs], "pytorch_batch": size,
            "pytorch_over_posiscope": statistics.median(b / a for a, b in pairs),
            "quickest_pytorch_over_quickest_posiscope": min(b for _, b in pairs) / min(a for a, _ in pairs),
            # All threads, and on our side the program's start and the metrics too: other load on the machine counts less.
            "posiscope_processor_s": [a for a, _ in processor_pairs],
            "pytorch_processor_s": [b for _, b in processor_pairs],
            "processor_ratio": statistics.median(b / a for a, b in processor_pairs),
            "peak_memory_mib": memory,
            "largest_difference_logits": float(np.abs(found - logits).max() / np.abs(logits).max()),
            "largest_difference_probabilities": float(
                np.abs(np.load(out / "attention_probabilities.npy") - probabilities).max() / probabilities.max()),
        }
        print(json.dumps(line, indent=1))


if __name__ == "__main__":
    main()
