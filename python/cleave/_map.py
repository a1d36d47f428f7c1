# SPDX-License-Identifier: Apache-2.0
"""Runs the caller's kernel over many items, split over every device that makes the call faster."""
from __future__ import annotations

import ctypes
import math
from typing import Any, Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, elements, extents, seen_at
from ._check import given, real, whole
from ._context import Context, chosen
from ._kernel import COUNT, FIRST, Kernel, Local, Out, Shared, scalar
from ._library import lib
from ._signature import Parameter, as_elements
from ._report import Report, report_handle
from ._watch import Progress, Watch
from .errors import ArgumentError, ArgumentTypeError, ShapeError

_BAD_CALL = 1  # CLV_E_ARGUMENT, which a callback returns to the library after a Python exception


class _Call:
    """The arguments of one call of map(), sorted by their kinds, and the C structures that describe them."""

    def __init__(self, kernel: Kernel, arguments: Sequence[Any], items: int | None):
        self.kernel = kernel
        self.inputs: list[tuple[int, NDArray[Any]]] = []  # (index among the arguments, array)
        self.outputs: list[tuple[int, Out]] = []
        self.kept: list[Any] = []  # keeps objects alive whose memory the library reads
        self.args = (_abi.ItemArg * max(len(arguments), 1))()
        self.count = len(arguments)
        self.given = [self._sort(arg, i, value)
                      for i, (arg, value) in enumerate(zip(self.args, arguments))]
        self.items = self._count_items(items)
        if not self.outputs:
            raise ArgumentError(f"map {kernel.name}: there is no Out among the arguments, so the "
                                "call would have no result")
        self.results = [np.empty((self.items, *out.shape), out.dtype) for _, out in self.outputs]
        if self.items:
            self._point()
        self.failure: BaseException | None = None

    def _sort(self, arg: _abi.ItemArg, i: int, value: Any) -> Any:
        """Describes the i-th argument in `arg` for the library; returns the value that the reference function gets for
        it."""
        known = self.kernel.parameters
        parameter = known[i] if len(known) == self.count else None
        if isinstance(value, Out):
            if parameter is not None and parameter.dtype is not value.dtype:
                self._checked(i, parameter, np.empty(0, value.dtype))
            arg.kind, arg.bytes = _abi.OUTPUT, value.item_bytes
            self.outputs.append((i, value))
        elif value is FIRST or value is COUNT:
            arg.kind = _abi.FIRST if value is FIRST else _abi.COUNT
            return value
        elif isinstance(value, Local):
            arg.kind, arg.bytes = _abi.LOCAL, value.bytes
        elif isinstance(value, Shared):
            array = self._checked(i, parameter, value.array, value.typed)
            self.kept.append(array)
            arg.kind, arg.bytes, arg.data = _abi.SHARED, array.nbytes, address(array)
            return array
        else:
            number = scalar(value, f"map {self.kernel.name}: argument {i}", parameter)
            if number is None:
                arg.kind = _abi.INPUT
                self._take_input(i, parameter, value)
                return None
            self.kept.append(number)
            arg.kind, arg.bytes = _abi.VALUE, ctypes.sizeof(number)
            arg.data = ctypes.addressof(number)
            return value if isinstance(value, np.generic) else number.value
        return None

    def _checked(self, i: int, parameter: Parameter | None, array: NDArray[Any],
                 typed: bool = True) -> NDArray[Any]:
        if parameter is None or parameter.pointer and parameter.dtype is array.dtype:
            return array
        return as_elements(f"map {self.kernel.name}: argument {i}", parameter, array, typed)

    def _take_input(self, i: int, parameter: Parameter | None, value: Any) -> None:
        array = elements(f"map {self.kernel.name}: argument {i}", value)
        self.inputs.append((i, self._checked(i, parameter, array, hasattr(value, "dtype"))))

    def _count_items(self, items: int | None) -> int:
        for i, array in self.inputs:
            if items is not None and len(array) != items:
                raise ShapeError(f"map {self.kernel.name}: argument {i} has {len(array)} items, but "
                                 f"{items} are expected")
            items = len(array)
        if items is None:
            raise ArgumentError(f"map {self.kernel.name}: there is no array from which items can be counted: pass "
                                "items=")
        if type(items) is int and 0 <= items < 2**32:
            return items
        return whole(f"map {self.kernel.name}: items", items, 0, 2**32 - 1)

    def _point(self) -> None:
        for i, array in self.inputs:
            self.args[i].data, self.args[i].bytes = address(array), array.nbytes // self.items
        for (i, _), result in zip(self.outputs, self.results):
            self.args[i].result = address(result)

    def shape(self, grid: Sequence[int] | int, local: Sequence[int] | int | None) -> _abi.Items:
        """Returns the library's description of the call; the library checks the extents of grid and local."""
        items = _abi.Items.from_buffer_copy(self.kernel.items)
        items.items = self.items
        name = self.kernel.name
        each: tuple[int, ...] = ()
        if hasattr(grid, "__index__") or len(grid):
            each = extents(f"map {name}: grid", grid)
            if len(each) > 2:
                raise ArgumentError(f"map {name}: grid is {each}, but it may have at most two extents, all positive")
            items.grid[:len(each)] = each
        if local is not None:
            group = extents(f"map {name}: local", local)
            if len(group) != len(each) + 1:
                raise ArgumentError(f"map {name}: local is {group}, but it needs a positive extent for each "
                                    "dimension of the grid, and then one for the items")
            items.local[:len(group)] = group
        items.signature = f"{self.kernel.digest} {grid} {local}".encode()
        return items

    def plain(self, reference: Callable[..., Any]) -> Callable[..., int]:
        """Returns a callback by which the library calls the reference function on its threads. An exception of the
        reference is kept in `failure` and raised when the job has ended."""
        def call(at: Any, first: int, count: int, _user: Any) -> int:
            values = [count if value is COUNT else first if value is FIRST else value
                      for value in self.given]
            try:
                for i, array in self.inputs:
                    values[i] = array[first:first + count]
                for i, out in self.outputs:
                    numbers = count * math.prod(out.shape)
                    values[i] = seen_at(at[i], numbers, out.dtype).reshape(count, *out.shape)
                if not self.failure:
                    reference(*values)
            except BaseException as error:
                self.failure = error
            return _BAD_CALL if self.failure else 0
        return call


