# SPDX-License-Identifier: Apache-2.0
"""Makes one kernel of several operations: ElementwiseKernel from a text, fuse() from a Python function."""
from __future__ import annotations

import ctypes
import functools
import math
import re
from collections import OrderedDict
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np

from . import _abi
from ._check import given as shown, text
from ._context import Context, chosen
from ._device_array import Array, array, new_array
from ._dtypes import DEFAULTS, NUMBERS, dtype_from, is_number
from ._elementwise import OPS, UFUNCS, broadcast, context_of, operand_dtypes, slot_number, types_of
from ._library import check, lib
from ._operators import Operators
from .errors import ArgumentError, ArgumentTypeError, ShapeError

_NUMBERS = 4  # the most parameters of a kernel that are numbers
_KNOWN = 64  # the most traces that a fused function keeps
_ROLES = {"input": 0, "output": 1, "type": 2}
_OPENCL = {"char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32",
           "long": "int64", "ulong": "uint64", "half": "float16", "float": "float32", "double": "float64",
           "bool_": "bool"}


class _Program:
    """A program that the library compiled from statements, for inputs and outputs of given types."""
    __slots__ = ("handle", "inputs", "outputs")

    def __init__(self, code: str, inputs: Sequence[tuple[str, np.dtype[Any]]],
                 outputs: Sequence[tuple[str, np.dtype[Any]]], types: Sequence[tuple[str, np.dtype[Any]]] = ()):
        self.handle = 0
        self.inputs, self.outputs = [one[1] for one in inputs], [one[1] for one in outputs]
        all_of_it = [(name, role, dtype) for role, some in (("input", inputs), ("output", outputs), ("type", types))
                     for name, dtype in some]
        names = (_abi.FuseName * max(len(all_of_it), 1))()
        for slot, (name, role, dtype) in zip(names, all_of_it):
            slot.name, slot.role, slot.type = name.encode(), _ROLES[role], NUMBERS[dtype]
        made = ctypes.c_void_p()
        check(lib.clv_fuse_parse(code.encode(), names, len(all_of_it), ctypes.byref(made), None))
        self.handle = made.value or 0

    def __del__(self) -> None:
        if self.handle:
            lib.clv_fuse_free(self.handle)

    def run(self, what: str, given: Sequence[Any], outs: Sequence[Array | None], context: Context) -> list[Array]:
        """Runs the kernel on arrays and numbers. Writes to the arrays of `outs`, with a new array for each None, and
        returns them."""
        shape = broadcast(what, [one.shape if isinstance(one, Array) else () for one in given])
        for out in outs:
            if out is not None and out.shape != shape:
                raise ShapeError(f"{what}: out has the shape {out.shape}, but it must be {shape}")
        made = [new_array(context, shape, dtype) if out is None else out for out, dtype in zip(outs, self.outputs)]
        slots = (_abi.Operand * max(len(given), 1))()
        for slot, one, dtype in zip(slots, given, self.inputs):
            if isinstance(one, Array):
                slot.array = one.handle
            else:
                slot_number(slot, what, one, dtype)
        results = (ctypes.c_void_p * len(made))(*(one.handle for one in made))
        with context.held() as handle:
            check(lib.clv_fuse_run(handle, self.handle, slots, len(given), results, len(made)))
        return made


# ---- ElementwiseKernel

class _Parameter(NamedTuple):
    type: str
    name: str
    dtype: np.dtype[Any] | None  # None: the type of the argument


def _parameters(what: str, given: str, kinds: str) -> list[_Parameter]:
    found = []
    for part in filter(None, (one.strip() for one in text(f"{what}: {kinds}", given).split(","))):
        words = part.split()
        if words[0] == "raw":
            raise ArgumentError(f"{what}: {part!r}: raw arguments are not supported, because a program sees one "
                                "element of each array; cleave.Kernel takes OpenCL C of any kind")
        if len(words) != 2 or not all(word.isidentifier() for word in words):
            raise ArgumentError(f"{what}: {part!r} in the {kinds}: expected a type and a name, as in 'float32 x'")
        kind = _OPENCL.get(words[0], words[0])
        dtype = None if re.fullmatch("[A-Z]", kind) else dtype_from(kind)
        found.append(_Parameter(words[0], words[1], dtype))
    return found


