# SPDX-License-Identifier: Apache-2.0
"""Tests the overhead of a call: it is below 20 us on a quiet machine, and ten times as much is allowed here."""
import os
import sys
import time

import numpy as np

import cleave

LIMIT_S = 200e-6


def best(function, turns=300, rounds=7):
    """Returns the seconds per call of the best round."""
    function()
    found = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(turns):
            function()
        found = min(found, (time.perf_counter() - started) / turns)
    return found


def test_a_product_of_tiny_matrices(context, record_property):
    a = np.ones((2, 2), np.float32)
    seconds = best(lambda: cleave.matmul(a, a, context=context))
    print(f"matmul 2x2: {seconds * 1e6:.1f} us a call")
    assert seconds < LIMIT_S


def test_an_expression_of_few_numbers(context):
    a = np.ones(8, np.float32)
    seconds = best(lambda: cleave.compute("2 * a + 1", a=a, context=context))
    print(f"compute of 8 numbers: {seconds * 1e6:.1f} us a call")
    assert seconds < LIMIT_S


def test_every_operation_on_tiny_arrays(monkeypatch):
    """Calls the functions of bench/python_calls.py that begin and end with NumPy, which need no launch."""
    monkeypatch.syspath_prepend(os.path.join(os.environ["CLEAVE_TEST_SOURCE"], "bench"))
    python_calls = __import__("python_calls")
    seen, slow = set(), {}
    for name, call, _bare in python_calls.cases(cleave.default_context()):
        if "Array" in name or name in ("array", "map", "map, all but the library"):
            continue
        seconds = best(call, turns=100, rounds=5)
        print(f"{name}: {seconds * 1e6:.1f} us a call")
        seen.add(name.split(",")[0].split()[0])
        if seconds >= LIMIT_S:
            slow[name] = seconds
    sys.modules.pop("python_calls")
    assert not slow
    assert seen >= {"matmul", "product", "compute", "reduce", "normalize", "linear_step",
                    "linear_train", "convolve_2d", "gaussian_2d", "eigvalsh", "monte_carlo_pi"}


def test_a_kernel_over_few_items(cores):
    """The limit includes the launch, threads and compilers: ten times what a quiet machine takes."""
    kernel = cleave.Kernel("__kernel void add(__global const float *in, __global float *out)"
                           "{ out[get_global_id(0)] = in[get_global_id(0)] + 1; }", "add")
    x = np.ones(64, np.float32)
    seconds = best(lambda: kernel(x, cleave.Out(), context=cores), turns=100)
    print(f"map of 64 items: {seconds * 1e6:.1f} us a call")
    assert seconds < 10 * LIMIT_S


def test_links_of_two_spots():
    spots = np.array([[0, 1.0, 1.0], [1, 1.0, 1.5]])
    seconds = best(lambda: cleave.link(spots, 1.0))
    print(f"link of 2 spots: {seconds * 1e6:.1f} us a call")
    assert seconds < LIMIT_S
