# SPDX-License-Identifier: Apache-2.0
"""Arrays of float32 that stay on a device between calls."""
from __future__ import annotations

import ctypes
import functools
import math
from typing import Any, Iterator, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, extents, numbers
from ._check import given as shown
from ._context import Context, chosen
from ._library import check, lib
from .errors import ArgumentError, ArgumentTypeError, ShapeError

_FLOAT32 = np.dtype(np.float32)  # the one object that every native float32 array has
_Shapes = [ctypes.c_size_t * rank for rank in range(5)]
#: n // d as NumPy has it: what n % d leaves is a whole number of times d, and no quotient is cut.
_FLOOR_DIVIDE = ("where(d == 0, n / d, where(isinf(d) && isfinite(n), 0 - (n != 0 && (n < 0) != (d < 0)), "
                 "round((n - n % d) / d)))")
#: What NumPy calls for `x + a` where x is its own: ours for an Array on the right.
_REFLECTED = {np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__",
              np.true_divide: "__rtruediv__", np.remainder: "__rmod__",
              np.floor_divide: "__rfloordiv__", np.power: "__rpow__", np.less: "__gt__",
              np.less_equal: "__ge__", np.greater: "__lt__", np.greater_equal: "__le__",
              np.equal: "__eq__", np.not_equal: "__ne__", np.matmul: "__rmatmul__"}


@functools.lru_cache(maxsize=256)
def shape_of(shape: tuple[int, ...]) -> Any:
    """For the library to read; the same one for all who ask."""
    if len(shape) > 4:
        raise ShapeError(f"array: {len(shape)} axes, at most 4 expected")
    return _Shapes[len(shape)](*shape)


class ArrayStats(NamedTuple):
    """What arrays and their operations did in a context so far."""
    calls_host: int
    calls_device: int
    fallbacks: int
    uploads: int
    downloads: int
    bytes_to_device: int
    bytes_from_device: int


