# SPDX-License-Identifier: Apache-2.0
"""Defines the operators and methods of arrays; each calls the function of the same name."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._dtypes import is_number, weak
from .errors import ShapeError

if TYPE_CHECKING:
    from ._device_array import Array

_UNKNOWN: Any = NotImplemented  # tells Python to try the other operand's operator


def _is_operand(one: Any) -> bool:
    return is_number(one) or isinstance(one, (Operators, np.ndarray, np.generic, list, tuple))


class Operators:
    """The operators and methods that Array and the symbols of fuse() share."""
    __slots__ = ()

    if TYPE_CHECKING:
        dtype: np.dtype[Any]

        @property
        def shape(self) -> tuple[int, ...]: ...
        def copy(self) -> Array: ...
        def reshape(self, *shape: Any, order: str = "C") -> Array: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...

    # ---- operators: one kernel each

    def _op(self, name: str, *others: Any) -> Array:
        from ._elementwise import apply
        if not all(map(_is_operand, others)):
            return _UNKNOWN  # type: ignore[no-any-return]
        return apply(name, self, *others)

    def _reflected(self, name: str, other: Any) -> Array:
        from ._elementwise import apply
        return apply(name, other, self) if _is_operand(other) else _UNKNOWN

    def _become(self, name: str, other: Any) -> Array:
        from ._elementwise import apply, fits_into
        if not _is_operand(other):
            return _UNKNOWN  # type: ignore[no-any-return]
        if is_number(other) and weak(self.dtype, other) != self.dtype:
            raise TypeError(f"{name}: {other!r} does not fit into {self.dtype}")
        if name == "divide" and self.dtype.kind in "biu":
            raise TypeError(f"divide: the quotients do not fit into {self.dtype}: use a = a / b, or a //= b")
        if not is_number(other) and getattr(other, "dtype", None) is not self.dtype:
            other = other if isinstance(other, Operators) else np.asarray(other)
            fits_into(name, (self, other), self.dtype)
        shape = () if is_number(other) else tuple(getattr(other, "shape", np.shape(other)))
        ahead = len(self.shape) - len(shape)
        if ahead < 0 or any(n not in (1, own) for n, own in zip(shape, self.shape[ahead:])):
            raise ShapeError(f"{name}: an operand of shape {shape} does not fit {self.shape}")
        apply(name, self, other, out=self)  # type: ignore[arg-type]
        return self  # type: ignore[return-value]

    def __add__(self, other: Any) -> Array: return self._op("add", other)
    def __radd__(self, other: Any) -> Array: return self._reflected("add", other)
    def __sub__(self, other: Any) -> Array: return self._op("subtract", other)
    def __rsub__(self, other: Any) -> Array: return self._reflected("subtract", other)
    def __mul__(self, other: Any) -> Array: return self._op("multiply", other)
    def __rmul__(self, other: Any) -> Array: return self._reflected("multiply", other)
    def __truediv__(self, other: Any) -> Array: return self._op("divide", other)
    def __rtruediv__(self, other: Any) -> Array: return self._reflected("divide", other)
    def __floordiv__(self, other: Any) -> Array: return self._op("floor_divide", other)
    def __rfloordiv__(self, other: Any) -> Array: return self._reflected("floor_divide", other)
    def __mod__(self, other: Any) -> Array: return self._op("remainder", other)
    def __rmod__(self, other: Any) -> Array: return self._reflected("remainder", other)
    def __pow__(self, other: Any) -> Array: return self._op("pow", other)
    def __rpow__(self, other: Any) -> Array: return self._reflected("pow", other)
    def __and__(self, other: Any) -> Array: return self._op("bitwise_and", other)
    def __rand__(self, other: Any) -> Array: return self._reflected("bitwise_and", other)
    def __or__(self, other: Any) -> Array: return self._op("bitwise_or", other)
    def __ror__(self, other: Any) -> Array: return self._reflected("bitwise_or", other)
    def __xor__(self, other: Any) -> Array: return self._op("bitwise_xor", other)
    def __rxor__(self, other: Any) -> Array: return self._reflected("bitwise_xor", other)
    def __lshift__(self, other: Any) -> Array: return self._op("bitwise_left_shift", other)
    def __rlshift__(self, other: Any) -> Array: return self._reflected("bitwise_left_shift", other)
    def __rshift__(self, other: Any) -> Array: return self._op("bitwise_right_shift", other)
    def __rrshift__(self, other: Any) -> Array: return self._reflected("bitwise_right_shift", other)
    def __lt__(self, other: Any) -> Array: return self._op("less", other)
    def __le__(self, other: Any) -> Array: return self._op("less_equal", other)
    def __gt__(self, other: Any) -> Array: return self._op("greater", other)
    def __ge__(self, other: Any) -> Array: return self._op("greater_equal", other)

    def __eq__(self, other: Any) -> Array:  # type: ignore[override]  # compares element by element, as NumPy does
        return self._op("equal", other)

    def __ne__(self, other: Any) -> Array:  # type: ignore[override]
        return self._op("not_equal", other)

    __hash__ = None  # type: ignore[assignment]  # not hashable: == returns an array, not a bool

    def __divmod__(self, other: Any) -> tuple[Array, Array]: return self // other, self % other
    def __rdivmod__(self, other: Any) -> tuple[Array, Array]: return other // self, other % self

    def __iadd__(self, other: Any) -> Array: return self._become("add", other)
    def __isub__(self, other: Any) -> Array: return self._become("subtract", other)
    def __imul__(self, other: Any) -> Array: return self._become("multiply", other)
    def __itruediv__(self, other: Any) -> Array: return self._become("divide", other)
    def __imod__(self, other: Any) -> Array: return self._become("remainder", other)
    def __ifloordiv__(self, other: Any) -> Array: return self._become("floor_divide", other)
    def __ipow__(self, other: Any) -> Array: return self._become("pow", other)
    def __iand__(self, other: Any) -> Array: return self._become("bitwise_and", other)
    def __ior__(self, other: Any) -> Array: return self._become("bitwise_or", other)
    def __ixor__(self, other: Any) -> Array: return self._become("bitwise_xor", other)
    def __ilshift__(self, other: Any) -> Array: return self._become("bitwise_left_shift", other)
    def __irshift__(self, other: Any) -> Array: return self._become("bitwise_right_shift", other)

    def __contains__(self, value: Any) -> bool: return bool((self == value).any())

    def __neg__(self) -> Array: return self._op("negative")
    def __pos__(self) -> Array: return self.copy()
    def __abs__(self) -> Array: return self._op("abs")
    def __invert__(self) -> Array: return self._op("bitwise_invert")

    def __matmul__(self, other: Any) -> Any:
        from ._products import matmul
        return NotImplemented if is_number(other) else matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        from ._products import matmul
        return NotImplemented if is_number(other) else matmul(other, self)

    def __imatmul__(self, other: Any) -> Array:
        self[...] = self @ other
        return self  # type: ignore[return-value]

    # ---- along axes, with NumPy's arguments: np.sum(a) is a.sum(axis=None, out=None)

    def _reduced(self, what: str, axis: Any) -> Array | None:
        """Returns a reduction along one axis, or over all elements; None: the long way computes it."""
        return None

    def _folded(self, what: str, axis: Any, keepdims: bool, out: Any = None, initial: Any = None,
                **named: Any) -> Array:
        plain = out is None and initial is None and not keepdims
        if plain and named.get("dtype") is None and not named.get("correction"):
            quick = self._reduced(what, axis)
            if quick is not None:
                return quick
        from . import _folds
        from ._operands import out_of
        if initial is None:
            made: Array = getattr(_folds, what)(self, axis=axis, keepdims=keepdims, **named)
        else:
            made = _folds.begun(what, self, initial, axis=axis, keepdims=keepdims, **named)  # type: ignore[arg-type]
        if out is None:
            return made
        out_of(out)[...] = made.numpy() if isinstance(out, np.ndarray) else made
        return out  # type: ignore[no-any-return]

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
            initial: Any = None) -> Array:
        return self._folded("sum", axis, keepdims, out, initial, dtype=dtype)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
             initial: Any = None) -> Array:
        """Returns the product of the elements along axes."""
        return self._folded("prod", axis, keepdims, out, initial, dtype=dtype)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Array:
        return self._folded("mean", axis, keepdims, out, dtype=dtype)

    def var(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
            keepdims: bool = False) -> Array:
        return self._folded("var", axis, keepdims, out, dtype=dtype, correction=ddof)

    def std(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
            keepdims: bool = False) -> Array:
        return self._folded("std", axis, keepdims, out, dtype=dtype, correction=ddof)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None) -> Array:
        return self._folded("min", axis, keepdims, out, initial)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None) -> Array:
        return self._folded("max", axis, keepdims, out, initial)

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Array:
        """Tells whether any element along the given axes differs from 0."""
        return self._folded("any", axis, keepdims, out)

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Array:
        """Tells whether all elements along the given axes differ from 0."""
        return self._folded("all", axis, keepdims, out)

    def argmin(self, axis: int | None = None, out: Any = None, keepdims: bool = False) -> Array:
        return self._folded("argmin", axis, keepdims, out)

    def argmax(self, axis: int | None = None, out: Any = None, keepdims: bool = False) -> Array:
        return self._folded("argmax", axis, keepdims, out)

    def _by(self, function: str, *arguments: Any, **named: Any) -> Array:
        from . import array_api
        made: Array = getattr(array_api, function)(self, *arguments, **named)
        return made

    def cumprod(self, axis: int | None = None) -> Array:
        """Returns running products along an axis, or over all elements without one."""
        return self.reshape(-1).cumprod(0) if axis is None else self._by("cumulative_prod", axis=axis)

    def cumsum(self, axis: int | None = None) -> Array:
        """Returns running sums along an axis, or over all elements without one; computed on the host."""
        return self.reshape(-1).cumsum(0) if axis is None else self._by("cumulative_sum", axis=axis)

    def argsort(self, axis: int = -1) -> Array:
        """Returns the indices of the elements in ascending order; computed on the host."""
        return self._by("argsort", axis=axis)

    def take(self, indices: Any, axis: int | None = None) -> Array:
        """Returns slices along an axis by their indices."""
        return self._by("take", indices, axis=axis)

    def squeeze(self, axis: Any = None) -> Array:
        """Returns a view without axes of extent 1: the named ones, or all."""
        ones = tuple(i for i, n in enumerate(self.shape) if n == 1)
        return self._by("squeeze", axis=ones if axis is None else axis)

    def swapaxes(self, first: int, second: int) -> Array:
        """Returns a view with two axes exchanged."""
        from ._shapes import moveaxis
        return moveaxis(self, (first, second), (second, first))  # type: ignore[arg-type]

    def ravel(self, order: str = "C") -> Array:
        """Returns the elements along one axis: a view if they lie densely, else a copy."""
        return self.reshape(-1, order=order)

    def sort(self, axis: int = -1) -> None:
        """Sorts the elements along an axis, in place; computed on the host."""
        self[...] = self._by("sort", axis=axis)

    def fill(self, value: Any) -> None:
        """Sets all elements to one value."""
        self[...] = value

    def flatten(self, order: str = "C") -> Array:
        """Returns a copy with one axis."""
        return self.copy().reshape(-1, order=order)

    def conj(self) -> Array:
        """Returns the conjugates of complex numbers, and other numbers unchanged."""
        return self._op("conj")

    conjugate = conj

    def repeat(self, repeats: Any, axis: int | None = None) -> Array:
        """Returns each element `repeats` times in a row, along an axis, or of the flattened array without one."""
        from ._shapes import repeat
        return repeat(self, repeats, axis)  # type: ignore[arg-type]

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """Returns the elements whose indices along two axes differ by `offset`, as the last axis."""
        from . import linalg
        from ._shapes import moveaxis
        return linalg.diagonal(moveaxis(self, (axis1, axis2), (-2, -1)), offset=offset)  # type: ignore[arg-type]

    def nonzero(self) -> tuple[Array, ...]:
        """Returns for each axis the indices of the elements that are not 0."""
        from . import array_api
        return array_api.nonzero(self)  # type: ignore[arg-type]

    def searchsorted(self, values: Any, side: str = "left") -> Array:
        """Returns where values belong in this array, which is sorted."""
        return self._by("searchsorted", values, side=side)

    def compress(self, condition: Any, axis: int | None = None) -> Array:
        """Returns the slices along an axis for which the condition holds; elements, without an axis."""
        whole = self.reshape(-1) if axis is None else self
        places = np.flatnonzero(np.asarray(condition))
        return whole.take(places, axis=axis or 0)

    def tobytes(self) -> bytes:
        """Returns the elements as bytes, in row-major order."""
        return self.numpy().tobytes()  # type: ignore[attr-defined, no-any-return]

    def round(self, decimals: int = 0) -> Array:
        """Returns the elements rounded to `decimals` decimals, halves to even."""
        if self.dtype.kind in "iu" and decimals < 0:
            from ._host_math import on_host
            return on_host(np.round, self, decimals)  # type: ignore[no-any-return]
        if self.dtype.kind in "iu" and decimals > 0:
            return self.copy()
        if not decimals:
            return self._op("round")
        scaled = self * 10.0 ** decimals
        return scaled.round() / 10.0 ** decimals

    def clip(self, min: Any = None, max: Any = None) -> Array:
        """Returns the elements limited to the range from `min` to `max`; None: no limit."""
        return self._by("clip", min, max)

    def dot(self, other: Any) -> Array:
        """Computes NumPy's dot; for arrays of one or two axes, it does the same as matmul."""
        from ._products import dot
        return dot(self, other)
