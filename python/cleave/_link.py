# SPDX-License-Identifier: Apache-2.0
"""Links spots of successive frames into tracks, one for each particle."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, dtype_of, numbers, whole_numbers
from ._check import real, whole
from ._library import check, lib
from ._probe import choice
from ._watch import Progress, Watch
from .errors import ArgumentError, ShapeError

_POINT = dtype_of(_abi.Point)
_SIZE = ctypes.sizeof(_abi.LinkOptions)
_MOST = (1 << 64) - 1
_PREDICT = {None: 0, "velocity": 1, "drift": 2, "channel": 3}
_AXIS = {"x": 0, "y": 1}
_BRANCH = dtype_of(_abi.Branch)


def column_of(what: str, value: Any) -> NDArray[Any]:
    """Returns a column as an array of numbers; pandas columns of objects are converted."""
    if getattr(value, "dtype", None) == object:
        try:
            value = np.asarray(value).astype(np.float64)
        except (TypeError, ValueError):
            pass
    return numbers(what, value, None)


def points_of(spots: Any) -> tuple[NDArray[np.void], NDArray[np.float64] | None]:
    """Returns (frame, y, x) of all spots as structures, and their z, or None without a z."""
    deep = None
    names = getattr(getattr(spots, "dtype", None), "names", None)
    if names is None:
        names = getattr(spots, "columns", None)  # a pandas frame
    if names is None and isinstance(spots, dict):
        names = list(spots)
    if names is not None:
        for name in ("frame", "y", "x"):
            if name not in names:
                raise ShapeError(f"spots: there is no column {name!r}")
        columns = [column_of(f"spots: {name}", spots[name]) for name in ("frame", "y", "x")]
        if "z" in names:
            deep = np.ascontiguousarray(column_of("spots: z", spots["z"]), np.float64)
    else:
        array = column_of("spots", spots)
        if array.shape == (0,):
            array = array.reshape(0, 3)
        if array.ndim != 2 or array.shape[1] not in (3, 4):
            raise ShapeError(f"spots: got shape {array.shape}, but columns frame, y and x are expected, or an array "
                             "[N, 3] of them, or [N, 4] of frame, z, y and x")
        columns = [array[:, 0], array[:, -2], array[:, -1]]
        if array.shape[1] == 4:
            deep = np.ascontiguousarray(array[:, 1], np.float64)
    if any(column.shape != columns[0].shape or column.ndim != 1
           for column in columns + ([] if deep is None else [deep])):
        raise ShapeError("spots: the columns have different lengths")
    points = np.empty(len(columns[0]), _POINT)
    with np.errstate(invalid="ignore"):  # a NaN frame is detected below
        points["frame"], points["y"], points["x"] = columns
    if columns[0].dtype.kind == "f" and (points["frame"] != columns[0]).any():
        raise ArgumentError("spots: a frame is not a whole number")
    if columns[0].dtype.kind == "u" and (columns[0] > np.iinfo(np.int64).max).any():
        raise ArgumentError("spots: a frame is 2^63 or more")
    return points, deep


def _deep(what: str, value: Any) -> NDArray[np.float64]:
    """Returns vectors as [N, 3] of z, y, x; vectors of y, x get z = 0."""
    rows = np.atleast_2d(numbers(what, value, np.float64))
    if rows.shape == (1, 1) and rows[0, 0] == 0:
        return np.zeros((1, 3))
    if rows.ndim != 2 or rows.shape[1] not in (2, 3):
        raise ShapeError(f"{what}: got {value}, but it must be (y, x) or (z, y, x)")
    deep = np.zeros((len(rows), 3))
    deep[:, 3 - rows.shape[1]:] = rows
    return deep


def _velocities(velocity: Any, at: Any) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Returns ([1, 3] velocity, None), or ([N, 3] velocities, [N, 3] places) with velocity_at."""
    guess = _deep("link: velocity", velocity)
    if at is None:
        if len(guess) != 1:
            raise ShapeError(f"link: velocity has {len(guess)} velocities, but there is no velocity_at")
        return guess, None
    places = _deep("link: velocity_at", at)
    if len(places) != len(guess):
        raise ShapeError(f"link: velocity_at has {len(places)} places, but there are {len(guess)} velocities")
    return guess, places


