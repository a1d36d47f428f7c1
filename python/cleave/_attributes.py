# SPDX-License-Identifier: Apache-2.0
"""Implements the attributes of NumPy's arrays that describe memory: flags and flat."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator

import numpy as np

if TYPE_CHECKING:
    from ._device_array import Array

_NAMES = {"C_CONTIGUOUS": "c_contiguous", "C": "c_contiguous", "F_CONTIGUOUS": "f_contiguous", "F": "f_contiguous",
          "OWNDATA": "owndata", "O": "owndata", "WRITEABLE": "writeable", "W": "writeable", "ALIGNED": "aligned",
          "A": "aligned"}


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != step:
            return not all(shape)
        step *= extent
    return True


class Flags:
    """How an array lies in memory, by NumPy's names: a.flags.c_contiguous, a.flags["OWNDATA"]."""
    __slots__ = ("c_contiguous", "f_contiguous", "owndata")
    writeable = True
    aligned = True

    def __init__(self, a: Array):
        shape, strides = a.shape, a.strides_
        self.c_contiguous = _is_dense(shape, strides)
        self.f_contiguous = _is_dense(shape[::-1], strides[::-1])
        self.owndata = a.base is None

    def __getitem__(self, name: str) -> bool:
        if name not in _NAMES:
            raise KeyError(f"flags: got {name!r}, but one of {', '.join(_NAMES)} is expected")
        return bool(getattr(self, _NAMES[name]))

    def __repr__(self) -> str:
        return "\n".join(f"  {name} : {self[name]}" for name in _NAMES if len(name) > 1)


class Flat:
    """The elements of an array in row-major order, whatever its shape and strides: a.flat[3], a.flat[:4] = 0."""
    __slots__ = ("_array",)

    def __init__(self, a: Array):
        self._array = a

    @property
    def base(self) -> Array:
        """The array."""
        return self._array

    def __len__(self) -> int:
        return self._array.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self._array.numpy().flat)

    def __getitem__(self, key: Any) -> Array:
        """Returns a copy of the elements at these places."""
        return self._array.reshape(-1)[key].copy()

    def __setitem__(self, key: Any, value: Any) -> None:
        a = self._array
        if a.flags.c_contiguous:
            a.reshape(-1)[key] = value
            return
        whole = a.flatten()
        whole[key] = value
        a[...] = whole.reshape(a.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        del copy
        made = self._array.numpy().reshape(-1)
        return made if dtype is None else made.astype(dtype)


def fill_flat(a: Array, values: Any) -> None:
    """Writes values to the elements in row-major order, and begins again with the first value when there are no more,
    as NumPy's a.flat = values does."""
    a[...] = np.resize(np.asarray(values), a.shape)
