# SPDX-License-Identifier: GPL-3.0-or-later
"""The other side of bench_first_layer: PyTorch's batched first layer on the same weights and words.

Embeddings, LayerNorm, query and key projections, scaled scores, mean over words; the weights are in memory, gradients
are off. Several batch sizes are tried, and for the logits alone also one product over words and features together, which
never forms the single words' maps; the fastest counts.

usage: bench_first_layer.py FOLDER THREADS REPEATS   (FOLDER as bench_first_layer --folder left it)
"""
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file


class FirstLayer:
    def __init__(self, folder: Path, length: int):
        config = json.loads((folder / "config.json").read_text())
        names = {name.removeprefix("bert."): t.float() for name, t in load_file(folder / "model.safetensors").items()}
        self.heads = config["num_attention_heads"]
        self.epsilon = config.get("layer_norm_eps", 1e-12)
        self.length = length
        rows = torch.tensor(json.loads((folder / "rows.json").read_text()))
        self.words = names["embeddings.word_embeddings.weight"][rows]
        self.positions = names["embeddings.position_embeddings.weight"][:length]
        self.types = names["embeddings.token_type_embeddings.weight"][0]
        self.norm = (names["embeddings.LayerNorm.weight"], names["embeddings.LayerNorm.bias"])
        part = "encoder.layer.0.attention.self."
        self.query = (names[part + "query.weight"], names[part + "query.bias"])
        self.key = (names[part + "key.weight"], names[part + "key.bias"])
        self.scale = 1 / math.sqrt(self.words.shape[1] // self.heads)

    def projections(self, words):
        """Queries and keys [words, heads, length, head_dim]."""
        x = words[:, None, :] + self.positions + self.types
        x = torch.nn.functional.layer_norm(x, x.shape[-1:], *self.norm, self.epsilon)
        split = (len(words), self.length, self.heads, -1)
        query = torch.nn.functional.linear(x, *self.query).view(split).transpose(1, 2)
        key = torch.nn.functional.linear(x, *self.key).view(split).transpose(1, 2)
        return query, key

    def batches(self, size, softmax):
        logits = torch.zeros(self.heads, self.length, self.length)
        probabilities = torch.zeros_like(logits) if softmax else None
        for words in self.words.split(size):
            query, key = self.projections(words)
            scores = (query @ key.transpose(2, 3)).mul_(self.scale)
            logits += scores.sum(0)
            if softmax:
                probabilities += torch.softmax(scores, -1).sum(0)
        count = len(self.words)
        return logits / count, probabilities / count if softmax else None

    def one_product(self, size):
        """The mean of the words' products is one product over words and features together."""
        logits = torch.zeros(self.heads, self.length, self.length)
        for words in self.words.split(size):
            query, key = self.projections(words)
            query = query.permute(1, 2, 0, 3).reshape(self.heads, self.length, -1)
            key = key.permute(1, 2, 0, 3).reshape(self.heads, self.length, -1)
            logits += query @ key.transpose(1, 2)
        return logits * (self.scale / len(self.words)), None


def median_times(work, repeats):
    """Seconds by the clock and seconds of the processor, all threads."""
    work()
    seconds, processor = [], []
    for _ in range(repeats):
        start, processor_start = time.perf_counter(), time.process_time()
        work()
        processor.append(time.process_time() - processor_start)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), statistics.median(processor)


def fastest(candidates, repeats):
    """Times every candidate once and the fastest one in earnest."""
    first = {name: median_times(work, 1)[0] for name, work in candidates.items()}
    best = min(first, key=first.get)
    return best, *median_times(candidates[best], repeats)


def largest_difference(found, path):
    expected = np.load(path)
    return float(np.abs(found.numpy() - expected).max() / np.abs(expected).max())


def main():
    folder, threads, repeats = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    line = {
        "benchmark": "first_layer in PyTorch",
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "mkl": torch.backends.mkl.is_available(),
        "openblas_coretype": os.environ.get("OPENBLAS_CORETYPE"),
        "models": {},
    }
    sizes = [1, 4, 16, 64, 300]
    with torch.inference_mode():
        for model in ("sample", "bert_base"):
            layer = FirstLayer(folder / model, 128)
            ways = {f"batches of {n}": (lambda n=n: layer.batches(n, False)) for n in sizes}
            ways |= {f"one product over {n}": (lambda n=n: layer.one_product(n)) for n in sizes}
            way, logits_s, logits_processor_s = fastest(ways, repeats)
            logits = ways[way]()[0]
            both = {f"batches of {n}": (lambda n=n: layer.batches(n, True)) for n in sizes}
            both_way, both_s, both_processor_s = fastest(both, repeats)
            probabilities = both[both_way]()[1]
            line["models"][model] = {
                "logits_s": logits_s,
                "logits_processor_s": logits_processor_s,
                "logits_way": way,
                "logits_and_probabilities_s": both_s,
                "logits_and_probabilities_processor_s": both_processor_s,
                "logits_and_probabilities_way": both_way,
                "largest_difference_logits": largest_difference(logits, folder / model / "attention_logits.npy"),
                "largest_difference_probabilities": largest_difference(
                    probabilities, folder / model / "attention_probabilities.npy"
                ),
            }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
