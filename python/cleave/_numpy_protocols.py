# SPDX-License-Identifier: Apache-2.0
"""Implements NumPy's protocols for Array: a NumPy function that Cleave has is computed where the arrays lie and returns
an Array; all other functions get copies on the host and return NumPy arrays."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from . import _folds, _products, _shapes, fft, linalg
from . import array_api as _standard
from ._device_array import Array, array
from ._elementwise import context_of, ufunc
from ._host_math import on_host

array_api: Any = _standard
_NO_VALUE: Any = getattr(np, "_NoValue")  # NumPy's default value of arguments that were not passed
_WRITERS = (np.copyto, np.put, np.put_along_axis, np.putmask, np.place, np.fill_diagonal)


def ufunc_of(function: Any, method: str, inputs: Any, named: Any) -> Any:
    """Computes np.exp(a) or np.add(a, b, out=c) by Cleave's function of that name, or by NumPy's on copies on the
    host."""
    given = dict(named)
    if function is np.matmul and method == "__call__" and not set(named) - {"out"}:
        out = named.get("out", (None,))[0]
        return array_api.matmul(*inputs, out=out)
    made = ufunc(function, method, inputs, given)
    if made is not NotImplemented:
        return made
    return _on_copies(getattr(function, method), inputs, named)


def _on_copies(function: Callable[..., Any], inputs: Any, named: Any) -> Any:
    """Calls NumPy's function with copies of all Arrays, and writes those back that it has changed."""
    given, named = [*map(_copied, inputs)], dict(named)
    changed = [(inputs[0], given[0])] if _changes_first(function) else []
    outs = named.pop("out", None)
    if outs is not None:
        outs = outs if isinstance(outs, tuple) else (outs,)
        into = tuple(map(_copied, outs))
        changed += [*zip(outs, into)]
        named["out"] = into if len(into) > 1 else into[0]
    made = function(*given, **{name: _copied(one) for name, one in named.items()})
    for one, copy in changed:
        if isinstance(one, Array):
            one[...] = copy
    return made if not outs else outs if len(outs) > 1 else outs[0]


def _changes_first(function: Callable[..., Any]) -> bool:
    """Tells whether the function writes into its first argument: np.copyto(a, b), or np.add.at(a, places, b)."""
    return function in _WRITERS or getattr(function, "__name__", "") == "at"


def _copied(value: Any) -> Any:
    if isinstance(value, Array):
        return value.numpy()
    if isinstance(value, (list, tuple)) and any(isinstance(one, (Array, list, tuple)) for one in value):
        parts = [_copied(one) for one in value]
        return type(value)(parts) if type(value) in (list, tuple) else parts
    return value


def _flat(values: Any) -> list[Any]:
    return [one for value in values for one in (value if isinstance(value, (list, tuple)) else (value,))]


def _axis_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that calls the method of Array with the same name as NumPy's function."""
    def call(a: Any, *given: Any, **named: Any) -> Any:
        named = {name: value for name, value in named.items() if value is not _NO_VALUE}
        return getattr(a, function.__name__)(*given, **named)
    return call


def _concatenate(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = None) -> Any:
    del casting
    made = _shapes.concat(list(arrays), axis, dtype)
    if out is not None:
        out[...] = made if isinstance(out, Array) else made.numpy()
        return out
    return made


def _joined(axis: int) -> Callable[..., Any]:
    def call(arrays: Any) -> Any:
        context = context_of(list(arrays))
        given = [one if isinstance(one, Array) else array(one, context=context) for one in arrays]
        if axis == 0:
            given = [_shapes.reshape(one, (1, -1)) if one.ndim < 2 else one for one in given]
            return _shapes.concat(given, 0)
        return _shapes.concat([_shapes.reshape(one, -1) if not one.ndim else one for one in given],
                              0 if all(one.ndim <= 1 for one in given) else 1)
    return call


def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    del kind, order, stable
    return array_api.sort(_shapes.reshape(a, -1) if axis is None else a, axis=0 if axis is None else axis)


