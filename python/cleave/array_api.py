# SPDX-License-Identifier: Apache-2.0
"""Implements the Python array API standard, 2024.12, for arrays that stay on a device. `a.__array_namespace__()`
returns this module. Its functions are also functions of `cleave`, unless `cleave` has another function of the same
name."""
from __future__ import annotations

import functools
import math
from typing import Any, Callable, Sequence

import numpy as np

from . import _folds, fft, linalg
from ._context import Context, default_context
from ._create import (arange, asarray, empty_like, eye, from_dlpack, full, full_like, linspace, meshgrid, ones,
                      ones_like, tril, triu, zeros, zeros_like)
from ._device_array import Array, array, empty
from ._dtypes import (BOOL, COMPLEX64, COMPLEX128, DEFAULTS, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, TYPES, UINT8,
                      UINT16, UINT32, UINT64, dtype_from, is_number, weak)
from ._elementwise import OPS, apply, cast, context_of, types_of
from ._elementwise import broadcast as _broadcast
from ._products import matmul
from ._sets import (argsort, count_nonzero, diff, isin, nonzero, searchsorted, sort, take, take_along_axis, unique_all,
                    unique_counts, unique_inverse, unique_values)
from ._shapes import (broadcast_to, concat, expand_dims, flip, moveaxis, permute_dims, repeat, roll, squeeze, stack,
                      tile, unstack)
from ._shapes import reshape as _reshape
from .errors import ArgumentError
from .linalg import matrix_transpose, tensordot, vecdot

__array_api_version__ = "2024.12"
bool, int8, int16, int32, int64 = BOOL, INT8, INT16, INT32, INT64  # noqa: A001
uint8, uint16, uint32, uint64 = UINT8, UINT16, UINT32, UINT64
float16, float32, float64, complex64, complex128 = np.dtype(np.float16), FLOAT32, FLOAT64, COMPLEX64, COMPLEX128
e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi


# ---- element by element

def _arrays(*given: Any) -> list[Any]:
    """Returns the operands as Arrays; numbers stay numbers if there is an Array among the operands."""
    context = context_of(given)
    if context is None:
        return [array(np.asarray(one)) for one in given]
    return [one if isinstance(one, Array) or is_number(one) else array(one, context=context) for one in given]


def _named(name: str, count: int, public: str) -> Callable[..., Array]:
    if count == 1:
        def one(x: Any, /) -> Array:
            return apply(name, *_arrays(x))
        made: Callable[..., Array] = one
    else:
        def two(x1: Any, x2: Any, /) -> Array:
            return apply(name, *_arrays(x1, x2))
        made = two
    made.__name__ = made.__qualname__ = public
    made.__doc__ = f"{public}, element by element."
    return made


_ONE = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "conj", "cos", "cosh", "exp",
        "expm1", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "logical_not", "real",
        "reciprocal", "round", "sign", "signbit", "sin", "sinh", "square", "sqrt", "tan", "tanh", "trunc", "exp2")
_TWO = ("add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
        "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal", "hypot", "less", "less_equal",
        "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter",
        "not_equal", "pow", "remainder", "subtract", "fmin", "fmax")
for _name in _ONE:
    globals()[_name] = _named(_name, 1, _name)
for _name in _TWO:
    globals()[_name] = _named(_name, 2, _name)


def abs(x: Any, /) -> Array:  # noqa: A001
    """Returns the magnitude of each element."""
    return apply("abs", *_arrays(x))


def negative(x: Any, /) -> Array:
    """Returns -x."""
    return apply("negative", *_arrays(x))


def positive(x: Array, /) -> Array:
    """Returns +x, a copy."""
    return x.copy()


def clip(x: Array, /, min: Any = None, max: Any = None) -> Array:  # noqa: A002
    """Limits each element to a range; the type stays that of x, unless x has integers and a limit is a float."""
    if x.dtype.kind in "iu" and builtins_any(isinstance(one, float) or isinstance(one, Array) and one.dtype.kind == "f"
                                             for one in (min, max)):
        x = cast(x, np.float64)
    made = x
    for name, limit in (("maximum", min), ("minimum", max)):
        if limit is None:
            continue
        if is_number(limit) and x.dtype.kind in "iu":
            limits = np.iinfo(x.dtype)
            limit = builtins_max(limits.min, builtins_min(limits.max, limit))
        elif isinstance(limit, Array) and limit.dtype != x.dtype:
            if x.dtype.kind in "iu" and limit.dtype.kind in "iu":  # a limit beyond the type of x is that type's limit
                own, its = np.iinfo(x.dtype), np.iinfo(limit.dtype)
                limit = apply("maximum", limit, builtins_max(int(own.min), int(its.min)))
                limit = apply("minimum", limit, builtins_min(int(own.max), int(its.max)))
            limit = cast(limit, x.dtype)
        made = apply(name, made, limit)
    return made.copy() if made is x else made


