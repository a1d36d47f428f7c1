# SPDX-License-Identifier: Apache-2.0
"""Calls FFTW through ctypes: the one that pyFFTW has brought, or the system's libfftw3f.so.3 and libfftw3.so.3 with
their threads."""
from __future__ import annotations

import ctypes
import functools
import glob
import importlib.util
import math
import os
import threading
from typing import Any, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

_MEASURE, _DESTROY_INPUT = 0, 1
_ALIGNMENT = 64  # of the arrays of a plan, in bytes; FFTW's vector instructions need it
# FFTW makes one plan at a time. The lock can be taken twice, because the collector of garbage may free a plan while the
# same thread makes one.
_lock = threading.RLock()


def _forked() -> None:
    """Gives a child a lock of its own, because the thread that held the parent's is not there."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_forked)


class _Axis(ctypes.Structure):
    """fftw_iodim64: an extent, and the steps of input and output in elements."""
    _fields_ = [("n", ctypes.c_ssize_t), ("into", ctypes.c_ssize_t), ("out", ctypes.c_ssize_t)]


class _Library(NamedTuple):
    """The functions of FFTW for one precision."""
    plan: dict[str, Any]
    run: dict[str, Any]
    free: Any
    threads: Any
    limit: Any


def _opened(letter: str) -> tuple[ctypes.CDLL, ctypes.CDLL] | None:
    """Opens the libraries that have FFTW and its threads. pyFFTW comes first: its threads, which are OpenMP's, begin
    sooner. The symbols are found through its extension module, which is not imported."""
    found = importlib.util.find_spec("pyfftw")
    for folder in (found.submodule_search_locations if found else None) or ():
        for path in glob.glob(os.path.join(glob.escape(folder), "pyfftw.*.so")):
            try:
                both = ctypes.CDLL(path)
                for function in ("plan_guru64_dft_c2r", "plan_with_nthreads"):
                    getattr(both, f"fftw{letter}_{function}")
                return both, both
            except (OSError, AttributeError):  # made without this precision, or without threads
                continue
    try:
        main = ctypes.CDLL(f"libfftw3{letter}.so.3", ctypes.RTLD_GLOBAL)
        return main, ctypes.CDLL(f"libfftw3{letter}_threads.so.3")
    except OSError:
        return None


@functools.lru_cache(maxsize=None)
def _library(letter: str) -> _Library | None:
    """Prepares FFTW for float32 (letter "f") or float64 (""); returns None if it is not there."""
    opened = _opened(letter)
    if not opened:
        return None
    main, threads = opened
    name = f"fftw{letter}"
    getattr(threads, f"{name}_init_threads")()
    plans, runs = {}, {}
    for kind in ("dft", "dft_r2c", "dft_c2r"):
        plans[kind] = getattr(main, f"{name}_plan_guru64_{kind}")
        plans[kind].restype = ctypes.c_void_p
        plans[kind].argtypes = [ctypes.c_int, ctypes.POINTER(_Axis), ctypes.c_int, ctypes.POINTER(_Axis),
                                ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int] * (2 if kind == "dft" else 1)]
        runs[kind] = getattr(main, f"{name}_execute_{kind}")
        runs[kind].argtypes = [ctypes.c_void_p] * 3
        runs[kind].restype = None
    free, limit = getattr(main, f"{name}_destroy_plan"), getattr(main, f"{name}_set_timelimit")
    free.argtypes, limit.argtypes = [ctypes.c_void_p], [ctypes.c_double]
    wanted = getattr(threads, f"{name}_plan_with_nthreads")
    wanted.argtypes = [ctypes.c_int]
    return _Library(plans, runs, free, wanted, limit)


def there() -> bool:
    """Tells whether FFTW is installed in both precisions."""
    return _library("f") is not None and _library("") is not None


def aligned(shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Returns a dense array of undefined contents whose memory a plan can use."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start:start + size].view(dtype).reshape(shape)


def fits(*addresses: int) -> bool:
    """Tells whether a plan can use the memory at these addresses."""
    return not any(address % _ALIGNMENT for address in addresses)


class Plan:
    """A way to transform dense arrays of one shape and type, which FFTW has measured; it overwrites both arrays.
    The arrays must be aligned."""

    def __init__(self, x: NDArray[Any], out: NDArray[Any], axes: Sequence[int], forward: bool, limit_s: float,
                 threads: int):
        self.kind = "dft_r2c" if x.dtype.kind == "f" else "dft_c2r" if out.dtype.kind == "f" else "dft"
        library = _library("f" if out.dtype in (np.float32, np.complex64) else "")
        assert library is not None
        self._library, self._run, self._plan, self.threads = library, library.run[self.kind], None, threads
        real = out if self.kind == "dft_c2r" else x
        steps = [[step // one.dtype.itemsize for step in one.strides] for one in (x, out)]
        loops = [axis for axis in range(x.ndim) if axis not in axes]
        each = (_Axis * max(len(axes), 1))(*(_Axis(real.shape[i], steps[0][i], steps[1][i]) for i in axes))
        over = (_Axis * max(len(loops), 1))(*(_Axis(x.shape[i], steps[0][i], steps[1][i]) for i in loops))
        flags = _MEASURE | (_DESTROY_INPUT if self.kind == "dft_c2r" else 0)
        sign = [] if self.kind != "dft" else [-1 if forward else 1]
        with _lock:
            library.threads(threads)
            library.limit(limit_s)
            self._plan = library.plan[self.kind](len(axes), each, len(loops), over, x.ctypes.data, out.ctypes.data,
                                                 *sign, flags)
        if not self._plan:
            raise MemoryError("FFTW made no plan")

    def __del__(self) -> None:
        if getattr(self, "_plan", None):
            with _lock:
                self._library.free(self._plan)

    def run(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        """Transforms x into out, unscaled; a transform of complex to real numbers spoils x."""
        self.run_at(x.ctypes.data, out.ctypes.data)

    def run_at(self, x: Any, out: Any) -> None:
        """Does the same as run(), with the addresses of arrays."""
        self._run(self._plan, x, out)
