# SPDX-License-Identifier: Apache-2.0
"""Reductions of your own expressions, with the signature of CuPy's ReductionKernel."""
from __future__ import annotations

import math
from typing import Any

from . import _folds
from ._check import text
from ._context import Context
from ._device_array import Array
from ._elementwise import cast
from ._fuse import ElementwiseKernel
from ._shapes import axes_of
from .errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedError

_FOLDS = {"a+b": "sum", "b+a": "sum", "a*b": "prod", "b*a": "prod", "min(a,b)": "min", "min(b,a)": "min",
          "max(a,b)": "max", "max(b,a)": "max", "a&&b": "all", "b&&a": "all", "a||b": "any", "b||a": "any"}


class ReductionKernel:
    """A reduction along axes: an expression for every element, which is one kernel, a reduction of its values, and
    statements for every result.

    >>> norm = ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    >>> norm(a, axis=1)

    Parameters
    ----------
    in_params      types and names, as for ElementwiseKernel
    out_params     the type and the name of the result; a letter must also occur in in_params
    map_expr       an expression of the inputs, in the language of ElementwiseKernel
    reduce_expr    'a + b', 'a * b', 'min(a, b)', 'max(a, b)', 'a && b' or 'a || b'
    post_map_expr  statements that compute the result from the reduced value a: 'y = sqrt(a)'
    identity       the value of a reduction of no elements: '0'; '' or None: this is an error
    name           a name for error messages

    A call takes the inputs, which broadcast, and `axis` (None: all), `keepdims` and `out` as NumPy's sum does. Values
    have the type of the result. Sums of float32 are compensated.

    Raises FormatError, UnsupportedError (another reduce_expr), ArgumentError, ShapeError.
    """

    def __init__(self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str,
                 identity: str | None, name: str = "reduce_kernel"):
        self.name = text("ReductionKernel: name", name)
        self._given = in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, name
        words = text(f"{name}: out_params", out_params).split()
        if len(words) != 2 or "," in out_params:
            raise ArgumentError(f"{name}: got the out_params {out_params!r}, but one type and one name are expected, "
                                "as in 'T y'")
        fold = _FOLDS.get("".join(text(f"{name}: reduce_expr", reduce_expr).split()))
        if fold is None:
            raise UnsupportedError(f"{name}: got the reduce_expr {reduce_expr!r}, but 'a + b', 'a * b', 'min(a, b)', "
                                   "'max(a, b)', 'a && b' or 'a || b' is expected")
        self._fold = fold
        try:
            self._identity = float(identity) if identity else None
        except ValueError:
            raise ArgumentError(f"{name}: got the identity {identity!r}, but a number is expected, as in '0'") from None
        self._map = ElementwiseKernel(in_params, f"{words[0]} mapped", f"mapped = {map_expr}", name)
        self._post = ElementwiseKernel(f"{words[0]} a", out_params, post_map_expr, name)

    def __call__(self, *inputs: Any, out: Array | None = None, axis: Any = None, keepdims: bool = False,
                 context: Context | None = None) -> Any:
        if len(inputs) != len(self._map.in_params):
            raise ArgumentError(f"{self.name}: got {len(inputs)} arguments, but {len(self._map.in_params)} inputs are "
                                "expected")
        if out is not None and not isinstance(out, Array):
            raise ArgumentTypeError(f"{self.name}: out must be a cleave.Array")
        mapped: Array = self._map(*inputs, context=context)
        axes = axes_of(self.name, axis, mapped.ndim)
        if not math.prod(mapped.shape[i] for i in axes):
            reduced = self._of_nothing(mapped, axes, keepdims)
        elif self._fold in ("sum", "prod"):
            reduced = getattr(_folds, self._fold)(mapped, axis=axes, dtype=mapped.dtype, keepdims=keepdims)
        else:
            reduced = cast(getattr(_folds, self._fold)(mapped, axis=axes, keepdims=keepdims), mapped.dtype, copy=False)
        if out is not None and out.shape != reduced.shape:
            raise ShapeError(f"{self.name}: out has the shape {out.shape}, but it must be {reduced.shape}")
        return self._post(reduced) if out is None else self._post(reduced, out)

    def _of_nothing(self, mapped: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        if self._identity is None:
            raise ArgumentError(f"{self.name}: there are no elements to reduce, and the kernel has no identity")
        from ._create import full
        shape = [1 if i in axes else n for i, n in enumerate(mapped.shape) if keepdims or i not in axes]
        value = self._identity if mapped.dtype.kind in "fc" else int(self._identity)
        return full(tuple(shape), value, dtype=mapped.dtype, device=mapped.context)

    def __reduce__(self) -> Any:
        return ReductionKernel, self._given

    def __repr__(self) -> str:
        return f"<cleave.ReductionKernel {self.name}>"
