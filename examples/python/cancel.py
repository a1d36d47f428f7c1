# SPDX-License-Identifier: Apache-2.0
"""Cancels a long job: from the progress function to which it reports, and by Ctrl-C."""
import os
import signal
import threading

import numpy as np

import cleave

walk = cleave.Kernel("""
__kernel void walk(__global float *out, uint turns)
{
    float a = 0.1f * get_global_id(0);
    for (uint n = 0; n < turns; ++n)
        a = sin(a) + 0.1f;
    out[get_global_id(0)] = a;
}""", "walk")


def plain(out, turns):
    a = 0.1 * np.arange(len(out))
    for _ in range(turns):
        a = np.sin(a) + 0.1
    out[:] = a


def minutes_of_work(context, **options):
    return cleave.map(walk, cleave.Out(), np.uint32(50000), items=10**7, context=context,
                      reference=plain, **options)


def three_times(done, total):
    print(f"{done} of {total}")
    calls.append(done)
    return len(calls) < 3  # False cancels


calls = []
with cleave.Context(batch=64) as context:
    try:
        minutes_of_work(context, progress=three_times)
    except cleave.CancelledError as error:
        print(error)

    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()  # as if Ctrl-C were pressed
    try:
        minutes_of_work(context)
    except KeyboardInterrupt:
        print("interrupted")
    print(cleave.map(walk, cleave.Out(), np.uint32(1), items=3, reference=plain, context=context))
