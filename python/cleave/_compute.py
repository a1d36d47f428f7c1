# SPDX-License-Identifier: Apache-2.0
"""Operations on NumPy arrays or on arrays of a device: expressions, reductions, products, normalisation, regression."""
from __future__ import annotations

import ctypes
import math
from typing import Any, NamedTuple

import numpy as np

from . import _abi
from ._blas import lend
from ._check import FLOAT32_MAX, given as given_as, real32, whole
from ._context import Context
from ._device_array import Array, array
from ._library import check, lib
from ._operands import Operands, out_of
from ._probe import choice
from ._watch import Progress, Watch
from .errors import ArgumentError, ArgumentTypeError, CancelledError, FormatError, ShapeError

_MAX_AXES = 1 << 31
_FLOPS_A_CALL = 4e9  # the most per library call of linear_train: some tenths of a second on a CPU
_STEPS_A_CALL = 1 << 14  # the most steps per call, because a step takes at least two kernel launches on a device
_REDUCTIONS = {name: number for number, name in enumerate(
    ("sum", "mean", "var", "std", "min", "max", "argmin", "argmax"))}


def _decides_only() -> bool:
    """Tells whether this thread is inside explain(), where calls choose a side but compute nothing."""
    before: bool = lib.clv_offload_dry(True)
    lib.clv_offload_dry(before)
    return before


def compute(expression: str, out: Any = None, *, context: Context | None = None,
            **inputs: Any) -> Any:
    """Computes an expression in one kernel: compute("a * x + b", a=2, x=data, b=other).

    Expressions have + - * / % ** < <= > >= == != && || ! ?: and functions such as sin, exp, sqrt, min, where and clamp
    (include/cleave/array_math.h lists all of them). Inputs are numbers, NumPy arrays and Arrays; they broadcast as in
    NumPy and are computed in float32. A compiler never gets the text itself, only
    OpenCL C that is made from the parsed expression.

    Returns an Array if an input is one, else a NumPy array; if `out` is given, writes to `out` and returns it.

    Raises FormatError (with the position in the expression), ShapeError, ArgumentError.
    """
    if not isinstance(expression, str):
        raise ArgumentTypeError(f"compute: the expression is {given_as(expression)}, but it must be a text")
    if "\0" in expression:
        raise FormatError(f"expression: position {expression.index(chr(0))} has a NUL character")
    with Operands(context, out, *inputs.values()) as operands:
        given = (_abi.MapInput * max(len(inputs), 1))()
        shape: tuple[int, ...] = ()
        for slot, (name, value) in zip(given, inputs.items()):
            slot.name = name.encode()
            if type(value) is float and -FLOAT32_MAX <= value <= FLOAT32_MAX:
                slot.value = value
                continue
            if isinstance(value, (int, float, np.integer, np.floating)):
                slot.value = real32(f"compute: {name}", value)
                continue
            slot.array, has = operands.operand(value, name)
            if not shape:
                shape = has
            elif has != shape[len(shape) - len(has):]:
                try:
                    shape = np.broadcast_shapes(shape, has)
                except ValueError:
                    raise ShapeError(f"compute: {name} of shape {has} does not fit {shape}") from None
        handle, result = operands.result(shape if out is None else out_of(out).shape, out)
        check(lib.clv_map(operands.handle, expression.encode(), given, len(inputs), handle))
    return result


def reduce(x: Any, what: str = "sum", axis: int | None = None, *,
           context: Context | None = None) -> Any:
    """Computes sum, mean, var, std (of the population), min, max, argmin or argmax along an axis, or over all elements.

    Sums are compensated and added in one fixed order, so every device gives the same bits. Indices are exact below
    2^24.

    Raises ShapeError, ArgumentError.
    """
    with Operands(context, x) as operands:
        handle, shape = operands.operand(x)
        at = -1
        if axis is not None:
            at = whole("reduce: axis", axis, -_MAX_AXES)
            if not -len(shape) <= at < len(shape):
                raise ShapeError(f"reduce: axis {at} is out of range for an array of {len(shape)} axes")
            at %= len(shape)
        to, result = operands.result(() if axis is None else shape[:at] + shape[at + 1:])
        check(lib.clv_reduce(operands.handle, choice("reduction", what, _REDUCTIONS), handle, at,
                             to))
    return result