class Array:
    """A dense float32 array, of at most 4 axes, that lies where it was used last; array() makes one.

    compute, reduce, product, matmul, normalize, linear_step and linear_train take it in place of a
    NumPy array and then return one, without a transfer; to all else it is an array that is copied to
    the host. `numpy()`, np.asarray(a) and float(a) copy it to the host. + - * / % ** and comparisons
    make one kernel each; compute() makes one of a whole expression. @ is matmul. += and the like change
    the array itself, as NumPy's do.
    """
    __slots__ = ("context", "_shape", "_handle", "__weakref__")
    __array_priority__ = 1000
    dtype = np.dtype(np.float32)

    def __init__(self, context: Context, handle: int, shape: tuple[int, ...]):
        context.acquire()  # it lives at least as long
        self.context, self._handle, self._shape = context, handle, shape

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            self._handle = 0
            try:
                if self.context.ours:
                    lib.clv_array_free(handle)
            finally:
                self.context.release()

    @property
    def handle(self) -> int:
        return self._handle

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes. To assign another one of as many elements changes this array; one extent
        may be -1: what remains."""
        return self._shape

    @shape.setter
    def shape(self, shape: int | Sequence[int]) -> None:
        wanted = self._extents("shape", shape)
        check(lib.clv_array_reshape(self._handle, len(wanted), shape_of(wanted)))
        self._shape = wanted

    def _extents(self, what: str, asked: Any) -> tuple[int, ...]:
        asked = asked.tolist() if isinstance(asked, np.ndarray) else asked
        asked = list(asked) if isinstance(asked, (tuple, list)) else [asked]
        if -1 in asked:
            others = extents(what, [n for i, n in enumerate(asked) if i != asked.index(-1)])
            asked[asked.index(-1)] = self.size // math.prod(others) or 1
        return extents(what, asked)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return 4 * self.size

    @property
    def on_device(self) -> bool:
        """Whether its latest contents are there."""
        return bool(lib.clv_array_is_on_device(self._handle))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentError(f"array: {self.size} elements are neither true nor false: take one of "
                                "min(), max(), sum()")
        return bool(self.item())

    def __getitem__(self, key: Any) -> Any:
        """A part of the copy on the host; each use copies everything: take numpy() for several."""
        return self.numpy()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numpy())

    def __copy__(self) -> "Array":
        return self._copied(self._shape)

    def __deepcopy__(self, _memo: Any) -> "Array":
        return self.__copy__()

    def __reduce__(self) -> Any:
        return array, (self.numpy(),)  # comes back in the default context of whoever reads it

    def numpy(self) -> NDArray[np.float32]:
        """A copy on the host."""
        self.context.check_process()
        out = np.empty(self.shape, np.float32)
        check(lib.clv_array_get(self._handle, address(out)))
        return out

    def write(self, values: Any) -> "Array":
        """New contents, from the host."""
        new = numbers("write", values)
        try:
            given = np.ascontiguousarray(np.broadcast_to(new, self.shape))
        except ValueError:
            raise ShapeError(f"write: shape {new.shape} does not fit {self.shape}") from None
        self.context.check_process()
        check(lib.clv_array_put(self._handle, address(given)))
        return self

    def reshape(self, *shape: int | Sequence[int]) -> "Array":
        """An array of its own with the same contents under another shape of as many elements, made
        where they lie. One extent may be -1: what remains. `a.shape = shape` changes `a` itself."""
        return self._copied(self._extents("reshape", shape[0] if len(shape) == 1 else shape))

    def _copied(self, shape: tuple[int, ...]) -> "Array":
        self.context.check_process()
        made = ctypes.c_void_p()
        with self.context.held():
            check(lib.clv_array_copy(self._handle, len(shape), shape_of(shape), ctypes.byref(made)))
            return Array(self.context, made.value or 0, shape)

    def transpose(self, *axes: Any) -> "Array":
        """The axes in reverse, or in the order given, as an array of its own: copied by way of the
        host. Products need no copy: product(a, b, transpose_a=True)."""
        return array(self.numpy().transpose(*axes), context=self.context)

    @property
    def T(self) -> "Array":
        """transpose()"""
        return self.transpose()

    def copy(self) -> "Array":
        """An array of its own with the same contents, made where they lie."""
        return self.__copy__()

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """float32: copy(), or without `copy` this array. Any other type: NumPy's array of it, on the
        host, since devices have float32 alone."""
        if np.dtype(dtype) == _FLOAT32:
            return self.copy() if copy else self
        return self.numpy().astype(dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a cleave.Array is always copied to the host")
        out = self.numpy()
        return out if dtype is None else out.astype(dtype, copy=False)

    def __dlpack__(self, **named: Any) -> Any:
        return self.numpy().__dlpack__(**named)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the host: what it is copied to

    def __float__(self) -> float:
        if self.size != 1:
            raise TypeError("only an array of one element is a number")
        return float(self.item())

    def __int__(self) -> int:
        return int(float(self))

    def item(self) -> float:
        """The only element, as Python's float."""
        if self.size != 1:
            raise ArgumentError(f"array: item() of {self.size} elements, 1 expected")
        return float(self.numpy().reshape(()))

    def tolist(self) -> Any:
        """Lists of floats, as NumPy makes them."""
        return self.numpy().tolist()

    def __repr__(self) -> str:
        return f"<cleave.Array {list(self.shape)} on the {'device' if self.on_device else 'host'}>"

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """An operator with NumPy's array on the left is ours. All else gets copies on the host: so does
        `x += a`, which changes NumPy's x."""
        name = _REFLECTED.get(ufunc)
        if name and method == "__call__" and not named and not isinstance(inputs[0], Array):
            return getattr(self, name)(inputs[0])
        if any(isinstance(one, Array) for one in named.get("out", ())):
            return NotImplemented
        return getattr(ufunc, method)(*(one.numpy() if isinstance(one, Array) else one
                                        for one in inputs), **named)

    # ---- operators: one kernel each

    def _with(self, expression: str, other: Any) -> "Array":
        from ._compute import compute
        made: Array = compute(expression, a=self, b=other)
        return made

    def __add__(self, other: Any) -> "Array": return self._with("a + b", other)
    def __radd__(self, other: Any) -> "Array": return self._with("b + a", other)
    def __sub__(self, other: Any) -> "Array": return self._with("a - b", other)
    def __rsub__(self, other: Any) -> "Array": return self._with("b - a", other)
    def __mul__(self, other: Any) -> "Array": return self._with("a * b", other)
    def __rmul__(self, other: Any) -> "Array": return self._with("b * a", other)
    def __truediv__(self, other: Any) -> "Array": return self._with("a / b", other)
    def __rtruediv__(self, other: Any) -> "Array": return self._with("b / a", other)
    def __mod__(self, other: Any) -> "Array": return self._with("a % b", other)
    def __rmod__(self, other: Any) -> "Array": return self._with("b % a", other)
    def __rpow__(self, other: Any) -> "Array": return self._with("b ** a", other)
    def __lt__(self, other: Any) -> "Array": return self._with("a < b", other)
    def __le__(self, other: Any) -> "Array": return self._with("a <= b", other)
    def __gt__(self, other: Any) -> "Array": return self._with("a > b", other)
    def __ge__(self, other: Any) -> "Array": return self._with("a >= b", other)

    def __eq__(self, other: Any) -> "Array":  # type: ignore[override]  # by elements, as NumPy's
        return self._with("a == b", other)

    def __ne__(self, other: Any) -> "Array":  # type: ignore[override]
        return self._with("a != b", other)

    __hash__ = None  # type: ignore[assignment]  # equality is no truth

    def __floordiv__(self, other: Any) -> "Array":
        from ._compute import compute
        made: Array = compute(_FLOOR_DIVIDE, n=self, d=other)
        return made

    def __rfloordiv__(self, other: Any) -> "Array":
        from ._compute import compute
        made: Array = compute(_FLOOR_DIVIDE, n=other, d=self)
        return made

    def __divmod__(self, other: Any) -> "tuple[Array, Array]": return self // other, self % other
    def __rdivmod__(self, other: Any) -> "tuple[Array, Array]": return other // self, other % self

    def _become(self, expression: str, other: Any) -> "Array":
        from ._compute import compute
        compute(expression, out=self, n=self, d=other)
        return self

    def __iadd__(self, other: Any) -> "Array": return self._become("n + d", other)
    def __isub__(self, other: Any) -> "Array": return self._become("n - d", other)
    def __imul__(self, other: Any) -> "Array": return self._become("n * d", other)
    def __itruediv__(self, other: Any) -> "Array": return self._become("n / d", other)
    def __imod__(self, other: Any) -> "Array": return self._become("n % d", other)
    def __ifloordiv__(self, other: Any) -> "Array": return self._become(_FLOOR_DIVIDE, other)

    def __ipow__(self, other: Any) -> "Array":
        whole = isinstance(other, int) and 1 <= other <= 4
        return self._become(f"n ** {int(other)}" if whole else "n ** d", other)

    def __pow__(self, other: Any) -> "Array":
        if isinstance(other, int) and 1 <= other <= 4:
            from ._compute import compute
            made: Array = compute(f"a ** {int(other)}", a=self)
            return made
        return self._with("a ** b", other)

    def __neg__(self) -> "Array":
        from ._compute import compute
        made: Array = compute("-a", a=self)
        return made

    def __pos__(self) -> "Array": return self.copy()

    def __abs__(self) -> "Array":
        from ._compute import compute
        made: Array = compute("abs(a)", a=self)
        return made

    def __matmul__(self, other: Any) -> Any:
        from ._compute import product
        return product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        from ._compute import product
        return product(other, self)

    def _reduced(self, what: str, axis: int | None, dtype: Any, out: Any, keepdims: bool,
                 ddof: int = 0) -> "Array":
        """As NumPy calls the methods of others: np.sum(a) is a.sum(axis=None, out=None)."""
        from ._compute import reduce
        if dtype not in (None, np.float32) or out is not None or ddof:
            raise ArgumentError(f"{what}: of a cleave.Array, dtype=None, out=None and ddof=0 expected")
        made: Array = reduce(self, what, axis)
        if keepdims:
            at = None if axis is None else axis % self.ndim
            made.shape = tuple(1 if at in (None, i) else n for i, n in enumerate(self.shape))
        return made

    def sum(self, axis: int | None = None, dtype: Any = None, out: Any = None,
            keepdims: bool = False) -> "Array":
        return self._reduced("sum", axis, dtype, out, keepdims)

    def mean(self, axis: int | None = None, dtype: Any = None, out: Any = None,
             keepdims: bool = False) -> "Array":
        return self._reduced("mean", axis, dtype, out, keepdims)

    def var(self, axis: int | None = None, dtype: Any = None, out: Any = None, ddof: int = 0,
            keepdims: bool = False) -> "Array":
        return self._reduced("var", axis, dtype, out, keepdims, ddof)

    def std(self, axis: int | None = None, dtype: Any = None, out: Any = None, ddof: int = 0,
            keepdims: bool = False) -> "Array":
        return self._reduced("std", axis, dtype, out, keepdims, ddof)

    def min(self, axis: int | None = None, out: Any = None, keepdims: bool = False) -> "Array":
        return self._reduced("min", axis, None, out, keepdims)

    def max(self, axis: int | None = None, out: Any = None, keepdims: bool = False) -> "Array":
        return self._reduced("max", axis, None, out, keepdims)

    def argmin(self, axis: int | None = None, out: Any = None, keepdims: bool = False) -> "Array":
        return self._reduced("argmin", axis, None, out, keepdims)

    def argmax(self, axis: int | None = None, out: Any = None, keepdims: bool = False) -> "Array":
        return self._reduced("argmax", axis, None, out, keepdims)


