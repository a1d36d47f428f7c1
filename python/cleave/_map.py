# SPDX-License-Identifier: Apache-2.0
"""A kernel of the caller's over many items, split over every device that helps."""
from __future__ import annotations

import ctypes
import math
from typing import Any, Callable, Sequence

import numpy as np

from . import _abi
from ._context import Context, default_context
from ._kernel import COUNT, FIRST, Kernel, Local, Out, Shared, scalar
from ._library import lib, libc
from ._report import Report, report_handle
from ._watch import Progress, Watch
from .errors import ArgumentError, ShapeError

_BAD_CALL = 1  # CLV_E_ARGUMENT: what a function of ours answers when Python raised
_GROUP = 64


class _Job:
    """One run: the arguments sorted by what they are, and the functions that the library calls."""

    def __init__(self, kernel: Kernel, arguments: Sequence[Any], items: int | None,
                 grid: Sequence[int], local: Sequence[int] | None, reference: Callable | None):
        self.kernel, self.reference = kernel, reference
        self.inputs: list[tuple[int, np.ndarray]] = []  # place among the arguments, array
        self.shared: list[tuple[int, np.ndarray]] = []
        self.outputs: list[tuple[int, Out]] = []
        self.numbers: list[tuple[int, Any]] = []  # FIRST, COUNT
        self.template = (_abi.Arg * max(len(arguments), 1))()
        self.given = [self._sort(i, value) for i, value in enumerate(arguments)]
        self.items = self._count_items(items)
        if not self.outputs:
            raise ArgumentError(f"map {kernel.name}: no Out among the arguments: nothing would "
                                "come back")
        self.grid = tuple(int(n) for n in grid)
        self._choose_groups(local)
        self.results = [np.empty((self.items, *out.shape), out.dtype) for _, out in self.outputs]
        self.failure: BaseException | None = None

    def _sort(self, i: int, value: Any) -> Any:
        """Notes what the i-th argument is; returns what the reference gets in its place."""
        if isinstance(value, Out):
            self.outputs.append((i, value))
        elif value is FIRST or value is COUNT:
            self.numbers.append((i, value))
        elif isinstance(value, Local):
            self.template[i] = _abi.Arg(kind=_abi.ARG_LOCAL, bytes=value.bytes)
        elif isinstance(value, Shared):
            self.shared.append((i, value.array))
            return value.array
        else:
            number = scalar(value)
            if number is None:
                self._take_input(i, value)
                return None
            self._put(self.template[i], number)
            return number
        return None

    def _take_input(self, i: int, value: Any) -> None:
        array = np.ascontiguousarray(value)
        if array.dtype.hasobject or array.dtype.kind not in "iufbV":
            raise ShapeError(f"map {self.kernel.name}: argument {i}: an array of numbers expected, "
                             f"{array.dtype} given")
        self.inputs.append((i, array.astype(array.dtype.newbyteorder("="), copy=False)))

    @staticmethod
    def _put(arg: _abi.Arg, number: np.generic) -> None:
        raw = number.tobytes()
        arg.kind, arg.bytes = _abi.ARG_VALUE, len(raw)
        ctypes.memmove(arg.value, raw, len(raw))

    @staticmethod
    def _put_buffer(arg: _abi.Arg, buffer: int | None) -> None:
        arg.kind, arg.buffer, arg.bytes = _abi.ARG_BUFFER, buffer, ctypes.sizeof(ctypes.c_void_p)

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

    def _choose_groups(self, local: Sequence[int] | None) -> None:
        """Work-groups: 64 items, or neighbours of one item where an item has many work-items."""
        if len(self.grid) > 2 or min(self.grid, default=1) < 1:
            raise ArgumentError(f"map {self.kernel.name}: grid {self.grid}: at most two positive "
                                "extents")
        self.rounded = any(number is COUNT for _, number in self.numbers)
        self.automatic = local is None
        self.adapt = self.automatic and not self.grid and not self.rounded
        self.halvings: dict[int, int] = {}  # of groups, by worker: what its device takes
        if local is None:
            local = [math.gcd(n, _GROUP) for n in self.grid[:1]] + [1] * len(self.grid[1:]) + [
                1 if self.grid else _GROUP]
        self.local = tuple(int(n) for n in local)
        if len(self.local) != len(self.grid) + 1 or min(self.local) < 1:
            raise ArgumentError(f"map {self.kernel.name}: local {self.local}: one positive extent "
                                "for each of the grid, then one for the items")
        if any(n % m for n, m in zip(self.grid, self.local)):
            raise ArgumentError(f"map {self.kernel.name}: grid {self.grid} is not a multiple of "
                                f"local {self.local}")
        if self.local[-1] > 1 and not self.rounded and not self.adapt:
            raise ArgumentError(f"map {self.kernel.name}: groups of several items need COUNT among "
                                "the arguments: the last one may be larger than what is left")

    def geometry(self, count: int, halvings: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        local = [math.gcd(n, _GROUP >> halvings) if halvings and n > 1 else n for n in self.local]
        if self.adapt:
            local[-1] = math.gcd(count, _GROUP >> halvings)
        group = local[-1]
        return (*self.grid, -(-count // group) * group), tuple(local)

    def cost(self, flops: float | None) -> _abi.Cost:
        sizes = [array.nbytes // max(self.items, 1) for _, array in self.inputs]
        sizes += [out.item_bytes for _, out in self.outputs]
        total = sum(sizes)
        work = math.prod(self.grid) if flops is None else 0
        return _abi.Cost(flops=10.0 * max(total / 4, work) if flops is None else flops,
                         traffic_bytes=total, transfer_bytes=total, memory_bytes=max(total, 1),
                         buffer_bytes=max(max(sizes), 1))

    # ---- called by the library, on its threads

    def setup(self, worker: int, _user: Any) -> int:
        buffer = ctypes.c_void_p()
        for key, (_, array) in enumerate(self.shared):
            status = lib.clv_worker_buffer(worker, key, array.nbytes, ctypes.byref(buffer))
            status = status or lib.clv_write(lib.clv_worker_queue(worker), buffer, 0,
                                             array.ctypes.data, array.nbytes)
            if status:
                return status
        return 0

    def _bring_input(self, slot: int, key: int, array: np.ndarray, first: int, count: int,
                     arg: _abi.Arg) -> int:
        item = array.nbytes // self.items
        place, words = _abi.Place(), item * count
        box = _abi.Box(array.ctypes.data + first * item, 1, (1, 1, words), (words, words, 1))
        status = lib.clv_slot_input(slot, key, ctypes.byref(box), ctypes.byref(place))
        if not status and place.offset:
            raise ArgumentError("map: this libcleave wraps memory at an offset")
        self._put_buffer(arg, place.buffer)
        return status

    def enqueue(self, slot: int, first: int, count: int, _user: Any) -> int:
        args = type(self.template).from_buffer_copy(self.template)
        buffer, key = ctypes.c_void_p(), 0
        for i, array in self.inputs:
            status = self._bring_input(slot, key, array, first, count, args[i])
            if status:
                return status
            key += 1
        for i, out in self.outputs:
            status = lib.clv_slot_output(slot, key, count * out.item_bytes, ctypes.byref(buffer))
            if status:
                return status
            self._put_buffer(args[i], buffer.value)
            key += 1
        worker = lib.clv_slot_worker(slot)
        for shared_key, (i, _) in enumerate(self.shared):
            status = lib.clv_worker_buffer(worker, shared_key, 0, ctypes.byref(buffer))
            if status:
                return status
            self._put_buffer(args[i], buffer.value)
        for i, which in self.numbers:
            self._put(args[i], np.uint32(first if which is FIRST else count))
        return self._launch(lib.clv_slot_queue(slot), worker, count, args)

    def _launch(self, queue: int, worker: int, count: int, args: Any) -> int:
        """Groups that nobody asked for become smaller where a device, or this kernel on it,
        takes no larger ones: there the launch is CLV_E_ARGUMENT."""
        halvings = self.halvings.get(worker, 0)
        while True:
            launch = self.kernel.launch(*self.geometry(count, halvings))
            status = lib.clv_launch_enqueue(queue, launch, args, len(self.given), None)
            if status != _BAD_CALL or not self.automatic or _GROUP >> halvings <= 1:
                return status
            halvings += 1
            self.halvings[worker] = halvings

    def commit(self, slot: int, first: int, count: int, _user: Any) -> int:
        for key, ((_, out), result) in enumerate(zip(self.outputs, self.results),
                                                 len(self.inputs)):
            size = out.item_bytes
            libc.memcpy(result.ctypes.data + first * size, lib.clv_slot_result(slot, key),
                        count * size)
        return 0

    def plain(self, slot: int, first: int, count: int, _user: Any) -> int:
        given = list(self.given)
        for i, array in self.inputs:
            given[i] = array[first:first + count]
        for i, which in self.numbers:
            given[i] = first if which is FIRST else count
        memory = ctypes.c_void_p()
        for key, (i, out) in enumerate(self.outputs, len(self.inputs)):
            size = count * out.item_bytes
            status = lib.clv_slot_result_create(slot, key, size, ctypes.byref(memory))
            if status:
                return status
            raw = (ctypes.c_char * size).from_address(memory.value)
            given[i] = np.frombuffer(raw, out.dtype).reshape(count, *out.shape)
        self.reference(*given)
        return 0

    def guarded(self, function: Callable[..., int]) -> Callable[..., int]:
        """What Python raises there must not be lost: the caller gets it when the job has ended."""
        def call(*arguments: Any) -> int:
            try:
                return _BAD_CALL if self.failure else function(*arguments)
            except BaseException as error:
                self.failure = error
                return _BAD_CALL
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
    run = _Job(kernel, arguments, items, grid, local, reference)
    if run.items:
        job = _abi.Job(
            size=ctypes.sizeof(_abi.Job), name=kernel.name.encode(), units=run.items,
            signature=f"{kernel.digest} {run.grid} {run.local}".encode(),
            align=_GROUP if run.adapt and run.items > _GROUP else 1,
            setup=_abi.Setup(run.guarded(run.setup)), enqueue=_abi.Chunk(run.guarded(run.enqueue)),
            commit=_abi.Chunk(run.guarded(run.commit)), unit_cost=run.cost(flops))
        if reference:
            job.reference = _abi.Chunk(run.guarded(run.plain))
        with (context or default_context()).held() as handle, \
                Watch(progress, kernel.name) as watch:
            job.progress = watch.function
            status = lib.clv_job_run(handle, ctypes.byref(job), None, report_handle(report))
            if run.failure and not watch.failure and not watch.signals:
                raise run.failure
            watch.done(status)
    return run.results[0] if len(run.results) == 1 else tuple(run.results)