def product(a: Any, b: Any, *, transpose_a: bool = False, transpose_b: bool = False,
            out: Any = None, context: Context | None = None) -> Any:
    """Multiplies [m, k] by [k, n], or stacks [s, m, k] by [s, k, n], on the host or device where they lie. matmul()
    does the same for NumPy arrays with any strides.

    Raises ShapeError, ArgumentError.
    """
    lend()
    with Operands(context, out, a, b) as operands:
        ha, sa = operands.operand(a, "a")
        hb, sb = operands.operand(b, "b")
        if not 2 <= len(sa) <= 3 or not 2 <= len(sb) <= 3:
            raise ShapeError(f"product: got the shapes {sa} and {sb}, but both must have 2 or 3 axes")
        m, n = sa[-1 if transpose_a else -2], sb[-2 if transpose_b else -1]
        if sa[-2 if transpose_a else -1] != sb[-1 if transpose_b else -2]:
            raise ShapeError(f"product: shapes {sa}{' transposed' * bool(transpose_a)} and {sb}"
                             f"{' transposed' * bool(transpose_b)} do not fit together")
        stack = max((s[:-2] for s in (sa, sb)), default=())
        if out is not None:
            stack = tuple(out_of(out).shape[:-2])
        options = _abi.ProductOptions(ctypes.sizeof(_abi.ProductOptions), transpose_a, transpose_b)
        hc, result = operands.result((*stack, m, n), out)
        check(lib.clv_product(operands.handle, ha, hb, ctypes.byref(options), hc))
    return result


class Normalized(NamedTuple):
    """The result of normalize(): z, z z^T (or None), and the means and standard deviations of the columns of x."""
    z: Any
    gram: Any
    mean: Any
    std: Any


def normalize(x: Any, *, gram: bool = False, context: Context | None = None) -> Normalized:
    """Computes z = (x - mean) / std for every column of x [n, d], and z z^T if `gram` is true. The standard deviation
    is that of the population; a column of equal values gives NaN.

    Raises ShapeError.
    """
    with Operands(context, x) as operands:
        handle, shape = operands.operand(x)
        if len(shape) != 2:
            raise ShapeError(f"normalize: got shape {shape}, but 2 axes are expected")
        hz, z = operands.result(shape)
        hg, g = operands.result((shape[0], shape[0])) if gram else (None, None)
        hm, mean = operands.result(shape[1:])
        hs, std = operands.result(shape[1:])
        check(lib.clv_normalize(operands.handle, handle, hz, hg, hm, hs))
    return Normalized(z, g, mean, std)


def linear_step(x: Any, y: Any, w: Any, *, context: Context | None = None) -> tuple[Any, Any]:
    """Computes (loss, gradient) of a linear regression: mean((x w - y)^2) and 2 x^T (x w - y) / n, for x [n, d], y [n]
    and w [d].

    Raises ShapeError.
    """
    with Operands(context, x, y, w) as operands:
        (hx, _), (hy, _), (hw, shape) = map(operands.operand, (x, y, w), "xyw")
        hl, loss = operands.result(())
        hg, gradient = operands.result(shape)
        check(lib.clv_linear_step(operands.handle, hx, hy, hw, hl, hg))
    return loss, gradient


def _kind_of(value: Any) -> str:
    """Returns the type and layout of the value that was passed as an output array, for an error message."""
    if not isinstance(value, np.ndarray):
        return given_as(value)
    words = ["masked"] * isinstance(value, np.ma.MaskedArray) + \
        ["strided"] * (not value.flags.c_contiguous) + ["read-only"] * (not value.flags.writeable)
    return " ".join([*words, str(value.dtype)])


def linear_train(x: Any, y: Any, w: Any, *, rate: float, steps: int,
                 context: Context | None = None, progress: Progress = None) -> Any:
    """Takes `steps` steps of w -= rate * gradient, all on the host or all on one device; w is changed in place. Returns
    the loss before each step. If Ctrl-C ends the call, w has the value after the steps that were completed.

    Raises ShapeError, ArgumentError (w is not a dense, writeable float32 array), CancelledError.
    """
    if not isinstance(w, Array) and not (isinstance(w, np.ndarray) and w.dtype == np.float32 and
                                         w.flags.c_contiguous and w.flags.writeable and
                                         not isinstance(w, np.ma.MaskedArray)):
        raise ArgumentError(f"linear_train: w: got {_kind_of(w)}, but a dense, writeable float32 array is expected")
    steps = whole("linear_train: steps", steps, 1, (1 << 32) - 1)
    rate = real32("linear_train: rate", rate)
    with Operands(context, x, y, w) as operands:
        (hx, shape), (hy, _), (hw, _) = map(operands.operand, (x, y, w), "xyw")
        each = max(1, min(int(_FLOPS_A_CALL / max(4 * math.prod(shape), 1)), _STEPS_A_CALL))
        if progress is None and steps <= each or _decides_only():
            hl, losses = operands.result((steps,))
            check(lib.clv_linear_train(operands.handle, hx, hy, hw, rate, steps, hl))
            return losses
        parts: list[Any] = []  # results of several library calls: a single call could not be cancelled
        done = 0
        with Watch(progress, "linear_train") as watch:
            while done < steps:
                count = min(each, steps - done)
                hl, part = operands.result((count,))
                check(lib.clv_linear_train(operands.handle, hx, hy, hw, rate, count, hl))
                parts.append(part)
                done += count
                if watch.called(done, steps):
                    break
            watch.done(0)
            if done < steps and not watch.signals:
                raise CancelledError(f"linear_train: cancelled after {done} of {steps} steps")
        losses = np.concatenate([np.asarray(part) for part in parts])
        return array(losses, context=operands.context) if operands.ours else losses