def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
    """Returns x1 where the condition holds, else x2; with only the condition, the indices where it holds."""
    if x1 is None and x2 is None:
        return nonzero(condition)
    if is_number(x1) and is_number(x2):
        kinds = sorted((DEFAULTS[type(one)] for one in (x1, x2)), key=lambda kind: "bifc".index(kind.kind))
        condition = condition if isinstance(condition, Array) else array(condition)
        x1 = full((), x1, dtype=kinds[-1], device=condition.context)
    condition, first, second = _arrays(condition, x1, x2)
    if isinstance(condition, Array) and condition.dtype != BOOL:
        condition = condition.astype(BOOL)
    return apply("where", condition, first, second)


# ---- types

def astype(x: Array, dtype: Any, /, *, copy: Any = True, device: Context | None = None) -> Array:
    """Returns the elements of x in the type `dtype`."""
    made = cast(x, dtype, copy)
    return made if device is None else made.to_device(device)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the common shape of arrays with these shapes."""
    return np.broadcast_shapes(*shapes)


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """Returns views of all arrays in one shape."""
    shape = _broadcast("broadcast_arrays", [one.shape for one in arrays])
    return [broadcast_to(one, shape) for one in arrays]


def _type_of(one: Any) -> Any:
    return one.dtype if isinstance(one, Array) else one


def can_cast(from_: Any, to: Any, /) -> Any:
    """Tells whether every number of a type can be stored in another type, by the rules of promotion."""
    return result_type(dtype_from(_type_of(from_)), dtype_from(to)) == dtype_from(to)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Returns the type in which these arrays, numbers and types are computed together, by the rules of promotion."""
    numbers = [one for one in arrays_and_dtypes if is_number(one)]
    dtypes = [dtype_from(_type_of(one)) for one in arrays_and_dtypes if not is_number(one)]
    if not dtypes:
        raise ArgumentError("result_type: at least one type or array is needed")
    found = functools.reduce(lambda a, b: a if a == b else types_of(OPS["add"], a, b)[0], dtypes)
    for one in numbers:
        found = weak(found, one)
    return found


class _Limits:
    """The limits of a floating-point or integer type, as attributes."""

    def __init__(self, **values: Any):
        self.__dict__.update(values)

    def __repr__(self) -> str:
        return f"limits({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def finfo(type: Any, /) -> _Limits:  # noqa: A002
    """Returns the limits of a floating-point type: bits, eps, max, min, smallest_normal, dtype."""
    dtype = dtype_from(_type_of(type))
    of = np.finfo(dtype)
    part = FLOAT32 if dtype == COMPLEX64 else FLOAT64 if dtype == COMPLEX128 else dtype
    return _Limits(bits=of.bits, eps=float(of.eps), max=float(of.max), min=float(of.min),
                   smallest_normal=float(of.smallest_normal), dtype=part)


def iinfo(type: Any, /) -> _Limits:  # noqa: A002
    """Returns the limits of an integer type: bits, max, min, dtype."""
    dtype = dtype_from(_type_of(type))
    of = np.iinfo(dtype)
    return _Limits(bits=of.bits, max=int(of.max), min=int(of.min), dtype=dtype)


_KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
          "complex floating": "c", "numeric": "iufc"}


def isdtype(dtype: Any, kind: Any) -> Any:
    """Tells whether `dtype` is the type `kind`, belongs to the kind of that name ("integral", "real floating", ...), or
    to one of a tuple of kinds."""
    if isinstance(kind, tuple):
        return builtins_any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ArgumentError(f"isdtype: kind is {kind!r}, but it must be one of {', '.join(map(repr, _KINDS))}")
        return dtype_from(dtype).kind in _KINDS[kind]
    return dtype_from(dtype) == dtype_from(kind)


# ---- shapes

def reshape(x: Array, /, shape: Sequence[int], *, copy: Any = None) -> Array:
    """Returns the elements in another shape: a view if they lie densely, else a copy."""
    return _reshape(x, shape, copy)


# ---- along axes

