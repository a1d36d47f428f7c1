# SPDX-License-Identifier: Apache-2.0
"""Finds spots in movies: in a whole movie at once, or frame by frame."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Sequence, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, dtype_of, extents, given_away, is_masked, numbers, with_strides
from ._check import described, not_zero, real, whole
from ._context import Context, chosen
from ._library import InThisProcess, check, has, lib
from ._probe import choice
from ._report import Report, report_handle
from ._watch import Progress, Watch
from .errors import ArgumentError, LibraryError, ShapeError

_F = TypeVar("_F")
#: The type of one spot that BlobStream.push() returns; blobs() explains the columns.
SPOT = dtype_of(_abi.Spot)
#: The type of one spot of a volume; volumes() explains the columns.
VOLUME_SPOT = dtype_of(_abi.VolumeSpot)
_PIXELS = {"|u1": 0, "<u2": 1, "<i2": 2, "<f4": 3}
_KERNELS = {"zero-sum": 0, "scipy": 1}
_SUBPIXEL = {"quad": 0, "fit": 1, "none": 2, None: 2}
_TABLES = {"auto": 0, "array": 1, "pandas": 2}


def _movie_of(movie: Any, axes: str = "[T, H, W]") -> NDArray[Any]:
    """Returns the movie with the axes [T, H, W], or those in `axes`, in a type that the library reads."""
    if is_masked(movie):
        movie = numbers("movie", movie)  # masked pixels become NaN
    frames: NDArray[Any] = np.asarray(movie)
    if frames.dtype.kind not in "biuf":
        raise ShapeError(f"movie: got {frames.dtype}, but numbers with the axes {axes} are expected")
    rank = axes.count(",") + 1
    if frames.ndim == rank - 1:
        frames = frames[None]
    if frames.ndim != rank:
        raise ShapeError(f"movie: got shape {frames.shape}, but {axes}, or one axis fewer, is expected")
    frames = frames.astype(frames.dtype.newbyteorder("="), copy=False)
    if frames.dtype == np.float64 or frames.dtype == np.float16:
        frames = frames.astype(np.float32)
    if frames.dtype == np.int8:
        frames = frames.astype(np.int16)
    if frames.dtype == np.bool_:
        frames = frames.view(np.uint8)
    if frames.dtype.str not in _PIXELS:
        raise ShapeError(f"movie: got {frames.dtype}, but uint8, uint16, int16 or floats are expected")
    return frames


def _sides_of(voxel_size: Sequence[float] | None) -> list[float]:
    """Returns the three sides of a voxel; zeros, which the library reads as a cube, for None."""
    if voxel_size is None:
        return [0.0] * 3
    sides = [real("voxel_size", side) for side in voxel_size] if np.iterable(voxel_size) else []
    if len(sides) != 3 or not all(side > 0 for side in sides):
        raise ArgumentError(f"voxel_size is {voxel_size!r}, but it must be three sides (z, y, x), each more than 0")
    return sides


def _options_of(*, min_sigma: float, max_sigma: float, num_sigma: int, log_scale: bool, dog: bool,
                sigma_ratio: float, threshold: float | None, threshold_rel: float | None,
                threshold_sigma: float | None, threshold_scope: str, kernel: str,
                normalize: bool, invert: bool, subpixel: str | None, prune: bool, overlap: float,
                exclude_border: int, hot_pixels: str,
                voxel_size: Sequence[float] | None = None) -> _abi.BlobOptions:
    not_zero("blobs", min_sigma=min_sigma, max_sigma=max_sigma, num_sigma=num_sigma,
             sigma_ratio=sigma_ratio)
    options: _abi.BlobOptions = described(
        "blobs", _abi.BlobOptions, min_sigma_px=min_sigma, max_sigma_px=max_sigma,
        num_sigma=num_sigma, log_scale=log_scale, dog=dog, sigma_ratio=sigma_ratio,
        threshold_given=threshold is not None, threshold=threshold or 0.0,
        threshold_rel_given=threshold_rel is not None, threshold_rel=threshold_rel or 0.0,
        threshold_sigma_given=threshold_sigma is not None,
        threshold_sigma=threshold_sigma or 0.0,
        movie_scope=choice("threshold_scope", threshold_scope, {"frame": 0, "movie": 1}) == 1,
        taps=choice("kernel", kernel, _KERNELS), normalize=normalize, invert=invert,
        subpixel=choice("subpixel", subpixel, _SUBPIXEL), keep_overlapping=not prune,
        overlap_given=True, overlap=overlap, exclude_border=exclude_border,
        keep_hot_pixels=choice("hot_pixels", hot_pixels, {"reject": 0, "keep": 1}) == 1)
    options.voxel_size[:] = _sides_of(voxel_size)
    return options


def table_of(table: str) -> Callable[[NDArray[Any]], Any]:
    """Returns the function that converts a structured array to the kind of table that `table` names."""
    if choice("table", table, _TABLES) == _TABLES["array"]:
        return lambda array: array
    try:
        import pandas
    except ImportError:
        if table == "pandas":
            raise
        return lambda array: array
    return lambda array: pandas.DataFrame({name: array[name] for name in array.dtype.names or ()})


def _spot_options(function: _F) -> _F:
    """Replaces {options} in a docstring by the options that blobs(), volumes() and BlobStream share."""
    function.__doc__ = (function.__doc__ or "").replace("{options}", """min_sigma, max_sigma
                sizes of the smallest and the largest spots in pixels; a spot of sigma s has a radius of about sqrt(2) s
    num_sigma   number of scales between them, 1 to 64
    log_scale   space the scales geometrically
    dog         use differences of Gaussians, with the scales min_sigma * sigma_ratio^i
    threshold, threshold_rel, threshold_sigma
                keep responses above this: in units of the pixels; as a share of the frame's largest response; in
                standard deviations of the responses' noise at that scale and place. If you give none,
                threshold_sigma is 6 (with threshold_scope "movie", threshold_rel is 0.2)
    kernel      "zero-sum", or "scipy" for scikit-image's filter coefficients (then set normalize=True as well)
    invert      find dark spots
    subpixel    "quad", "fit" (weighted Gaussian fit) or "none"
    prune       drop spots that overlap a larger one by more than `overlap`
    exclude_border  width in pixels of a border without spots
    hot_pixels  "reject": threshold_sigma drops single pixels that are brighter than a spot of min_sigma can make
                them; "keep" keeps them""")
    return function


@_spot_options
def blobs(movie: Any, *, min_sigma: float = 1.0, max_sigma: float = 3.0, num_sigma: int = 5,
          log_scale: bool = False, dog: bool = False, sigma_ratio: float = 1.6,
          threshold: float | None = None, threshold_rel: float | None = None,
          threshold_sigma: float | None = None, threshold_scope: str = "frame",
          kernel: str = "zero-sum", normalize: bool = False, invert: bool = False,
          subpixel: str | None = "quad", prune: bool = True, overlap: float = 0.5,
          exclude_border: int = 0, hot_pixels: str = "reject", table: str = "auto", context: Context | None = None,
          report: Report | None = None, progress: Progress = None) -> Any:
    """Finds bright spots: maxima in y, x and sigma of L = -sigma^2 (d2/dx2 + d2/dy2) of the smoothed frame.

    Spots that overlap too much are dropped, positions are refined to fractions of a pixel, and the spots are measured.

    Parameters
    ----------
    movie       [T, H, W] or [H, W]; uint8, uint16, int16 and float32 are used in place, float64, float16 and int8 are
                converted. Pixels that are NaN or infinite are masked
    {options}
    threshold_scope  "frame", or "movie": threshold_rel then refers to the largest response of the whole movie
    table       "array": a structured array; "pandas": a DataFrame; "auto": a DataFrame if pandas is installed

    Returns
    -------
    rows ordered by frame, y, x, sigma, with the columns frame, flags, y, x (pixels; 0 is the centre of the first
    pixel), sigma, response, mass, background, snr. One device gives the same bytes however the work is split.

    Raises ShapeError, ArgumentError, CancelledError, DeviceError. Ctrl-C ends the call.
    """
    finish = table_of(table)
    movie, strides = with_strides(_movie_of(movie))
    options = _options_of(
        min_sigma=min_sigma, max_sigma=max_sigma, num_sigma=num_sigma, log_scale=log_scale,
        dog=dog, sigma_ratio=sigma_ratio, threshold=threshold, threshold_rel=threshold_rel,
        threshold_sigma=threshold_sigma, threshold_scope=threshold_scope, kernel=kernel,
        normalize=normalize, invert=invert, subpixel=subpixel, prune=prune, overlap=overlap,
        exclude_border=exclude_border, hot_pixels=hot_pixels)
    frames = _abi.BlobFrames(ctypes.sizeof(_abi.BlobFrames), _PIXELS[movie.dtype.str], *movie.shape, *strides[:2])
    spots, count = ctypes.c_void_p(), ctypes.c_size_t()
    with chosen(context).held() as handle, Watch(progress, "blobs") as watch:
        options.progress = watch.function
        watch.done(lib.clv_blobs(handle, ctypes.byref(frames), address(movie),
                                 ctypes.byref(options), ctypes.byref(spots),
                                 ctypes.byref(count), None, report_handle(report)))
    return finish(given_away(spots, count.value, SPOT))


@_spot_options
def volumes(stacks: Any, *, voxel_size: Sequence[float] | None = None, min_sigma: float = 1.0,
            max_sigma: float = 3.0, num_sigma: int = 5, log_scale: bool = False, dog: bool = False,
            sigma_ratio: float = 1.6, threshold: float | None = None,
            threshold_rel: float | None = None, threshold_sigma: float | None = None,
            kernel: str = "zero-sum", normalize: bool = False, invert: bool = False,
            subpixel: str | None = "quad", prune: bool = True, overlap: float = 0.5,
            exclude_border: int = 0, hot_pixels: str = "reject", table: str = "auto",
            context: Context | None = None, report: Report | None = None,
            progress: Progress = None) -> Any:
    """Finds bright spots in volumes: maxima in z, y, x and sigma of L = -sum over the axes a of sigma_a^2 d2/da2.

    Spots that overlap too much are dropped, positions are refined to fractions of a voxel, and the spots are measured.

    Parameters
    ----------
    stacks      [T, Z, H, W], or one volume [Z, H, W]; the types are those of blobs()
    voxel_size  distances between voxels along z, y and x, of which only the ratios count; None: voxels are cubes.
                Sigmas are in voxels along x; along z, a sigma has voxel_size[2] / voxel_size[0] times as many planes
    {options}
    table       see blobs()

    Returns
    -------
    rows ordered by frame, z, y, x, sigma, with the columns frame (the stack), flags, z, y, x (voxels; 0 is the centre
    of the first voxel), sigma, sigma_z (planes), response, mass, background, snr, and z_err, y_err, x_err (standard
    deviations with subpixel "fit"; 0: not known). subpixel "none" gives whole voxels and the sigmas of the scales, as
    scikit-image does: for a Gaussian spot that is sqrt(2/3) times the spot's own sigma.

    Raises ShapeError, ArgumentError, CancelledError, DeviceError. Ctrl-C ends the call.
    """
    if not has("clv_volumes"):
        raise LibraryError("volumes: this libcleave is too old for volumes; version 0.2 or later is needed")
    finish = table_of(table)
    frames = np.ascontiguousarray(_movie_of(stacks, "[T, Z, H, W]"))
    options = _options_of(
        min_sigma=min_sigma, max_sigma=max_sigma, num_sigma=num_sigma, log_scale=log_scale,
        dog=dog, sigma_ratio=sigma_ratio, threshold=threshold, threshold_rel=threshold_rel,
        threshold_sigma=threshold_sigma, threshold_scope="frame", kernel=kernel,
        normalize=normalize, invert=invert, subpixel=subpixel, prune=prune, overlap=overlap,
        exclude_border=exclude_border, hot_pixels=hot_pixels, voxel_size=voxel_size)
    shape = _abi.VolumeStacks(ctypes.sizeof(_abi.VolumeStacks), _PIXELS[frames.dtype.str], *frames.shape)
    spots, count = ctypes.c_void_p(), ctypes.c_size_t()
    with chosen(context).held() as handle, Watch(progress, "volumes") as watch:
        options.progress = watch.function
        watch.done(lib.clv_volumes(handle, ctypes.byref(shape), address(frames),
                                   ctypes.byref(options), ctypes.byref(spots),
                                   ctypes.byref(count), None, report_handle(report)))
    return finish(given_away(spots, count.value, VOLUME_SPOT))


@_spot_options
class BlobStream(InThisProcess):
    """Finds spots frame by frame: for a camera, and for movies that do not fit in memory.

    >>> with BlobStream((256, 256), np.uint16, threshold_sigma=5) as stream:   # doctest: +SKIP
    ...     for frame in camera:
    ...         spots = stream.push(frame)

    Parameters
    ----------
    shape       (height, width) of a frame
    dtype       uint8, uint16, int16 or float32
    capacity    the largest number of frames in one push
    {options}
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, *, capacity: int = 1,
                 context: Context | None = None, **options: Any):
        self._handle, self._context = None, chosen(context)
        self._errors: NDArray[np.float32] = np.empty((0, 2), np.float32)
        defaults = {name: value for name, value in (blobs.__kwdefaults__ or {}).items()
                    if name not in ("table", "context", "report", "progress")}
        unknown = set(options) - set(defaults)
        if unknown:
            raise ArgumentError(f"BlobStream: there is no option {sorted(unknown)[0]!r}")
        self._dtype, self._shape = np.dtype(dtype), extents("BlobStream", shape)
        if len(self._shape) != 2:
            raise ShapeError(f"BlobStream: got shape {self._shape}, but (height, width) is expected")
        if self._dtype.str not in _PIXELS:
            raise ShapeError(f"BlobStream: got {self._dtype}, but uint8, uint16, int16 or float32 are expected")
        frames = _abi.BlobFrames(ctypes.sizeof(_abi.BlobFrames), _PIXELS[self._dtype.str],
                                 whole("BlobStream: capacity", capacity, 1, 1 << 20), *self._shape)
        handle = ctypes.c_void_p()
        context_handle = self._context.acquire()  # close() releases it
        try:
            check(lib.clv_blobs_open(context_handle, ctypes.byref(frames),
                                     ctypes.byref(_options_of(**{**defaults, **options})),
                                     ctypes.byref(handle)))
        except BaseException:
            self._context.release()
            raise
        self._handle = handle.value

    def push(self, frames: Any, report: Report | None = None) -> NDArray[np.void]:
        """Finds the spots in a frame [H, W] or in several frames [T, H, W], and returns them (see SPOT). Frames are
        counted from the first push."""
        if not self._handle:
            raise ArgumentError("BlobStream: it is closed")
        frames = np.ascontiguousarray(frames)
        if frames.dtype != self._dtype or frames.shape[-2:] != self._shape or frames.ndim > 3:
            raise ShapeError(f"BlobStream: got {frames.dtype} {frames.shape}, but frames of {self._dtype} "
                             f"{self._shape} are expected")
        count = 1 if frames.ndim == 2 else len(frames)
        self._context.check_process()
        check(lib.clv_blobs_push(self._handle, address(frames), count, report_handle(report)))
        return self._pull()

    def _pull(self) -> NDArray[np.void]:
        parts, errors, got = [], [], ctypes.c_size_t(1)
        while got.value:
            part, error = np.empty(1024, SPOT), np.empty((1024, 2), np.float32)
            check(lib.clv_blobs_pull(self._handle, address(part), len(part), ctypes.byref(got)))
            check(lib.clv_blobs_errors(self._handle, address(error), len(error)))
            parts.append(part[:got.value])
            errors.append(error[:got.value])
        self._errors = np.concatenate(errors)
        return np.concatenate(parts)

    @property
    def errors(self) -> NDArray[np.float32]:
        """Returns the standard deviations of y and x [N, 2] of the spots of the last push; they are NaN unless
        subpixel is "fit"."""
        return self._errors

    @property
    def summary(self) -> dict[str, Any]:
        """Returns the counts so far: frames, spots, empty_frames, bad_pixels, dropped_bad, max_response, reruns,
        hot_pixels; and the seconds on devices (job_s) and on the host (finish_s)."""
        if not self._handle:
            raise ArgumentError("BlobStream: it is closed")
        summary = lib.clv_blobs_summary(self._handle)
        return {name: getattr(summary, name) for name, _ in summary._fields_}

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle and self._context.ours:
            lib.clv_blobs_close(handle)
            self._context.release()

    def __enter__(self) -> "BlobStream":
        return self

    def __exit__(self, *_unused: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()
