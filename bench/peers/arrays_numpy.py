#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operations on arrays in NumPy and SciPy, float32, as their users write them: a @ b,
scipy.ndimage.convolve, x.mean(axis=0), np.linalg.eigvalsh, expressions with temporaries, and random points in chunks of
a million. The inputs are random numbers, since only times are compared."""
import numpy as np
import scipy
from scipy import ndimage

SAME_FORMULAS = False
FROM_FILES = False
(MATMUL, BATCHED, CONVOLVE, GAUSSIAN, NORMALIZE, STEP, LOOP, PI, EIGVALSH, EIGVALS, MAP, SUM,
 VAR) = range(13)  # as in bench/command/arrays.h
CHUNK = 1 << 20
CHOSEN = {}


def name():
    return f"NumPy {np.__version__}, SciPy {scipy.__version__}"


def can(case):
    return case["workload"] == "arrays"


def choose(case):
    CHOSEN.update(case)


def load(_folder):
    a, b, k = CHOSEN["size"][:3]
    kind = CHOSEN["variant"]
    shapes = {MATMUL: [(a, k), (k, b)], BATCHED: [(a, b, b)] * 2, CONVOLVE: [(a, b), (k, k)],
              GAUSSIAN: [(a, b)], STEP: [(a, b), (a,), (b,)], LOOP: [(a, b), (a,), (b,)], PI: [],
              EIGVALSH: [(a, b, b)], EIGVALS: [(a, b, b)], MAP: [(a,)] * 2}
    rng = np.random.default_rng(1)
    return [rng.random(shape, np.float32) for shape in shapes.get(kind, [(a, b)])]


def normalize(x):
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return z, z @ z.T


def step(x, y, w):
    r = x @ w - y
    return (r ** 2).mean(), 2 * x.T @ r / np.float32(len(y))


def train(x, y, w, steps):
    w = np.zeros_like(w)
    for _ in range(steps):
        w -= np.float32(0.01) * step(x, y, w)[1]
    return w


def count_points(samples):
    rng, inside = np.random.default_rng(1), 0
    for first in range(0, samples, CHUNK):
        count = min(CHUNK, samples - first)
        x, y = rng.random(count, np.float32), rng.random(count, np.float32)
        inside += np.count_nonzero(x * x + y * y <= 1)
    return inside


def expression(x, y):
    return np.float32(2.5) * np.sqrt(x * x + y * y) * np.exp(-x) + np.where(x > y, x, y)


def compute(data, _shifted):
    kind, size = CHOSEN["variant"], CHOSEN["size"]
    work = {MATMUL: np.matmul, BATCHED: np.matmul,
            CONVOLVE: lambda image, kernel: ndimage.convolve(image, kernel, mode="reflect"),
            GAUSSIAN: lambda image: ndimage.gaussian_filter(image, 2, radius=size[2]),
            NORMALIZE: normalize, STEP: step, LOOP: lambda x, y, w: train(x, y, w, size[2]),
            PI: lambda: count_points(1000 * size[0]), EIGVALSH: np.linalg.eigvalsh,
            EIGVALS: np.linalg.eigvals, MAP: expression, SUM: np.sum,
            VAR: lambda x: x.var(axis=0)}
    return [work[kind](*data)]


def warm(data):
    if CHOSEN["variant"] != PI or CHOSEN["size"][0] <= 100000:
        compute(data, False)
