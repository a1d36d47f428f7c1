# SPDX-License-Identifier: Apache-2.0
"""Operations element by element: clv_array_apply on arrays, numbers and NumPy arrays."""
from __future__ import annotations

import ctypes
import functools
from typing import Any, Sequence

import numpy as np

from . import _abi
from ._check import FLOAT32_MAX
from ._context import Context
from ._device_array import Array, array, made_like, new_array, shape_of, small_plans
from ._dtypes import COMPLEX128, DEFAULTS, FLOAT32, FLOAT64, NUMBERS, TYPES, dtype_from, is_number, weak
from ._library import check, error_of, has, lib
from .errors import ArgumentError, Error, ShapeError

OPS = {name: number for number, name in enumerate((
    "copy", "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and",
    "bitwise_or", "bitwise_xor", "bitwise_invert", "bitwise_left_shift", "bitwise_right_shift", "minimum", "maximum",
    "fmin", "fmax", "atan2", "hypot", "copysign", "nextafter", "logaddexp", "negative", "abs", "sign", "square",
    "reciprocal", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "floor", "ceil", "trunc", "round", "isnan", "isinf",
    "isfinite", "signbit", "conj", "real", "imag", "where", "ramp"))}
#: The library's operation for each NumPy ufunc whose name differs from it.
UFUNCS = {"power": "pow", "float_power": "pow", "mod": "remainder", "true_divide": "divide", "invert": "bitwise_invert",
          "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "arctan2": "atan2",
          "absolute": "abs", "fabs": "abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
          "arccosh": "acosh", "arctanh": "atanh", "rint": "round", "conjugate": "conj", "positive": "copy"}
#: Expressions for compute(), which compute whole float32 arrays: it measures the times on host and device and chooses.
_EXPRESSIONS = {"add": "a + b", "subtract": "a - b", "multiply": "a * b", "divide": "a / b", "remainder": "a % b",
                "pow": "a ** b", "sqrt": "sqrt(a)", "exp": "exp(a)", "log": "log(a)", "sin": "sin(a)", "cos": "cos(a)",
                "tanh": "tanh(a)", "negative": "-a", "abs": "abs(a)"}


#: For each comparison a OP b: does it hold if b lies below, and if b lies above, all numbers that a's type can hold?
_COMPARISONS = {"equal": (False, False), "not_equal": (True, True), "less": (False, True), "less_equal": (False, True),
                "greater": (True, False), "greater_equal": (True, False)}
_LIMITS = {dtype: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for dtype in TYPES if dtype.kind in "iu"}


def _in_range(name: str, given: Any) -> tuple[str, Any]:
    """Returns the comparison and its operands. If one is a Python integer that the other one's type cannot hold, the
    array is compared with itself instead, so that the answer is the same for all elements."""
    for place, number in enumerate(given):
        a = given[1 - place]
        limits = _LIMITS.get(a.dtype) if type(number) is int and isinstance(a, (Array, np.ndarray)) else None
        if limits is not None and not limits[0] <= number <= limits[1]:
            holds = _COMPARISONS[name][(number > limits[1]) == (place == 1)]
            return "equal" if holds else "not_equal", (a, a)
    return name, given


def _check_exponent(given: Any) -> None:
    """Raises ArgumentError for integers to negative integer powers, which are no integers."""
    base, exponent = given
    if type(base) is not int and (not isinstance(base, (Array, np.ndarray)) or base.dtype.kind not in "iu"):
        return
    negative = exponent < 0 if type(exponent) is int else (
        isinstance(exponent, (Array, np.ndarray)) and exponent.dtype.kind == "i" and bool((exponent < 0).any()))
    if negative:
        raise ArgumentError("pow: integers to negative integer powers are no integers: convert the base to floats")


