# SPDX-License-Identifier: Apache-2.0
"""Prints the memory of the devices and what ran on them, and writes a timeline."""
import json

import numpy as np

import cleave

copy = cleave.Kernel("__kernel void copy(__global const int *in, __global int *out)"
                     "{ out[get_global_id(0)] = in[get_global_id(0)]; }", "copy")


def plain(data, out):
    out[:] = data


with cleave.Context(memory=0.25, trace=True) as context:  # at most a quarter of each device
    report = cleave.Report()
    data = np.arange(1 << 20, dtype=np.int32)
    assert np.array_equal(copy(data, cleave.Out(np.int32), reference=plain, report=report), data)

    for share in report.shares:
        print(f"{share.device}: {share.units} items in {share.chunks} chunks, {share.busy_s:.4f} s busy"
              + (f"; left out: {share.left_out}" if share.left_out else ""))
    for device in context.devices:
        memory = device.memory()
        print(f"{device.label}: used {memory.used_bytes / 1e6:.1f} MB, kept for reuse "
              f"{memory.cached_bytes / 1e6:.1f} MB, at most {memory.peak_bytes / 1e6:.1f} MB of "
              f"{memory.budget_bytes / 1e6:.0f} MB")
        device.trim()
        assert device.memory().cached_bytes == 0
    context.write_trace("trace.json")  # for chrome://tracing
with open("trace.json", encoding="utf-8") as file:
    print(f"{len(json.load(file)['traceEvents'])} events in trace.json")
