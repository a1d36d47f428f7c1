# SPDX-License-Identifier: Apache-2.0
"""Lets the library decide whether the host or a device computes, and prints why: small products
stay on the host, large ones go to a device."""
import numpy as np

import cleave

random = np.random.default_rng(1)
for size in (10, 100, 500):
    a, b = (random.standard_normal((size, size), np.float32) for _ in range(2))
    print(f"{size}x{size}:", cleave.explain(cleave.matmul, a, b))  # decides, computes nothing
    assert np.abs(cleave.matmul(a, b) - a @ b).max() < 1e-3

x = random.random(1 << 20, np.float32)
with cleave.offload("host"):  # this thread, until the end of the block
    plain = cleave.compute("sqrt(x) * exp(-x)", x=x)
    assert cleave.last_plan().side == "host"
free = cleave.compute("sqrt(x) * exp(-x)", x=x)
plan = cleave.last_plan()
assert np.allclose(plain, free, rtol=1e-5)
print(f"{x.size} elements:", plan)  # or by its numbers: plan.host_s, plan.device_s, plan.first_s
