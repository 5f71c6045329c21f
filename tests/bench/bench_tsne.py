# SPDX-License-Identifier: GPL-3.0-or-later
"""t-SNE beside scikit-learn's exact method and openTSNE on the same vectors and threads.

    bench_tsne.py BENCH_TSNE THREADS [VECTORS.npy ...]

Without files: a random walk of 512 and of 4096 steps in 768 dimensions (seeded). Up to 1,024 vectors against
scikit-learn's exact method, above against openTSNE with its defaults. The divergence of every map is computed here, over all pairs in float64, by one
function; it needs the packages of requirements.txt.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

program, threads = sys.argv[1], int(sys.argv[2])
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(threads)

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import TSNE, trustworthiness
from sklearn.manifold._t_sne import _joint_probabilities


def divergence(vectors, points, perplexity=30):
    p = _joint_probabilities(squareform(pdist(vectors, "sqeuclidean")), perplexity, 0)
    w = 1 / (1 + pdist(points.astype(np.float64), "sqeuclidean"))
    q = w / w.sum() / 2
    p = p / 2  # condensed: each pair once, and sums to 1 over ordered pairs
    p = p / p.sum() / 2
    return float(2 * np.sum(p[p > 0] * np.log(p[p > 0] / q[p > 0])))


def random_walk(steps, size):
    random = np.random.default_rng(0)
    return np.cumsum(random.normal(size=(steps, size)), axis=0).astype(np.float32) / np.sqrt(steps).astype(np.float32)


with tempfile.TemporaryDirectory() as folder:
    files = sys.argv[3:]
    if not files:
        for steps in (512, 4096):
            files.append(f"{folder}/walk-{steps}.npy")
            np.save(files[-1], random_walk(steps, 768))
    for file in files:
        vectors = np.load(file)
        out = {"vectors": os.path.basename(file), "shape": vectors.shape, "threads": threads}
        answer = subprocess.run([program, file, f"{folder}/map.npy", "--threads", str(threads)], check=True,
                                stdout=subprocess.PIPE, text=True)
        ours = json.loads(answer.stdout)
        points = np.load(f"{folder}/map.npy")
        start = time.perf_counter()
        if len(vectors) <= 1024:
            theirs = TSNE(method="exact", init="pca", perplexity=30, random_state=0).fit_transform(vectors)
            name = "scikit-learn exact"
        else:
            from openTSNE import TSNE as OpenTSNE
            theirs = np.asarray(OpenTSNE(perplexity=30, random_state=0, n_jobs=threads).fit(vectors))
            name = "openTSNE"
        seconds = time.perf_counter() - start
        out.update({"seconds": ours["seconds"], "other": name, "other_seconds": round(seconds, 3),
                    "ratio": round(seconds / ours["seconds"], 1),
                    "divergence": divergence(vectors, points), "reported_divergence": ours["divergence"],
                    "other_divergence": divergence(vectors, theirs),
                    "trustworthiness_12": trustworthiness(vectors, points, n_neighbors=12),
                    "other_trustworthiness_12": trustworthiness(vectors, theirs, n_neighbors=12),
                    "kernels": ours["kernels"]})
        print(json.dumps(out), flush=True)
