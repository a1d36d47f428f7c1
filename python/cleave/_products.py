# SPDX-License-Identifier: Apache-2.0
"""Multiplies matrices in Arrays: float32 on the device or host where they lie, other types by NumPy on the host."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._device_array import Array, array
from ._dtypes import FLOAT32, is_number
from ._elementwise import apply, broadcast, cast, context_of, operand_dtypes
from ._shapes import broadcast_to, expand_dims, reshape, squeeze
from .errors import ShapeError


def _whole(a: Array) -> Array:
    return a if a.is_whole else cast(a, FLOAT32)


def matmul(x: Any, y: Any, out: Any = None) -> Array:
    """Multiplies matrices, stacks of them, and vectors, as NumPy's matmul does."""
    context = context_of((x, y))
    a, b = (one if isinstance(one, Array) else array(np.asarray(one), context=context) for one in (x, y))
    if not a.ndim or not b.ndim:
        raise ShapeError("matmul: got numbers, but vectors or matrices are expected")
    row, column = a.ndim == 1, b.ndim == 1
    a = expand_dims(a, 0) if row else a
    b = expand_dims(b, 1) if column else b
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"matmul: shapes {tuple(np.shape(x))} and {tuple(np.shape(y))} do not fit together")
    stack = broadcast("matmul", [a.shape[:-2], b.shape[:-2]])
    shape = (*stack, a.shape[-2], b.shape[-1])
    dtypes = operand_dtypes("matmul", [a, b])
    if dtypes[0] == dtypes[1] == FLOAT32 and 0 not in shape and a.shape[-1]:
        made = _in_float32(a, b, stack, shape)
    elif a.dtype.kind == "b" and b.dtype.kind == "b":
        made = array(np.matmul(a.numpy(), b.numpy()), context=a.context)
    else:
        from ._shapes import _promoted
        dtype = _promoted(a.dtype, b.dtype)
        made = array(np.matmul(a.numpy().astype(dtype, copy=False), b.numpy().astype(dtype, copy=False)),
                     context=a.context)
    if row or column:
        made = squeeze(made, tuple(place for place, gone in ((-2, row), (-1, column)) if gone))
    if out is not None:
        out[...] = made if isinstance(out, Array) else made.numpy()
        return out  # type: ignore[no-any-return]
    return made


def dot(x: Any, y: Any) -> Array:
    """Computes NumPy's dot: products with numbers, matmul, and for stacks of matrices the sums over the last axis of x
    and the last but one of y, for all pairs of the other axes."""
    context = context_of((x, y))
    a, b = (one if isinstance(one, Array) or is_number(one) else array(np.asarray(one), context=context)
            for one in (x, y))
    if is_number(a) or is_number(b) or not a.ndim or not b.ndim:
        return apply("multiply", a, b)
    if a.ndim == 1 or b.ndim <= 2:
        return matmul(a, b)
    from .linalg import tensordot
    return tensordot(a, b, axes=((-1,), (-2,)))


def _in_float32(a: Array, b: Array, stack: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    from ._compute import product
    turned = [False, False]
    for k, one in enumerate((a, b)):  # a transposed view is passed as its original and a flag, without a copy
        if one.ndim == 2 and not one.is_whole and one.T.is_whole:
            turned[k] = True
    first = a.T if turned[0] else a
    second = b.T if turned[1] else b
    flat = len(stack) > 1 or (len(stack) == 1 and (a.ndim > 3 or b.ndim > 3))
    if flat:
        first, second = (one if one.ndim == 2 else reshape(broadcast_to(one, (*stack, *one.shape[-2:])),
                                                           (-1, *one.shape[-2:])) for one in (first, second))
    if first.ndim == 3 and second.ndim == 3 and first.shape[0] != second.shape[0]:
        first, second = (broadcast_to(one, (*stack, *one.shape[-2:])) for one in (first, second))
    made: Array = product(_whole(first), _whole(second), transpose_a=turned[0], transpose_b=turned[1])
    return reshape(made, shape) if made.shape != shape else made
