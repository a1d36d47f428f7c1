# SPDX-License-Identifier: Apache-2.0
"""Records on which devices the jobs of calls ran, for how long, and why."""
from __future__ import annotations

import ctypes
import json
from typing import Any, NamedTuple

from ._check import given
from ._library import InThisProcess, check, lib, take_text
from .errors import ArgumentTypeError


class Share(NamedTuple):
    """The share of one device in the last job. Times are in seconds. kernel_s is negative if the driver does not report
    it; left_out says why a device did nothing (None: it worked)."""
    device: str
    units: int
    chunks: int
    busy_s: float
    kernel_s: float
    bytes_to_device: int
    bytes_from_device: int
    memory_peak_bytes: int
    dropped: int
    failed: int
    left_out: str | None


class Report(InThisProcess):
    """Collects the jobs of the calls that it is passed to: `cleave.paco(..., report=report)`.

    >>> report = Report()
    >>> report.seconds
    0.0
    """

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        check(lib.clv_report_create(ctypes.byref(handle)))
        self._handle = handle.value

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            lib.clv_report_free(handle)

    @property
    def seconds(self) -> float:
        """The duration of all jobs together, in seconds."""
        return float(lib.clv_report_seconds(self._handle))

    @property
    def shares(self) -> list[Share]:
        """The shares of all devices in the last job."""
        return [self._share(i) for i in range(lib.clv_report_share_count(self._handle))]

    def _share(self, i: int) -> Share:
        share = lib.clv_report_share(self._handle, i)
        values = {name: getattr(share, name) for name in Share._fields}
        for name in ("device", "left_out"):
            values[name] = values[name].decode() if values[name] is not None else None
        return Share(**values)

    def to_dict(self) -> dict[str, Any]:
        """Returns everything in the schema "cleave.report/1": devices, shares, bytes, times, decisions."""
        report: dict[str, Any] = json.loads(take_text(lib.clv_report_json(self._handle)))
        return report

    def __repr__(self) -> str:
        shares = ", ".join(f"{s.device}: {s.units}" for s in self.shares if s.units)
        return f"<cleave.Report {self.seconds:.3f} s; {shares or 'no units'}>"


def report_handle(report: Report | None) -> int | None:
    if report is None:
        return None
    if not isinstance(report, Report):
        raise ArgumentTypeError(f"report: got {given(report)}, but a cleave.Report is expected")
    return report._handle
