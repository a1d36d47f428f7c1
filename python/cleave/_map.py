# SPDX-License-Identifier: Apache-2.0
"""A kernel of the caller's over many items, split over every device that helps."""
from __future__ import annotations

import ctypes
import math
from typing import Any, Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, seen_at
from ._context import Context, default_context
from ._kernel import COUNT, FIRST, Kernel, Local, Out, Shared, scalar
from ._library import lib
from ._report import Report, report_handle
from ._watch import Progress, Watch
from .errors import ArgumentError, ShapeError

_BAD_CALL = 1  # CLV_E_ARGUMENT: what a function of ours answers when Python raised


class _Call:
    """The arguments of one call, sorted by what they are, as the library reads them."""

    def __init__(self, kernel: Kernel, arguments: Sequence[Any], items: int | None):
        self.kernel = kernel
        self.inputs: list[tuple[int, NDArray[Any]]] = []  # place among the arguments, array
        self.outputs: list[tuple[int, Out]] = []
        self.kept: list[Any] = []  # what the library looks at
        self.args = (_abi.ItemArg * max(len(arguments), 1))()
        self.count = len(arguments)
        self.given = [self._sort(arg, i, value)
                      for i, (arg, value) in enumerate(zip(self.args, arguments))]
        self.items = self._count_items(items)
        if not self.outputs:
            raise ArgumentError(f"map {kernel.name}: no Out among the arguments: nothing would "
                                "come back")
        self.results = [np.empty((self.items, *out.shape), out.dtype) for _, out in self.outputs]
        if self.items:
            self._point()
        self.failure: BaseException | None = None

    def _sort(self, arg: _abi.ItemArg, i: int, value: Any) -> Any:
        """Notes what the i-th argument is; returns what the reference gets in its place."""
        if isinstance(value, Out):
            arg.kind, arg.bytes = _abi.OUTPUT, value.item_bytes
            self.outputs.append((i, value))
        elif value is FIRST or value is COUNT:
            arg.kind = _abi.FIRST if value is FIRST else _abi.COUNT
            return value
        elif isinstance(value, Local):
            arg.kind, arg.bytes = _abi.LOCAL, value.bytes
        elif isinstance(value, Shared):
            arg.kind, arg.bytes, arg.data = _abi.SHARED, value.array.nbytes, address(value.array)
            return value.array
        else:
            number = scalar(value)
            if number is None:
                arg.kind = _abi.INPUT
                self._take_input(i, value)
                return None
            self.kept.append(number)
            arg.kind, arg.bytes = _abi.VALUE, ctypes.sizeof(number)
            arg.data = ctypes.addressof(number)
            return value if isinstance(value, np.generic) else number.value
        return None

    def _take_input(self, i: int, value: Any) -> None:
        array = np.ascontiguousarray(value)
        if array.dtype.hasobject or array.dtype.kind not in "iufbV":
            raise ShapeError(f"map {self.kernel.name}: argument {i}: an array of numbers expected, "
                             f"{array.dtype} given")
        self.inputs.append((i, array.astype(array.dtype.newbyteorder("="), copy=False)))

    def _count_items(self, items: int | None) -> int:
        for i, array in self.inputs:
            if items is not None and len(array) != items:
                raise ShapeError(f"map {self.kernel.name}: argument {i} has {len(array)} items, "
                                 f"{items} expected")
            items = len(array)
        if items is None:
            raise ArgumentError(f"map {self.kernel.name}: no array to count items of: pass items=")
        if not 0 <= items < 2**32:
            raise ArgumentError(f"map {self.kernel.name}: {items} items, expected 0 to 2^32 - 1")
        return items

    def _point(self) -> None:
        for i, array in self.inputs:
            self.args[i].data, self.args[i].bytes = address(array), array.nbytes // self.items
        for (i, _), result in zip(self.outputs, self.results):
            self.args[i].result = address(result)

    def shape(self, grid: Sequence[int], local: Sequence[int] | None) -> _abi.Items:
        """The description of the call; the library looks at the extents."""
        items = _abi.Items.from_buffer_copy(self.kernel.items)
        items.items = self.items
        if grid:
            extents = tuple(int(n) for n in grid)
            if len(extents) > 2 or min(extents) < 1:
                raise ArgumentError(f"map {self.kernel.name}: grid {extents}: at most two positive "
                                    "extents")
            items.grid[:len(extents)] = extents
        if local is not None:
            group = tuple(int(n) for n in local)
            if len(group) != len(grid) + 1 or min(group) < 1:
                raise ArgumentError(f"map {self.kernel.name}: local {group}: one positive extent "
                                    "for each of the grid, then one for the items")
            items.local[:len(group)] = group
        items.signature = f"{self.kernel.digest} {grid} {local}".encode()
        return items

    def plain(self, reference: Callable[..., Any]) -> Callable[..., int]:
        """The reference, for the library to call on its threads. What Python raises there must not
        be lost: the caller gets it when the job has ended."""
        def call(at: Any, first: int, count: int, _user: Any) -> int:
            given = [count if value is COUNT else first if value is FIRST else value
                     for value in self.given]
            try:
                for i, array in self.inputs:
                    given[i] = array[first:first + count]
                for i, out in self.outputs:
                    numbers = count * math.prod(out.shape)
                    given[i] = seen_at(at[i], numbers, out.dtype).reshape(count, *out.shape)
                if not self.failure:
                    reference(*given)
            except BaseException as error:
                self.failure = error
            return _BAD_CALL if self.failure else 0
        return call