@functools.lru_cache(maxsize=4096)
def types_of(op: int, *dtypes: np.dtype[Any]) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Returns the type in which an operation computes operands of these types, and the type of its result."""
    given = (_abi.enum * len(dtypes))(*(NUMBERS[dtype] for dtype in dtypes))
    compute, result = _abi.enum(), _abi.enum()
    check(lib.clv_op_types(op, given, len(dtypes), ctypes.byref(compute), ctypes.byref(result)))
    return TYPES[compute.value], TYPES[result.value]


def operand_dtypes(name: str, given: Sequence[Any]) -> list[np.dtype[Any]]:
    """Returns the types in which operands are read: Python numbers take the type of the arrays among the operands."""
    arrays = [one.dtype for one in given[name == "where":] if not is_number(one)]
    dtype = functools.reduce(lambda a, b: types_of(OPS["add"], a, b)[0] if a != b else a, arrays) if arrays else None
    found = []
    for place, one in enumerate(given):
        if not is_number(one):
            found.append(one.dtype)
        elif dtype is None or (name == "where" and place == 0):
            found.append(DEFAULTS[type(one)])
        else:
            found.append(weak(dtype, one))
    return found


def broadcast(what: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Returns the common shape of arrays with these shapes; ShapeError if they do not fit together."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(f"{what}: shapes {', '.join(map(str, shapes))} do not fit together") from None


def _as_operand(value: Any, context: Context) -> Any:
    if isinstance(value, Array) or is_number(value):
        return value
    return array(value, context=context)


def context_of(given: Sequence[Any], context: Context | None = None) -> Context | None:
    """Returns the context of the arrays among `given`, or `context` if there are none. Raises ArgumentError if arrays
    belong to different contexts."""
    for one in given:
        if isinstance(one, Array):
            if context is not None and one.context is not context:
                raise ArgumentError("the arrays belong to different contexts")
            context = one.context
    return context


def _is_plain(one: Any) -> bool:
    if isinstance(one, Array):
        return one.dtype == FLOAT32 and one.is_whole
    return type(one) in (int, float) or (type(one) is np.ndarray and one.dtype == FLOAT32 and 0 < one.ndim <= 4
                                         and one.size > 0)


# ---- the fast path: arrays of one type and shape, and numbers that take the array's type

_Slots = [_abi.Operand * n for n in range(4)]
_Inputs = [_abi.MapInput * n for n in range(4)]
_NAMES = b"a", b"b", b"c"  # names of expressions' inputs, kept here because the library reads them during calls


@functools.lru_cache(maxsize=1024)
def _plan(name: str, dtype: np.dtype[Any], count: int) -> tuple[int, np.dtype[Any], int, bytes | None]:
    """Returns the operation's number, the type of its result, that type's number, and the expression for compute()
    (float32 only, else None)."""
    result = types_of(OPS[name], *[dtype] * count)[1]
    text = _EXPRESSIONS.get(name) if dtype is FLOAT32 else None
    return OPS[name], result, NUMBERS[result], text.encode() if text else None


def _slots_of(name: str, given: Sequence[Any], dtype: np.dtype[Any]) -> Any:
    slots = _Slots[len(given)]()
    for slot, one in zip(slots, given):
        if type(one) is Array:
            slot.array = one._handle
        else:
            slot_number(slot, name, one, dtype)
    return slots


def _inputs_of(given: Sequence[Any]) -> Any:
    inputs = _Inputs[len(given)]()
    for slot, one, letter in zip(inputs, given, _NAMES):
        slot.name = letter
        if type(one) is Array:
            slot.array = one._handle
        else:
            slot.value = one
    return inputs


def _quick(name: str, given: Sequence[Any], out: Array | None = None) -> Array | None:
    """Computes an operation on arrays of one type and shape, and on numbers; returns None for all other operands.
    `out` is None or the first operand."""
    first = given[0] if type(given[0]) is Array else given[-1]
    if type(first) is not Array:
        return None
    dtype, shape, context = first.dtype, first._shape, first.context
    whole = dtype is FLOAT32
    for one in given:
        if type(one) is Array:
            if one.dtype is not dtype or one._shape != shape or one.context is not context:
                return None
            whole = whole and one.is_whole
        elif type(one) is float and dtype.kind == "f":
            whole = whole and -FLOAT32_MAX <= one <= FLOAT32_MAX
        elif type(one) is not int or dtype.kind not in "iuf" or not -1 << 24 <= one <= 1 << 24:
            return None
    if name == "where" or (name == "pow" and type(given[1]) is not Array):
        return None
    number, result, type_number, text = _plan(name, dtype, len(given))
    if out is not None and (out is not first or result is not dtype):
        return None
    by_text = text is not None and whole
    operands = _inputs_of(given) if by_text else _slots_of(name, given, dtype)
    made, handle = ctypes.c_void_p(0 if out is None else out._handle), context.acquire()
    try:
        if out is None:
            check(lib.clv_array_make(handle, type_number, len(shape), shape_of(shape), ctypes.byref(made)))
        if by_text:
            status = lib.clv_map(handle, text, operands, len(given), made)
        else:
            status = lib.clv_array_apply(handle, number, operands, len(given), made)
        if status:
            error = error_of(status)
            if out is None:
                lib.clv_array_free(made)
            raise error
    except BaseException:
        context.release()
        raise
    if out is None:
        made_array = Array(context, made.value or 0, shape, result)
    context.release()
    return made_array if out is None else out


def _plan_small() -> None:
    """Fills in the table of small(): operations of one or two operands, under NumPy's names too."""
    for name, number in OPS.items() if has("clv_array_compute") else ():
        count = lib.clv_op_inputs(number)
        if count not in (1, 2) or name in ("copy", "ramp"):
            continue
        plans = small_plans[name, count] = {}
        for dtype in TYPES:
            try:
                compute, result = types_of(number, *[dtype] * count)
            except Error:
                continue
            if compute == dtype:
                plans[dtype] = number, result
    for other, name in UFUNCS.items():
        for count in (1, 2):
            if (name, count) in small_plans and other not in ("float_power", "fabs"):
                small_plans[other, count] = small_plans[name, count]


