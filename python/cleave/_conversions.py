# SPDX-License-Identifier: Apache-2.0
"""Defines how arrays become numbers, lists and the arrays of other libraries on the host."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError


class Conversions:
    """The part of Array that converts it: NumPy's and DLPack's protocols, and those of Python's numbers."""
    __slots__ = ()

    if TYPE_CHECKING:
        dtype: np.dtype[Any]

        @property
        def size(self) -> int: ...
        @property
        def ndim(self) -> int: ...
        @property
        def shape(self) -> tuple[int, ...]: ...
        def __getitem__(self, key: Any) -> Any: ...
        def numpy(self) -> NDArray[Any]: ...
        def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any: ...

    def _shared(self) -> NDArray[Any] | None:
        """Returns a NumPy array on the same memory, or None if a device's own memory has the elements."""
        from ._sharing import shared
        return shared(self)  # type: ignore[arg-type]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            made = self._shared() if dtype in (None, self.dtype) else None
            if made is None:
                raise ValueError("the elements of this cleave.Array cannot be used by the host without a copy")
            return made
        out = self.numpy()
        return out if dtype is None else out.astype(dtype, copy=False)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        made = None if copy else self._shared()
        if made is None and copy is False:
            raise BufferError("the elements of this cleave.Array cannot be used by the host without a copy")
        named = {"max_version": max_version, "dl_device": dl_device} if max_version is not None else {}
        return (self.numpy() if made is None else made).__dlpack__(stream=stream, **named)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # DLPack's number of the host, whose memory the array is in or is copied to

    def _number(self, kind: Any) -> Any:
        if self.size != 1:
            raise TypeError("only an array of one element can be converted to a number")
        return kind(self.numpy().reshape(())[()])

    def __float__(self) -> float:
        return float(self._number(float))

    def __int__(self) -> int:
        return int(self._number(int))

    def __complex__(self) -> complex:
        return complex(self._number(complex))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only a 0-dimensional array of integers can be an index; this one has the dtype "
                            f"{self.dtype} and {self.ndim} axes")
        return int(self._number(int))

    def item(self, *place: int) -> Any:
        """Returns the only element, or the one at a place, as a Python number."""
        if place:
            at = place if len(place) > 1 else np.unravel_index(place[0], self.shape)
            return self[tuple(int(i) for i in at)].item()
        if self.size != 1:
            raise ArgumentError(f"array: item() needs exactly 1 element, but the array has {self.size}")
        return self.numpy().reshape(()).item()

    def tolist(self) -> Any:
        """Returns the elements in nested lists of Python numbers, as NumPy does; a single number for no axes."""
        return self.numpy().tolist()

    def trace(self, offset: int = 0) -> Any:
        """Returns the sum of a diagonal, as diagonal() returns it."""
        return self.diagonal(offset).sum(-1)
