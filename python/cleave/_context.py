# SPDX-License-Identifier: Apache-2.0
"""Chooses devices, opens them at their first use, and holds the settings by which jobs are split over them."""
from __future__ import annotations

import atexit
import contextvars
import ctypes
import json
import os
import threading
from typing import Any, NamedTuple

from . import _abi
from ._check import described, file_path, given, real, text, whole
from ._library import InThisProcess, check, lib, take_text, take_word
from ._probe import choice, mode_number
from .errors import ArgumentError, ArgumentTypeError

_SCHEDULES = {"adaptive": 0, "static": 1, "dynamic": 2, "hguided": 3}
_entered: contextvars.ContextVar[tuple[Context, ...]] = contextvars.ContextVar("cleave_contexts", default=())
_default: "Context | None" = None
_default_lock = threading.Lock()


class MemoryStats(NamedTuple):
    """The memory of a device.

    The first four fields are bytes: the budget, what is in use, what is kept for reuse, and the largest sum of the last
    two so far. Then come the numbers of buffers that came from the driver and from the pool. The last fields describe
    model weights that stay on the device for the next call: their bytes, and how often weights were found on the
    device, uploaded and dropped. Such weights count as in use, but are dropped when other buffers need the memory.
    """
    budget_bytes: int
    used_bytes: int
    cached_bytes: int
    peak_bytes: int
    raw_allocations: int
    pool_hits: int
    failures: int
    tensor_bytes: int
    tensor_hits: int
    tensor_fills: int
    tensor_evictions: int

    @property
    def free_bytes(self) -> int:
        """The bytes of the budget that are free; memory and weights that are kept for reuse count as free."""
        return max(self.budget_bytes - self.used_bytes + self.tensor_bytes, 0)


class MemoryRoom(NamedTuple):
    """Sizes in bytes: a device's memory, the budget, the free part of the budget, and the largest single buffer."""
    total_bytes: int
    limit_bytes: int
    free_bytes: int
    largest_bytes: int


class Device(InThisProcess):
    """One device of a context; the context owns it, and it must not be used after the context is closed."""

    def __init__(self, context: "Context", index: int):
        self.context, self.index = context, index
        with context.held() as handle:
            self._handle = lib.clv_context_device(handle, index)
            self.label = take_word(lib.clv_device_label(self._handle))
            self.id = take_word(lib.clv_device_facts(self._handle).contents.id)

    @property
    def facts(self) -> dict[str, Any]:
        """The probe's entry for the device: an element of probe()["devices"]."""
        return next(d for d in self.context.probe()["devices"] if d["id"] == self.id)

    def open(self) -> None:
        """Starts the device's driver and checks that the device computes correctly; without this call, the
        device's first job does both. Raises DeviceError or WrongResultError if the device cannot be used."""
        with self.context.held():
            check(lib.clv_device_open(self._handle))

    def memory(self) -> MemoryStats:
        """Returns how much of the device's memory this process uses and keeps for reuse."""
        with self.context.held():
            stats = lib.clv_device_memory(self._handle)
        return MemoryStats(*(getattr(stats, name) for name in MemoryStats._fields))

    def room(self) -> MemoryRoom:
        """Returns how much memory the device has and how much of it is free."""
        with self.context.held():
            room = lib.clv_device_room(self._handle)
        return MemoryRoom(*(getattr(room, name) for name in MemoryRoom._fields))

    def reserve(self, size: int, count: int = 1) -> None:
        """Allocates `count` buffers of `size` bytes in advance; later calls take them from the pool. Raises
        DeviceMemoryError."""
        amounts = whole("reserve: size", size), whole("reserve: count", count)
        with self.context.held():
            check(lib.clv_device_reserve(self._handle, *amounts))

    def utilisation(self) -> float | None:
        """Returns how busy the device is, in percent; None if its driver does not report it."""
        percent = ctypes.c_double()
        with self.context.held():
            status = lib.clv_device_utilisation(self._handle, ctypes.byref(percent))
        return None if status else percent.value

    def trim(self) -> None:
        """Returns the memory that is kept for reuse to the driver."""
        with self.context.held():
            lib.clv_device_trim(self._handle)

    def __repr__(self) -> str:
        return f"<cleave.Device {self.index}: {self.label}>"