_plan_small()


def apply(name: str, *given: Any, out: Array | None = None, dtype: Any = None,
          context: Context | None = None) -> Array:
    """Computes one operation for every element. The result is written to `out`, or to a new array, whose type is
    `dtype` or follows from the operands."""
    if name in _COMPARISONS:
        name, given = _in_range(name, given)
    if name == "pow":
        _check_exponent(given)
    if dtype is None and context is None:
        quick = _quick(name, given, out)
        if quick is not None:
            return quick
    text = _EXPRESSIONS.get(name)
    if text and dtype is None and all(map(_is_plain, given)) and (
            out is None or (out.dtype == FLOAT32 and out.is_whole)):
        from ._compute import compute
        if name == "pow" and type(given[1]) is int and 1 <= given[1] <= 4:
            text, given = f"a ** {given[1]}", given[:1]
        made: Array = compute(text, out, context=context, **dict(zip("ab", given)))
        return made
    context = context_of((*given, out), context)
    assert context is not None
    operands = [_as_operand(one, context) for one in given]
    dtypes = operand_dtypes(name, operands)
    if out is not None and all(map(is_number, operands)):  # numbers alone: keep the precision of `out`
        dtypes = [weak(out.dtype, one) for one in operands]
    number = OPS[name]
    compute_in, result = types_of(number, *dtypes)
    shape = broadcast(name, [one.shape if isinstance(one, Array) else () for one in operands])
    if out is None:
        out = new_array(context, shape, result if dtype is None else dtype)
    elif out.shape != shape and broadcast(name, [out.shape, shape]) != out.shape:
        raise ShapeError(f"{name}: out has the shape {out.shape}, but it must be {shape}")
    slots = (_abi.Operand * len(operands))()
    for slot, one, its in zip(slots, operands, dtypes):
        if isinstance(one, Array):
            slot.array = one.handle
            continue
        slot_number(slot, name, one, its)
    with context.held() as handle:
        check(lib.clv_array_apply(handle, number, slots, len(operands), out.handle))
    return out


