# SPDX-License-Identifier: Apache-2.0
"""Sends the library's messages (fallbacks, decisions and their reasons) to Python's logging module."""
from __future__ import annotations

import logging
from typing import Any

from . import _abi
from ._check import given
from ._library import lib
from ._probe import choice
from .errors import ArgumentTypeError

_LEVELS = {"none": 0, "error": 1, "warn": 2, "info": 3, "debug": 4}
_AS_PYTHON = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO, 4: logging.DEBUG}
_sink: Any = None


def log_to(logger: logging.Logger | None = None, level: str = "info") -> None:
    """Sends messages up to `level` ("none", "error", "warn", "info", "debug") to `logger`, or for
    None to logging.getLogger("cleave"). Until the first call, the environment variable CLEAVE_LOG decides."""
    global _sink
    number = choice("level", level, _LEVELS)
    if logger is not None and not hasattr(logger, "log"):
        raise ArgumentTypeError(f"log_to: got {given(logger)}, but a logging.Logger is expected")
    target = logger or logging.getLogger("cleave")

    def tell(of: int, line: bytes, _user: Any) -> None:
        target.log(_AS_PYTHON.get(of, logging.INFO), "%s", line.decode(errors="replace"))

    before = _sink  # keeps the former callback alive until the library uses the new one
    _sink = _abi.LogSink(tell)
    lib.clv_log_set(number, _sink if number else _abi.LogSink(), None)
    del before
