# SPDX-License-Identifier: Apache-2.0
"""Arrays of float32 that stay on a device between calls."""
from __future__ import annotations

import ctypes
import functools
import operator
from typing import Any, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, numbers
from ._context import Context, default_context
from ._library import check, lib
from .errors import ArgumentError, ShapeError

_Shapes = [ctypes.c_size_t * rank for rank in range(5)]


@functools.lru_cache(maxsize=256)
def shape_of(shape: tuple[int, ...]) -> Any:
    """For the library to read; the same one for all who ask."""
    if len(shape) > 4:
        raise ShapeError(f"array: {len(shape)} axes, at most 4 expected")
    return _Shapes[len(shape)](*shape)


def extents(what: str, given: Any) -> tuple[int, ...]:
    """A shape as the caller says it: a whole number, or a sequence of them."""
    try:
        wanted = (operator.index(given),) if hasattr(given, "__index__") else \
            tuple(map(operator.index, given))
    except TypeError:
        raise ShapeError(f"{what}: shape {given!r} given, whole numbers expected") from None
    if any(extent < 1 for extent in wanted):
        raise ShapeError(f"{what}: shape {wanted}, extents begin at 1")
    return wanted


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
    make one kernel each; compute() makes one of a whole expression. @ is matmul.
    """
    __slots__ = ("context", "shape", "_handle", "__weakref__")
    __array_priority__ = 1000
    dtype = np.dtype(np.float32)

    def __init__(self, context: Context, handle: int, shape: tuple[int, ...]):
        context.acquire()  # it lives at least as long
        self.context, self._handle, self.shape = context, handle, shape

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            self._handle = 0
            try:
                lib.clv_array_free(handle)
            finally:
                self.context.release()

    @property
    def handle(self) -> int:
        return self._handle

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

    def numpy(self) -> NDArray[np.float32]:
        """A copy on the host."""
        out = np.empty(self.shape, np.float32)
        check(lib.clv_array_get(self._handle, address(out)))
        return out

    def write(self, values: Any) -> "Array":
        """New contents, from the host."""
        given = np.ascontiguousarray(np.broadcast_to(np.asarray(values, np.float32), self.shape))
        check(lib.clv_array_put(self._handle, address(given)))
        return self

    def reshape(self, *shape: int | Sequence[int]) -> "Array":
        """This array under another shape of as many elements: itself, not a copy."""
        given = shape[0] if len(shape) == 1 else shape
        wanted = extents("reshape", given)
        check(lib.clv_array_reshape(self._handle, len(wanted), shape_of(wanted)))
        self.shape = wanted
        return self

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
        return float(self.numpy().reshape(()))

    def __repr__(self) -> str:
        return f"<cleave.Array {list(self.shape)} on the {'device' if self.on_device else 'host'}>"

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
    def __lt__(self, other: Any) -> "Array": return self._with("a < b", other)
    def __le__(self, other: Any) -> "Array": return self._with("a <= b", other)
    def __gt__(self, other: Any) -> "Array": return self._with("a > b", other)
    def __ge__(self, other: Any) -> "Array": return self._with("a >= b", other)

    def __pow__(self, other: Any) -> "Array":
        if isinstance(other, int) and 1 <= other <= 4:
            from ._compute import compute
            made: Array = compute(f"a ** {other}", a=self)
            return made
        return self._with("a ** b", other)

    def __neg__(self) -> "Array":
        from ._compute import compute
        made: Array = compute("-a", a=self)
        return made

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

    def _reduced(self, what: str, axis: int | None) -> "Array":
        from ._compute import reduce
        made: Array = reduce(self, what, axis)
        return made

    def sum(self, axis: int | None = None) -> "Array": return self._reduced("sum", axis)
    def mean(self, axis: int | None = None) -> "Array": return self._reduced("mean", axis)
    def var(self, axis: int | None = None) -> "Array": return self._reduced("var", axis)
    def std(self, axis: int | None = None) -> "Array": return self._reduced("std", axis)
    def min(self, axis: int | None = None) -> "Array": return self._reduced("min", axis)
    def max(self, axis: int | None = None) -> "Array": return self._reduced("max", axis)
    def argmin(self, axis: int | None = None) -> "Array": return self._reduced("argmin", axis)
    def argmax(self, axis: int | None = None) -> "Array": return self._reduced("argmax", axis)


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
    context = context or default_context()
    made = ctypes.c_void_p()
    with context.held() as handle:
        check(lib.clv_array_from(handle, address(given), given.ndim, shape_of(given.shape),
                                 ctypes.byref(made)))
        return Array(context, made.value or 0, given.shape)


def empty(shape: Sequence[int] | int, *, context: Context | None = None) -> Array:
    """An array for results; its memory comes with its first use."""
    wanted = extents("empty", shape)
    context = context or default_context()
    made = ctypes.c_void_p()
    with context.held() as handle:
        check(lib.clv_array_create(handle, len(wanted), shape_of(wanted), ctypes.byref(made)))
        return Array(context, made.value or 0, wanted)


def array_stats(context: Context | None = None) -> ArrayStats:
    """Calls and transfers of arrays in a context so far."""
    with (context or default_context()).held() as handle:
        found = lib.clv_array_statistics(handle)
    return ArrayStats(*(getattr(found, name) for name in ArrayStats._fields))


class Operands:
    """The arrays of one call: NumPy's wrapped in place, ours as they are. Results are ours where an
    operand is, else NumPy's."""
    __slots__ = ("context", "handle", "wrapped", "ours")

    def __init__(self, context: Context | None, *given: Any):
        self.ours = False
        self.wrapped: list[tuple[int, NDArray[Any], int | None, tuple[int, ...]]] = []
        for value in given:
            if isinstance(value, Array):
                self.ours = True
                context = context or value.context
                if value.context is not context:
                    raise ArgumentError("arrays of different contexts")
        self.context = context or default_context()

    def __enter__(self) -> "Operands":
        self.handle = self.context.acquire()
        return self

    def __exit__(self, *_unused: Any) -> None:
        for made, *_kept in self.wrapped:
            lib.clv_array_free(made)
        self.context.release()

    def wrap(self, given: NDArray[Any]) -> int:
        at, shape = address(given), given.shape
        for known, _kept, there, other in self.wrapped:  # one array for one memory
            if there == at and other == shape:
                return known
        made = ctypes.c_void_p()
        check(lib.clv_array_wrap(self.handle, at, len(shape), shape_of(shape), ctypes.byref(made)))
        handle = made.value or 0
        self.wrapped.append((handle, given, at, shape))
        return handle

    def operand(self, value: Any) -> tuple[int, tuple[int, ...]]:
        if isinstance(value, Array):
            return value.handle, value.shape
        given = value
        if type(given) is not np.ndarray or given.dtype != np.float32 or \
                not given.flags.c_contiguous or not given.flags.aligned:
            given = np.ascontiguousarray(numbers("array", value)).reshape(np.shape(value))
        return self.wrap(given), given.shape

    def result(self, shape: tuple[int, ...], out: Any = None) -> tuple[int, Any]:
        if out is not None:
            if tuple(out.shape) != shape or out.dtype != np.float32:
                raise ShapeError(f"out: float32 {shape} expected, {out.dtype} {out.shape} given")
            if isinstance(out, Array):
                return out.handle, out
            if not out.flags.c_contiguous or not out.flags.writeable:
                raise ShapeError("out: a dense, writeable array expected")
            return self.wrap(out), out
        if self.ours:
            made = ctypes.c_void_p()
            check(lib.clv_array_create(self.handle, len(shape), shape_of(shape),
                                       ctypes.byref(made)))
            handle = made.value or 0
            return handle, Array(self.context, handle, tuple(shape))
        given = np.empty(shape, np.float32)
        return self.wrap(given), given
