# SPDX-License-Identifier: Apache-2.0
"""Tells whether other programs used the cores while something was timed."""
from __future__ import annotations

import os
import time
from typing import NamedTuple

MOST_SHARE = 0.1  # of the cores' time; if others use more, a choice by such times is provisional
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Used(NamedTuple):
    """Seconds: of the clock, of all programs on the cores that this process may use, and of this process."""
    clock: float
    all: float
    own: float
    cores: int


def used() -> Used:
    """Returns what has been used so far; without /proc/stat, as if nobody else used the cores."""
    cores = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    times = os.times()
    own = time.process_time() + times.children_user + times.children_system
    everybody = 0.0
    try:
        with open("/proc/stat", encoding="ascii") as file:
            for line in file:
                name, *counts = line.split()
                if name in cores:  # user nice system idle iowait irq softirq steal
                    everybody += _TICK_S * sum(int(counts[i]) for i in (0, 1, 2, 5, 6, 7))
    except (OSError, ValueError, IndexError):
        everybody = own
    return Used(time.monotonic(), everybody, own, len(cores))


def share_of_others(before: Used, after: Used) -> float:
    """Returns the share of the cores' time that other programs used; two ticks of the system's count are no use."""
    others = (after.all - before.all) - (after.own - before.own) - 2 * _TICK_S
    available = (after.clock - before.clock) * after.cores
    return max(others / available, 0.0) if available > 0 else 0.0
