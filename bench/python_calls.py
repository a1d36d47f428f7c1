#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what a call from Python costs in addition to the work. Each function of the package that works on arrays
runs on tiny NumPy inputs, in turns with the same call of the library with ready-made arguments (by ctypes, which takes
1 us by itself). The figures are the best of several rounds, in microseconds per call.

usage: PYTHONPATH=python python_calls.py [NAME...]    only the cases whose names contain one
"""
import ctypes
import sys
import time

import numpy as np

import cleave
from cleave import _abi, _map
from cleave._library import lib

TURNS, ROUNDS = 200, 15
SIDE = 8
EIGHT = np.ones(SIDE, np.float32)


def options(kind, **members):
    made = kind(size=ctypes.sizeof(kind), **members)
    KEPT.append(made)
    return ctypes.byref(made)


KEPT = []  # what the library receives lives as long as the program


SQUARE = cleave.Kernel("""
__kernel void square(__global const float *in, float by, __global float *out, uint count)
{
    const size_t i = get_global_id(0);
    if (i < count) out[i] = by * in[i] * in[i];
}""", "square")


def items_of(kernel, x, out):
    """Returns (description, arguments, how many) for a clv_items_run of the kernel above."""
    by = ctypes.c_float(2)
    args = (_abi.ItemArg * 4)(
        _abi.ItemArg(_abi.INPUT, 4, x.ctypes.data), _abi.ItemArg(_abi.VALUE, 4,
                                                                 ctypes.addressof(by)),
        _abi.ItemArg(_abi.OUTPUT, 4, None, out.ctypes.data), _abi.ItemArg(_abi.COUNT))
    items = _abi.Items.from_buffer_copy(kernel.items)
    items.items = len(x)
    KEPT.extend((by, args, items, x, out))
    return ctypes.byref(items), args, 4


class Nothing:
    """Takes the place of the library: waiting threads between two launches are not a cost of Python."""
    clv_items_run = staticmethod(lambda *_arguments: 0)


def without_library():
    _map.lib = Nothing
    try:
        cleave.map(SQUARE, EIGHT, 2.0, cleave.Out(), cleave.COUNT)
    finally:
        _map.lib = lib


class Raw:
    """Arguments of the library's functions, which are made once."""

    def __init__(self, context):
        self.handle = context.acquire()

    def memory(self, array):
        KEPT.append(array)
        return array.ctypes.data

    def array(self, value):
        """Returns a clv_array that wraps NumPy's memory."""
        made = ctypes.c_void_p()
        shape = (ctypes.c_size_t * max(value.ndim, 1))(*value.shape)
        cleave._library.check(lib.clv_array_wrap(self.handle, self.memory(value), value.ndim, shape,
                                                 ctypes.byref(made)))
        return made.value

    def device(self, value):
        """Returns the handle of an array that lies on a device."""
        KEPT.append(value)
        return value.handle


