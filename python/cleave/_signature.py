# SPDX-License-Identifier: Apache-2.0
"""Reads the types of a kernel's parameters from its text, so that arguments of another type are refused instead of
being reinterpreted: OpenCL drivers compare only the sizes of arguments."""
from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._check import FLOAT32_MAX, given
from .errors import ArgumentTypeError, ShapeError

_TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
          "long": "i8", "ulong": "u8", "half": "f2", "float": "f4", "double": "f8"}
_QUALIFIERS = {prefix + word for word in ("global", "constant", "local", "private", "const",
                                          "restrict", "volatile") for prefix in ("", "__")}
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


class Parameter(NamedTuple):
    """A parameter of a kernel: its text, whether it is a pointer, and its element type as a string ("f4") and as a
    dtype, which are "" and None if the text does not show the type (structures, macros)."""
    text: str
    pointer: bool
    element: str
    dtype: np.dtype[Any] | None


def _parameter(text: str) -> Parameter:
    words = [word for word in re.findall(r"\w+|\*", text) if word not in _QUALIFIERS]
    if len(words) > 1 and words[0] in ("unsigned", "signed"):
        if words[1] in ("char", "short", "int", "long"):
            words[:2] = [("u" if words[0] == "unsigned" else "") + words[1]]
        else:
            words[0] = "uint" if words[0] == "unsigned" else "int"
    plain = re.fullmatch(r"([a-z]+?)(?:2|3|4|8|16)?", words[0] if words else "")
    element = _TYPES.get(plain.group(1), "") if plain else ""
    return Parameter(" ".join(text.split()), "*" in words or "[" in text, element,
                     np.dtype(element) if element else None)


def parameters(source: str, name: str) -> tuple[Parameter, ...]:
    """Returns the parameters of a kernel; () if the source does not show them without macros."""
    text = _COMMENTS.sub(" ", source)
    found = re.findall(rf"\bkernel\b[^;{{}}]*?\bvoid\s+{re.escape(name)}\s*\(([^()#]*)\)",
                       text.replace("__kernel", "kernel"))
    if len(found) != 1 or re.search(r"#\s*define\s+(float|double|int|uint)\b", text):
        return ()
    return tuple(_parameter(one) for one in found[0].split(","))


def _fits(array: NDArray[Any], wanted: np.dtype[Any]) -> bool:
    limits = np.iinfo(wanted)
    return not array.size or bool(limits.min <= array.min() and array.max() <= limits.max)


def as_elements(what: str, parameter: Parameter, array: NDArray[Any], typed: bool) -> NDArray[Any]:
    """Returns the array if its elements have the kernel's type, else raises ShapeError. Lists have no type (`typed` is
    false), so they are converted to the kernel's type."""
    dtype, wanted = array.dtype, parameter.dtype
    if not parameter.pointer and parameter.element:
        raise ShapeError(f"{what}: the kernel has `{parameter.text}`, but got an array of {dtype}")
    if wanted is None or wanted is dtype or dtype.kind in "Vc":
        return array
    if wanted.itemsize != dtype.itemsize or (wanted.kind == "f") != (dtype.kind == "f"):
        if not typed and (wanted.kind == "f" or dtype.kind != "f" and _fits(array, wanted)):
            return array.astype(wanted)
        raise ShapeError(f"{what}: the kernel has `{parameter.text}`, which needs {wanted}, but got {dtype}")
    return array


def as_parameter(what: str, parameter: Parameter, value: Any) -> Any:
    """Returns a number in the parameter's type; raises ArgumentTypeError for a NumPy number of another type."""
    wanted = parameter.dtype
    if parameter.pointer:
        raise ArgumentTypeError(f"{what}: the kernel has `{parameter.text}`, but got {given(value)}")
    if wanted is None or type(value) is float and parameter.element == "f4" and \
            -FLOAT32_MAX <= value <= FLOAT32_MAX:
        return value
    if isinstance(value, np.generic):
        if value.dtype.itemsize == wanted.itemsize and \
                (value.dtype.kind == "f") == (wanted.kind == "f"):
            return value
    elif wanted.kind != "f":
        if isinstance(value, int) and np.iinfo(wanted).min <= value <= np.iinfo(wanted).max:
            return wanted.type(value)
    else:
        try:
            with np.errstate(over="raise"):
                return wanted.type(value)
        except (OverflowError, FloatingPointError):
            pass
    raise ArgumentTypeError(f"{what}: the kernel has `{parameter.text}`, but got {given(value)}")
