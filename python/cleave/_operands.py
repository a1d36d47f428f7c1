# SPDX-License-Identifier: Apache-2.0
"""Passes NumPy arrays and Arrays to calls of the library that compute in float32."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import address, numbers
from ._check import given as shown
from ._context import Context, chosen
from ._device_array import Array, shape_of
from ._dtypes import FLOAT32, NUMBERS
from ._library import check, lib
from .errors import ArgumentError, ArgumentTypeError, ShapeError

_FLOAT32 = np.dtype(np.float32)  # NumPy's only dtype object for native float32: comparisons use `is`


def out_of(out: Any) -> Any:
    """Returns `out` if it is a NumPy array or an Array; raises ArgumentTypeError otherwise."""
    if not isinstance(out, (Array, np.ndarray)):
        raise ArgumentTypeError(f"out is {shown(out)}, but it must be an array of NumPy or a cleave.Array")
    return out


class Operands:
    """The arrays of one call: NumPy arrays are wrapped in place, Arrays are used as they are. Results are Arrays if an
    operand is an Array, else NumPy arrays."""
    __slots__ = ("context", "handle", "wrapped", "ours", "made", "at")

    def __init__(self, context: Context | None, *given: Any):
        self.ours = False
        self.made = ctypes.c_void_p()
        self.at = ctypes.byref(self.made)
        self.wrapped: list[tuple[int, NDArray[Any], int | None, tuple[int, ...]]] = []
        for value in given:
            if isinstance(value, Array):
                self.ours = True
                context = context or value.context
                if value.context is not context:
                    raise ArgumentError("the arrays belong to different contexts")
        self.context = chosen(context)

    def __enter__(self) -> "Operands":
        self.handle = self.context.acquire()
        return self

    def __exit__(self, *_unused: Any) -> None:
        for one in self.wrapped:
            lib.clv_array_free(one[0])
        self.context.release()

    def wrap(self, given: NDArray[Any]) -> int:
        at, shape = address(given), given.shape
        for known, _kept, there, other in self.wrapped:  # the same memory is wrapped only once
            if there == at and other == shape:
                return known
        status = lib.clv_array_wrap(self.handle, at, len(shape), shape_of(shape), self.at)
        if status:
            check(status)
        handle = self.made.value or 0
        self.wrapped.append((handle, given, at, shape))
        return handle

    def operand(self, value: Any, what: str = "array") -> tuple[int, tuple[int, ...]]:
        if isinstance(value, Array):
            if value.dtype is FLOAT32 and value.is_whole:
                return value.handle, value.shape
            return self.converted(value, what), value.shape
        given = value
        if type(given) is not np.ndarray or given.dtype is not _FLOAT32 or \
                not given.flags.c_contiguous or not given.flags.aligned:
            given = np.ascontiguousarray(numbers(what, value)).reshape(np.shape(value))
        return self.wrap(given), given.shape

    def converted(self, value: Array, what: str) -> int:
        """Returns the library's handle of a float32 copy, which is freed at the end of the call."""
        if value.dtype.kind == "c":
            raise ShapeError(f"{what}: got {value.dtype}, but real numbers are expected")
        check(lib.clv_array_cast(value.handle, NUMBERS[FLOAT32], self.at))
        handle = self.made.value or 0
        self.wrapped.append((handle, np.empty(0), None, value.shape))
        return handle

    def result(self, shape: tuple[int, ...], out: Any = None) -> tuple[int, Any]:
        if out is not None:
            if tuple(out_of(out).shape) != tuple(shape) or out.dtype != np.float32:
                raise ShapeError(f"out: got {out.dtype} {out.shape}, but float32 {shape} is expected")
            if isinstance(out, Array):
                return out.handle, out
            if not out.flags.c_contiguous or not out.flags.writeable:
                raise ShapeError("out must be a dense, writeable array")
            return self.wrap(out), out
        if self.ours:
            check(lib.clv_array_create(self.handle, len(shape), shape_of(shape), self.at))
            handle = self.made.value or 0
            return handle, Array(self.context, handle, tuple(shape))
        given = np.empty(shape, np.float32)
        return self.wrap(given), given