def cases(context):
    """Yields (name, the call from Python, the library's call or None)."""
    rng = np.random.default_rng(1)
    a, b = rng.random((2, SIDE, SIDE), np.float32)
    stack = rng.random((4, SIDE, SIDE), np.float32)
    symmetric = np.ascontiguousarray(a + a.T)
    y, w = rng.random((2, SIDE), np.float32)
    kernel = np.ones((3, 3), np.float32) / 9
    out, line, one = np.empty_like(a), np.empty(SIDE, np.float32), np.empty((), np.float32)
    imaginary, many = np.empty_like(line), np.empty_like(stack)
    raw = Raw(context)
    h, m, r = raw.handle, raw.memory, raw.array
    ra, ro, rl, r1, ry, rw = (r(value) for value in (a, out, line, one, y, w))
    rb, rg = r(b), r(np.empty_like(a))
    inputs = (_abi.MapInput * 2)(_abi.MapInput(b"x", ra, 0), _abi.MapInput(b"k", None, 2))
    spread = (_abi.MapInput * 4)(_abi.MapInput(b"a", None, 2), _abi.MapInput(b"x", ra, 0),
                                 _abi.MapInput(b"y", ry, 0), _abi.MapInput(b"w", rw, 0))
    KEPT.extend((inputs, spread))
    convolve, eigen = options(_abi.ConvolveOptions), options(_abi.EigenOptions)
    counting, product = options(_abi.MonteCarloOptions), options(_abi.ProductOptions)
    inside = ctypes.c_uint64()
    KEPT.append(inside)
    batched = _abi.MatmulOptions(ctypes.sizeof(_abi.MatmulOptions), SIDE, 1, SIDE, 1, SIDE, 1, 4,
                                 SIDE * SIDE, SIDE * SIDE, SIDE * SIDE)
    turned = _abi.MatmulOptions(ctypes.sizeof(_abi.MatmulOptions), 1, SIDE, SIDE, 1, SIDE, 1)
    plain = {name: m(value) for name, value in dict(
        a=a, b=b, stack=stack, symmetric=symmetric, kernel=kernel, out=out, line=line,
        imaginary=imaginary, many=many, gauss=np.empty((3, 3), np.float32)).items()}
    square = items_of(SQUARE, y, line)
    yield ("matmul", lambda: cleave.matmul(a, b),
           lambda: lib.clv_matmul(h, SIDE, SIDE, SIDE, plain["a"], plain["b"], None, plain["out"]))
    yield ("matmul of a.T", lambda: cleave.matmul(a.T, b),
           lambda: lib.clv_matmul(h, SIDE, SIDE, SIDE, plain["a"], plain["b"], turned,
                                  plain["out"]))
    yield ("matmul of stacks", lambda: cleave.matmul(stack, stack),
           lambda: lib.clv_matmul(h, SIDE, SIDE, SIDE, plain["stack"], plain["stack"], batched,
                                  plain["many"]))
    yield ("matmul into out", lambda: cleave.matmul(a, b, out=out, alpha=2), None)
    yield ("product", lambda: cleave.product(a, b),
           lambda: lib.clv_product(h, ra, rb, product, ro))
    yield ("compute", lambda: cleave.compute("k * x + 1", x=a, k=2.0),
           lambda: lib.clv_map(h, b"k * x + 1", inputs, 2, ro))
    yield ("compute, broadcast", lambda: cleave.compute("a * x + y * w", a=2.0, x=a, y=y, w=w),
           lambda: lib.clv_map(h, b"a * x + y * w", spread, 4, ro))
    yield ("reduce", lambda: cleave.reduce(a), lambda: lib.clv_reduce(h, 0, ra, -1, r1))
    yield ("reduce, axis", lambda: cleave.reduce(a, "std", 0),
           lambda: lib.clv_reduce(h, 3, ra, 0, rl))
    yield ("normalize", lambda: cleave.normalize(a),
           lambda: lib.clv_normalize(h, ra, ro, None, ry, rw))
    yield ("normalize, gram", lambda: cleave.normalize(a, gram=True),
           lambda: lib.clv_normalize(h, ra, ro, rg, ry, rw))
    yield ("linear_step", lambda: cleave.linear_step(a, y, w),
           lambda: lib.clv_linear_step(h, ra, ry, rw, r1, rl))
    yield ("linear_train, 2 steps", lambda: cleave.linear_train(a, y, w, rate=1e-9, steps=2), None)
    yield ("convolve_2d", lambda: cleave.convolve_2d(a, kernel),
           lambda: lib.clv_convolve_2d(h, plain["a"], SIDE, SIDE, plain["kernel"], 3, 3, convolve,
                                       plain["out"], None))
    yield ("gaussian_2d", lambda: cleave.gaussian_2d(1.0, 1),
           lambda: lib.clv_gaussian_2d(1.0, 1, plain["gauss"]))
    yield ("eigvalsh", lambda: cleave.eigvalsh(symmetric),
           lambda: lib.clv_eigvalsh(h, plain["symmetric"], 1, SIDE, eigen, plain["line"], None))
    if lib.clv_eigvals_provider():
        yield ("eigvals", lambda: cleave.eigvals(a),
               lambda: lib.clv_eigvals(h, plain["a"], 1, SIDE, eigen, plain["line"],
                                       plain["imaginary"], None))
    yield ("monte_carlo_pi", lambda: cleave.monte_carlo_pi(100),
           lambda: lib.clv_monte_carlo_pi(h, 100, counting, ctypes.byref(inside), None))
    if context.devices:
        yield ("map", lambda: cleave.map(SQUARE, y, 2.0, cleave.Out(), cleave.COUNT),
               lambda: lib.clv_items_run(h, *square, None, None))
        yield ("map, all but the library", without_library, None)
    there, other = cleave.array(a), cleave.array(b)
    result = cleave.empty((SIDE, SIDE))
    dt, do, dr = raw.device(there), raw.device(other), raw.device(result)
    on_device = (_abi.MapInput * 1)(_abi.MapInput(b"x", dt, 0))
    both = (_abi.MapInput * 2)(_abi.MapInput(b"a", dt, 0), _abi.MapInput(b"b", do, 0))
    total = raw.device(cleave.empty(()))
    KEPT.extend((on_device, both))
    yield ("array", lambda: cleave.array(a), None)
    yield ("Array.numpy", there.numpy, lambda: lib.clv_array_get(dt, plain["out"]))
    yield ("compute of an Array", lambda: cleave.compute("2 * x + 1", x=there),
           lambda: lib.clv_map(h, b"2 * x + 1", on_device, 1, dr))
    yield ("Array + Array", lambda: there + other,
           lambda: lib.clv_map(h, b"a + b", both, 2, dr))
    yield ("Array @ Array", lambda: there @ other,
           lambda: lib.clv_product(h, dt, do, product, dr))
    yield ("Array.sum", there.sum, lambda: lib.clv_reduce(h, 0, dt, -1, total))


def seconds(function):
    started = time.perf_counter()
    for _ in range(TURNS):
        function()
    return (time.perf_counter() - started) / TURNS


def best(ways):
    found = [float("inf")] * len(ways)
    for way in ways:
        seconds(way)  # makes decisions, compiles kernels
    for _ in range(ROUNDS):
        found = [min(before, seconds(way)) for before, way in zip(found, ways)]
    return found


def main():
    wanted = sys.argv[1:]
    context = cleave.default_context()
    print(f"{', '.join(d.label for d in context.devices) or 'no device'}; {SIDE}x{SIDE} numbers; "
          "us per call")
    print(f"{'function':24} {'Python':>8} {'library':>8} {'Python adds':>12}")
    for name, call, bare in cases(context):
        if wanted and not any(part in name for part in wanted):
            continue
        took = best([call, bare] if bare else [call])
        text = f"{name:24} {took[0] * 1e6:8.1f} "
        print(text + (f"{took[1] * 1e6:8.1f} {(took[0] - took[1]) * 1e6:12.1f}" if bare
                      else f"{'':8} {'':12}"), flush=True)


if __name__ == "__main__":
    main()