class ElementwiseKernel:
    """Your own statements for every element of arrays, as one kernel, with CuPy's signature.

    >>> squared = ElementwiseKernel("T x, T y", "T z", "T d = x - y; z = d * d", "squared")
    >>> squared(a, b)

    Parameters
    ----------
    in_params    types and names: 'float32 x, T y'. A type is a name of NumPy's or OpenCL's (float, uchar), or one
                 capital letter, which stands for the type of the argument; parameters with the same letter have the
                 same type
    out_params   likewise, at most 4; a letter must also occur in in_params
    operation    statements in the language of clv_fuse_parse (include/cleave/array_fuse.h): declarations and
                 assignments with C's operators, ?: and the functions of arrays. There are no loops, no `if` and no
                 indices; '/' of two integers is refused
    name         a name for error messages

    A call takes one argument per input, and may take arrays for the outputs after them. Arguments are Arrays, numbers,
    or NumPy arrays, which are copied to the device; they broadcast. The host interprets the program if that is faster,
    or if no device works; interpreting needs no compiler.

    Raises FormatError and UnsupportedError (with the line and column in the operation), ArgumentError, ShapeError. If
    all types are named, ElementwiseKernel() itself checks the text, else the first call with new types does.
    """

    def __init__(self, in_params: str, out_params: str, operation: str, name: str = "kernel"):
        self.name, self.operation = text("ElementwiseKernel: name", name), text(f"{name}: operation", operation)
        self.in_params = _parameters(self.name, in_params, "in_params")
        self.out_params = _parameters(self.name, out_params, "out_params")
        if not self.out_params:
            raise ArgumentError(f"{self.name}: there are no out_params, but 1 to 4 are needed")
        letters = {one.type for one in self.in_params if one.dtype is None}
        for one in self.out_params:
            if one.dtype is None and one.type not in letters:
                raise ArgumentError(f"{self.name}: the type {one.type} of {one.name} is not among the in_params")
        self._programs: dict[tuple[np.dtype[Any], ...], _Program] = {}
        self._letters = sorted(letters)
        if not letters:
            self._program({})

    def _program(self, types: dict[str, np.dtype[Any]]) -> _Program:
        key = tuple(types[letter] for letter in self._letters)
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = _Program(
                self.operation, [(one.name, one.dtype or types[one.type]) for one in self.in_params],
                [(one.name, one.dtype or types[one.type]) for one in self.out_params], list(types.items()))
        return found

    def _types(self, given: Sequence[Any]) -> dict[str, np.dtype[Any]]:
        """Returns the type that each letter stands for: that of the arrays among its arguments, else that of the
        numbers."""
        types: dict[str, np.dtype[Any]] = {}
        for numbers in (False, True):
            for parameter, one in zip(self.in_params, given):
                if parameter.dtype is not None or is_number(one) != numbers:
                    continue
                dtype = DEFAULTS[type(one)] if numbers else one.dtype
                if types.setdefault(parameter.type, dtype) != dtype and not numbers:
                    raise ArgumentError(f"{self.name}: {parameter.name} is {dtype}, but {parameter.type} is "
                                        f"{types[parameter.type]} already: convert one with astype()")
        return types

    def __call__(self, *arguments: Any, context: Context | None = None) -> Any:
        count, most = len(self.in_params), len(self.in_params) + len(self.out_params)
        if len(arguments) not in (count, most):
            raise ArgumentError(f"{self.name}: got {len(arguments)} arguments, but {count} inputs are expected (or "
                                f"{most} with the outputs)")
        context = chosen(context_of(arguments, context))
        given = [one if isinstance(one, Array) or is_number(one) else array(one, context=context)
                 for one in arguments[:count]]
        outs = list(arguments[count:]) or [None] * len(self.out_params)
        for out in outs:
            if out is not None and not isinstance(out, Array):
                raise ArgumentTypeError(f"{self.name}: got {shown(out)} as an output, but a cleave.Array is expected")
        program = self._program(self._types(given))
        for parameter, one, dtype in zip(self.in_params, given, program.inputs):
            if isinstance(one, Array) and one.dtype != dtype:
                raise ArgumentError(f"{self.name}: {parameter.name} is {one.dtype}, but it must be {dtype}: convert "
                                    "it with astype()")
        made = program.run(self.name, given, outs, context)
        return made[0] if len(made) == 1 else tuple(made)

    def __reduce__(self) -> Any:
        def words(some: Sequence[_Parameter]) -> str:
            return ", ".join(f"{one.type} {one.name}" for one in some)
        return ElementwiseKernel, (words(self.in_params), words(self.out_params), self.operation, self.name)

    def __repr__(self) -> str:
        return f"<cleave.ElementwiseKernel {self.name}>"


