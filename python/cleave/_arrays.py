# SPDX-License-Identifier: Apache-2.0
"""Converts arguments to NumPy arrays that the library can read: of a known type and in native byte order."""
from __future__ import annotations

import ctypes
import operator
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from ._library import lib
from .errors import ArgumentError, ShapeError

# A view of an array's first byte. The cast is here because NumPy's stubs declare the buffer only from Python 3.12 on.
_first_byte: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer


_masked: Any = np.ma  # untyped, because NumPy's stubs have no types for numpy.ma before 2.3


def is_masked(value: Any) -> bool:
    """Tells whether this is a masked array with masked elements."""
    return isinstance(value, np.ma.MaskedArray) and bool(_masked.is_masked(value))


def numbers(what: str, value: Any, dtype: Any = np.float32) -> NDArray[Any]:
    """Returns an array of floats of any shape whose masked elements are NaN: the input itself if it has this form.
    Raises ShapeError if the elements are not real numbers, such as complex numbers, texts and objects."""
    if is_masked(value):
        value = value.astype(dtype).filled(np.nan)
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of several lengths
        raise ShapeError(f"{what}: {error}") from None
    if array.dtype.kind not in "fiub":
        raise ShapeError(f"{what}: got {array.dtype}, but real numbers are expected")
    return np.asarray(array, dtype=dtype)


def whole_numbers(what: str, value: Any, dtype: Any) -> NDArray[Any]:
    """Returns a dense array of an integer type. Raises ArgumentError if this type cannot hold one of the numbers: NumPy
    would cut off fractions and bits, and turn NaN into a number."""
    found = numbers(what, value, None)
    with np.errstate(invalid="ignore"):
        made = np.ascontiguousarray(found, dtype)
    wrong = np.nonzero(np.ravel(made != found))[0]
    if len(wrong):
        raise ArgumentError(f"{what}: number {wrong[0]} is {found.ravel()[wrong[0]]}, but whole numbers of "
                            f"{8 * made.itemsize} bits are expected")
    return made


def as_floats(what: str, value: Any, ndim: int, dtype: Any = np.float32) -> NDArray[Any]:
    """Returns an array of floats whose last axis is dense; masked elements become NaN. It is a view if the input
    already has this form, else a copy."""
    array = numbers(what, value, dtype)
    if array.ndim != ndim:
        raise ShapeError(f"{what}: got shape {array.shape}, but {ndim} axes are expected")
    return array


def elements(what: str, value: Any, kinds: str = "iufbV") -> NDArray[Any]:
    """Returns a dense array of numbers or of structures, with its own type, in native byte order."""
    if is_masked(value):
        raise ShapeError(f"{what}: a masked array is not supported; fill its masked elements with filled()")
    try:
        array = np.ascontiguousarray(value)
    except ValueError as error:  # rows of several lengths
        raise ShapeError(f"{what}: {error}") from None
    if array.dtype.hasobject or array.dtype.kind not in kinds:
        raise ShapeError(f"{what}: got {array.dtype}, but an array of numbers is expected")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def with_strides(array: NDArray[Any]) -> tuple[NDArray[Any], list[int]]:
    """Returns the array, copied if the library cannot address its elements, and its strides in elements."""
    size = array.itemsize
    if array.ndim == 2 and array.flags.c_contiguous and array.flags.aligned:
        return array, [array.strides[0] // size if array.shape[0] > 1 else 0,
                       1 if array.shape[1] > 1 else 0]
    strides = [stride // size for stride in array.strides]
    rows = all(stride % size == 0 for stride in array.strides) and array.flags.aligned
    dense = array.shape[-1] <= 1 or strides[-1] == 1
    inner = array.shape[-1]
    for extent, stride in zip(reversed(array.shape[:-1]), reversed(strides[:-1])):
        rows = rows and (extent <= 1 or stride >= inner)
        inner = max(inner, stride) * extent
    if not (rows and dense):
        array = np.ascontiguousarray(array)
        strides = [stride // size for stride in array.strides]
    # an axis of one element may have any stride in NumPy: 0 stands for a dense axis in the library
    return array, [stride if extent > 1 else 0 for extent, stride in zip(array.shape, strides)]


def extents(what: str, given: Any, least: int = 1) -> tuple[int, ...]:
    """Returns a shape that the caller gives as a whole number or as a sequence of them."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    try:
        wanted = (operator.index(given),) if hasattr(given, "__index__") else \
            tuple(map(operator.index, given))
    except TypeError:
        raise ShapeError(f"{what}: got shape {given!r}, but whole numbers are expected") from None
    if any(extent < least for extent in wanted):
        raise ShapeError(f"{what}: the shape is {wanted}, but extents must be at least {least}")
    return wanted


def address(array: NDArray[Any] | None) -> int | None:
    if array is None:
        return None
    try:  # three times as fast, but only for arrays that are writeable, dense and not empty
        return ctypes.addressof(_first_byte(array))
    except (TypeError, ValueError, BufferError):
        at: int = array.__array_interface__["data"][0]
        return at


def seen_at(at: int, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Returns an array [count] that views memory of the library; it is valid until the library frees that memory."""
    raw = (ctypes.c_char * (count * dtype.itemsize)).from_address(at)
    return np.frombuffer(memoryview(raw), dtype)


def given_away(pointer: ctypes.c_void_p, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Returns a copy of an array that the library allocated, and frees the library's array."""
    try:
        if not count:
            return np.empty(0, dtype)
        return seen_at(pointer.value or 0, count, dtype).copy()
    finally:
        lib.clv_free(pointer)
        pointer.value = None


def dtype_of(structure: type[ctypes.Structure]) -> np.dtype[Any]:
    """Returns the NumPy type that has the fields and the layout of a ctypes structure."""
    return np.dtype(structure)