def array(values: Any, *, context: Context | None = None) -> Array:
    """Copies numbers (a NumPy array, a list, whatever has DLPack) to the device, as float32; to the
    host's memory where no device works or has room.

    Raises ShapeError (more than 4 axes, none of an extent of 0), MemoryError.
    """
    if isinstance(values, Array):
        values = values.numpy()
    elif not hasattr(values, "__array__") and hasattr(values, "__dlpack__"):
        values = np.from_dlpack(values)
    given = np.ascontiguousarray(numbers("array", values)).reshape(np.shape(values))
    context = chosen(context)
    made = ctypes.c_void_p()
    with context.held() as handle:
        check(lib.clv_array_from(handle, address(given), given.ndim, shape_of(given.shape),
                                 ctypes.byref(made)))
        return Array(context, made.value or 0, given.shape)


def empty(shape: Sequence[int] | int, *, context: Context | None = None) -> Array:
    """An array for results; its memory comes with its first use."""
    wanted = extents("empty", shape)
    context = chosen(context)
    made = ctypes.c_void_p()
    with context.held() as handle:
        check(lib.clv_array_create(handle, len(wanted), shape_of(wanted), ctypes.byref(made)))
        return Array(context, made.value or 0, wanted)


def array_stats(context: Context | None = None) -> ArrayStats:
    """Calls and transfers of arrays in a context so far."""
    with chosen(context).held() as handle:
        found = lib.clv_array_statistics(handle)
    return ArrayStats(*(getattr(found, name) for name in ArrayStats._fields))


