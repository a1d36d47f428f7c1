#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times cleave.search(), NumPy and faiss-cpu's IndexFlatIP in the same run, in turns, on random vectors of length 1,
and compares the rows that they find.

usage: PYTHONPATH=python search_faiss.py [ROWS [WIDTH [TOP [SECONDS [COUNTS]]]]]
       COUNTS: numbers of queries, such as 1,8,32

Needs NumPy and faiss-cpu. Prints for each number of queries the shortest wall time and processor time of each, in
milliseconds, and the ratios to Cleave. The exit code is 1 if the rows differ by more than near-ties (1e-6).
"""
import sys
import time

import numpy as np

import cleave

try:
    import faiss
except ImportError:
    sys.exit("search_faiss: faiss-cpu is missing: pip install faiss-cpu")

COUNTS = [int(text) for text in sys.argv[5].split(",")] if len(sys.argv) > 5 else [1, 8, 32, 128, 512]
NUMBERS = [float(text) for text in sys.argv[1:5]] + [1000000, 384, 10, 20][len(sys.argv) - 1:]
ROWS, WIDTH, TOP = (int(number) for number in NUMBERS[:3])


def unit(count, seed):
    vectors = np.random.default_rng(seed).standard_normal((count, WIDTH), np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def by_numpy(queries, vectors):
    scores = queries @ vectors.T
    rows = np.argpartition(scores, -TOP, axis=1)[:, -TOP:]
    order = np.argsort(-np.take_along_axis(scores, rows, 1), axis=1)
    return np.take_along_axis(rows, order, 1)


def main():
    vectors, index = unit(ROWS, 1), faiss.IndexFlatIP(WIDTH)
    index.add(vectors)
    ways = {"cleave": lambda q: cleave.search(q, vectors, TOP, similarity="dot").rows,
            "cleave cosine": lambda q: cleave.search(q, vectors, TOP).rows,
            "numpy": lambda q: by_numpy(q, vectors), "faiss": lambda q: index.search(q, TOP)[1]}
    print(f"{ROWS} rows of {WIDTH}, {TOP} wanted; {cleave.devices()[0].label}; faiss {faiss.__version__}, "
          f"{faiss.omp_get_max_threads()} threads; NumPy {np.__version__}; wall / processor ms")
    wrong = 0
    for count in COUNTS:
        queries = unit(count, 2 + count)
        best, rows = {name: (np.inf, np.inf) for name in ways}, {}
        end = time.monotonic() + NUMBERS[3]
        turns = 0
        while turns < min(3, 1 + NUMBERS[3]) or time.monotonic() < end:
            turns += 1
            for name, way in ways.items():
                wall, used = time.perf_counter(), time.process_time()
                rows[name] = way(queries)
                now = (time.perf_counter() - wall, time.process_time() - used)
                best[name] = tuple(map(min, best[name], now))
        for name in ways:
            apart = rows[name] != rows["cleave"]
            near = np.abs(np.einsum("qkd,qkd->qk", queries[:, None].repeat(TOP, 1),
                                    vectors[rows[name]] - vectors[rows["cleave"]])) < 1e-6
            wrong += int((apart & ~near).sum())
        print(f"{count:5} queries: " + "; ".join(
            f"{name} {wall * 1e3:.1f} / {used * 1e3:.1f} (x{wall / best['cleave'][0]:.2f} / "
            f"x{used / best['cleave'][1]:.2f})" for name, (wall, used) in best.items()), flush=True)
    print(f"{wrong} rows differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
