# SPDX-License-Identifier: Apache-2.0
"""Small products stay on the host, large ones go to a device: nobody has to say so."""
import time

import numpy as np

import cleave

if not cleave.has("clv_matmul"):
    raise SystemExit("this libcleave has no clv_matmul")


def fastest(function, turns=5):
    best = float("inf")
    for _ in range(turns):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best


for size in (10, 100, 500):
    a, b = (np.random.default_rng(k).standard_normal((size, size), np.float32) for k in (1, 2))
    product = cleave.matmul(a, b)
    assert np.abs(product - a @ b).max() < 1e-3
    print(f"{size}x{size}: {fastest(lambda: cleave.matmul(a, b)) * 1e6:.0f} us, "
          f"NumPy {fastest(lambda: a @ b) * 1e6:.0f} us")