class _Held:
    __slots__ = ("context",)

    def __init__(self, context: "Context"):
        self.context = context

    def __enter__(self) -> int:
        return self.context.acquire()

    def __exit__(self, *_unused: Any) -> None:
        self.context.release()


class Context(InThisProcess):
    """Chooses devices. It opens none: each device is opened at its first use.

    Inside `with Context(...) as context:`, every call of this thread without `context=` uses this context; the end of
    the block closes it.

    Parameters
    ----------
    mode            "auto", "cpu", "gpu", "hybrid" or "reference" (plain C, no OpenCL); every mode but "auto" is
                    binding: NoDeviceError if its devices are not there
    devices         which devices to use: "gpu,!name~Iris", "0", "P:D", "uuid=..."; this is binding, too
    memory          budget on each device: bytes as an int, or a fraction in (0, 1] as a float
    schedule        "adaptive" (the default), "static", "dynamic" or "hguided"
    sub_devices     number of parts into which every CPU device is split
    batch           largest number of units in one chunk of a job; 0: automatic
    cache_dir       None: the usual folder; "": no cache on disk
    tuning          False: use the built-in choice among variants of a kernel
    trace           keep records for write_trace()
    qualification   False: use devices without checking first that they compute correctly
    tensor_bytes    largest number of bytes of weights that each device keeps; 0: its budget
    binding         True: bind the threads of CPU drivers to one core each. This happens once per process and is not
                    undone; small calls gain most. CLEAVE_BIND=0 forbids it
    compilers       number of processes that compile kernels for CPU devices at the same time; 0: one for each core of
                    this process; 1: only this process compiles
    event_times     let discrete GPUs time their kernels for reports, which costs some microseconds per command;
                    other devices always time them

    Settings that you do not pass come from the environment (CLEAVE_MODE, CLEAVE_DEVICE, CLEAVE_MEM_LIMIT, CLEAVE_SCHED)
    or, without such a variable, are chosen automatically. Settings that you pass win over the environment, even
    "auto".

    Raises NoDeviceError (a device that you asked for is missing; the message lists the devices of this machine),
    ArgumentError.

    Several threads may use a context; their jobs run one after another.
    """

    def __init__(self, mode: str | None = None, devices: str | None = None,
                 memory: int | float | None = None, *, schedule: str | None = None,
                 sub_devices: int = 0, batch: int = 0,
                 cache_dir: str | os.PathLike[str] | None = None, tuning: bool = True,
                 trace: bool = False, qualification: bool = True, tensor_bytes: int = 0,
                 binding: bool = False, compilers: int = 0, event_times: bool = False):
        # reentrant: the garbage collector may free an array of the context while this thread holds the lock
        self._handle, self._users, self._lock = None, 0, threading.RLock()
        self._closed, self._pid, self._entries = False, os.getpid(), 0
        self._asynchronous = 0  # blocks of asynchronous() that have not ended
        budget, fraction = 0, 0.0
        if hasattr(memory, "__index__"):
            budget = whole("context: memory", memory)
        elif memory is not None:
            fraction = real("context: memory", memory)
        options = described(
            "context", _abi.ContextOptions, mode=mode_number(mode),
            devices=None if devices is None else text("context: devices", devices).encode(),
            memory_bytes=budget, memory_fraction=fraction,
            schedule=choice("schedule", schedule or "adaptive", _SCHEDULES), sub_devices=sub_devices,
            batch=batch, cache_dir=None if cache_dir is None else
            os.fsencode(file_path("context: cache_dir", cache_dir)), no_tuning=not tuning, trace=trace,
            no_qualification=not qualification, tensor_bytes=tensor_bytes,
            bind_threads=binding, compilers=compilers, event_times=event_times,
            mode_given=mode is not None,
            devices_given=devices is not None, memory_given=memory is not None,
            schedule_given=schedule is not None)
        handle = ctypes.c_void_p()
        check(lib.clv_context_create(ctypes.byref(options), ctypes.byref(handle)))
        self._handle = handle.value
        with self.held():
            self._devices = [Device(self, i)
                             for i in range(lib.clv_context_device_count(self._handle))]

    def held(self) -> "_Held":
        """`with context.held() as handle:` gives the library's pointer for the duration of the block, during which
        close() does not free the context."""
        return _Held(self)

    @property
    def ours(self) -> bool:
        """Whether this process made the context. A child of a fork cannot use it, because it lacks the threads of
        the drivers."""
        return self._pid == os.getpid()

    def check_process(self) -> None:
        """Raises ArgumentError if the context was made before a fork, by the parent process."""
        if self._pid != os.getpid():
            raise ArgumentError("context: it was made before a fork, and OpenCL drivers do not work across a fork: "
                                "start the process with multiprocessing.get_context(\"spawn\")")

    def acquire(self) -> int:
        """Returns the library's pointer. The context is not freed before release() was called once per acquire()."""
        self.check_process()
        with self._lock:
            if self._closed or not self._handle:
                raise ArgumentError("context: it is closed")
            self._users += 1
            return self._handle

    def release(self) -> None:
        """Ends one use of the library's pointer, which acquire() began; the last such call frees a closed context."""
        with self._lock:
            self._users -= 1
            last = self._closed and not self._users
        if last:
            self._free()

    def _free(self) -> None:
        handle, self._handle = self._handle, None
        if handle and self._pid == os.getpid():
            lib.clv_context_free(handle)

    def close(self) -> None:
        """Refuses further calls. As soon as no call uses the context, saves measured speeds and choices to the caches,
        and frees the context."""
        with self._lock:
            last = not self._closed and not self._users
            self._closed = True
        if last:
            self._free()

    def __enter__(self) -> "Context":
        with self._lock:
            if self._closed:
                raise ArgumentError("context: it is closed")
            self._entries += 1
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *_unused: Any) -> None:
        stack = list(_entered.get())
        if self in stack:
            del stack[len(stack) - 1 - stack[::-1].index(self)]
            _entered.set(tuple(stack))
        with self._lock:
            self._entries -= 1
            last = not self._entries
        if last:
            self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and not self._users:
            self._free()

    @property
    def mode(self) -> str:
        """The mode in use: "cpu", "gpu", "hybrid" or "reference", never "auto"."""
        with self.held() as handle:
            return take_word(lib.clv_mode_name(lib.clv_context_mode(handle)))

    @property
    def reason(self) -> str:
        """One sentence, with numbers, that says why this mode was chosen."""
        with self.held() as handle:
            return take_word(lib.clv_context_reason(handle))

    @property
    def devices(self) -> list[Device]:
        """The devices that jobs may use, the best one first."""
        return list(self._devices)

    def probe(self) -> dict[str, Any]:
        """Returns the probe's report from which the devices were chosen; see probe()."""
        with self.held() as handle:
            text = take_text(lib.clv_probe_json(lib.clv_context_probe(handle)))
        report: dict[str, Any] = json.loads(text)
        return report

    def describe(self) -> str:
        """Returns the probe's report as readable text."""
        with self.held() as handle:
            return take_text(lib.clv_probe_text(lib.clv_context_probe(handle)))

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the times of all commands to a file for chrome://tracing or Perfetto. The context must have been made
        with trace=True. Raises FileError."""
        to = file_path("write_trace: path", path)
        with self.held() as handle:
            check(lib.clv_context_write_trace(handle, os.fsencode(to)))

    def __repr__(self) -> str:
        if self._closed:
            return "<cleave.Context closed>"
        return f"<cleave.Context {self.mode}: {', '.join(d.label for d in self._devices)}>"


def default_context() -> Context:
    """Returns the context of calls that name none: that of the enclosing `with Context(...)` block, else the
    context of the whole process, which is made at its first use."""
    global _default
    entered = _entered.get()
    if entered:
        return entered[-1]
    if _default is None or _default._closed or _default._pid != os.getpid():
        with _default_lock:
            if _default is None or _default._closed or _default._pid != os.getpid():
                _default = Context()
    return _default


def chosen(context: Context | None) -> Context:
    """Returns `context`, or the default context for None."""
    if context is None:
        return default_context()
    if not isinstance(context, Context):
        raise ArgumentTypeError(f"context is {given(context)}, but it must be a cleave.Context")
    return context


def devices() -> list[Device]:
    """Returns the devices of the default context, the best one first; see Context.devices."""
    return default_context().devices


@atexit.register
def _close_default() -> None:
    if _default is not None:
        _default.close()