def map_items(kernel: Kernel, *arguments: Any, items: int | None = None,
              grid: Sequence[int] | int = (), local: Sequence[int] | int | None = None,
              flops: float | None = None, reference: Callable[..., Any] | None = None,
              context: Context | None = None, report: Report | None = None,
              progress: Progress = None) -> Any:
    """Runs a kernel over items, split over every device that makes the call faster; out[i] = kernel(in[i], ...).

    The items are the first axis of the input arrays. A device gets chunks of them, and sees a chunk as if there were no
    other items: element 0 of an input is the chunk's first item.

    Parameters
    ----------
    kernel      a Kernel
    arguments   the kernel's arguments, in its order:
                an array [items, ...]   `__global const T *`: the chunk's items; lists are converted to T
                Shared(array)           `__global const T *`: the whole array
                Out(dtype, shape)       `__global T *`: written by the kernel, [count, *shape]
                COUNT, FIRST            `uint`: how many items the chunk has, and which is its first
                a number                NumPy's by its type, Python's by the type in the kernel's text
                Local(bytes)            `__local T *`
    items       number of items; needed only if there is no input array
    grid        work-items of one item, at most two extents: get_global_id(0) and (1). The last dimension of the launch
                is the item of the chunk
    local       extents of the work-group: one per extent of the grid, then one for the items. Groups of several items
                need COUNT, and `if (item < count)` in the kernel. None: 64 items or, if there is a grid, up to 64
                neighbouring work-items of one item
    flops       rough number of floating-point operations per item; the balancer measures the speed
    reference   a Python function of the same arguments, with arrays in place of Out that it fills; it is used when no
                device works, and with mode="reference"
    context, report, progress   see Context and Report; progress=True shows a bar

    Returns [items, *shape] for one Out, and a tuple of them for several. An item's result must not depend on its chunk;
    then it does not depend on the devices either.

    Raises BuildError (`detail` is the log), ArgumentError, ShapeError, NoDeviceError, DeviceMemoryError,
    CancelledError, DeviceError. Ctrl-C ends the call.
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentTypeError(f"map: got {type(kernel).__name__}, but a cleave.Kernel is expected")
    if reference is not None and not callable(reference):
        raise ArgumentTypeError(f"map {kernel.name}: reference is {given(reference)}, but it must be a function")
    call = _Call(kernel, arguments, items)
    described = call.shape(grid, local)
    if call.items:
        described.flops = 0.0 if flops is None else real(f"map {kernel.name}: flops", flops)
        if reference is not None:
            described.reference = _abi.ItemsReference(call.plain(reference))
        with chosen(context).held() as handle, \
                Watch(progress, kernel.name) as watch:
            described.progress = watch.function
            status = lib.clv_items_run(handle, described, call.args, call.count, None,
                                       report_handle(report))
            if call.failure and not watch.failure and not watch.signals:
                raise call.failure
            watch.done(status)
    return call.results[0] if len(call.results) == 1 else tuple(call.results)