def out_of(out: Any) -> Any:
    """What the caller gave as `out`, if it can be written to."""
    if not isinstance(out, (Array, np.ndarray)):
        raise ArgumentTypeError(f"out: {shown(out)} given, an array of NumPy or a cleave.Array "
                                "expected")
    return out


class Operands:
    """The arrays of one call: NumPy's wrapped in place, ours as they are. Results are ours where an
    operand is, else NumPy's."""
    __slots__ = ("context", "handle", "wrapped", "ours", "made", "at")

    def __init__(self, context: Context | None, *given: Any):
        self.ours = False
        self.made = ctypes.c_void_p()
        self.at = ctypes.byref(self.made)
        self.wrapped: list[tuple[int, NDArray[Any], int | None, tuple[int, ...]]] = []
        for value in given:
            if isinstance(value, Array):
                self.ours = True
                context = context or value.context
                if value.context is not context:
                    raise ArgumentError("arrays of different contexts")
        self.context = chosen(context)

    def __enter__(self) -> "Operands":
        self.handle = self.context.acquire()
        return self

    def __exit__(self, *_unused: Any) -> None:
        for one in self.wrapped:
            lib.clv_array_free(one[0])
        self.context.release()

    def wrap(self, given: NDArray[Any]) -> int:
        at, shape = address(given), given.shape
        for known, _kept, there, other in self.wrapped:  # one array for one memory
            if there == at and other == shape:
                return known
        status = lib.clv_array_wrap(self.handle, at, len(shape), shape_of(shape), self.at)
        if status:
            check(status)
        handle = self.made.value or 0
        self.wrapped.append((handle, given, at, shape))
        return handle

    def operand(self, value: Any, what: str = "array") -> tuple[int, tuple[int, ...]]:
        if isinstance(value, Array):
            return value.handle, value.shape
        given = value
        if type(given) is not np.ndarray or given.dtype is not _FLOAT32 or \
                not given.flags.c_contiguous or not given.flags.aligned:
            given = np.ascontiguousarray(numbers(what, value)).reshape(np.shape(value))
        return self.wrap(given), given.shape

    def result(self, shape: tuple[int, ...], out: Any = None) -> tuple[int, Any]:
        if out is not None:
            if tuple(out_of(out).shape) != tuple(shape) or out.dtype != np.float32:
                raise ShapeError(f"out: float32 {shape} expected, {out.dtype} {out.shape} given")
            if isinstance(out, Array):
                return out.handle, out
            if not out.flags.c_contiguous or not out.flags.writeable:
                raise ShapeError("out: a dense, writeable array expected")
            return self.wrap(out), out
        if self.ours:
            check(lib.clv_array_create(self.handle, len(shape), shape_of(shape), self.at))
            handle = self.made.value or 0
            return handle, Array(self.context, handle, tuple(shape))
        given = np.empty(shape, np.float32)
        return self.wrap(given), given
