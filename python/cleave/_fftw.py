# SPDX-License-Identifier: Apache-2.0
"""Calls the system's FFTW through ctypes: libfftw3f.so.3 and libfftw3.so.3 with their threads.

The FFTW in pyFFTW's package is not called: pyFFTW guards it with a lock of its own, and to make a plan while pyFFTW
makes or frees one would end the process."""
from __future__ import annotations

import ctypes
import functools
import math
import os
import threading
from typing import Any, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

_MEASURE, _DESTROY_INPUT = 0, 1
_SAFE = (3, 3, 6)
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


def _opened(letter: str) -> ctypes.CDLL | None:
    """Opens the library that has FFTW with threads, those of OpenMP if it can, which begin sooner. Other users of the
    library may make plans in other threads: FFTW then takes a lock, but since 3.3.6 only for all that needs it."""
    name = f"fftw{letter}"
    try:
        posix = ctypes.CDLL(f"libfftw3{letter}_threads.so.3")
        version = (ctypes.c_char * 16).in_dll(posix, f"{name}_version").value.decode()
        if tuple(int(part) for part in version.split("-")[1].split(".")) < _SAFE:
            return None
        getattr(posix, f"{name}_make_planner_thread_safe")()
    except (OSError, AttributeError, ValueError):
        return None
    try:
        return ctypes.CDLL(f"libfftw3{letter}_omp.so.3")
    except OSError:
        return posix


@functools.lru_cache(maxsize=None)
def _library(letter: str) -> _Library | None:
    """Prepares FFTW for float32 (letter "f") or float64 (""); returns None if it is not there."""
    main, name = _opened(letter), f"fftw{letter}"
    if main is None:
        return None
    getattr(main, f"{name}_init_threads")()
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
    wanted = getattr(main, f"{name}_plan_with_nthreads")
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
        self._library, self.function, self._plan, self.threads = library, library.run[self.kind], None, threads
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

    @property
    def pointer(self) -> int:
        """The plan, for `function`."""
        return int(self._plan or 0)

    def __del__(self) -> None:
        if getattr(self, "_plan", None):
            with _lock:
                self._library.free(self._plan)

    def run(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        """Transforms x into out, unscaled; a transform of complex to real numbers spoils x."""
        self.run_at(x.ctypes.data, out.ctypes.data)

    def run_at(self, x: Any, out: Any) -> None:
        """Does the same as run(), with the addresses of arrays."""
        self.function(self._plan, x, out)