def map_items(kernel: Kernel, *arguments: Any, items: int | None = None,
              grid: Sequence[int] = (), local: Sequence[int] | None = None,
              flops: float | None = None, reference: Callable[..., Any] | None = None,
              context: Context | None = None, report: Report | None = None,
              progress: Progress = None) -> Any:
    """Runs a kernel over items, split over every device that helps; out[i] = kernel(in[i], ...).

    The items are the first axis of the input arrays. A device gets chunks of them, and sees a chunk
    as if it were all there is: element 0 of an input is the chunk's first item.

    Parameters
    ----------
    kernel      a Kernel
    arguments   the kernel's, in its order:
                an array [items, ...]   `__global const T *`, the chunk's items
                Shared(array)           `__global const T *`, the whole array
                Out(dtype, shape)       `__global T *`, written by the kernel: [count, *shape]
                COUNT, FIRST            `uint`, how many items the chunk has, and which is its first
                a NumPy number          by its type; a Python int is `int`, a float is `float`
                Local(bytes)            `__local T *`
    items       how many, where no array tells
    grid        work-items of one item, at most two extents: get_global_id(0), (1). The last
                dimension of the launch is the item of the chunk
    local       the work-group: an extent for each of the grid and one for the items. Groups of
                several items need COUNT, and `if (item < count)` in the kernel. None: 64 items, or
                up to 64 neighbours of one item where there is a grid
    flops       arithmetic of one item, roughly; the balancer measures the rest
    reference   a Python function of the same arguments, with arrays in place of Out that it fills:
                what runs when no device works, and with mode="reference"
    context, report, progress   see Context, Report; progress=True shows a bar

    Returns [items, *shape] for one Out, a tuple of them for several. What an item gives must not
    depend on its chunk: then it does not depend on the devices either.

    Raises BuildError (`detail` is the log), ArgumentError, ShapeError, NoDeviceError,
    DeviceMemoryError, CancelledError, DeviceError. Ctrl-C ends the call.
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentError(f"map: a cleave.Kernel expected, {type(kernel).__name__} given")
    call = _Call(kernel, arguments, items)
    described = call.shape(grid, local)
    if call.items:
        described.flops = flops or 0
        if reference:
            described.reference = _abi.ItemsReference(call.plain(reference))
        with (context or default_context()).held() as handle, \
                Watch(progress, kernel.name) as watch:
            described.progress = watch.function
            status = lib.clv_items_run(handle, described, call.args, call.count, None,
                                       report_handle(report))
            if call.failure and not watch.failure and not watch.signals:
                raise call.failure
            watch.done(status)
    return call.results[0] if len(call.results) == 1 else tuple(call.results)