def sum(x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Array:  # noqa: A001
    """Returns sums along axes."""
    return _folds.sum(x, axis, dtype, keepdims)


def prod(x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Array:
    """Returns products along axes."""
    return _folds.prod(x, axis, dtype, keepdims)


def mean(x: Array, /, *, axis: Any = None, keepdims: Any = False) -> Array:
    """Returns means along axes."""
    return _folds.mean(x, axis, None, keepdims)


def var(x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Array:
    """Returns variances along axes."""
    return _folds.var(x, axis, None, correction, keepdims)


def std(x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Array:
    """Returns standard deviations along axes."""
    return _folds.std(x, axis, None, correction, keepdims)


def min(x: Array, /, *, axis: Any = None, keepdims: Any = False) -> Array:  # noqa: A001
    """Returns the smallest elements along axes."""
    return _folds.min(x, axis, keepdims)


def max(x: Array, /, *, axis: Any = None, keepdims: Any = False) -> Array:  # noqa: A001
    """Returns the largest elements along axes."""
    return _folds.max(x, axis, keepdims)


def any(x: Array, /, *, axis: Any = None, keepdims: Any = False) -> Array:  # noqa: A001
    """Tells whether any element along the given axes differs from 0."""
    return _folds.any(x, axis, keepdims)


def all(x: Array, /, *, axis: Any = None, keepdims: Any = False) -> Array:  # noqa: A001
    """Tells whether all elements along the given axes differ from 0."""
    return _folds.all(x, axis, keepdims)


def argmin(x: Array, /, *, axis: int | None = None, keepdims: Any = False) -> Array:
    """Returns the indices of the smallest elements along an axis."""
    return _folds.argmin(x, axis, keepdims)


def argmax(x: Array, /, *, axis: int | None = None, keepdims: Any = False) -> Array:
    """Returns the indices of the largest elements along an axis."""
    return _folds.argmax(x, axis, keepdims)


def cumulative_sum(x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: Any = False) -> Array:
    """Returns running sums along an axis. The host computes them."""
    return _folds.scan("sum", x, axis, dtype, include_initial)


def cumulative_prod(x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: Any = False) -> Array:
    """Returns running products along an axis. The host computes them."""
    return _folds.scan("prod", x, axis, dtype, include_initial)


# ---- inspection

class _Info:
    """The capabilities of this implementation of the standard."""

    def capabilities(self) -> dict[str, Any]:
        """Returns which optional parts of the standard are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> Context:
        """Returns the context of arrays that are made without `device`."""
        return default_context()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Returns the types of arrays that are made without `dtype`."""
        return {"real floating": FLOAT32, "complex floating": COMPLEX64, "integral": INT64, "indexing": INT64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Returns all types of the standard, or its types of one kind."""
        found = {dtype.name: dtype for dtype in TYPES if dtype.name != "float16"}
        return found if kind is None else {name: one for name, one in found.items() if isdtype(one, kind)}

    def devices(self) -> list[Context]:
        """Returns a list that contains only the default context."""
        return [default_context()]


def __array_namespace_info__() -> _Info:
    """Returns the capabilities of this implementation of the standard."""
    return _Info()


# ---- NumPy's arrays

def _of_anything(function: Callable[..., Any]) -> Callable[..., Any]:
    """Lets a function take what NumPy makes an array of in place of its Array, as the functions of elements do."""
    @functools.wraps(function)
    def taken(x: Any, /, *others: Any, **named: Any) -> Any:
        if not isinstance(x, Array):
            x = array(np.asarray(x), context=context_of([one for one in others if isinstance(one, Array)]))
        return function(x, *others, **named)
    return taken


for _name in ("all", "any", "argmax", "argmin", "argsort", "astype", "broadcast_to", "clip", "count_nonzero",
              "cumulative_prod", "cumulative_sum", "diff", "empty_like", "expand_dims", "flip", "full_like", "max",
              "mean", "min", "moveaxis", "nonzero", "ones_like", "permute_dims", "prod", "repeat", "reshape", "roll",
              "searchsorted", "sort", "squeeze", "std", "sum", "take", "tile", "unique_all", "unique_counts",
              "unique_inverse", "unique_values", "unstack", "var", "zeros_like"):
    globals()[_name] = _of_anything(globals()[_name])


import builtins as _builtins  # noqa: E402: the names above hide some of them

builtins_any, builtins_max, builtins_min = _builtins.any, _builtins.max, _builtins.min

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "abs", "all", "any", "arange", "argmax", "argmin",
    "argsort", "asarray", "astype", "bool", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "clip",
    "complex128", "complex64", "concat", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "e", "empty",
    "empty_like", "expand_dims", "eye", "fft", "finfo", "flip", "float16", "float32", "float64", "from_dlpack", "full",
    "full_like", "iinfo", "inf", "int16", "int32", "int64", "int8", "isdtype", "isin", "linalg", "linspace", "matmul",
    "matrix_transpose", "max", "mean", "meshgrid", "min", "moveaxis", "nan", "negative", "newaxis", "nonzero", "ones",
    "ones_like", "permute_dims", "pi", "positive", "prod", "repeat", "reshape", "result_type", "roll", "searchsorted",
    "sort", "squeeze", "stack", "std", "sum", "take", "take_along_axis", "tensordot", "tile", "tril", "triu", "uint16",
    "uint32", "uint64", "uint8", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack", "var",
    "vecdot", "where", "zeros", "zeros_like"]
__all__ += [*_ONE, *_TWO]
