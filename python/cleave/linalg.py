# SPDX-License-Identifier: Apache-2.0
"""Linear algebra of arrays: the extension `linalg` of the Python array API standard.

matmul, outer, vecdot and tensordot compute float32 arrays on the device or host where they lie. Functions that
factorise matrices call NumPy's LAPACK on the host, in the type of the array, and return the results as Arrays.
"""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np

from ._device_array import Array
from ._dtypes import is_number
from ._elementwise import apply
from ._folds import sum as sum_of
from ._host_math import on_host
from ._products import matmul
from ._shapes import expand_dims, moveaxis, permute_dims, reshape
from .errors import ArgumentError, ShapeError

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
           "matrix_power", "matrix_rank", "matrix_transpose", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd",
           "svdvals", "tensordot", "trace", "vecdot", "vector_norm"]


class EighResult(NamedTuple):
    """The eigenvalues in ascending order, and the eigenvectors as columns."""
    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Q, a matrix with orthonormal columns, and R, an upper triangular matrix."""
    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its magnitude."""
    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """The left singular vectors, the singular values, and the right singular vectors as rows."""
    U: Array
    S: Array
    Vh: Array


def _floats(what: str, a: Array, least: int = 2) -> Array:
    if a.ndim < least:
        raise ShapeError(f"{what}: got {a.ndim} axes, but at least {least} are expected")
    return a if a.dtype.kind in "fc" and a.dtype != np.float16 else a.astype(np.float64)


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """Returns the triangular matrix L with x = L L^H, or U with x = U^H U."""
    made: Array = on_host(np.linalg.cholesky, _floats("cholesky", x))
    return apply("conj", made.mT) if upper else made


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Returns the cross products of vectors of three elements along an axis."""
    from ._shapes import axis_of
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ShapeError(f"cross: there are {x1.shape[axis]} and {x2.shape[axis]} elements along axis {axis}, but 3 "
                         "are needed")
    from .array_api import broadcast_arrays
    from ._shapes import stack
    x1, x2 = broadcast_arrays(x1, x2)
    at = axis_of("cross", axis, x1.ndim)
    a, b = ([one[(slice(None),) * at + (i,)] for i in range(3)] for one in (x1, x2))
    return stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], at)


def det(x: Array, /) -> Array:
    """Returns the determinants of square matrices."""
    return on_host(np.linalg.det, _floats("det", x))  # type: ignore[no-any-return]


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Returns a view of the diagonals of the last two axes."""
    from ._device_array import view
    rows, columns = x.shape[-2:]
    down, right = x.strides_[-2:]
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    begin = (-offset * down if offset < 0 else offset * right) if count else 0
    return view(x, begin, (*x.shape[:-2], count), (*x.strides_[:-2], down + right))


def eigh(x: Array, /) -> EighResult:
    """Returns the eigenvalues and eigenvectors of symmetric or Hermitian matrices; reads the lower triangle."""
    return EighResult(*on_host(np.linalg.eigh, _floats("eigh", x)))


def eigvalsh(x: Array, /) -> Array:
    """Returns the eigenvalues of symmetric or Hermitian matrices in ascending order; reads the lower triangle."""
    return on_host(np.linalg.eigvalsh, _floats("eigvalsh", x))  # type: ignore[no-any-return]


def eigvals(x: Array, /) -> Array:
    """Returns the eigenvalues of general matrices, as complex numbers."""
    values = on_host(np.linalg.eigvals, _floats("eigvals", x))
    kind = np.complex64 if x.dtype in (np.dtype(np.float32), np.dtype(np.complex64)) else np.complex128
    return values.astype(kind, copy=False)  # type: ignore[no-any-return]


def inv(x: Array, /) -> Array:
    """Returns the inverses of square matrices."""
    return on_host(np.linalg.inv, _floats("inv", x))  # type: ignore[no-any-return]


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Returns the norms of matrices; `ord` is "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    if ord == "fro":
        return vector_norm(_floats("matrix_norm", x), axis=(-2, -1), keepdims=keepdims)
    made: Array = on_host(lambda one: np.linalg.norm(one, ord=ord, axis=(-2, -1), keepdims=keepdims),
                          _floats("matrix_norm", x))
    return made


def matrix_power(x: Array, n: int, /) -> Array:
    """Returns whole powers of square matrices; a negative power is a power of the inverse."""
    return on_host(np.linalg.matrix_power, _floats("matrix_power", x), n)  # type: ignore[no-any-return]


def matrix_rank(x: Array, /, *, rtol: Any = None) -> Array:
    """Counts the singular values that exceed rtol times the largest one."""
    values = svdvals(x)
    if rtol is None:
        rtol = max(x.shape[-2:]) * float(np.finfo(values.dtype).eps)
    if not values.size:
        return sum_of(values > 0, -1)
    largest = values.max(axis=-1, keepdims=True)
    rtol = expand_dims(rtol, -1) if isinstance(rtol, Array) and rtol.ndim else rtol
    return sum_of(values > largest * rtol, -1)


def matrix_transpose(x: Array, /) -> Array:
    """Returns a view with the last two axes swapped."""
    return x.mT


