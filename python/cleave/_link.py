# SPDX-License-Identifier: Apache-2.0
"""Tracks: which spots of successive frames are the same particle."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, dtype_of, numbers
from ._check import real, whole
from ._library import lib
from ._probe import choice
from ._watch import Progress, Watch
from .errors import ArgumentError, ShapeError

_POINT = dtype_of(_abi.Point)
_SIZE = ctypes.sizeof(_abi.LinkOptions)
_MOST = (1 << 64) - 1
_PREDICT = {None: 0, "velocity": 1, "drift": 2}


def column_of(what: str, value: Any) -> NDArray[Any]:
    """Numbers, also where pandas keeps them as objects."""
    if getattr(value, "dtype", None) == object:
        try:
            value = np.asarray(value).astype(np.float64)
        except (TypeError, ValueError):
            pass
    return numbers(what, value, None)


def points_of(spots: Any) -> tuple[NDArray[np.void], NDArray[np.float64] | None]:
    """Frames and places; z where there is one."""
    deep = None
    names = getattr(getattr(spots, "dtype", None), "names", None)
    if names is None:
        names = getattr(spots, "columns", None)  # a pandas frame
    if names is None and isinstance(spots, dict):
        names = list(spots)
    if names is not None:
        for name in ("frame", "y", "x"):
            if name not in names:
                raise ShapeError(f"spots: no column {name!r}")
        columns = [column_of(f"spots: {name}", spots[name]) for name in ("frame", "y", "x")]
        if "z" in names:
            deep = np.ascontiguousarray(column_of("spots: z", spots["z"]), np.float64)
    else:
        array = column_of("spots", spots)
        if array.shape == (0,):
            array = array.reshape(0, 3)
        if array.ndim != 2 or array.shape[1] not in (3, 4):
            raise ShapeError("spots: columns frame, y, x expected, or an array [N, 3] of them, or "
                             f"[N, 4] of frame, z, y, x; shape {array.shape} given")
        columns = [array[:, 0], array[:, -2], array[:, -1]]
        if array.shape[1] == 4:
            deep = np.ascontiguousarray(array[:, 1], np.float64)
    if any(column.shape != columns[0].shape or column.ndim != 1
           for column in columns + ([] if deep is None else [deep])):
        raise ShapeError("spots: columns of one length expected")
    points = np.empty(len(columns[0]), _POINT)
    with np.errstate(invalid="ignore"):  # NaN is found below
        points["frame"], points["y"], points["x"] = columns
    if columns[0].dtype.kind == "f" and (points["frame"] != columns[0]).any():
        raise ArgumentError("spots: a frame is not a whole number")
    if columns[0].dtype.kind == "u" and (columns[0] > np.iinfo(np.int64).max).any():
        raise ArgumentError("spots: a frame is 2^63 or more")
    return points, deep


def link(spots: Any, search_range: float, *, memory: int = 0, min_length: int = 1,
         predict: str | None = None, velocity: Any = 0.0, progress: Progress = None) -> NDArray[np.int64]:
    """Links spots frame by frame: of all one-to-one assignments whose links are no longer than
    `search_range`, the one with the smallest sum of squared lengths, where a spot that continues no
    track costs search_range^2. Solved exactly, however large a group of spots is.

    Parameters
    ----------
    spots         what blobs() returns; a DataFrame, a dict or a structured array with the columns
                  frame, y, x, and z if it has one; or an array [N, 3] of frame, y, x, or [N, 4] of
                  frame, z, y, x. Any order
    search_range  longest link, in the unit of z, y and x
    memory        frames that a particle may stay unseen
    min_length    tracks of fewer spots get no identifier
    predict       None: a particle is looked for where it was last seen. "drift": carried on by the mean
                  velocity of all that were seen in both of the last two frames; "velocity": by that of
                  the one of them that is nearest, mostly its own. search_range then counts from there
    velocity      the velocity where none is known, as in the first frame: z, y, x or y, x per frame
    progress      see paco(); units are spots

    Returns int64 [N], in the order of the input: the particle's identifier 0, 1, 2, ... by first
    frame, then z, y, x; -1 for spots of tracks that are too short.

    Raises ArgumentError, ShapeError, CancelledError. Ctrl-C ends it.
    """
    points, deep = points_of(spots)
    guess = np.atleast_1d(numbers("link: velocity", velocity, np.float64))
    if guess.shape not in ((1,), (2,), (3,)) or (guess.shape == (1,) and guess[0] != 0):
        raise ShapeError(f"link: velocity: y, x or z, y, x expected, {velocity} given")
    ahead = np.zeros(3)
    ahead[3 - len(guess):] = guess
    particle = np.empty(len(points), np.int64)
    with Watch(progress, "link") as watch:
        options = _abi.LinkOptions(
            _SIZE, real("link: search_range", search_range), whole("link: memory", memory, 0, _MOST),
            whole("link: min_length", min_length, 0, _MOST), watch.function,
            z=None if deep is None else address(deep), predict=choice("predict", predict, _PREDICT),
            guess_velocity=(ctypes.c_double * 3)(*ahead))
        watch.done(lib.clv_link(address(points), len(points), ctypes.byref(options),
                                address(particle), None))
    return particle