def _argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    del kind, order, stable
    return array_api.argsort(_shapes.reshape(a, -1) if axis is None else a, axis=0 if axis is None else axis)


def _unique(a: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False,
            axis: Any = None, *, equal_nan: Any = True, sorted: Any = True) -> Any:
    del sorted
    if axis is not None or (equal_nan and a.dtype.kind in "fc" and bool(array_api.any(array_api.isnan(a)))):
        return on_host(np.unique, a, return_index=return_index, return_inverse=return_inverse,
                       return_counts=return_counts, axis=axis)
    found = array_api.unique_all(a)
    asked = ((True, found.values), (return_index, found.indices), (return_inverse, found.inverse_indices),
             (return_counts, found.counts))
    parts = [part for wanted, part in asked if wanted]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **named: Any) -> Any:
    low, high = named.get("min", a_min), named.get("max", a_max)
    made = array_api.clip(a, *(None if one is _NO_VALUE else one for one in (low, high)))
    if out is not None:
        out[...] = made
        return out
    return made


def _like(function: Callable[..., Any], sized: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that makes an Array like another one, or, with a shape, by the function `sized`."""
    def call(a: Any, *given: Any, dtype: Any = None, shape: Any = None, **_named: Any) -> Any:
        if shape is not None:
            return sized(shape, *given, dtype=a.dtype if dtype is None else dtype, device=a.context)
        return function(a, *given, dtype=dtype)
    return call


def _cumsum(what: str) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        made = _folds.scan(what, _shapes.reshape(a, -1) if axis is None else a, axis or 0, dtype, False)
        if out is not None:
            out[...] = made
            return out
        return made
    return call


def _linear(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        context = context_of(given)
        return function(*(array(one, context=context) if isinstance(one, (np.ndarray, list)) else one
                          for one in given), **named)
    return call


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{function: _axis_argument(function) for function in (
        np.sum, np.prod, np.mean, np.var, np.std, np.min, np.max, np.any, np.all, np.argmin, np.argmax, np.take,
        np.squeeze, np.ravel, np.round, np.transpose)},
    np.amin: _axis_argument(np.min), np.amax: _axis_argument(np.max), np.real: lambda a: a.real,
    np.imag: lambda a: a.imag, np.concatenate: _concatenate, np.sort: _sort, np.argsort: _argsort, np.unique: _unique,
    np.clip: _clip, np.cumsum: _cumsum("sum"), np.cumprod: _cumsum("prod"),
    np.stack: lambda arrays, axis=0, **_: _shapes.stack(list(arrays), axis), np.vstack: _joined(0),
    np.hstack: _joined(1),
    np.reshape: lambda a, *shape, **named: _shapes.reshape(a, *shape, *[named[k] for k in ("shape", "newshape")
                                                                        if named.get(k) is not None]),
    np.where: array_api.where, np.nonzero: array_api.nonzero, np.searchsorted: lambda a, v, side="left", sorter=None:
        array_api.searchsorted(a if isinstance(a, Array) else array(a, context=v.context), v, side=side, sorter=sorter),
    np.split: lambda a, parts, axis=0: _shapes.split(a, parts, axis),
    np.array_split: lambda a, parts, axis=0: _shapes.split(a, parts, axis, even=False),
    np.expand_dims: _shapes.expand_dims, np.moveaxis: _shapes.moveaxis, np.flip: _shapes.flip, np.roll: _shapes.roll,
    np.swapaxes: lambda a, first, second: _shapes.moveaxis(a, (first, second), (second, first)),
    np.tile: _shapes.tile, np.repeat: _shapes.repeat, np.broadcast_to: lambda a, shape, subok=False:
        _shapes.broadcast_to(a, shape if isinstance(shape, tuple) else (shape,)),
    np.diff: lambda a, n=1, axis=-1, **_: array_api.diff(a, axis=axis, n=n), np.dot: _linear(_products.dot),
    np.count_nonzero: lambda a, axis=None, *, keepdims=False: array_api.count_nonzero(a, axis=axis, keepdims=keepdims),
    np.copy: lambda a, *_, **__: a.copy(), np.zeros_like: _like(array_api.zeros_like, array_api.zeros),
    np.ones_like: _like(array_api.ones_like, array_api.ones),
    np.empty_like: _like(array_api.empty_like, array_api.empty),
    np.full_like: _like(array_api.full_like, array_api.full), np.diagonal: lambda a, offset=0, axis1=0, axis2=1:
        linalg.diagonal(_shapes.moveaxis(a, (axis1, axis2), (-2, -1)), offset=offset),
    np.tril: lambda m, k=0: array_api.tril(m, k=k), np.triu: lambda m, k=0: array_api.triu(m, k=k),
    np.trace: lambda a, offset=0, axis1=0, axis2=1, **_: a.diagonal(offset, axis1, axis2).sum(-1),
    np.isin: lambda a, among, *_, invert=False, **__: array_api.isin(a, among, invert=invert),
    np.tensordot: _linear(lambda a, b, axes=2: linalg.tensordot(a, b, axes=axes)), np.outer: _linear(
        lambda a, b, out=None: linalg.outer(_shapes.reshape(a, -1), _shapes.reshape(b, -1))),
    np.take_along_axis: lambda a, places, axis=-1: array_api.take_along_axis(a, places, axis=axis),
    **{getattr(np.linalg, name): _linear(getattr(linalg, name)) for name in (
        "cholesky", "det", "eigh", "eigvals", "eigvalsh", "inv", "matrix_power", "norm", "pinv", "qr", "slogdet",
        "solve")},
    np.linalg.svd: lambda a, full_matrices=True, compute_uv=True, hermitian=False:
        linalg.svd(a, full_matrices=full_matrices) if compute_uv else linalg.svdvals(a),
    **{getattr(np.fft, name): getattr(fft, name) for name in fft.__all__ if name not in (
        "fftfreq", "rfftfreq", "fftshift", "ifftshift")},
    np.fft.fftshift: lambda x, axes=None: fft.fftshift(x, axes=axes),
    np.fft.ifftshift: lambda x, axes=None: fft.ifftshift(x, axes=axes),
}


#: Arguments that Cleave's functions do not have.
_HOST_ARGUMENTS = ("where", "initial", "prepend", "append", "axis1", "axis2", "casting", "order", "mode")
_ALWAYS_OURS = (np.copy, np.diagonal, np.sort, np.argsort, np.concatenate, np.zeros_like, np.ones_like, np.empty_like,
                np.full_like)
_WITHOUT_OUT = (np.stack, np.vstack, np.hstack, np.outer, np.trace, np.take, np.round, np.dot)


def _is_asked(function: Any, name: str, value: Any) -> bool:
    """Tells whether an argument asks for more than Cleave's function of that name can do."""
    if value is None or value is _NO_VALUE or function in _ALWAYS_OURS:
        return False
    return name in _HOST_ARGUMENTS or (name in ("out", "dtype") and function in _WITHOUT_OUT)


def function_of(function: Any, given: Any, named: Any) -> Any:
    """Computes np.sum(a) or np.concatenate([a, b]) by Cleave's function of that name, or by NumPy's on copies
    on the host."""
    if function in (np.may_share_memory, np.shares_memory):
        raise TypeError(f"{function.__name__}: NumPy cannot tell whether cleave.Arrays share memory")
    ours = _FUNCTIONS.get(function)
    first = next(iter(given), None)
    if ours is None or (not isinstance(first, (Array, list, tuple)) and function not in (np.where, np.searchsorted)
                        and not any(isinstance(one, Array) for one in given)):
        return _on_copies(function, given, named)
    if not isinstance(first, Array) and isinstance(first, np.ndarray):
        first = next(one for one in given if isinstance(one, Array))
        given = (array(given[0], context=first.context), *given[1:])
    if named and any(_is_asked(function, name, value) for name, value in named.items()):
        made = _on_copies(function, given, named)
        return made if isinstance(made, Array) else array(made, context=context_of(_flat(given)))
    return ours(*given, **named)