def outer(x1: Array, x2: Array, /) -> Array:
    """Returns the products of all pairs of elements of two vectors."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(f"outer: got {x1.ndim} and {x2.ndim} axes, but both must have 1")
    return expand_dims(x1, 1) * expand_dims(x2, 0)


def pinv(x: Array, /, *, rtol: Any = None) -> Array:
    """Returns the Moore-Penrose pseudo-inverses of matrices."""
    a = _floats("pinv", x)
    if rtol is None:
        rtol = max(x.shape[-2:]) * float(np.finfo(a.dtype).eps)
    return on_host(lambda one, by: np.linalg.pinv(one, by), a, rtol)  # type: ignore[no-any-return]


def qr(x: Array, /, *, mode: str = "reduced") -> QRResult:
    """Returns the factors Q and R of x = Q R; with mode "complete", Q is square."""
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"qr: got mode {mode!r}, but 'reduced' or 'complete' is expected")
    return QRResult(*on_host(np.linalg.qr, _floats("qr", x), mode))


def slogdet(x: Array, /) -> SlogdetResult:
    """Returns the signs of determinants, and the logarithms of their magnitudes."""
    return SlogdetResult(*on_host(np.linalg.slogdet, _floats("slogdet", x)))


def solve(x1: Array, x2: Any, /) -> Array:
    """Returns y with x1 y = x2, for a vector or for the columns of matrices."""
    def both(a: Any, b: Any) -> Any:
        return np.linalg.solve(a, b[..., None])[..., 0] if b.ndim == 1 else np.linalg.solve(a, b)
    from ._device_array import array
    b = x2 if isinstance(x2, Array) else array(x2, context=x1.context)
    return on_host(both, _floats("solve", x1), _floats("solve", b, 1))  # type: ignore[no-any-return]


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Returns the factors U, S and Vh of x = U diag(S) Vh."""
    return SVDResult(*on_host(lambda one: tuple(np.linalg.svd(one, full_matrices=full_matrices)), _floats("svd", x)))


def svdvals(x: Array, /) -> Array:
    """Returns the singular values, the largest one first."""
    made: Array = on_host(lambda one: np.linalg.svd(one, compute_uv=False), _floats("svdvals", x))
    return made


def tensordot(x1: Array, x2: Array, /, *, axes: int | Sequence[Sequence[int]] = 2) -> Array:
    """Returns the sums of products over several axes of both arrays."""
    from ._shapes import axes_of
    if is_number(axes):
        count = int(axes)  # type: ignore[arg-type]
        first, second = tuple(range(x1.ndim - count, x1.ndim)), tuple(range(count))
    else:
        pair: Any = axes
        first, second = (axes_of("tensordot", tuple(one), of.ndim) for one, of in zip(pair, (x1, x2)))
    if [x1.shape[i] for i in first] != [x2.shape[i] for i in second]:
        raise ShapeError(f"tensordot: axes {first} of {x1.shape} and {second} of {x2.shape} do not fit")
    left = [i for i in range(x1.ndim) if i not in first]
    right = [i for i in range(x2.ndim) if i not in second]
    inner = int(np.prod([x1.shape[i] for i in first], dtype=np.int64))
    rows = int(np.prod([x1.shape[i] for i in left], dtype=np.int64))
    columns = int(np.prod([x2.shape[i] for i in right], dtype=np.int64))
    a = reshape(permute_dims(x1, (*left, *first)), (rows, inner))
    b = reshape(permute_dims(x2, (*second, *right)), (inner, columns))
    return reshape(matmul(a, b), (*(x1.shape[i] for i in left), *(x2.shape[i] for i in right)))


def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Returns the sums of the diagonals."""
    return sum_of(diagonal(x, offset=offset), -1, dtype)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Returns the sums of products along an axis; the first vector is conjugated if it is complex."""
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(f"vecdot: there are {x1.shape[axis]} and {x2.shape[axis]} elements along axis {axis}, but "
                         "the numbers must be equal")
    first = apply("conj", x1) if x1.dtype.kind == "c" else x1
    both = moveaxis(first, axis, -1) * moveaxis(x2, axis, -1)
    return sum_of(both, -1, both.dtype)


def vector_norm(x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Returns norms along axes: the ord-th root of the sum of the ord-th powers; for 0, inf and -inf, the limit."""
    from . import _folds
    a = apply("abs", _floats("vector_norm", x, 0))
    if ord == np.inf:
        return _folds.max(a, axis, keepdims)
    if ord == -np.inf:
        return _folds.min(a, axis, keepdims)
    if ord == 0:
        return sum_of(apply("not_equal", a, 0), axis, a.dtype, keepdims)
    if ord == 1:
        return sum_of(a, axis, keepdims=keepdims)
    if ord == 2:
        return apply("sqrt", sum_of(apply("square", a), axis, keepdims=keepdims))
    return apply("pow", sum_of(apply("pow", a, float(ord)), axis, keepdims=keepdims), 1.0 / ord)


def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Computes NumPy's norm of vectors or of matrices, depending on the axes."""
    if ord is None:
        return vector_norm(x, axis=axis, keepdims=keepdims)
    if axis is None and x.ndim > 2:
        raise ShapeError(f"norm: got {x.ndim} axes and ord {ord!r}; name the one axis of vectors, or the two of "
                         "matrices, with axis=")
    if (axis is None and x.ndim == 2) or (isinstance(axis, tuple) and len(axis) == 2):
        moved = x if axis is None else moveaxis(x, axis, (-2, -1))
        made = matrix_norm(moved, ord=ord, keepdims=keepdims)
        return moveaxis(made, (-2, -1), axis) if keepdims and axis is not None else made
    return vector_norm(x, axis=axis, ord=ord, keepdims=keepdims)
