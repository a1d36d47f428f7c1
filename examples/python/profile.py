# SPDX-License-Identifier: Apache-2.0
"""Times a matrix product on host and device, next to NumPy and the predicted times."""
import time

import numpy as np

import cleave


def fastest(function, turns=5):
    best = float("inf")
    for _ in range(turns):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best


data = np.random.default_rng(7).random((800, 800), np.float32)
plan = cleave.explain(cleave.product, data, data, transpose_b=True)
sides = {}
for side in ("host", "device"):
    try:
        with cleave.offload(side):
            sides[side] = fastest(lambda: cleave.product(data, data, transpose_b=True))
    except cleave.NoDeviceError as error:
        print(error)
numpy = fastest(lambda: data @ data.T)
predicted = {"host": plan.host_s, "device": plan.device_s}
for side, seconds in sides.items():
    print(f"{side}: {seconds * 1e3:.2f} ms, predicted {predicted[side] * 1e3:.2f} ms"
          + (", chosen" if side == plan.side else ""))
print(f"NumPy: {numpy * 1e3:.2f} ms")
assert np.allclose(cleave.product(data, data, transpose_b=True), data @ data.T, rtol=1e-4)
