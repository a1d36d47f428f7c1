# SPDX-License-Identifier: Apache-2.0
"""Computes on a list of many matrices, which the library spreads over devices and cores."""
import numpy as np

import cleave

random = np.random.default_rng(4)
matrices = [random.standard_normal((24, 24)).astype(np.float32) for _ in range(200)]

# symmetric matrices: Jacobi rotations, split over every device
stack = np.stack(matrices)
values = cleave.eigvalsh(stack + stack.transpose(0, 2, 1), progress=False)
assert np.allclose(values[7], np.linalg.eigvalsh(stack[7] + stack[7].T), atol=1e-3)

# general matrices: LAPACK on the host, one matrix per core at a time
try:
    general = cleave.eigvals(stack)
    want = np.linalg.eigvals(stack[7].astype(np.float64))
    assert np.abs(np.sort(np.abs(general[7])) - np.sort(np.abs(want))).max() < 1e-3
    print(f"{len(general)} general matrices, the first value of the first: {general[0, 0]:.3f}")
except cleave.NoDeviceError as error:
    print(error)

# your own function over a list: each matrix is an item
trace = cleave.Kernel("""
__kernel void traces(__global const float *in, __global float *out)
{
    const size_t item = get_global_id(0);
    float sum = 0.0f;
    for (int i = 0; i < 24; ++i) sum += in[item * 576 + i * 25];
    out[item] = sum;
}""", "traces")
traces = trace(stack, cleave.Out(),
               reference=lambda m, out: np.copyto(out, np.trace(m, axis1=1, axis2=2)))
assert np.allclose(traces, [m.trace() for m in matrices], atol=1e-4)
print(f"{len(traces)} traces, the first {traces[0]:.3f}")
