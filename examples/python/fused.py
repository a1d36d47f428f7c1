# SPDX-License-Identifier: Apache-2.0
"""Two steps as one kernel: the data goes to the device once and comes back once."""
import numpy as np

import cleave

twice = cleave.Kernel("__kernel void twice(__global const float *in, __global float *out, uint count)"
                      "{ size_t i = get_global_id(0); if (i < count) out[i] = in[i] * 2.0f; }", "twice")
plus = cleave.Kernel("__kernel void plus(__global const float *in, __global float *out, uint count)"
                     "{ size_t i = get_global_id(0); if (i < count) out[i] = in[i] + 1.0f; }", "plus")
fused = cleave.Kernel("__kernel void fused(__global const float *in, __global float *out, uint count)"
                      "{ size_t i = get_global_id(0); if (i < count) out[i] = in[i] * 2.0f + 1.0f; }",
                      "fused")


def step(kernel, data, plain, report=None):
    def reference(x, out, count):
        out[:] = plain(x)
    return cleave.map(kernel, data, cleave.Out(), cleave.COUNT, reference=reference, report=report)


data = np.arange(1 << 20, dtype=np.float32)
apart, together = cleave.Report(), cleave.Report()
two = step(plus, step(twice, data, lambda x: 2 * x, apart), lambda x: x + 1, apart)
one = step(fused, data, lambda x: 2 * x + 1, together)
assert np.array_equal(one, two)
print(f"two kernels: {apart.seconds * 1e3:.1f} ms; fused: {together.seconds * 1e3:.1f} ms")
