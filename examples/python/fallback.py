# SPDX-License-Identifier: Apache-2.0
"""Shows what happens if no device can compute a kernel: a plain Python function computes instead, or an
error says what is missing."""
import numpy as np

import cleave

square = cleave.Kernel("__kernel void square(__global const float *in, __global float *out)"
                       "{ out[get_global_id(0)] = in[get_global_id(0)] * in[get_global_id(0)]; }",
                       "square")
data = np.arange(1000, dtype=np.float32)


def plain(x, out):
    out[:] = x * x


with cleave.Context(mode="reference") as context:  # as on a machine without OpenCL
    report = cleave.Report()
    got = square(data, cleave.Out(), reference=plain, report=report)
    assert np.array_equal(got, data * data)
    print("with a plain path:", report)
    try:
        square(data, cleave.Out())
    except cleave.NoDeviceError as error:
        print("without:", error)

# The device has too little memory for even one item, and there is no other device to try.
big = np.ones((4, 1 << 20), np.float32)
with cleave.Context(memory=1_000_000) as context:
    kernel = cleave.Kernel("__kernel void sums(__global const float *in, __global float *out)"
                           "{ float s = 0; for (int i = 0; i < 1 << 10; ++i) s += in[i];"
                           "  out[get_global_id(0) << 20] = s; }", "sums")
    try:
        kernel(big, cleave.Out(np.float32, 1 << 20))
        print("the memory limit was no limit here")
    except (cleave.DeviceMemoryError, cleave.NoDeviceError) as error:
        print("out of memory:", error.message.split(":")[0])
    out = kernel(big, cleave.Out(np.float32, 1 << 20), reference=lambda x, y: y.fill(1024))
    assert out[0, 0] == 1024
    print("with a plain path it is done all the same")
