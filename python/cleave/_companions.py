# SPDX-License-Identifier: Apache-2.0
"""Finds, measures, subtracts and injects companions in sequences of rotating frames, and prepares such sequences."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, as_floats, dtype_of, given_away
from ._astro import companion_table, degrees, hdus, image, pair, pixels
from ._check import described, not_zero, real
from ._context import Context, chosen
from ._library import check, lib
from ._paco import _describe, _psf_of, _weights_of, psf_fwhm
from ._probe import choice
from ._report import Report, report_handle
from ._watch import Progress, Watch
from .errors import ShapeError

_COMPANION = dtype_of(_abi.Companion)
_FRAME = dtype_of(_abi.PacoFrame)
_WEIGHTINGS = {"robust": 0, "variance": 1}


@dataclass(frozen=True)
class CompanionResult:
    """The result of companions().

    companions  structured array, highest S/N first: x, y, x_err, y_err (column and row, sub-pixel), separation_px,
                position_angle (degrees, atan2(-(x-cx), y-cy) in [0,360)), flux, flux_err, snr (the calibrated peak),
                false_alarm (probability that noise alone gives such a peak anywhere in the map), recovery and ring
                (mean flux / true flux, and number, of the planets injected for the errors)
    snr         calibrated S/N of the cube as given, float32 [height, width]
    snr_raw     b / sqrt(a) with PACO's sums a and b (see paco()): S/N before calibration
    rest        the cube without the companions
    fwhm        FWHM of the PSF in pixels
    """
    companions: NDArray[np.void]
    snr: NDArray[np.float32]
    snr_raw: NDArray[np.float32]
    rest: NDArray[np.float32]
    fwhm: float

    def to_hdus(self) -> Any:
        """Returns the maps as an astropy HDUList: SNR, SNR_RAW and REST."""
        return hdus({name: getattr(self, name.lower()) for name in ("SNR", "SNR_RAW", "REST")}, self.fwhm)

    def to_table(self, *, pixel_scale: Any = None, star_flux: Any = None, true_north: float = 0.0) -> Any:
        """Returns the companions as an astropy QTable with units. `pixel_scale` in mas (or a Quantity) adds
        `separation` in mas, `star_flux` in units of the PSF adds `delta_mag`, and `true_north` in degrees is added to
        the position angles."""
        return companion_table(self.companions, pixel_scale, star_flux, true_north)


def _sequence(cube: Any, angles: Any, psf: Any, weights: Any = None) -> tuple[
        NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any] | None, _abi.PacoInput]:
    """Checks and converts a sequence. Returns (cube, angles, PSF, weights, input for the library); the input points to
    the memory of the four arrays, which have to outlive it."""
    cube = np.ascontiguousarray(image("cube", cube, 3))
    angles = degrees("angles", angles)
    psf, weights = _psf_of(psf), _weights_of(weights)
    return cube, angles, psf, weights, _describe(cube, (0, 0), angles, psf, weights)


def _frames(cube: NDArray[Any], weights: NDArray[Any] | None = None) -> _abi.PacoInput:
    """Returns the library's description of a sequence without angles and PSF; it points to the memory of the arrays."""
    if weights is not None and len(weights) != len(cube):
        raise ShapeError(f"weights: there are {len(weights)}, but the cube has {len(cube)} frames")
    return _abi.PacoInput(
        size=ctypes.sizeof(_abi.PacoInput), cube=address(cube), frames=cube.shape[0], height=cube.shape[1],
        width=cube.shape[2], weights=None if weights is None else address(weights))


def _options(radius: int, center: tuple[float, float] | None, reverse_angles: bool,
             measure_radius: int | None = None) -> Any:
    wide = radius if measure_radius is None else measure_radius
    not_zero("companions", radius=radius, measure_radius=wide)
    options = described("companions", _abi.PacoOptions, radius=radius, reverse_angles=reverse_angles,
                        centre_given=center is not None, measure_radius=wide)
    if center is not None:
        options.centre_x, options.centre_y = pair("companions: center", center)
    return options