def fits_into(name: str, given: Sequence[Any], dtype: np.dtype[Any]) -> None:
    """Raises TypeError if a result cannot become `dtype` by NumPy's rule "same_kind": a float no integer, a complex
    number no real one."""
    result = types_of(OPS[name], *operand_dtypes(name, given))[1]
    if not np.can_cast(result, dtype, "same_kind"):
        raise TypeError(f"{name}: the result has the type {result}, which does not fit into {dtype}: convert it with "
                        "astype()")


def slot_number(slot: Any, name: str, value: Any, dtype: np.dtype[Any]) -> None:
    """Fills in an operand for the library: a Python number in the given type."""
    slot.type = NUMBERS[dtype]
    if dtype.kind in "biu":
        slot.whole = _whole(name, value, dtype)
    else:
        slot.real, slot.imaginary = complex(value).real, complex(value).imag


def _whole(name: str, value: Any, dtype: np.dtype[Any]) -> int:
    if dtype.kind != "b":
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise OverflowError(f"{name}: {value} cannot be stored as {dtype}")
    number = int(value)
    return number - (1 << 64) if number >= 1 << 63 else number


def cast(a: Array, dtype: Any, copy: bool = True) -> Array:
    """Returns the elements in another type, dense; the array itself if nothing has to change and no copy is asked for.
    """
    dtype = dtype_from(dtype)
    if a.dtype == dtype and not copy:
        return a
    made = ctypes.c_void_p()
    a.context.check_process()
    with a.context.held():
        check(lib.clv_array_cast(a.handle, NUMBERS[dtype], ctypes.byref(made)))
        return made_like(a.context, made, a.shape, dtype)


def ufunc(function: Any, method: str, inputs: Sequence[Any], named: dict[str, Any]) -> Any:
    """Computes a universal function of NumPy on the device or host where the Arrays among the inputs lie. Returns
    NotImplemented for functions that the library does not have."""
    name = UFUNCS.get(function.__name__, function.__name__)
    if function.__name__ == "float_power":  # in float64, or complex128
        wide = any(getattr(one, "dtype", FLOAT32).kind == "c" or type(one) is complex for one in inputs)
        named.setdefault("dtype", COMPLEX128 if wide else FLOAT64)
    elif function.__name__ == "fabs" and getattr(inputs[0], "dtype", FLOAT32).kind != "f":
        return NotImplemented  # NumPy's converts integers to floats, and refuses complex numbers
    if method == "__call__" and name in _COMPARISONS:
        name, inputs = _in_range(name, inputs)
    elif method == "__call__" and name == "pow" and function.__name__ != "float_power":
        _check_exponent(inputs)
    elif name == "reciprocal" and inputs[0].dtype.kind in "iu":
        return NotImplemented  # NumPy's is the whole part
    if not named and method == "__call__" and name in OPS:
        quick = _quick(name, inputs)
        if quick is not None:
            return quick
    out = named.pop("out", (None,))
    if method != "__call__" or name not in OPS or len(out) != 1 or set(named) - {"dtype"}:
        return NotImplemented
    out = out[0]
    given = [one if isinstance(one, Array) or is_number(one) else np.asarray(one) for one in inputs]
    given = [one[()] if isinstance(one, np.ndarray) and one.ndim == 0 and type(inputs[k]) is not np.ndarray else one
             for k, one in enumerate(given)]
    given = [one if not isinstance(one, np.generic) else np.asarray(one) for one in given]
    if any(isinstance(one, np.ndarray) and one.dtype not in NUMBERS for one in given):
        return NotImplemented
    into = out if isinstance(out, Array) else None
    if into is not None and into.shape != broadcast(name, [getattr(one, "shape", ()) for one in given]):
        raise ShapeError(f"{name}: out has the shape {into.shape}, which does not fit the result")
    dtype = named.get("dtype")
    if out is not None:
        fits_into(name, given if dtype is None else [np.empty(0, dtype)] * len(given), out.dtype)
    if dtype is not None:
        given = [one if is_number(one) else cast(array(one, context=context_of(inputs)), dtype, copy=False)
                 for one in given]
    made = apply(name, *given, out=into, context=context_of((*inputs, out)))
    if isinstance(out, np.ndarray):
        out[...] = made.numpy()
        return out
    return made
