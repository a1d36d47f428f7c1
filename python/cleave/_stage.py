# SPDX-License-Identifier: Apache-2.0
"""Measures how far the stage of a microscope drifted during a movie."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, dtype_of
from ._blobs import _PIXELS, _movie_of, table_of
from ._check import whole
from ._library import check, has, lib
from .errors import ArgumentError, LibraryError, ShapeError

#: One row of stage_drift().
_SHIFT = dtype_of(_abi.StageShift)
_COLUMNS = ("y", "x", "y_err", "x_err")


def _needs_stage(what: str) -> None:
    if not has("clv_stage_open"):
        raise LibraryError(f"{what} needs a newer libcleave: update it")


def stage_drift(movie: Any, *, memory: int = 20, table: str = "auto") -> Any:
    """Measures how far the picture in each frame is shifted against the first frame, from the phases of the frames'
    Fourier transforms, weighted by their coherence.

    Parameters
    ----------
    movie   [T, H, W], at least 32 rows and columns; types as for blobs()
    memory  number of frames over which the reference is a running average: more frames give smaller errors, fewer
            follow changes of the scene
    table   see blobs()

    Returns
    -------
    one row for each frame with the columns frame; y and x in pixels (positive: the picture moved towards larger y, x);
    y_err, x_err, their standard errors; found. If a frame has nothing in common with the reference, found is False, the
    errors are NaN, and y and x are those of the frame before.

    Raises ShapeError, ArgumentError, UnsupportedError (libcleave was built without KISS FFT).
    """
    _needs_stage("stage_drift")
    finish = table_of(table)
    frames = np.ascontiguousarray(_movie_of(movie))
    options = _abi.StageOptions(ctypes.sizeof(_abi.StageOptions), whole("stage_drift: memory", memory, 1, 1 << 40))
    shape = _abi.BlobFrames(ctypes.sizeof(_abi.BlobFrames), _PIXELS[frames.dtype.str], *frames.shape)
    shifts = np.zeros(len(frames), _SHIFT)
    handle = ctypes.c_void_p()
    check(lib.clv_stage_open(ctypes.byref(shape), ctypes.byref(options), ctypes.byref(handle)))
    try:
        for i in range(len(frames)):  # frame by frame, so that Ctrl-C ends the call
            check(lib.clv_stage_push(handle, address(frames[i:i + 1]), 1, address(shifts[i:i + 1])))
    finally:
        lib.clv_stage_close(handle)
    rows = np.empty(len(frames), [("frame", np.uint32), *((name, np.float64) for name in _COLUMNS),
                                  ("found", np.bool_)])
    rows["frame"], rows["found"] = np.arange(len(frames)), shifts["found"] != 0
    for name in _COLUMNS:
        rows[name] = shifts[name]
    return finish(rows)


def registered(movie: Any, drift: Any) -> NDArray[np.float32]:
    """Shifts each frame back by its drift, so that the scene stands still, with cubic interpolation. The result is
    float32.

    Parameters
    ----------
    movie  [T, H, W]; types as for blobs()
    drift  a table with the columns y and x, such as stage_drift() returns, or an array [T, 2] of y, x

    Pixels that would come from outside the frame become NaN. Raises ShapeError, ArgumentError.
    """
    _needs_stage("registered")
    frames = np.ascontiguousarray(_movie_of(movie), np.float32)
    try:
        shifts = np.stack([np.asarray(drift["y"], np.float64), np.asarray(drift["x"], np.float64)], -1)
    except (KeyError, IndexError, TypeError, ValueError):
        shifts = np.asarray(drift, np.float64)
    if shifts.shape != (len(frames), 2):
        raise ShapeError(f"drift: got shape {shifts.shape}, but one row of y and x is expected for each of "
                         f"{len(frames)} frames")
    if not np.isfinite(shifts).all():
        raise ArgumentError("drift: the numbers must be finite")
    moved = np.empty_like(frames)
    for frame, (y, x), out in zip(frames, shifts, moved):
        check(lib.clv_stage_restore(address(frame), *frame.shape, y, x, address(out)))
    return moved
