# SPDX-License-Identifier: Apache-2.0
"""The caller's own OpenCL C: a kernel, and what its arguments are."""
from __future__ import annotations

import ctypes
import hashlib
import math
import os
from typing import Any, Mapping

import numpy as np

from . import _abi
from .errors import ArgumentError, ShapeError

# The library knows programs by the address of their source, for as long as a context lives: what
# was once handed over stays.
_sources: dict[tuple[bytes, bytes], _abi.Source] = {}
_names: dict[str, bytes] = {}


def _kept_source(name: str, text: str) -> _abi.Source:
    key = name.encode(), text.encode()
    source = _sources.get(key)
    if source is None:
        source = _sources.setdefault(key, _abi.Source(key[0], key[1], len(key[1])))
    return source


def _kept_name(name: str) -> bytes:
    return _names.setdefault(name, name.encode())


class Kernel:
    """One kernel of a source text, for map().

    >>> square = Kernel('''
    ...     __kernel void square(__global const float *in, __global float *out, uint count)
    ...     {
    ...         const size_t i = get_global_id(0);
    ...         if (i < count) out[i] = in[i] * in[i];
    ...     }''', "square")

    Parameters
    ----------
    source   OpenCL C 1.2; `#include "common/x.clh"` finds the library's own headers
    name     of the kernel function
    defines  integers by name, as -D NAME=value; at most 16
    file     what build logs call the text

    It is compiled on a device when that first needs it, and kept in memory and on disk. The text
    itself is never freed: make kernels once, not in a loop with ever new texts.
    """

    def __init__(self, source: str, name: str, defines: Mapping[str, int] | None = None, *,
                 file: str = "kernel.cl"):
        defines = dict(defines or {})
        if len(defines) > _abi.MAX_DEFINES:
            raise ArgumentError(f"kernel {name}: {len(defines)} defines, at most "
                                f"{_abi.MAX_DEFINES}")
        self.name, self.file, self.source, self.defines = name, file, source, defines
        text = repr((source, name, sorted(defines.items()))).encode()
        self.digest = hashlib.sha256(text).hexdigest()[:16]
        self.items = _abi.Items(size=ctypes.sizeof(_abi.Items), kernel=_kept_name(name),
                                source=ctypes.pointer(_kept_source(file, source)))
        for i, (key, value) in enumerate(defines.items()):
            if not key.isidentifier() or not isinstance(value, (int, np.integer)) \
                    or not -2**63 <= value < 2**63:
                raise ArgumentError(f"kernel {name}: define {key}={value!r}: a name and an integer "
                                    "of 64 bits expected")
            self.items.defines[i] = _abi.Define(_kept_name(key), int(value))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], name: str,
                  defines: Mapping[str, int] | None = None) -> "Kernel":
        """A kernel of a .cl file."""
        with open(path, encoding="utf-8") as file:
            return cls(file.read(), name, defines, file=os.path.basename(os.fspath(path)))

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """map(self, ...)"""
        from ._map import map_items
        return map_items(self, *arguments, **options)

    def __repr__(self) -> str:
        return f"<cleave.Kernel {self.name}>"


class Shared:
    """An array that every item sees whole: it is copied to each device once."""

    def __init__(self, array: Any):
        given = np.ascontiguousarray(array)
        if not given.size:
            raise ShapeError("Shared: an empty array")
        if given.dtype.hasobject or given.dtype.kind not in "iufbcV":
            raise ShapeError(f"Shared: an array of numbers expected, {given.dtype} given")
        self.array = given.astype(given.dtype.newbyteorder("="), copy=False)


class Out:
    """A result: `shape` elements of `dtype` for each item; map() returns [items, *shape]."""

    def __init__(self, dtype: Any = np.float32, shape: int | tuple[int, ...] = ()):
        self.dtype = np.dtype(dtype).newbyteorder("=")  # as devices write
        self.shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)
        self.item_bytes: int = self.dtype.itemsize * math.prod(self.shape)
        if self.dtype.hasobject or self.item_bytes < 1:
            raise ShapeError(f"Out: {self.dtype} {self.shape}: plain elements expected")


class Local:
    """Local memory of a work-group, in bytes: a `__local` pointer argument."""

    def __init__(self, bytes: int):
        self.bytes = int(bytes)
        if self.bytes < 1:
            raise ArgumentError(f"Local: {bytes} bytes, 1 or more expected")


class _Number:
    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"cleave.{self.name}"


#: `uint` arguments: the chunk's first item, and how many items it has.
FIRST, COUNT = _Number("FIRST"), _Number("COUNT")

_SCALARS: dict[np.dtype[Any], Any] = {np.dtype(kind): kind for kind in (
    ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64, ctypes.c_int64, ctypes.c_float,
    ctypes.c_double, ctypes.c_uint8, ctypes.c_int8, ctypes.c_uint16, ctypes.c_int16)}


def scalar(value: Any) -> Any:
    """A number as the kernel gets it, a ctypes object: of NumPy's own type; a Python int is `int`, a
    float `float`. None: this is not a number."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)):
        raise ArgumentError("map: a bool is no kernel argument: pass np.int32")
    if isinstance(value, np.generic):  # np.float64 is a Python float as well
        kind = _SCALARS.get(value.dtype)
        if kind is None:
            raise ArgumentError(f"map: {value.dtype} is no kernel argument")
        return kind(value.item())
    if isinstance(value, int):
        if not -2**31 <= value < 2**31:
            raise ArgumentError(f"map: {value} does not fit an int: pass np.int64 or np.uint64")
        return ctypes.c_int32(value)
    return ctypes.c_float(value) if isinstance(value, float) else None
