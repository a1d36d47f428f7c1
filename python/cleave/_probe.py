# SPDX-License-Identifier: Apache-2.0
"""Finds out what this machine can compute with."""
from __future__ import annotations

import ctypes
import json
import os
from typing import Any, Callable

from . import _abi
from ._check import described, file_path, real, text
from ._library import check, lib, take_text
from ._watch import Watch
from .errors import ArgumentError

_BENCH = {None: 0, False: 0, "quick": 1, True: 1, "full": 2}


def choice(what: str, value: Any, names: dict[Any, int]) -> int:
    """Returns the library's number for a name; raises ArgumentError, which lists the names, if there is none."""
    try:
        return names[value]
    except (KeyError, TypeError):
        known = ", ".join(repr(name) for name in names)
        raise ArgumentError(f"{what} is {value!r}, but it must be one of {known}") from None


def mode_number(mode: str | None) -> int:
    number = ctypes.c_int()
    check(lib.clv_mode_parse(text("mode", mode or "auto").encode(), ctypes.byref(number)))
    return number.value


def probe(*, mode: str | None = None, devices: str | None = None, isolate: bool = False,
          check: bool = False, bench: str | bool | None = None, timeout: float = 0.0,
          simulate: str | os.PathLike[str] | None = None, scenario: str | None = None,
          helper: str | os.PathLike[str] | None = None, reproducible: bool = False,
          progress: Callable[[str], Any] | None = None) -> dict[str, Any]:
    """Examines the machine and decides which mode suits it.

    Parameters
    ----------
    mode      "auto", "cpu", "gpu", "hybrid" or "reference"; every mode but "auto" is binding
    devices   which devices to use, such as "gpu,!name~Iris", "0", "pci=0000:03:00.0"
    isolate   run each driver in a process of its own, so that a crash cannot end this process, and Ctrl-C ends a
              measurement at once (without isolate, Ctrl-C takes effect before the next device is measured)
    check     build and run kernels on every device, and compare the results
    bench     "quick" or "full": measure rates
    timeout   seconds for each driver; 0: 10 s, for checks 60 s, for the bench 120 s
    simulate  describe the machine in this file (a saved report or device profiles) instead of this machine
    helper    the helper program for `isolate`, if it is not installed beside the library
    reproducible  leave out times and free memory
    progress  a function that is called with a line for the user; the probe ends if it returns False or raises

    Returns
    -------
    dict      schema "cleave.probe/1": "host", "platforms", "devices", "mode", "warnings", ...

    Raises NoDeviceError (the mode or devices are not available), ArgumentError, FormatError, FileError, CancelledError.
    """
    if not real("probe: timeout", timeout) >= 0:
        raise ArgumentError(f"probe: timeout is {timeout}, but it must be 0 or more")

    def said(name: str, value: Any, reader: Callable[[str, Any], str]) -> bytes | None:
        return None if value is None else os.fsencode(reader(f"probe: {name}", value))

    options = described(
        "probe", _abi.ProbeOptions, mode=mode_number(mode),
        devices=said("devices", devices, text), mode_by=b"mode=", devices_by=b"devices=",
        isolate=isolate, timeout_s=timeout, check=check, bench=choice("bench", bench, _BENCH),
        reproducible=reproducible, simulate=said("simulate", simulate, file_path),
        scenario=said("scenario", scenario, text), helper=said("helper", helper, file_path),
        mode_given=mode is not None, devices_given=devices is not None)
    report = ctypes.c_void_p()
    try:
        with Watch(progress, "probe", of_probe=True) as watch:
            options.progress = watch.function
            watch.done(lib.clv_probe_run(ctypes.byref(options), ctypes.byref(report)))
        found: dict[str, Any] = json.loads(take_text(lib.clv_probe_json(report)))
        return found
    finally:
        lib.clv_probe_free(report)


