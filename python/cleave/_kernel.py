# SPDX-License-Identifier: Apache-2.0
"""The caller's own OpenCL C: a kernel, and what its arguments are."""
from __future__ import annotations

import ctypes
import hashlib
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
        self._launch = _abi.Launch(source=ctypes.pointer(_kept_source(file, source)),
                                   kernel=_kept_name(name))
        for i, (key, value) in enumerate(defines.items()):
            if not key.isidentifier() or not isinstance(value, (int, np.integer)):
                raise ArgumentError(f"kernel {name}: define {key}={value!r}: a name and an integer "
                                    "expected")
            self._launch.defines[i] = _abi.Define(_kept_name(key), int(value))
        text = repr((source, name, sorted(defines.items()))).encode()
        self.digest = hashlib.sha256(text).hexdigest()[:16]

    @classmethod
    def from_file(cls, path: str | os.PathLike, name: str,
                  defines: Mapping[str, int] | None = None) -> "Kernel":
        """A kernel of a .cl file."""
        with open(path, encoding="utf-8") as file:
            return cls(file.read(), name, defines, file=os.path.basename(os.fspath(path)))

    def launch(self, global_size: tuple[int, ...], local_size: tuple[int, ...]) -> _abi.Launch:
        """A launch of this kernel; for _map.py."""
        launch = _abi.Launch.from_buffer_copy(self._launch)
        setattr(launch, "global", (ctypes.c_size_t * 3)(*global_size))
        launch.local = (ctypes.c_size_t * 3)(*local_size)
        return launch

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """map(self, ...)"""
        from ._map import map_items
        return map_items(self, *arguments, **options)

    def __repr__(self) -> str:
        return f"<cleave.Kernel {self.name}>"


class Shared:
    """An array that every item sees whole: it is copied to each device once."""

    def __init__(self, array: Any):
        self.array = np.ascontiguousarray(array)
        if not self.array.size:
            raise ShapeError("Shared: an empty array")


class Out:
    """A result: `shape` elements of `dtype` for each item; map() returns [items, *shape]."""

    def __init__(self, dtype: Any = np.float32, shape: int | tuple[int, ...] = ()):
        self.dtype = np.dtype(dtype)
        self.shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        if self.dtype.hasobject or not self.item_bytes:
            raise ShapeError(f"Out: {self.dtype} {self.shape}: plain elements expected")

    @property
    def item_bytes(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))


class Local:
    """Local memory of a work-group, in bytes: a `__local` pointer argument."""

    def __init__(self, bytes: int):
        self.bytes = int(bytes)


class _Number:
    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"cleave.{self.name}"


#: `uint` arguments: the chunk's first item, and how many items it has.
FIRST, COUNT = _Number("FIRST"), _Number("COUNT")

_SCALARS = {np.dtype(t) for t in (np.uint32, np.int32, np.uint64, np.int64, np.float32, np.float64,
                                  np.uint8, np.int8, np.uint16, np.int16)}


def scalar(value: Any) -> np.generic | None:
    """A number as the kernel gets it: NumPy's own type; a Python int is `int`, a float `float`.
    None: this is not a number."""
    if isinstance(value, bool) or isinstance(value, np.bool_):
        raise ArgumentError("map: a bool is no kernel argument: pass np.int32")
    if isinstance(value, int):
        if not -2**31 <= value < 2**31:
            raise ArgumentError(f"map: {value} does not fit an int: pass np.int64 or np.uint64")
        return np.int32(value)
    if isinstance(value, float):
        return np.float32(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic):
        if value.dtype not in _SCALARS:
            raise ArgumentError(f"map: {value.dtype} is no kernel argument")
        return value
    return None
