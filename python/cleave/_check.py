# SPDX-License-Identifier: Apache-2.0
"""What callers hand over, looked at before the library sees it: an error names the argument, what was
given and what was expected. ctypes would cut numbers to their last bits, and texts at a NUL."""
from __future__ import annotations

import ctypes
import numbers
import operator
import os
import reprlib
from typing import Any

from .errors import ArgumentError, ArgumentTypeError

_MAX = (1 << 63) - 1
FLOAT32_MAX = 3.4028235e38  # rounds to the largest
_UNITS = ("_px", "_kms", "_bytes", "_s")  # of the library's names, which the package's lack
_REALS = (ctypes.c_float, ctypes.c_double)


def given(value: Any) -> str:
    """A value as an error shows it: short, with its type where that is not plain."""
    text = reprlib.repr(value)
    return text if value is None or isinstance(value, (int, float, str, bytes)) else \
        f"{type(value).__name__} {text}"


def bound(number: int) -> str:
    """A bound as people read it: 2^32 - 1."""
    for near, text_of in ((abs(number), "2^{}"), (abs(number) + 1, "2^{} - 1")):
        if near >= 1 << 31 and near & (near - 1) == 0:
            return "-" * (number < 0) + text_of.format(near.bit_length() - 1)
    return str(number)


def whole(what: str, value: Any, least: int = 0, most: int = _MAX) -> int:
    """An int, or what NumPy has for it, within bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"{what}: {given(value)} given, an integer expected") from None
    if not least <= number <= most:
        raise ArgumentError(f"{what}: {given(number)} given, expected {bound(least)} to {bound(most)}")
    return number


def real(what: str, value: Any) -> float:
    """A float, or what can be one; texts cannot."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentTypeError(f"{what}: {given(value)} given, a number expected") from None


def real32(what: str, value: Any) -> float:
    """real() that float32 can hold; infinities and NaN are themselves."""
    number = real(what, value)
    if FLOAT32_MAX < abs(number) < float("inf"):
        raise ArgumentError(f"{what}: {given(value)} given, beyond float32")
    return number


def not_zero(what: str, **values: Any) -> None:
    """0 is how the library is told to take its default: who gives a 0 here does not mean that."""
    for name, value in values.items():
        if isinstance(value, numbers.Number) and not value:
            raise ArgumentError(f"{what}: {name}: {given(value)} given, more than 0 expected")


def text(what: str, value: Any) -> str:
    """A str that C can read."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{what}: {given(value)} given, a text expected")
    if "\0" in value:
        raise ArgumentError(f"{what}: {given(value)} given: it has a NUL character")
    return value


def file_path(what: str, value: Any) -> str:
    """A path as str."""
    try:
        found = os.fsdecode(value)
    except TypeError:
        raise ArgumentTypeError(f"{what}: {given(value)} given, a path expected") from None
    return text(what, found)


def described(what: str, kind: Any, **members: Any) -> Any:
    """A structure of options of the library. ArgumentError names a member that its type cannot hold."""
    try:
        made = kind(ctypes.sizeof(kind), **members)
    except (TypeError, OverflowError):
        types = dict(kind._fields_)
        made = kind(ctypes.sizeof(kind))
        for name, value in members.items():
            try:
                setattr(made, name, value)
            except (TypeError, OverflowError):
                _refuse(what, name, value, types[name])
        raise
    for name, value in members.items():
        if isinstance(value, float):
            wrong = _cut(getattr(made, name), value)
        else:
            wrong = isinstance(value, str) or \
                hasattr(value, "__index__") and getattr(made, name) != value
        if wrong:
            _refuse(what, name, value, dict(kind._fields_)[name])
    return made


def _cut(held: Any, value: float) -> bool:
    """Whether float32 has made an infinity of a number."""
    return bool(held != value) and abs(held) == float("inf")


def _refuse(what: str, name: str, value: Any, kind: Any) -> None:
    for unit in _UNITS:
        name = name[:-len(unit)] if name.endswith(unit) else name
    if kind is ctypes.c_bool:
        raise ArgumentTypeError(f"{what}: {name}: {given(value)} given, True or False expected")
    if kind in _REALS:
        raise ArgumentTypeError(f"{what}: {name}: {given(value)} given, a number expected" +
                                (" that float32 holds" if isinstance(value, float) else ""))
    if not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{what}: {name}: {given(value)} given, an integer expected")
    signed = kind(-1).value < 0
    bits = 8 * ctypes.sizeof(kind) - signed
    raise ArgumentError(f"{what}: {name}: {given(value)} given, an integer from "
                        f"{bound(-2**bits) if signed else 0} to {bound(2**bits - 1)} expected")
