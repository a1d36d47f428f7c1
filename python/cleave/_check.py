# SPDX-License-Identifier: Apache-2.0
"""Checks arguments before they are passed to the library: an error names the argument, its value, and what is
accepted. Without these checks, ctypes would cut numbers to their lowest bits, and C would end a text at a NUL."""
from __future__ import annotations

import ctypes
import numbers
import operator
import os
import reprlib
from typing import Any

from .errors import ArgumentError, ArgumentTypeError

_MAX = (1 << 63) - 1
FLOAT32_MAX = 3.4028235e38  # a bound that rounds to the largest float32
_UNITS = ("_px", "_kms", "_bytes", "_s")  # suffixes of the library's option names that the package's omit
_REALS = (ctypes.c_float, ctypes.c_double)


def given(value: Any) -> str:
    """Returns a value as an error message shows it: shortened, with its type unless that is obvious."""
    text = reprlib.repr(value)
    return text if value is None or isinstance(value, (int, float, str, bytes)) else \
        f"{type(value).__name__} {text}"


def bound(number: int) -> str:
    """Returns a bound as text. From 2^31 on, powers of two and the numbers just below them are written as "2^n" and
    "2^n - 1"."""
    for near, text_of in ((abs(number), "2^{}"), (abs(number) + 1, "2^{} - 1")):
        if near >= 1 << 31 and near & (near - 1) == 0:
            return "-" * (number < 0) + text_of.format(near.bit_length() - 1)
    return str(number)


def whole(what: str, value: Any, least: int = 0, most: int = _MAX) -> int:
    """Returns an int within bounds; accepts NumPy's integers."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"{what} is {given(value)}, but it must be an integer") from None
    if not least <= number <= most:
        raise ArgumentError(f"{what} is {given(number)}, but it must be {bound(least)} to {bound(most)}")
    return number


def real(what: str, value: Any) -> float:
    """Returns a float; accepts whatever float() does, except texts."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentTypeError(f"{what} is {given(value)}, but it must be a number") from None


def real32(what: str, value: Any) -> float:
    """Returns a float, as real() does, that is within float32's range, infinite or NaN."""
    number = real(what, value)
    if FLOAT32_MAX < abs(number) < float("inf"):
        raise ArgumentError(f"{what} is {given(value)}, which is too large for float32")
    return number


def not_zero(what: str, **values: Any) -> None:
    """Raises ArgumentError if a value is 0. The library would take it for "the default", which the caller did not
    mean."""
    for name, value in values.items():
        if isinstance(value, numbers.Number) and not value:
            raise ArgumentError(f"{what}: {name} is {given(value)}, but it must be more than 0")


def text(what: str, value: Any) -> str:
    """Returns the value if it is a str without NUL characters, so that C reads all of it."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{what} is {given(value)}, but it must be a text")
    if "\0" in value:
        raise ArgumentError(f"{what} is {given(value)}, which has a NUL character")
    return value


def file_path(what: str, value: Any) -> str:
    """Returns a path as str."""
    try:
        found = os.fsdecode(value)
    except TypeError:
        raise ArgumentTypeError(f"{what} is {given(value)}, but it must be a path") from None
    return text(what, found)


def described(what: str, kind: Any, **members: Any) -> Any:
    """Makes a structure of the library's options. ArgumentError names a member whose type cannot hold its value."""
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
    """Tells whether float32 turned a finite number into an infinity."""
    return bool(held != value) and abs(held) == float("inf")


def _refuse(what: str, name: str, value: Any, kind: Any) -> None:
    for unit in _UNITS:
        name = name[:-len(unit)] if name.endswith(unit) else name
    if kind is ctypes.c_bool:
        raise ArgumentTypeError(f"{what}: {name} is {given(value)}, but it must be True or False")
    if kind in _REALS:
        raise ArgumentTypeError(f"{what}: {name} is {given(value)}, but it must be a number" +
                                (" that float32 holds" if isinstance(value, float) else ""))
    if not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{what}: {name} is {given(value)}, but it must be an integer")
    signed = kind(-1).value < 0
    bits = 8 * ctypes.sizeof(kind) - signed
    raise ArgumentError(f"{what}: {name} is {given(value)}, but it must be an integer from "
                        f"{bound(-2**bits) if signed else 0} to {bound(2**bits - 1)}")
