# SPDX-License-Identifier: Apache-2.0
"""Arrays of every type that stay on a device between calls."""
from __future__ import annotations

import ctypes
import functools
import math
from typing import Any, Iterator, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, extents, is_masked, numbers
from ._attributes import Flags, Flat, fill_flat
from ._blas import lend
from ._context import Context, chosen
from ._conversions import Conversions
from ._dtypes import DEFAULTS, FLOAT32, NUMBERS, TYPES, dtype_from
from ._library import check, lib
from ._operators import Operators
from .errors import ArgumentError, Error, ShapeError

_Shapes = [ctypes.c_size_t * rank for rank in range(9)]
_Strides = [ctypes.c_ssize_t * rank for rank in range(9)]


@functools.lru_cache(maxsize=256)
def shape_of(shape: tuple[int, ...]) -> Any:
    """Returns a shape as a C array for the library; calls with the same shape return the same C array."""
    if len(shape) > 8:
        raise ShapeError(f"array: got {len(shape)} axes, but at most 8 are supported")
    return _Shapes[len(shape)](*shape)


@functools.lru_cache(maxsize=256)
def _strides_of(strides: tuple[int, ...]) -> Any:
    return _Strides[len(strides)](*strides)


@functools.lru_cache(maxsize=256)
def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the steps in elements from one element of an axis to the next, for a dense row-major array."""
    steps = [1]
    for extent in reversed(shape[1:]):
        steps.append(steps[-1] * extent)
    return tuple(step if extent > 1 else 0 for step, extent in zip(reversed(steps), shape))


class ArrayStats(NamedTuple):
    """Counts of the calls and transfers of arrays in a context so far."""
    calls_host: int
    calls_device: int
    fallbacks: int
    uploads: int
    downloads: int
    bytes_to_device: int
    bytes_from_device: int


class Array(Operators, Conversions):
    """An array of numbers, of at most 8 axes, whose contents lie on the device or host that used them last;
    array() makes one.

    Its type is one of bool, int8 to int64, uint8 to uint64, float16, float32, float64, complex64 and complex128. It
    follows the Python array API standard (cleave.array_api) and NumPy's protocols: operators, np.exp(a), np.sum(a) and
    np.concatenate([a, b]) give another Array, without a transfer. Slices, integers, transpose() and T give views, which
    share their elements with the array; masks and arrays of indices give copies. `numpy()`, np.asarray(a) and float(a)
    copy it to the host. += and the like change the array itself, as NumPy's do.

    compute, reduce, product, normalize, linear_step and linear_train compute in float32. They accept an Array in place
    of a NumPy array and then return one.
    """
    __slots__ = ("context", "_shape", "_handle", "dtype", "_strides", "_start", "_room", "_base", "__weakref__")
    __array_priority__ = 1000

    def __init__(self, context: Context, handle: int, shape: tuple[int, ...], dtype: np.dtype[Any] = FLOAT32,
                 strides: tuple[int, ...] | None = None, start: int = 0, room: int = -1, base: Any = None):
        self.context, self._handle, self._shape = context, handle, shape
        self.dtype, self._strides, self._start, self._room = dtype, strides, start, room
        self._base = base  # the owner of memory that is not the library's, which must live as long

    def __del__(self, free: Any = getattr(lib, "clv_array_free", None)) -> None:
        try:
            handle = self._handle
        except AttributeError:  # its construction failed
            return
        self._handle = 0
        free(handle)

    def _op(self, name: str, *others: Any) -> "Array":
        made = small(name, self, *others) if len(others) < 2 else None
        if made is None and name in ("equal", "not_equal") and isinstance(others[0], (type(None), str, bytes)):
            from .array_api import full  # no number equals None or a text
            made = full(self._shape, name == "not_equal", dtype=bool, device=self.context)
        return super()._op(name, *others) if made is None else made

    def __matmul__(self, other: Any) -> Any:
        if type(other) is Array and other.dtype is FLOAT32 is self.dtype and other.context is self.context:
            made = multiplied(self, other)
            if made is not None:
                return made
        return super().__matmul__(other)

    def _reduced(self, what: str, axis: Any) -> "Array | None":
        number = _REDUCTIONS.get(what) if self.dtype is FLOAT32 else None
        shape = self._shape
        if number is None or self.context._closed or _reduce is None:
            return None
        if axis is None:
            at, left = -1, shape[:0]
        elif type(axis) is int and -len(shape) <= axis < len(shape):
            at = axis % len(shape)
            left = shape[:at] + shape[at + 1:]
        else:
            return None
        handle = _reduce(number, self._handle, at)
        return made_at_once(self.context, handle, left, FLOAT32) if handle else None

    def _reflected(self, name: str, other: Any) -> "Array":
        made = small(name, self, other, True)
        return super()._reflected(name, other) if made is None else made

    @property
    def handle(self) -> int:
        return self._handle

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes. Assigning another shape with as many elements changes this array; one extent may be -1,
        which stands for whatever remains."""
        return self._shape

    @shape.setter
    def shape(self, shape: int | Sequence[int]) -> None:
        wanted = self._extents("shape", shape)
        check(lib.clv_array_reshape(self._handle, len(wanted), shape_of(wanted)))
        self._shape, self._strides = wanted, None

    def _extents(self, what: str, asked: Any) -> tuple[int, ...]:
        asked = asked.tolist() if isinstance(asked, np.ndarray) else asked
        asked = list(asked) if isinstance(asked, (tuple, list)) else [asked]
        if -1 in asked:
            others = extents(what, [n for i, n in enumerate(asked) if i != asked.index(-1)], least=0)
            if not math.prod(others) or self.size % math.prod(others):
                raise ShapeError(f"{what}: {self.size} elements do not fill {tuple(asked)}")
            asked[asked.index(-1)] = self.size // math.prod(others)
        return extents(what, asked, least=0)

    @property
    def strides_(self) -> tuple[int, ...]:
        """Steps in elements from one element of an axis to the next."""
        if self._strides is None:
            self._strides = dense_strides(self._shape)
        return self._strides

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in bytes from one element of an axis to the next; 0 for axes of one element."""
        return tuple(step * self.dtype.itemsize for step in self.strides_)

    @property
    def base(self) -> Any:
        """The array whose elements a view shows, or the object whose memory an array uses; None if it has its own."""
        return self._base

    @property
    def flags(self) -> Flags:
        """How the array lies in memory, by NumPy's names."""
        return Flags(self)

    @property
    def flat(self) -> Flat:
        """The elements in row-major order; assigning to it fills the array with values, in turns."""
        return Flat(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        fill_flat(self, values)

    @property
    def is_whole(self) -> bool:
        """Whether operations on float32 accept the array as it is: not a view, 1 to 4 axes or a single number, and not
        empty."""
        if len(self._shape) > 4 or 0 in self._shape:
            return False
        return self._room < 0 or (not self._start and math.prod(self._shape) == self._room and
                                  self._strides in (None, dense_strides(self._shape)))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * self.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def on_device(self) -> bool:
        """Whether its latest contents are on a device."""
        return bool(lib.clv_array_is_on_device(self._handle))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no len()")
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentError(f"array: {self.size} elements are neither true nor false: take one of "
                                "min(), max(), sum()")
        return bool(self.item())

    def __getitem__(self, key: Any) -> "Array":
        """Returns a view for slices, integers, None and ...; a copy for masks and arrays of integers."""
        if self._shape:  # the fast path for one slice or one integer
            extent, stride = self._shape[0], self.strides_[0]
            if type(key) is int and -extent <= key < extent:
                return view(self, key % extent * stride, self._shape[1:], self.strides_[1:])
            if type(key) is slice:
                start, stop, step = key.indices(extent)
                count = len(range(start, stop, step))
                return view(self, start * stride if count else 0, (count, *self._shape[1:]),
                            (step * stride, *self.strides_[1:]))
        from ._indexing import get
        return get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from ._indexing import put
        put(self, key, value)

    def __iter__(self) -> "Iterator[Array]":
        return (self[i] for i in range(len(self)))

    def __copy__(self) -> "Array":
        return self._copied(self._shape)

    def __deepcopy__(self, _memo: Any) -> "Array":
        return self.__copy__()

    def __reduce__(self) -> Any:
        return array, (self.numpy(),)  # unpickling makes the array in the default context of the process that reads it

    def numpy(self) -> NDArray[Any]:
        """Returns a copy on the host."""
        self.context.check_process()
        out = np.empty(self.shape, self.dtype)
        check(lib.clv_array_copy_to(self._handle, address(out)))
        return out

    def get(self) -> NDArray[Any]:
        """Does the same as numpy(), under CuPy's name."""
        return self.numpy()

    def write(self, values: Any) -> "Array":
        """Replaces the contents by values from the host, converted to the array's type."""
        new = np.asarray(values) if self.dtype.kind == "c" else numbers("write", values, self.dtype)
        try:
            given = np.ascontiguousarray(np.broadcast_to(new.astype(self.dtype, copy=False), self.shape))
        except ValueError:
            raise ShapeError(f"write: shape {new.shape} does not fit {self.shape}") from None
        self.context.check_process()
        check(lib.clv_array_fill_from(self._handle, address(given)))
        return self

    def reshape(self, *shape: int | Sequence[int], order: str = "C") -> "Array":
        """Returns the elements in another shape of as many elements: a view if they lie densely, else a copy on the
        device or host where they lie. One extent may be -1, which stands for whatever remains. With order="F", the
        first axis varies fastest. `a.shape = shape` changes `a` itself."""
        from ._shapes import reshape
        wanted = self._extents("reshape", shape[0] if len(shape) == 1 else shape)
        return reshape(self.T, wanted[::-1]).T if order == "F" else reshape(self, wanted)

    def _copied(self, shape: tuple[int, ...]) -> "Array":
        self.context.check_process()
        made = ctypes.c_void_p()
        with self.context.held():
            check(lib.clv_array_copy(self._handle, len(shape), shape_of(shape), ctypes.byref(made)))
            return Array(self.context, made.value or 0, shape, self.dtype)

    def transpose(self, *axes: Any) -> "Array":
        """Returns a view with the axes in reverse order, or in the order of `axes`."""
        from ._indexing import transposed
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = tuple(axes[0] or ())
        order = list(axes) or list(reversed(range(self.ndim)))
        if sorted(n % self.ndim if -self.ndim <= n < self.ndim else n for n in order) != list(range(self.ndim)):
            raise ShapeError(f"transpose: the axes are {tuple(axes)}, but each of the array's {self.ndim} axes must "
                             "occur once")
        return transposed(self, [n % self.ndim for n in order])

    @property
    def T(self) -> "Array":
        """A view with the axes in reverse order, as transpose() returns."""
        return self.transpose()

    @property
    def mT(self) -> "Array":
        """A view with the last two axes swapped: the transposes of a stack of matrices."""
        if self.ndim < 2:
            raise ShapeError(f"mT: the array has {self.ndim} axes, but at least 2 are needed")
        return self.transpose(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    def view(self, dtype: Any = None) -> "Array":
        """Returns another array on the same elements or, with `dtype`, on the same bytes read as that type. If the
        types differ in size, the last axis must be dense, and it gets more or fewer elements."""
        shape, strides, dtype = self._shape, self.strides_, self.dtype if dtype is None else dtype_from(dtype)
        old, new = self.dtype.itemsize, dtype.itemsize
        if old != new:
            if not shape or (shape[-1] > 1 and strides[-1] != 1):
                raise ShapeError(f"view: to read {self.dtype} as {dtype}, whose size differs, the last axis must be "
                                 "dense: copy the array first")
            if shape[-1] * old % new:
                raise ShapeError(f"view: the last axis has {shape[-1] * old} bytes, which is no multiple of the {new} "
                                 f"bytes of {dtype}")
            if any(step * old % new for step in strides[:-1]):
                raise ShapeError(f"view: the strides {self.strides} are no multiples of the {new} bytes of {dtype}: "
                                 "copy the array first")
            shape = (*shape[:-1], shape[-1] * old // new)
            strides = (*[step * old // new for step in strides[:-1]], 1)
        return view_as(self, dtype, 0, shape, strides)

    @property
    def real(self) -> "Array":
        """A view of the real parts."""
        return view(self, 0, self._shape, self.strides_) if self.dtype.kind != "c" else self._part(0)

    @real.setter
    def real(self, values: Any) -> None:
        self.real[...] = values

    @property
    def imag(self) -> "Array":
        """A view of the imaginary parts; for real numbers zeros, which cannot be assigned."""
        if self.dtype.kind == "c":
            return self._part(1)
        zero = new_array(self.context, (), self.dtype).write(0)
        return view(zero, 0, self._shape, (0,) * self.ndim)

    @imag.setter
    def imag(self, values: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError(f"imag: an array of {self.dtype} has no imaginary parts to set")
        self.imag[...] = values

    def _part(self, which: int) -> "Array":
        dtype = TYPES[NUMBERS[np.dtype(f"f{self.dtype.itemsize // 2}")]]
        return view_as(self, dtype, which, self._shape, tuple(2 * step for step in self.strides_))

    @property
    def device(self) -> Context:
        """The context that the array belongs to, under the array API's name."""
        return self.context

    def to_device(self, device: Context, /, *, stream: Any = None) -> "Array":
        """Returns the array itself, or a copy in another context."""
        if stream is not None:
            raise ArgumentError("to_device: stream must be None")
        return self if device is self.context else array(self, context=device)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        from . import array_api
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ArgumentError(f"api_version is {api_version!r}, but it must be 2024.12 or earlier")
        return array_api

    def copy(self) -> "Array":
        """Returns a new array with the same contents, copied on the device or host where they lie."""
        return self.__copy__()

    def astype(self, dtype: Any, copy: bool = True) -> "Array":
        """Returns a new array in another type; without `copy`, the array itself if it already has that type."""
        from ._elementwise import cast
        return cast(self, dtype, copy)

    def __repr__(self) -> str:
        where = f"<cleave.Array {list(self.shape)} on the {'device' if self.on_device else 'host'}, {self.dtype}"
        try:
            values = str(self.numpy()) if self.size <= 1 << 20 else ""
        except Error:  # the array has no contents yet, or belongs to another process
            values = ""
        return where + (":\n" if "\n" in values else ": " if values else "") + values + ">"

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        if not named and method == "__call__" and inputs[0] is self:
            made = small(ufunc.__name__, *inputs) if len(inputs) < 3 else None
            if made is not None:
                return made
        from ._numpy_protocols import ufunc_of
        return ufunc_of(ufunc, method, inputs, named)

    def __array_function__(self, function: Any, types: Any, arguments: Any, named: Any) -> Any:
        from ._numpy_protocols import function_of
        return function_of(function, arguments, named)


# ---- the short way to a small call: one array, or two of one type and shape, or an array and a number

_new = Array.__new__
_compute: Any = getattr(lib, "clv_array_compute", None)  # an older library may lack them
_multiply: Any = getattr(lib, "clv_array_multiply", None)
_reduce: Any = getattr(lib, "clv_array_reduce", None)
# Reductions of float32 whose results are float32, by name: clv_reduction.
_REDUCTIONS = {"sum": 0, "mean": 1, "var": 2, "std": 3, "min": 4, "max": 5}
MOST_AT_ONCE = 1024  #: elements up to which the host computes at once (host/array/call.h)
#: By name of an operation or a ufunc and number of its operands: by type, the operation's number and its result's type.
small_plans: dict[tuple[str, int], dict[np.dtype[Any], tuple[int, np.dtype[Any]]]] = {}
#: By type: the range of whole numbers that stand for themselves among its elements.
_WHOLE = {dtype: ((0, -1) if dtype.kind in "bc" else (-(1 << 24), 1 << 24) if dtype.kind == "f" else
                  (max(np.iinfo(dtype).min, -(1 << 53)), min(np.iinfo(dtype).max, 1 << 53))) for dtype in TYPES}


def made_at_once(context: Context, handle: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Returns the Python object for a dense array that the library has made, without the checks of Array()."""
    made = _new(Array)
    made.context, made._handle, made._shape = context, handle, shape
    made.dtype, made._strides, made._start, made._room, made._base = dtype, None, 0, -1, None
    return made


@functools.lru_cache(maxsize=1024)
def _is_small(shape: tuple[int, ...]) -> bool:
    return math.prod(shape) <= MOST_AT_ONCE


def small(name: str, a: Array, b: Any = None, turned: bool = False) -> Array | None:
    """Returns the result of an operation on an array, or on two of the same type and shape, or on one and a number, if
    they are small or calls are asynchronous; `turned`: b is the first operand. Returns None for everything else, and if
    the operation fails: the long way then computes it, or says what is wrong."""
    dtype, shape = a.dtype, a._shape
    other, number = None, 0.0
    if type(b) is Array:
        if b.dtype is not dtype or b._shape != shape or b.context is not a.context:
            return None
        other = b._handle
    elif type(b) is float:
        if dtype.kind != "f" or name == "pow":
            return None
        number = b
    elif type(b) is int:
        least, most = _WHOLE[dtype]
        if not least <= b <= most or name == "pow":
            return None
        number = b
    elif b is not None:
        return None
    plans = small_plans.get((name, 1 if b is None else 2))
    plan = plans.get(dtype) if plans is not None else None
    if name == "pow" and dtype.kind in "iu":
        return None  # the long way refuses negative powers
    if plan is None or not (_is_small(shape) or a.context._asynchronous) or a.context._closed:
        return None
    handle = _compute(plan[0], other, a._handle, number) if turned else _compute(plan[0], a._handle, other, number)
    if not handle:
        return None
    return made_at_once(a.context, handle, shape, plan[1])


def multiplied(a: Array, b: Array) -> Array | None:
    """Returns the product of two matrices of float32; None if one is a view, or if the long way must say what is
    wrong."""
    shape, other = a._shape, b._shape
    if _multiply is None or len(shape) != 2 or len(other) != 2 or a._room >= 0 or b._room >= 0 or a.context._closed:
        return None
    lend()
    handle = _multiply(a._handle, b._handle) if shape[1] == other[0] else None
    if not handle:
        return None
    return made_at_once(a.context, handle, (shape[0], other[1]), FLOAT32)


def made_like(context: Context, made: ctypes.c_void_p, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Returns the Python object for a dense array that the library has made."""
    return Array(context, made.value or 0, tuple(shape), dtype)


def new_array(context: Context, shape: Sequence[int], dtype: Any = FLOAT32) -> Array:
    """Returns a dense array of undefined contents for a result."""
    made = ctypes.c_void_p()
    shape, dtype = tuple(shape), dtype_from(dtype)
    with context.held() as handle:
        check(lib.clv_array_make(handle, NUMBERS[dtype], len(shape), shape_of(shape), ctypes.byref(made)))
        return Array(context, made.value or 0, shape, dtype)


def view(a: Array, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Returns another array on the same elements: offset and strides are in elements, from the first element of `a`."""
    made = ctypes.c_void_p()
    if len(shape) > 8:
        raise ShapeError(f"array: got {len(shape)} axes, but at most 8 are supported")
    strides = tuple([step if extent > 1 else 0 for step, extent in zip(strides, shape)])
    status = lib.clv_array_view(a._handle, offset, len(shape), shape_of(shape), _strides_of(strides),
                                ctypes.byref(made))
    if status:
        check(status)
    return Array(a.context, made.value or 0, shape, a.dtype, strides, a._start + offset,
                 a.size if a._room < 0 else a._room, a if a._base is None else a._base)


def view_as(a: Array, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Returns an array on the same bytes, read as another type: offset and strides are in elements of that type."""
    made = ctypes.c_void_p()
    strides = tuple([step if extent > 1 else 0 for step, extent in zip(strides, shape)])
    check(lib.clv_array_view_as(a._handle, NUMBERS[dtype], offset, len(shape), shape_of(shape), _strides_of(strides),
                                ctypes.byref(made)))
    room = (a.size if a._room < 0 else a._room) * a.dtype.itemsize
    return Array(a.context, made.value or 0, shape, dtype, strides, a._start * a.dtype.itemsize // dtype.itemsize +
                 offset, -(-room // dtype.itemsize), a if a._base is None else a._base)


def _host_array(values: Any, dtype: Any) -> NDArray[Any]:
    """Converts what a caller gives for an array to a NumPy array, in an element type of Array."""
    if not hasattr(values, "__array__") and hasattr(values, "__dlpack__"):
        values = np.from_dlpack(values)
    if is_masked(values):
        values = values.astype(np.result_type(values.dtype, np.float32)).filled(np.nan)
    own = not hasattr(values, "dtype")  # `values` are Python numbers, perhaps in lists, and have no NumPy type
    try:
        given = np.asarray(values)
    except ValueError as error:  # rows of several lengths
        raise ShapeError(f"array: {error}") from None
    if given.dtype.kind not in "biufc" or given.dtype.itemsize > (16 if given.dtype.kind == "c" else 8):
        raise ShapeError(f"array: got {given.dtype}, but numbers are expected")
    if dtype is not None:
        wanted = dtype_from(dtype)
    elif own and not _holds_arrays(values):
        wanted = DEFAULTS[{"b": bool, "f": float, "c": complex}.get(given.dtype.kind, int)]
        if given.dtype == np.uint64:
            wanted = given.dtype
        if given.size == 0 and given.dtype.kind == "f":
            wanted = FLOAT32
    else:
        wanted = TYPES[NUMBERS[given.dtype.newbyteorder("=")]]
    return np.ascontiguousarray(given, dtype=wanted).reshape(given.shape)


def _holds_arrays(values: Any) -> bool:
    while isinstance(values, (list, tuple)) and values:
        values = values[0]
    return isinstance(values, (np.ndarray, np.generic))


def array(values: Any, dtype: Any = None, *, context: Context | None = None) -> Array:
    """Copies numbers (a NumPy array, a list, or any object with DLPack) to the device, or to host memory if no device
    works, none has room, or none computes with the type.

    NumPy arrays keep their type. Lists of Python floats become float32, integers int64, bools bool, and complex numbers
    complex64. `dtype` chooses another type.

    Raises ShapeError (more than 8 axes), ArgumentError (there is no such type), MemoryError.
    """
    if isinstance(values, (list, tuple)) and any(isinstance(one, Array) for one in values):
        from ._shapes import stack
        values = stack([one if isinstance(one, Array) else array(one, context=context) for one in values])
    if isinstance(values, Array):
        if context is None or context is values.context:
            return values.copy() if dtype is None else values.astype(dtype)
        values = values.numpy()
    given = _host_array(values, dtype)
    context = chosen(context)
    made = ctypes.c_void_p()
    with context.held() as handle:
        check(lib.clv_array_make_from(handle, NUMBERS[given.dtype], address(given) if given.size else None, given.ndim,
                                      shape_of(given.shape), ctypes.byref(made)))
        return Array(context, made.value or 0, given.shape, TYPES[NUMBERS[given.dtype]])


def empty(shape: Sequence[int] | int, dtype: Any = None, *, context: Context | None = None,
          device: Context | None = None) -> Array:
    """Returns an array of undefined contents, float32 unless `dtype` names another type; its memory is allocated at its
    first use."""
    return new_array(chosen(context or device), extents("empty", shape, least=0), FLOAT32 if dtype is None else dtype)


def array_stats(context: Context | None = None) -> ArrayStats:
    """Returns how many calls and transfers of arrays there were in a context so far."""
    with chosen(context).held() as handle:
        found = lib.clv_array_statistics(handle)
    return ArrayStats(*(getattr(found, name) for name in ArrayStats._fields))