def link(spots: Any, search_range: float, *, memory: int = 0, min_length: int = 1,
         predict: str | None = None, velocity: Any = 0.0, velocity_at: Any = None,
         channel_bin: float = 0.0, channel_axis: str = "x", channel_least: int = 20,
         adaptive_stop: float = 0.0, adaptive_step: float = 0.95, adaptive_group: int = 15,
         progress: Progress = None) -> NDArray[np.int64]:
    """Links spots frame by frame. Of all one-to-one assignments whose links are no longer than `search_range`, it
    chooses the assignment with the smallest sum of squared lengths, in which a spot that continues no track counts as
    search_range^2. The solution is exact, in groups of up to about 2000 spots.

    Parameters
    ----------
    spots         what blobs() returns; a DataFrame, a dict or a structured array with the columns frame, y, x, and z if
                  there is one; or an array [N, 3] of frame, y, x, or [N, 4] of frame, z, y, x; in any order
    search_range  longest link, in the unit of z, y and x
    memory        number of frames in a row in which a particle may be missing
    min_length    tracks with fewer spots get no identifier
    predict       where a particle is expected. None: where it was last seen. "drift": moved by the mean velocity of all
                  particles that were seen in both of the last two frames. "velocity": moved by the velocity of the
                  nearest particle that was seen in both of the last two frames, which is usually the same one.
                  "channel": moved along channel_axis ("x" or "y") by the mean velocity of the particles in the same
                  strip of width channel_bin, or in the nearest strip that has at least channel_least particles.
                  search_range is measured from the expected position
    velocity      the velocity that is assumed where none has been measured, as in the first frame: z, y, x or y, x per
                  frame; or, with velocity_at, the velocities at N places, [N, 3] or [N, 2]
    velocity_at   the places of these velocities, of the same shape
    adaptive_stop above 0: if more than adaptive_group particles compete for spots, their search range is multiplied by
                  adaptive_step, again and again, until they fall into groups that are small enough. ArgumentError if
                  the range reaches adaptive_stop before that
    progress      see paco(); counts spots

    Returns int64 [N], in the order of the input: the particle's identifier 0, 1, 2, ... by first frame, then z, y, x;
    -1 for spots of tracks that are too short.

    Raises ArgumentError, ShapeError, CancelledError. Ctrl-C ends the call.
    """
    points, deep = points_of(spots)
    guess, places = _velocities(velocity, velocity_at)
    particle = np.empty(len(points), np.int64)
    with Watch(progress, "link") as watch:
        options = _abi.LinkOptions(
            _SIZE, real("link: search_range", search_range), whole("link: memory", memory, 0, _MOST),
            whole("link: min_length", min_length, 0, _MOST), watch.function,
            z=None if deep is None else address(deep), predict=choice("predict", predict, _PREDICT),
            guess_velocity=(ctypes.c_double * 3)(*(np.zeros(3) if places is not None else guess[0])),
            adaptive_stop=real("link: adaptive_stop", adaptive_stop),
            adaptive_step=real("link: adaptive_step", adaptive_step) if adaptive_stop else 0.0,
            adaptive_group=whole("link: adaptive_group", adaptive_group, 1, _MOST) if adaptive_stop else 0,
            channel_bin=real("link: channel_bin", channel_bin),
            channel_least=whole("link: channel_least", channel_least, 1, _MOST),
            channel_axis=choice("link: channel_axis", channel_axis, _AXIS))
        if places is not None:
            options.guess_places, options.guess_velocities = address(places), address(guess)
            options.guesses = len(places)
        watch.done(lib.clv_link(address(points), len(points), ctypes.byref(options),
                                address(particle), None))
    return particle


def branches(spots: Any, particle: Any, search_range: float) -> NDArray[np.void]:
    """Finds where linked tracks split and merge. A track that begins may come from a spot of the frame before whose own
    track continues. A track that ends may merge into a spot of the next frame whose own track began earlier. Both spots
    are at most `search_range` apart, and each pair of frames gets its best one-to-one assignment.

    Parameters
    ----------
    spots, particle  as link() takes and returns them
    search_range     longest distance, in the unit of z, y and x

    Returns a structured array ordered by frame: kind (0: the track of `to` splits from that of `from`; 1: the track of
    `from` merges into that of `to`), from and to (rows of spots; `to` is one frame later).

    Raises ArgumentError, ShapeError.
    """
    points, deep = points_of(spots)
    tracks = whole_numbers("branches: particle", particle, np.int64)
    if tracks.shape != (len(points),):
        raise ShapeError(f"branches: particle: got shape {tracks.shape}, but {len(points)} numbers are expected")
    found = ctypes.c_size_t()
    rows = np.empty(2 * len(points), _BRANCH)
    check(lib.clv_link_branches(address(points), None if deep is None else address(deep), address(tracks),
                                len(points), real("branches: search_range", search_range), address(rows),
                                ctypes.byref(found)))
    return rows[:found.value]