# ---- fuse: a Python function, called once per combination of types with symbols in place of arrays

class _Trace:
    """Collects the statements and the numbers of a kernel while the traced function runs."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers: list[tuple[Any, np.dtype[Any]]] = []

    def number(self, value: Any, dtype: np.dtype[Any]) -> str:
        """Returns the text that stands for a number: the name of a parameter of the kernel, or the number itself once
        the kernel has as many parameters as it may have."""
        for i, (known, its) in enumerate(self.numbers):
            if repr(known) == repr(value) and its == dtype:
                return f"n{i}"
        if len(self.numbers) >= _NUMBERS and type(value) in (int, float) and math.isfinite(value):
            return f"({value!r})"
        self.numbers.append((value, dtype))
        return f"n{len(self.numbers) - 1}"

    def add(self, expression: str, dtype: np.dtype[Any]) -> "Symbol":
        self.lines.append(f"auto t{len(self.lines)} = {expression}")
        return Symbol(self, f"t{len(self.lines) - 1}", dtype)


def _no_array(what: str) -> TypeError:
    return TypeError(f"fuse: {what} needs the elements, but a fused function sees none of them: use where(condition, "
                     "a, b), and keep sums and indices outside of the function")


class Symbol(Operators):
    """Stands for an array in a fused function that is traced: its operators append statements to the trace."""
    __slots__ = ("trace", "name", "dtype")
    __array_priority__ = 2000

    def __init__(self, trace: _Trace, name: str, dtype: np.dtype[Any]):
        self.trace, self.name, self.dtype = trace, name, dtype

    def _op(self, name: str, *others: Any) -> Any:
        return _noted(name, (self, *others))

    def _reflected(self, name: str, other: Any) -> Any:
        return _noted(name, (other, self))

    def _become(self, name: str, other: Any) -> Any:
        return _noted(name, (self, other))  # a new symbol; the caller's array stays as it is

    def _folded(self, what: str, *_arguments: Any, **_named: Any) -> Any:
        raise _no_array(f"{what}()")

    def _by(self, function: str, *arguments: Any, **_named: Any) -> Any:
        if function != "clip":
            raise _no_array(f"{function}()")
        low, high = arguments
        made = self if low is None else _noted("maximum", (self, low))
        return made if high is None else _noted("minimum", (made, high))

    def copy(self) -> Any:
        """Returns the symbol itself, because it cannot change."""
        return self

    def astype(self, dtype: Any, copy: bool = True) -> "Symbol":
        """Returns a symbol for the elements converted to another type."""
        dtype = dtype_from(dtype)
        return self.trace.add(f"({dtype}){self.name}", dtype)

    @property
    def real(self) -> Any:
        """A symbol for the real parts."""
        return self._op("real")

    @property
    def imag(self) -> Any:
        """A symbol for the imaginary parts."""
        return self._op("imag")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        name = UFUNCS.get(ufunc.__name__, ufunc.__name__)
        if method != "__call__" or named or name not in OPS or name == "ramp":
            raise _no_array(f"numpy.{ufunc.__name__}")
        return _noted(name, inputs)

    def __array_function__(self, function: Any, _types: Any, arguments: Any, named: Any) -> Any:
        if function is np.where and len(arguments) == 3 and not named:
            return _noted("where", arguments)
        if function is np.clip and len(arguments) == 3 and not named:
            return arguments[0].clip(*arguments[1:])
        raise _no_array(f"numpy.{function.__name__}")

    def __matmul__(self, _other: Any) -> Any: raise _no_array("@")
    def __rmatmul__(self, _other: Any) -> Any: raise _no_array("@")
    def __bool__(self) -> bool: raise _no_array("a condition in Python")
    def __len__(self) -> int: raise _no_array("len()")
    def __getitem__(self, _key: Any) -> Any: raise _no_array("an index")
    def __iter__(self) -> Any: raise _no_array("a loop over elements")
    def __float__(self) -> float: raise _no_array("float()")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _no_array(f".{name}")


def _noted(name: str, operands: Sequence[Any]) -> Any:
    trace = next(one.trace for one in operands if isinstance(one, Symbol))
    for one in operands:
        if isinstance(one, (Array, np.ndarray)) and one.ndim:
            raise ArgumentTypeError("fuse: the function uses an array that is not among its arguments: pass it as one")
    operands = [one[()] if isinstance(one, np.ndarray) else one for one in operands]
    operands = [one.item() if isinstance(one, np.generic) else one for one in operands]
    dtypes = operand_dtypes(name, operands)
    result = types_of(OPS[name], *dtypes)[1]
    if name == "pow" and type(operands[1]) is int and 2 <= operands[1] <= 4:  # computed as a product
        return trace.add(f"{operands[0].name} ** {operands[1]}", result)
    words = [one.name if isinstance(one, Symbol) else trace.number(one, dtype)
             for one, dtype in zip(operands, dtypes)]
    return trace.add(f"{_LIBRARY.get(name, name)}({', '.join(words)})", result)


#: The library's name of each operation that has a different name in Python.
_LIBRARY = {"bitwise_and": "bit_and", "bitwise_or": "bit_or", "bitwise_xor": "bit_xor", "bitwise_invert": "bit_not",
            "bitwise_left_shift": "shift_left", "bitwise_right_shift": "shift_right", "negative": "negate"}


class _Fused:
    """A function that fuse() decorated: it keeps one traced program per combination of argument types and numbers."""

    def __init__(self, function: Callable[..., Any]):
        self.function, self.name = function, getattr(function, "__name__", "function")
        self._known: OrderedDict[Any, tuple[_Program, list[Any], bool]] = OrderedDict()
        functools.update_wrapper(self, function)

    def _traced(self, given: Sequence[Any]) -> tuple[_Program, list[Any], bool]:
        """Returns the program, the numbers that the function uses, and whether it returns several results."""
        trace = _Trace()
        places = [i for i, one in enumerate(given) if isinstance(one, Array)]
        made = self.function(*(Symbol(trace, f"x{i}", one.dtype) if i in places else one
                               for i, one in enumerate(given)))
        several = isinstance(made, (tuple, list))
        results = list(made) if several else [made]
        for one in results:
            if not isinstance(one, Symbol):
                raise ArgumentTypeError(f"fuse: {self.name} returned {shown(one)}, but it must return results of "
                                        "operations on its arguments")
        inputs = [(f"x{i}", given[i].dtype) for i in places]
        inputs += [(f"n{i}", dtype) for i, (_value, dtype) in enumerate(trace.numbers)]
        outputs = [(f"z{i}", one.dtype) for i, one in enumerate(results)]
        lines = trace.lines + [f"z{i} = {one.name}" for i, one in enumerate(results)]
        program = _Program("; ".join(lines), inputs, outputs)
        return program, [value for value, _dtype in trace.numbers], several

    def __call__(self, *arguments: Any, context: Context | None = None) -> Any:
        context = chosen(context_of(arguments, context))
        given = [one if isinstance(one, Array) or is_number(one) else array(one, context=context)
                 for one in arguments]
        arrays = [one for one in given if isinstance(one, Array)]
        if not arrays:
            raise ArgumentTypeError(f"fuse: {self.name}: at least one of the arguments must be an array")
        # by its text, -0.0 is not 0.0, and nan is nan
        key = tuple(one.dtype if isinstance(one, Array) else (type(one), repr(one)) for one in given)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._traced(given)
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)
        program, numbers, several = found
        made = program.run(self.name, [*arrays, *numbers], [None] * len(program.outputs), context)
        return tuple(made) if several else made[0]


def fuse(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function on arrays, so that all its operations run as one kernel, which reads and writes every array
    once.

    >>> @fuse
    ... def squared(x, y):
    ...     d = x - y
    ...     return d * d

    The function is called once per combination of types and numbers among its arguments, with symbols in place of the
    arrays. It may use operators, NumPy's functions that work element by element (np.exp, np.where, np.clip), astype()
    and numbers. It must not depend on the values of elements: `if` on elements, indices and sums are not possible.
    Whatever else Python computes in the function is fixed at its first call. Results have the same types as without
    fuse. A new number costs another trace of the function (some 0.1 ms), but no new kernel.

    Raises TypeError (the function needs elements), UnsupportedError, ShapeError, ArgumentError.
    """
    if not callable(function):
        raise ArgumentTypeError(f"fuse: got {shown(function)}, but a function is expected")
    return _Fused(function)