def _places(places: Any) -> NDArray[np.float64]:
    where = np.asarray(places, np.float64)
    where = where.reshape(-1, 2) if where.size in (0, 2) else where
    if where.ndim != 2 or where.shape[1] != 2:
        raise ShapeError(f"places: got shape {where.shape}, but [N, 2] is expected")
    return where


def companions(cube: Any, angles: Any, psf: Any, *, radius: int = 4, fwhm: float | None = None,
               threshold: float = 5.0, center: tuple[float, float] | None = None, reverse_angles: bool = False,
               weights: Any = None, measure_radius: int | None = None, context: Context | None = None,
               report: Report | None = None, progress: Progress = None) -> CompanionResult:
    """Searches a sequence for companions one at a time: measures the companion at the highest peak of the calibrated
    S/N map and subtracts it from the cube, until no peak is above the threshold.

    The parameters are those of paco(). The star is at `center`, or at (W // 2, H // 2): see star_position(). Companions
    are measured with patches of `measure_radius` (None: `radius`); a radius larger by 1 gives positions with 20 %
    smaller errors. Returns a CompanionResult. Raises what paco() raises.
    """
    cube, angles, psf, weights, sequence = _sequence(cube, angles, psf, weights)
    options = _options(radius, center, reverse_angles, measure_radius)
    width = psf_fwhm(psf) if fwhm is None else pixels("companions: fwhm", fwhm)
    plane = cube.shape[1:]
    a, b = np.empty(plane), np.empty(plane)
    raw, snr = np.empty(plane, np.float32), np.empty(plane, np.float32)
    rest = np.empty_like(cube)
    found, count = ctypes.c_void_p(), ctypes.c_size_t()
    with chosen(context).held() as handle, Watch(progress, "companions") as watch:
        options.progress = watch.function
        watch.done(lib.clv_paco(handle, ctypes.byref(sequence), ctypes.byref(options), address(a), address(b),
                                None, report_handle(report)))
        watch.done(lib.clv_paco_search(
            handle, ctypes.byref(sequence), ctypes.byref(options), width, real("companions: threshold", threshold),
            address(a), address(b), address(snr), address(rest), ctypes.byref(found), ctypes.byref(count),
            report_handle(report)))
    lib.clv_paco_maps(address(a), address(b), a.size, address(raw), None, None)
    return CompanionResult(given_away(found, count.value, _COMPANION), snr, raw, rest, width)


def characterize(cube: Any, angles: Any, psf: Any, places: Any, *, keep_places: bool = False, radius: int = 4,
                 fwhm: float | None = None, center: tuple[float, float] | None = None,
                 reverse_angles: bool = False, weights: Any = None, context: Context | None = None,
                 report: Report | None = None, progress: Progress = None) -> NDArray[np.void]:
    """Measures flux and position of companions near `places` [N, 2] (column, row), with their errors. With keep_places,
    the positions stay at `places`, and only the flux is measured.

    Returns a structured array in the order of the places; its fields are those of CompanionResult.companions without
    snr and false_alarm. Each planet is removed from its own background statistics until its flux no longer changes
    (Flasseur et al. 2018, algorithm 3). The errors are the scatter of planets that are injected elsewhere at the same
    separation.
    """
    cube, angles, psf, weights, sequence = _sequence(cube, angles, psf, weights)
    options = _options(radius, center, reverse_angles)
    width = psf_fwhm(psf) if fwhm is None else pixels("characterize: fwhm", fwhm)
    where = _places(places)
    found = np.zeros(len(where), _COMPANION)
    found["x"], found["y"] = where[:, 0], where[:, 1]
    with chosen(context).held() as handle, Watch(progress, "characterize") as watch:
        options.progress = watch.function
        watch.done(lib.clv_paco_characterize(handle, ctypes.byref(sequence), ctypes.byref(options), width,
                                             keep_places, address(found), len(found), report_handle(report)))
    return found


