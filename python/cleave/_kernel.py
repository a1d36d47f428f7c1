# SPDX-License-Identifier: Apache-2.0
"""Kernels in OpenCL C that the caller writes, and the kinds of arguments that they take."""
from __future__ import annotations

import ctypes
import hashlib
import math
import os
from typing import Any, Mapping

import numpy as np

from . import _abi
from ._arrays import elements, extents
from ._check import given, text, whole
from ._signature import Parameter, as_parameter, parameters
from .errors import ArgumentError, ArgumentTypeError, ShapeError

# The library identifies a program by the address of its source as long as a context exists, so source texts are never
# freed.
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
    source   OpenCL C 1.2; `#include "common/x.clh"` includes a header of the library
    name     name of the kernel function
    defines  at most 16 integers by name, passed to the compiler as -D NAME=value
    file     the name by which build logs refer to the source text

    A device compiles the kernel when it first needs it; the result is kept in memory and on disk. The text itself is
    never freed, so make each kernel once, and do not make kernels with new texts in a loop.
    """

    def __init__(self, source: str, name: str, defines: Mapping[str, int] | None = None, *,
                 file: str = "kernel.cl"):
        source, name = text("kernel: source", source), text("kernel: name", name)
        file = text("kernel: file", file)
        if not isinstance(defines or {}, Mapping):
            raise ArgumentTypeError(f"kernel {name}: defines is {given(defines)}, but it must be a mapping of names "
                                    "to integers")
        defines = dict(defines or {})
        if len(defines) > _abi.MAX_DEFINES:
            raise ArgumentError(f"kernel {name}: got {len(defines)} defines, but at most "
                                f"{_abi.MAX_DEFINES} are possible")
        self.name, self.file, self.source, self.defines = name, file, source, defines
        all_of_it = repr((source, name, sorted(defines.items()))).encode()
        self.digest = hashlib.sha256(all_of_it).hexdigest()[:16]
        self.parameters = parameters(source, name)
        self.items = _abi.Items(size=ctypes.sizeof(_abi.Items), kernel=_kept_name(name),
                                source=ctypes.pointer(_kept_source(file, source)))
        for i, (key, value) in enumerate(defines.items()):
            if not str(key).isidentifier() or not isinstance(value, (int, np.integer)):
                raise ArgumentError(f"kernel {name}: define {key}={value!r} must be a name and an "
                                    "integer")
            self.items.defines[i] = _abi.Define(_kept_name(key), whole(
                f"kernel {name}: define {key}", value, -1 << 63))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], name: str,
                  defines: Mapping[str, int] | None = None) -> "Kernel":
        """Makes a kernel from a .cl file."""
        with open(path, encoding="utf-8") as file:
            return cls(file.read(), name, defines, file=os.path.basename(os.fspath(path)))

    def __reduce__(self) -> Any:
        return _kernel_again, (self.source, self.name, self.defines, self.file)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Does the same as map(self, ...)."""
        from ._map import map_items
        return map_items(self, *arguments, **options)

    def __repr__(self) -> str:
        return f"<cleave.Kernel {self.name}>"


def _kernel_again(source: str, name: str, defines: dict[str, int], file: str) -> Kernel:
    return Kernel(source, name, defines, file=file)


class Shared:
    """An argument of map(): an array that every item may read as a whole; it is copied once to each device."""

    def __init__(self, array: Any):
        self.typed = hasattr(array, "dtype")
        self.array = elements("Shared", array, "iufbcV")
        if not self.array.size:
            raise ShapeError("Shared: the array is empty")

    def __repr__(self) -> str:
        return f"<cleave.Shared {self.array.dtype} {list(self.array.shape)}>"


class Out:
    """An argument of map() for a result with `shape` elements of `dtype` per item; map() returns [items, *shape]."""

    def __init__(self, dtype: Any = np.float32, shape: int | tuple[int, ...] = ()):
        self.dtype = np.dtype(dtype).newbyteorder("=")  # devices write native byte order
        self.shape = extents("Out", shape)
        self.item_bytes: int = self.dtype.itemsize * math.prod(self.shape)
        if self.dtype.hasobject or self.item_bytes < 1:
            raise ShapeError(f"Out: {self.dtype} {self.shape} does not have plain elements, such as numbers")

    def __repr__(self) -> str:
        return f"<cleave.Out {self.dtype} {list(self.shape)}>"


class Local:
    """Local memory of a work-group, in bytes, for a `__local` pointer argument."""

    def __init__(self, bytes: int):
        self.bytes = whole("Local: bytes", bytes, 1)

    def __repr__(self) -> str:
        return f"<cleave.Local {self.bytes} bytes>"


class _Number:
    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"cleave.{self.name}"


#: Arguments of map() for `uint` parameters: the number of the chunk's first item, and its number of items.
FIRST, COUNT = _Number("FIRST"), _Number("COUNT")

_SCALARS: dict[np.dtype[Any], Any] = {np.dtype(kind): kind for kind in (
    ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64, ctypes.c_int64, ctypes.c_float,
    ctypes.c_double, ctypes.c_uint8, ctypes.c_int8, ctypes.c_uint16, ctypes.c_int16)}


def scalar(value: Any, what: str, parameter: Parameter | None) -> Any:
    """Returns a number as a ctypes object of the type that is passed to the kernel, or None if `value` is not a number.
    NumPy's numbers keep their type. Python's numbers get the type that the kernel's text names; if the text does not
    show it, an int becomes `int` and a float `float`."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)):
        raise ArgumentError("map: a bool cannot be a kernel argument; pass np.int32")
    if parameter and isinstance(value, (int, float, np.number)):
        value = as_parameter(what, parameter, value)
    if isinstance(value, np.generic):  # before the checks for Python's types, because np.float64 is a float
        kind = _SCALARS.get(value.dtype)
        if kind is None:
            raise ArgumentError(f"map: {value.dtype} cannot be a kernel argument")
        return kind(value.item())
    if isinstance(value, int):
        if not -2**31 <= value < 2**31:
            raise ArgumentError(f"map: {value} does not fit an int: pass np.int64 or np.uint64")
        return ctypes.c_int32(value)
    return ctypes.c_float(value) if isinstance(value, float) else None
