# SPDX-License-Identifier: Apache-2.0
"""Measures how particles move: drift, mean squared displacements and diffusion coefficients of tracks."""
from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, as_floats, dtype_of, whole_numbers
from ._check import real, whole
from ._library import InThisProcess, check, has, lib
from ._link import column_of, points_of
from .errors import ArgumentError, LibraryError, ShapeError

_MSD = dtype_of(_abi.Msd)
_MOST = (1 << 64) - 1
_ALL = -1


@dataclasses.dataclass(frozen=True)
class Diffusion:
    """A diffusion coefficient in the squared unit of length per unit of time, and how it was found."""
    d: float  #: the diffusion coefficient, a mean over the axes
    d_error: float  #: the standard error of d
    lateral: float  #: the diffusion coefficient along y and x
    axial: float  #: the diffusion coefficient along z; NaN for tracks without z
    position_variance: float  #: the variance of the error of a position along y or x; may be negative by chance
    position_variance_z: float  #: the variance of the error of a position along z; NaN for tracks without z
    offset: float  #: the offset of the mean squared displacement: msd(t) = 2 axes d t + offset
    displacements: int  #: the number of displacements that were used
    tracks: int  #: the number of tracks that were used

    @property
    def position_error(self) -> float:
        """The standard deviation of a position along y or x; 0 if the variance is negative."""
        return float(np.sqrt(np.maximum(self.position_variance, 0)))