def inject(cube: Any, angles: Any, psf: Any, places: Any, fluxes: Any, *, center: tuple[float, float] | None = None,
           reverse_angles: bool = False) -> NDArray[np.float32]:
    """Returns a copy of the cube with planets of these fluxes at places [N, 2] (column, row); a planet of negative flux
    is subtracted."""
    cube, angles, psf, _, sequence = _sequence(cube, angles, psf)
    where = _places(places)
    planets = np.zeros(len(where), _COMPANION)
    planets["x"], planets["y"], planets["flux"] = where[:, 0], where[:, 1], -np.asarray(fluxes, np.float64)
    made: NDArray[np.float32] = cube.copy()
    options = _options(2, center, reverse_angles)
    check(lib.clv_paco_subtract(ctypes.byref(sequence), ctypes.byref(options), address(planets), len(planets),
                                address(made)))
    return made


def star_position(cube: Any, fwhm: float, *, weights: Any = None) -> tuple[float, float] | None:
    """Returns (column, row) of the point about which the mean frame of [T, H, W] is symmetric, with the frames weighted
    by `weights` [T]; None if no star is found."""
    weights = _weights_of(weights)
    cube = np.ascontiguousarray(image("cube", cube, 3))
    star = _abi.Star()
    check(lib.clv_paco_star(ctypes.byref(_frames(cube, weights)), real("star_position: fwhm", fwhm),
                            ctypes.byref(star)))
    return (star.x, star.y) if star.found else None


def frame_quality(cube: Any, limit: float = 4.0) -> NDArray[np.void]:
    """Returns for every frame of [T, H, W]: scale (its deviation from the median over time, relative to the usual
    deviation), missing (fraction of NaN) and rejected (the scale is above `limit`, or more than half of the pixels
    are missing)."""
    cube = np.ascontiguousarray(image("cube", cube, 3))
    frames = np.zeros(len(cube), _FRAME)
    kept = ctypes.c_size_t()
    check(lib.clv_paco_frames(ctypes.byref(_frames(cube)), real("frame_quality: limit", limit), address(frames),
                              ctypes.byref(kept)))
    return frames


def frame_weights(quality: Any, kind: str = "robust") -> NDArray[np.float64]:
    """Returns weights of frames from frame_quality(): "robust", min(1, (2 / scale)^2), or "variance", 1 / scale^2."""
    frames = np.ascontiguousarray(quality, _FRAME)
    made = np.empty(len(frames))
    check(lib.clv_paco_frame_weights(address(frames), len(frames), choice("frame_weights: kind", kind, _WEIGHTINGS),
                                     address(made)))
    return made


def mend(cube: Any, fwhm: float) -> NDArray[np.float32]:
    """Returns a copy of [T, H, W] in which NaN and inf are replaced by an estimate from their neighbours in the same
    frame. Pixels that are missing in more than half of the frames stay as they are."""
    made = np.array(image("cube", cube, 3), np.float32, order="C", copy=True)
    mended = ctypes.c_size_t()
    check(lib.clv_paco_mend(address(made), *made.shape, real("mend: fwhm", fwhm), ctypes.byref(mended)))
    return made


def calibrate_snr(snr: Any, center: tuple[float, float], fwhm: float, masked: Any = ()) -> NDArray[np.float32]:
    """Returns the S/N map [H, W] scaled so that the noise has a standard deviation of 1 at every separation from
    `center` (column, row), with Student's correction near the center. `masked` [N, 2] are the places of planets, whose
    pixels are left out of the noise."""
    snr = np.ascontiguousarray(as_floats("snr", snr, 2))
    places = np.ascontiguousarray(np.asarray(masked, np.float64).reshape(-1, 2))
    made: NDArray[np.float32] = np.empty_like(snr)
    check(lib.clv_paco_calibrate(address(snr), None, *snr.shape, real("center", center[0]), real("center", center[1]),
                                 real("fwhm", fwhm), address(places), len(places), address(made)))
    return made


def psf_recentre(psf: Any) -> tuple[NDArray[np.float32], tuple[float, float]]:
    """Returns a copy of the PSF [S, S] with its centre on pixel S // 2, and (column, row) of its former centre
    relative to that pixel."""
    made, dx, dy = _psf_of(psf).copy(), ctypes.c_double(), ctypes.c_double()
    check(lib.clv_psf_recentre(address(made), made.shape[0], ctypes.byref(dx), ctypes.byref(dy)))
    return made, (dx.value, dy.value)
