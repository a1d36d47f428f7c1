#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what is promised of arrays, and prints a table: promise, measured, kept. On demand: it takes minutes, on a
machine that does nothing else.

usage: CLEAVE_LIBRARY=... PYTHONPATH=python array_acceptance.py [PART...]

Parts: lines overhead random fft products bytes suite (all of them without a PART). `lines` and `suite` need
$CLEAVE_REFERENCE_DIR/arrays; `suite` what array_api_suite.py needs; `products` PyTorch; `bytes` pytest. pyfftw and
SciPy are compared with, too, where they are installed. The exit code is 1 if a promise is not kept."""
import ctypes
import hashlib
import importlib.util
import itertools
import os
import re
import subprocess
import sys
import time

import numpy as np

import cleave
from cleave import _abi, _fftw
from cleave._library import lib

HERE = os.path.dirname(os.path.abspath(__file__))
CORES = len(os.sched_getaffinity(0))
ROWS = []


def row(promise, measured, kept):
    ROWS.append(kept)
    print(f"| {promise} | {measured} | {'yes' if kept else 'NO'} |", flush=True)


def seconds(functions, budget=0.5, least=7):
    """The shortest times of functions that take turns, so that all of them meet the same states of the machine."""
    best, until, turns = [float("inf")] * len(functions), time.perf_counter() + budget, 0
    counts = []
    for function in functions:
        for _ in range(3):  # the third call of a transform is by the chosen library
            function()
        started = time.perf_counter()
        function()
        counts.append(max(1, min(200, int(1e-3 / max(time.perf_counter() - started, 1e-7)))))
    while turns < least or time.perf_counter() < until:
        turns += 1
        for place, (function, count) in enumerate(zip(functions, counts)):
            started = time.perf_counter()
            for _ in range(count):
                function()
            best[place] = min(best[place], (time.perf_counter() - started) / count)
    return best


def in_blocks(functions, budget=0.25, turns=2):
    """The shortest times of functions that use threads. Threads of one library wait in a loop for some time after a
    call, so each function runs for a while before it is timed, and then for a while alone."""
    best = [float("inf")] * len(functions)
    for _ in range(turns):
        for place, function in enumerate(functions):
            until = time.perf_counter() + 0.4 * budget
            while True:
                started = time.perf_counter()
                function()
                took = time.perf_counter() - started
                if started + took > until:
                    break
            count = max(1, min(200, int(1e-3 / took)))
            until, calls = time.perf_counter() + budget, 0
            while calls < 2 or time.perf_counter() < until:
                calls += 1
                started = time.perf_counter()
                for _ in range(count):
                    function()
                best[place] = min(best[place], (time.perf_counter() - started) / count)
    return best


def lines():
    port = os.path.join(os.environ.get("CLEAVE_REFERENCE_DIR", ""), "arrays", "port.py")
    done = subprocess.run([sys.executable, port], capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1:] or [done.stderr[-200:]]
    row("lines of port.py that run", last[0], last[0] == "34 of 34")


class Raw:
    """An empty kernel on the device, by OpenCL alone."""

    def __init__(self, name):
        cl = self.cl = ctypes.CDLL("libOpenCL.so.1")
        pointer, number = ctypes.c_void_p, ctypes.c_uint32(0)
        for function in ("clCreateContext", "clCreateCommandQueue", "clCreateProgramWithSource", "clCreateKernel"):
            getattr(cl, function).restype = pointer
        platforms = (pointer * 16)()
        cl.clGetPlatformIDs(16, platforms, ctypes.byref(number))
        for platform in platforms[:number.value]:
            device, text = pointer(), ctypes.create_string_buffer(300)
            if cl.clGetDeviceIDs(pointer(platform), ctypes.c_uint64(0xFFFFFFFF), 1, ctypes.byref(device), None):
                continue
            cl.clGetDeviceInfo(device, 0x102B, ctypes.c_size_t(300), text, None)
            if text.value.decode().strip() in name or name in text.value.decode():
                break
        context = pointer(cl.clCreateContext(None, 1, ctypes.byref(device), None, None, None))
        self.queue = pointer(cl.clCreateCommandQueue(context, device, ctypes.c_uint64(0), None))
        text = ctypes.c_char_p(b"__kernel void empty(__global float *x) {}")
        program = pointer(cl.clCreateProgramWithSource(context, 1, ctypes.byref(text), None, None))
        cl.clBuildProgram(program, 1, ctypes.byref(device), b"", None, None)
        self.kernel = pointer(cl.clCreateKernel(program, b"empty", None))
        cl.clCreateBuffer.restype = pointer
        memory = pointer(cl.clCreateBuffer(context, ctypes.c_uint64(1), ctypes.c_size_t(64), None, None))
        cl.clSetKernelArg(self.kernel, 0, ctypes.c_size_t(8), ctypes.byref(memory))
        self.one = (ctypes.c_size_t * 1)(1)

    def __call__(self):
        self.cl.clEnqueueNDRangeKernel(self.queue, self.kernel, 1, None, self.one, self.one, 0, None, None)
        self.cl.clFinish(self.queue)


def overhead():
    context = cleave.default_context()
    a, b, out = (cleave.array(np.ones(8, np.float32)) for _ in range(3))
    operands = (_abi.Operand * 2)(_abi.Operand(a.handle), _abi.Operand(b.handle))
    handle = context.acquire()
    nothing = ctypes.CDLL(None).abs  # an empty call, to subtract what ctypes takes
    nothing.argtypes = lib.clv_array_apply.argtypes

    def on_device():
        with cleave.offload("device"):
            lib.clv_array_apply(handle, 1, operands, 2, out.handle)
    python, exp, total, apply, empty = seconds([
        lambda: a + b, lambda: np.exp(a), lambda: a.sum(),
        lambda: lib.clv_array_apply(handle, 1, operands, 2, out.handle),
        lambda: nothing(None, 1, operands, 2, None)], 3)
    row("a + b of 8 numbers in Python: at most 8 us", f"{python * 1e6:.1f} us (np.exp(a) {exp * 1e6:.1f}, "
        f"a.sum() {total * 1e6:.1f})", python <= 8e-6)
    row("the same in C: at most 1 us", f"{(apply - empty) * 1e6:.2f} us", apply - empty <= 1e-6)
    if context.devices:
        raw = Raw(context.devices[0].facts["name"])
        forced, launch = seconds([on_device, raw], 2)
        row("beside it: the same forced to the device, and an empty kernel's launch and wait by OpenCL alone",
            f"{forced * 1e6:.1f} us, {launch * 1e6:.1f} us", True)
    context.release()


def random():
    digests = set()
    names = []
    for place in itertools.chain(range(len(cleave.probe()["devices"])), [None]):
        how = {"mode": "reference"} if place is None else {"devices": str(place)}
        with cleave.Context(**how) as context:
            names.append(context.mode)
            made = cleave.random.default_rng(11, context=context)
            parts = [made.random(1000), made.normal(size=999), made.integers(0, 1 << 40, size=77),
                     made.permutation(100), made.choice(50, 20), made.uniform(2, 3, size=(3, 5), dtype=np.float64)]
            digests.add(hashlib.sha256(b"".join(part.numpy().tobytes() for part in parts)).hexdigest())
    row("random numbers: the same bits on all devices", f"{len(digests)} digest(s) on {len(names)} sides",
        len(digests) == 1)


def peers_of(x, axes):
    """Transforms by other libraries on the same cores, with plans as good as they make them: name, whether a call makes
    an array for the result, as ours does, and the function. A prepared plan of FFTW does nothing but transform one
    fixed array into another, so for a short one it shows what a call from Python costs."""
    threads = CORES if x.size >= 1 << 13 else 1
    yield "NumPy", True, lambda: np.fft.fftn(x, axes=axes)
    if importlib.util.find_spec("scipy"):
        import scipy.fft
        yield "SciPy", True, lambda: scipy.fft.fftn(x, axes=axes, workers=CORES)
    if importlib.util.find_spec("pyfftw"):
        import pyfftw
        import pyfftw.interfaces
        pyfftw.interfaces.cache.enable()
        pyfftw.interfaces.cache.set_keepalive_time(60)
        yield "pyFFTW", True, lambda: pyfftw.interfaces.numpy_fft.fftn(x, axes=axes, threads=threads,
                                                                       planner_effort="FFTW_MEASURE")
        mine, made = pyfftw.empty_aligned(x.shape, x.dtype), pyfftw.empty_aligned(x.shape, x.dtype)
        plan = pyfftw.FFTW(mine, made, axes=axes, threads=threads, planning_timelimit=2.0)
        mine[...] = x
        yield "a prepared plan", False, plan.execute
    elif _fftw.there():
        mine, made = _fftw.aligned(x.shape, x.dtype), _fftw.aligned(x.shape, x.dtype)
        fixed = _fftw.Plan(mine, made, axes, True, 2.0, threads)
        mine[...] = x
        yield "a prepared plan", False, lambda: fixed.run(mine, made)


def fft():
    rng, worst = np.random.default_rng(3), {}
    for shape in [(2**k,) for k in range(1, 15)] + [(3**k,) for k in range(1, 9)] + [(5**k,) for k in range(1, 6)] + \
            [(7**k,) for k in range(1, 6)] + [(11,), (127,), (1009,), (8191,), (16, 27), (101, 64), (25, 49, 8)]:
        for single in (True, False):
            given = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
            x = given.astype(np.complex64 if single else np.complex128)
            want = np.fft.fftn(x.astype(np.complex128))
            a = cleave.array(x)
            for _turn in range(3):
                got = cleave.fft.fftn(a).numpy()
                worst[single] = max(worst.get(single, 0), np.abs(got - want).max() / np.abs(want).max())
    row("FFT within 1e-6 of NumPy's in float64 (1e-12 in float64)", f"{worst[True]:.1e}, {worst[False]:.1e}",
        worst[True] <= 1e-6 and worst[False] <= 1e-12)
    for shape, axes in [((1 << 10,), (0,)), ((1 << 14,), (0,)), ((1 << 18,), (0,)), ((1 << 20,), (0,)),
                        ((3**11,), (0,)), ((1024, 343), (1,)), ((65537,), (0,)), ((512, 512), (0, 1)),
                        ((1000, 1000), (0, 1)), ((64, 64, 64), (0, 1, 2)), ((256, 4096), (1,))]:
        x = (rng.standard_normal(shape) + 1j).astype(np.complex64)
        a = cleave.array(x)
        names, makes, functions = zip(*peers_of(x, axes))
        ours, *theirs = in_blocks([lambda: cleave.fft.fftn(a, axes=axes), *functions], 0.02, 25)
        calls, plans = ({name: t for name, made, t in zip(names, makes, theirs) if made == kind}
                        for kind in (True, False))
        measured, kept = f"{ours * 1e6:.1f} us", True
        for kind in (calls, plans):
            if kind:
                ratio = ours / min(kind.values())
                measured += "; " + ", ".join(f"{name} {t * 1e6:.1f}" for name, t in kind.items()) + f": {ratio:.2f}"
                kept = kept and (ratio <= 1.1 or kind is plans and x.size < 1 << 13)
        row(f"FFT {shape} along {axes}: no slower than other calls and, from 8192 elements on, than a prepared plan "
            "(10 % for noise)", measured, kept)


def products():
    import torch
    torch.set_num_threads(CORES)
    rng = np.random.default_rng(4)
    for n in SIZES:
        x, y = (rng.standard_normal((n, n), np.float32) for _ in range(2))
        a, b, t, u = cleave.array(x), cleave.array(y), torch.from_numpy(x), torch.from_numpy(y)
        ours, theirs, numpys = in_blocks([lambda: a @ b, lambda: t @ u, lambda: x @ y])
        row(f"product of {n}: at most 1.1 times PyTorch's time",
            f"{ours * 1e3:.4g} ms, PyTorch {theirs * 1e3:.4g}, NumPy {numpys * 1e3:.4g}: {ours / theirs:.2f}",
            ours <= 1.1 * theirs)


def moved():
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                           os.path.join(HERE, "test_sharing.py")], capture_output=True, text=True, check=False)
    row("no operation moves bytes; memory is shared with NumPy and PyTorch (test_sharing.py)",
        done.stdout.strip().splitlines()[-1], done.returncode == 0)


def suite():
    done = subprocess.run([sys.executable, os.path.join(HERE, "array_api_suite.py")], capture_output=True, text=True,
                          check=False)
    found = {word: int(count) for count, word in re.findall(r"(\d+) (\w+)", done.stdout.strip().splitlines()[-1])}
    passed, of = found.get("passed", 0), sum(found.get(word, 0) for word in
                                             ("passed", "failed", "skipped", "xfailed", "xpassed"))
    row("array-api-tests: at least 90 %", f"{passed} of {of}, {found.get('failed', 0)} failed",
        passed + found.get("xpassed", 0) >= 0.9 * of)


SIZES = (64, 100, 128, 200, 256, 400, 512, 768, 1000, 1500, 2048, 3000, 5000)  # of products
PARTS = {"lines": lines, "overhead": overhead, "random": random, "fft": fft, "products": products, "bytes": moved,
         "suite": suite}


def main():
    print(f"{cleave.default_context()}, {CORES} cores\n\n| promise | measured | kept |\n| --- | --- | --- |")
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
    sys.exit(not all(ROWS))


if __name__ == "__main__":
    main()
