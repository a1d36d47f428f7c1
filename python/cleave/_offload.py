# SPDX-License-Identifier: Apache-2.0
"""Shows and overrides the library's choice between host and device for a call."""
from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Callable, Iterator, NamedTuple

from . import _abi
from ._library import check, lib
from ._probe import choice

_SIDES = {"auto": 0, "host": 1, "device": 2}
_NAMES = {number: name for name, number in _SIDES.items()}


class Plan(NamedTuple):
    """One decision between host and device, with its numbers: the seconds predicted for both sides (0: not computed),
    the bytes to transfer, the rates that the prediction uses, and the seconds that a first call would add."""
    operation: str
    side: str
    device: str
    reason: str
    forced: bool
    measured: bool
    flops: float
    bytes: float
    transfer_bytes: float
    resident_bytes: float
    host_s: float
    device_s: float
    launch_s: float
    host_rate: float
    kernel_rate: float
    transfer_rate: float
    first_s: float

    def __str__(self) -> str:
        return f"{self.operation}: {self.reason}"


@contextlib.contextmanager
def offload(side: str) -> Iterator[None]:
    """Inside the block, this thread's calls of matmul, compute, reduce, convolve_2d, eigvalsh, monte_carlo_pi and the
    like run on "host" or "device", or by the library's own choice ("auto"). "device" is binding: if no device
    works, the calls raise NoDeviceError."""
    before = lib.clv_offload_force(choice("offload", side, _SIDES))
    try:
        yield
    finally:
        lib.clv_offload_force(before)


def last_plan() -> Plan:
    """Returns the decision of this thread's latest call. ArgumentError if there was none."""
    found = _abi.Offload()
    check(lib.clv_offload_last(ctypes.byref(found)))
    values = {name: getattr(found, name) for name in Plan._fields}
    for name in ("operation", "device", "reason"):
        values[name] = values[name].decode(errors="replace")
    values["side"] = _NAMES[values["side"]]
    return Plan(**values)


def explain(function: Callable[..., Any], *arguments: Any, **named: Any) -> Plan:
    """Returns on which side `function(*arguments)` would run, and why, without running it: print(explain(cleave.matmul,
    a, b)).

    If the function makes several calls, as in explain(lambda: (a + b) @ c), explain() returns the plan of the last one.
    The results of the earlier calls are assumed to lie on the side that was planned; their contents cannot be read.
    ArgumentError if the function makes no call for which a side is chosen.
    """
    before = lib.clv_offload_dry(True)
    try:
        function(*arguments, **named)
    finally:
        lib.clv_offload_dry(before)
    return last_plan()