class Tracks(InThisProcess):
    """A table of tracks, in the order of their identifiers.

    Parameters
    ----------
    spots     a DataFrame, a dict or a structured array with the columns frame, y, x, and z if there is one; or an array
              [N, 3] of frame, y, x, or [N, 4] of frame, z, y, x; in any order
    particle  int [N]: the track of each spot, as link() returns it; negative: the spot belongs to no track. None: the
              table's column "particle"
    scale     units of length per unit of the positions, such as micrometres per pixel: one number, or z, y, x
    interval  units of time between frames, such as seconds

    All lengths and times that methods take and return are in the units of `scale` and `interval`. Tracks whose z is the
    same everywhere count as tracks without z.
    Raises ArgumentError (two spots of a track in one frame), ShapeError.
    """

    _handle: ctypes.c_void_p

    def __init__(self, spots: Any, particle: Any = None, *, scale: Any = 1.0, interval: float = 1.0):
        if not has("clv_tracks_create"):
            raise LibraryError("Tracks needs a newer libcleave: update it")
        points, deep = points_of(spots)
        if particle is None:
            try:
                particle = spots["particle"]
            except (KeyError, IndexError, TypeError, ValueError):
                raise ShapeError("spots: there is no column 'particle', and the argument particle is missing") from None
        numbers = column_of("particle", particle)
        if numbers.shape != (len(points),):
            raise ShapeError(f"particle: got shape {numbers.shape}, but one number for each of {len(points)} spots "
                             "is expected")
        ids = whole_numbers("particle", numbers, np.int64)
        sides = np.broadcast_to(np.asarray(scale, np.float64), 3)
        if not (np.isfinite(sides).all() and (sides > 0).all()):
            raise ArgumentError(f"scale is {scale}, but its numbers must be above 0")
        self.interval = real("interval", interval)
        if not 0 < self.interval < float("inf"):
            raise ArgumentError(f"interval is {interval}, but it must be more than 0")
        points["y"] *= sides[1]
        points["x"] *= sides[2]
        if deep is not None:
            deep = deep * sides[0]
        super().__init__()
        self._handle = ctypes.c_void_p()
        check(lib.clv_tracks_create(address(points), None if deep is None else address(deep), address(ids),
                                    len(points), ctypes.byref(self._handle)))
        self._share = 0.0

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            lib.clv_tracks_free(self._handle)

    def __len__(self) -> int:
        return int(lib.clv_tracks_count(self._handle))

    @property
    def axes(self) -> int:
        """The number of axes: 2, or 3 if the tracks have a z."""
        return int(lib.clv_tracks_axes(self._handle))

    @property
    def frames(self) -> tuple[int, int]:
        """The first and the last frame of all tracks; 0 and -1 without tracks."""
        first, last = ctypes.c_int64(), ctypes.c_int64()
        lib.clv_tracks_frames(self._handle, ctypes.byref(first), ctypes.byref(last))
        return first.value, last.value

    @property
    def table(self) -> NDArray[np.void]:
        """Returns one row for each track: particle, first and last frame, spots, extent (the diagonal of the bounding
        box of the spots), displacement (from the first spot to the last)."""
        rows = np.empty(len(self), dtype_of(_abi.Track))
        for i in range(len(self)):
            track = lib.clv_tracks_at(self._handle, i)
            rows[i] = tuple(getattr(track, name) for name in rows.dtype.names or ())
        return rows

    @property
    def spots(self) -> NDArray[np.void]:
        """Returns the spots ordered by particle and frame: frame, z (if there is one), y, x, particle."""
        count = lib.clv_tracks_spots(self._handle, None, None, None)
        points = np.empty(count, dtype_of(_abi.Point))
        deep, particle = np.empty(count, np.float64), np.empty(count, np.int64)
        lib.clv_tracks_spots(self._handle, address(points), address(deep), address(particle))
        axes = ["z", "y", "x"][3 - self.axes:]
        rows = np.empty(count, [("frame", "i8"), *((axis, "f8") for axis in axes), ("particle", "i8")])
        rows["frame"], rows["particle"] = points["frame"], particle
        for axis in axes:
            rows[axis] = deep if axis == "z" else points[axis]
        return rows

    def filter(self, *, min_spots: int = 0, max_spots: int = 0, min_extent: float = 0, max_extent: float = 0,
               min_displacement: float = 0, max_displacement: float = 0) -> "Tracks":
        """Drops the tracks that are outside the bounds; a bound of 0 is ignored. Returns self."""
        check(lib.clv_tracks_filter(self._handle, ctypes.byref(_abi.TrackFilter(
            ctypes.sizeof(_abi.TrackFilter), whole("min_spots", min_spots, 0, _MOST),
            whole("max_spots", max_spots, 0, _MOST), real("min_extent", min_extent), real("max_extent", max_extent),
            real("min_displacement", min_displacement), real("max_displacement", max_displacement)))))
        return self

    def _drift(self, smooth: int) -> tuple[NDArray[np.float64], float]:
        first, last = self.frames
        drift, share = np.zeros((last - first + 1, 3)), ctypes.c_double()
        check(lib.clv_tracks_drift(self._handle, whole("smooth", smooth, 1, _MOST), address(drift),
                                   ctypes.byref(share)))
        return drift, share.value

    def drift(self, smooth: int = 1) -> NDArray[np.float64]:
        """Returns the motion that all tracks share, [frames, axes] since the first frame, along z (if there is one), y
        and x: the mean displacement from frame to frame, averaged over `smooth` frames, and summed."""
        return self._drift(smooth)[0][:, 3 - self.axes:]

    def subtract_drift(self, drift: Any = None, *, smooth: int = 1) -> "Tracks":
        """Subtracts a drift [frames, axes]. None: the drift of these tracks; diffusion() then corrects for the
        diffusive motion that the subtraction removed. Returns self."""
        first, last = self.frames
        if drift is None:
            whole_drift, share = self._drift(smooth)
        else:
            own = as_floats("drift", drift, 2, np.float64)
            if own.shape != (last - first + 1, self.axes):
                raise ShapeError(f"drift: got shape {own.shape}, but [{last - first + 1}, {self.axes}] is expected")
            whole_drift, share = np.zeros((len(own), 3)), self._share
            whole_drift[:, 3 - self.axes:] = own
        check(lib.clv_tracks_subtract(self._handle, address(whole_drift)))
        self._share = share
        return self

    def msd(self, lags: int = 100, track: int | None = None) -> NDArray[np.void]:
        """Computes mean squared displacements at lags of 1 to `lags` frames (at most the length of the longest track),
        over all tracks or for row `track` of table().

        Returns a structured array: lag (frames), pairs, tracks, msd, error (standard), independent, mean and square [3]
        (of the displacements along z, y, x).
        """
        first, last = self.frames
        rows = np.zeros(min(whole("lags", lags, 1, _MOST), max(last - first, 0)), _MSD)
        check(lib.clv_tracks_msd(self._handle, self._index(track), len(rows), address(rows)))
        return rows

    def diffusion(self, track: int | None = None, *, position_error: float | None = None,
                  exposure: float = 0.0) -> Diffusion:
        """Returns the diffusion coefficient that makes the displacements most likely, of all tracks or of row `track`
        of table().

        position_error  the standard deviation of a position along y and x; None: estimated
                        from the tracks. The one along z is always estimated
        exposure        share of the time between frames during which light is collected: motion then blurs the spots
        """
        options = _abi.DiffusionOptions(ctypes.sizeof(_abi.DiffusionOptions), position_error is not None,
                                        0 if position_error is None else real("position_error", position_error),
                                        real("exposure", exposure), self._share)
        found = _abi.Diffusion()
        check(lib.clv_tracks_diffusion(self._handle, self._index(track), ctypes.byref(options), ctypes.byref(found)))
        return Diffusion(found.d / self.interval, found.d_error / self.interval, found.lateral / self.interval,
                         found.axial / self.interval, found.position_variance, found.position_variance_z,
                         found.offset, found.displacements, found.tracks)

    def _index(self, track: int | None) -> int:
        return _ALL if track is None else whole("track", track, 0, max(len(self) - 1, 0))
