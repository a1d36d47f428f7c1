# SPDX-License-Identifier: Apache-2.0
"""Element types of arrays: NumPy's types, and the library's numbers for them."""
from __future__ import annotations

from typing import Any

import numpy as np

from .errors import ArgumentError

_NAMES = ("float32", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
          "float64", "complex64", "complex128")
TYPES = tuple(np.dtype(name) for name in _NAMES)  # clv_dtype counts in this order
NUMBERS = {dtype: number for number, dtype in enumerate(TYPES)}
_OURS = frozenset(map(id, TYPES))
(FLOAT32, BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT16, FLOAT64, COMPLEX64,
 COMPLEX128) = TYPES
#: The element types that array() chooses for Python's own numbers.
DEFAULTS = {bool: BOOL, int: INT64, float: FLOAT32, complex: COMPLEX64}
_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def dtype_from(value: Any) -> np.dtype[Any]:
    """Returns the type that a caller names; ArgumentError if arrays have no such type."""
    if id(value) in _OURS:
        return value  # type: ignore[no-any-return]
    try:
        found = np.dtype(value).newbyteorder("=")
    except TypeError:
        found = None
    if found not in NUMBERS:
        raise ArgumentError(f"dtype is {value!r}, but it must be one of {', '.join(sorted(_NAMES))}")
    return TYPES[NUMBERS[found]]


def is_number(value: Any) -> bool:
    """Tells whether the value is a Python number, which takes the type of the array that it is combined with."""
    return type(value) in DEFAULTS


def weak(dtype: np.dtype[Any], number: Any) -> np.dtype[Any]:
    """Returns the type in which an array is computed with a Python number: the array's type, unless the number is of a
    later kind (bool, integer, real, complex)."""
    kind = DEFAULTS[type(number)]
    if _RANK[kind.kind] <= _RANK[dtype.kind]:
        return dtype
    if kind.kind == "c":
        return COMPLEX128 if dtype in (FLOAT64, INT64, INT32, UINT64, UINT32) else COMPLEX64
    return FLOAT64 if kind.kind == "f" and dtype.kind in "iu" else kind


def real_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the type of the real and imaginary parts of a complex type; returns any other type unchanged."""
    return FLOAT32 if dtype == COMPLEX64 else FLOAT64 if dtype == COMPLEX128 else dtype
