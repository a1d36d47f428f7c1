# SPDX-License-Identifier: Apache-2.0
"""PACO: searches for exoplanets in sequences of rotating frames."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, as_floats, dtype_of, given_away, with_strides
from ._astro import degrees, hdus, image, pair, pixels
from ._check import described, not_zero, real
from ._context import Context, chosen
from ._library import check, lib
from ._probe import choice
from ._report import Report, report_handle
from ._watch import Progress, Watch
from .errors import ShapeError

_PSF_MODES = {"shift": 0, "fixed": 1}
_CONVENTIONS = {"paper": 0, "vip": 1}
_ROUNDINGS = {None: 0, "nearest": 1, "trunc": 2}
_NORMS = {"none": 0, None: 0, "peak": 1, "sum": 2, "aperture": 3}
_DETECTION = dtype_of(_abi.Detection)


@dataclass(frozen=True)
class PacoResult:
    """The result of paco(): maps [height, width], and the maxima of the S/N map.

    a, b        float64, PACO's sums; NaN where the position is not valid
    snr         b / sqrt(a), float32
    flux        b / a, in units of the (normalised) PSF
    sigma       1 / sqrt(a), the standard deviation of flux
    detections  structured array, highest S/N first: x, y (column, row), separation_px,
                position_angle (degrees, atan2(-(x-cx), y-cy) in [0,360)), snr, flux, sigma
    fwhm        FWHM of the PSF in pixels, given or measured; None if it was not needed
    counts      number of positions that are valid, outside, not_finite, constant or degenerate
    """
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    snr: NDArray[np.float32]
    flux: NDArray[np.float32]
    sigma: NDArray[np.float32]
    detections: NDArray[np.void]
    fwhm: float | None
    counts: dict[str, int] = field(default_factory=dict)

    def to_hdus(self) -> Any:
        """Returns the maps as an astropy HDUList: A, B, SNR, FLUX, SIGMA."""
        return hdus({name: getattr(self, name.lower()) for name in ("A", "B", "SNR", "FLUX", "SIGMA")}, self.fwhm)


def _psf_of(psf: Any) -> NDArray[np.float32]:
    psf = image("psf", psf, 2)
    if psf.shape[0] != psf.shape[1]:
        raise ShapeError(f"psf: got shape {psf.shape}, but it must be a square")
    return np.ascontiguousarray(psf)


def _weights_of(weights: Any) -> NDArray[np.float64] | None:
    return None if weights is None else np.ascontiguousarray(as_floats("weights", weights, 1, np.float64))


def _describe(cube: NDArray[Any], strides: tuple[int, int], angles: NDArray[Any], psf: NDArray[Any],
              weights: NDArray[Any] | None) -> _abi.PacoInput:
    """Returns the library's description of a sequence; the library reads the arrays in place, so they have to outlive
    it."""
    if len(angles) != len(cube):
        raise ShapeError(f"angles: there are {len(angles)}, but the cube has {len(cube)} frames")
    if weights is not None and len(weights) != len(cube):
        raise ShapeError(f"weights: there are {len(weights)}, but the cube has {len(cube)} frames")
    return _abi.PacoInput(
        size=ctypes.sizeof(_abi.PacoInput), cube=address(cube), frames=cube.shape[0], height=cube.shape[1],
        width=cube.shape[2], frame_stride=strides[0], row_stride=strides[1], angles=address(angles),
        psf=address(psf), psf_size=psf.shape[0], weights=None if weights is None else address(weights))


def psf_fwhm(psf: Any) -> float:
    """Returns the FWHM in pixels of a round Gaussian with background that is fitted to a PSF [S, S]. Raises
    FormatError if there is no peak near the centre."""
    psf, width = _psf_of(psf), ctypes.c_double()
    check(lib.clv_psf_fwhm(address(psf), psf.shape[0], ctypes.byref(width)))
    return width.value


def psf_normalize(psf: Any, norm: str, fwhm: float | None = None) -> NDArray[np.float32]:
    """Returns a copy of the PSF [S, S] divided by its "peak", its "sum", or its flux in an "aperture" with a diameter
    of 1 FWHM (None: measured); "none" changes nothing."""
    made, number = _psf_of(psf).copy(), choice("norm", norm, _NORMS)
    if number == _NORMS["aperture"] and fwhm is None:
        fwhm = psf_fwhm(made)
    check(lib.clv_psf_normalize(address(made), made.shape[0], number,
                                real("psf_normalize: fwhm", fwhm or 0.0)))
    return made


def _detect(snr: NDArray[Any], flux: NDArray[Any], sigma: NDArray[Any], centre: tuple[float, float],
            fwhm: float, threshold: float) -> NDArray[np.void]:
    found, count = ctypes.c_void_p(), ctypes.c_size_t()
    check(lib.clv_paco_detect(address(snr), address(flux), address(sigma), snr.shape[0],
                              snr.shape[1], centre[0], centre[1], fwhm, threshold,
                              ctypes.byref(found), ctypes.byref(count)))
    return given_away(found, count.value, _DETECTION)


def paco(cube: Any, angles: Any, psf: Any, *, radius: int = 4, psf_mode: str = "shift",
         psf_norm: str = "none", fwhm: float | None = None, threshold: float | None = 5.0,
         center: tuple[float, float] | None = None, reverse_angles: bool = False,
         convention: str = "paper", rounding: str | None = None, psf_vectors: int = 0, weights: Any = None,
         context: Context | None = None, report: Report | None = None,
         progress: Progress = None) -> PacoResult:
    """Computes PACO's maps and detections (Flasseur, Denis, Thiebaut, Langlois 2018, A&A 618, A138):

        a = sum_l h_l' C_k^-1 h_l      b = sum_l h_l' C_k^-1 (r_kl - m_k)

    over the frames l. k is the patch in which a planet at the map position would be in frame l, m_k and C_k are the
    mean and the shrunk covariance of that patch over time, r are its pixels, and h_l is the PSF there.

    Parameters
    ----------
    cube        [T, H, W], star-centred frames that were not derotated, T >= 2, in any unit; NaN, inf and masked pixels
                are left out. float32 is used in place, other types are converted. An HDU of astropy, or a list of them
                (the first one with data), is accepted as well
    angles      [T] parallactic angles in degrees, or a Quantity; also an HDU, [T, 1], or a table with a column PA,
                PARANG... or ANGLE...
    psf         [S, S] or an HDU, finite, S at least 2 radius + 1, with its centre on pixel S // 2
    radius      radius of the patch in pixels, 2 to 6; 4: 49 pixels
    psf_mode    "shift" (the PSF is shifted to the planet's sub-pixel position) or "fixed" (faster)
    psf_norm    "none", "peak", "sum" or "aperture": the unit of `flux`
    fwhm        FWHM of the PSF in pixels; None: measured by a Gaussian fit
    threshold   S/N of the faintest detection; None: no detections
    center      (column, row) of the star; None: (W // 2, H // 2)
    reverse_angles  True: the field rotates in the opposite sense
    convention  "paper", or "vip" for what vip-hci computes; `rounding` is "nearest" or "trunc"
    psf_vectors number of vectors of the shifted PSF's basis: 5, 10 or 15; 0: 10
    weights     [T] above 0: 1 / variance of each frame's noise, in any unit: see frame_quality(); None: all are equal
    context, report, progress   see Context and Report; progress=True shows a bar

    Returns a PacoResult. Compared with float64, S/N is within 2e-3; one device gives the same bits however the work is
    split.

    Raises ShapeError, ArgumentError, FormatError (the FWHM cannot be measured: give `fwhm`), CancelledError,
    DeviceError. Ctrl-C ends the call.
    """
    cube, strides = with_strides(image("cube", cube, 3))
    angles = degrees("angles", angles)
    psf = _psf_of(psf)
    height, width = cube.shape[1:]
    weights = _weights_of(weights)
    not_zero("paco", radius=radius)
    norm = choice("psf_norm", psf_norm, _NORMS)
    centre = (width / 2 // 1, height / 2 // 1)
    if center is not None:
        centre = pair("paco: center", center)
    threshold = None if threshold is None else real("paco: threshold", threshold)
    fwhm = None if fwhm is None else pixels("paco: fwhm", fwhm)
    if fwhm is None and (threshold is not None or norm == _NORMS["aperture"]):
        fwhm = psf_fwhm(psf)
    if norm:
        psf = psf_normalize(psf, psf_norm, fwhm)
    given = _describe(cube, (strides[0], strides[1]), angles, psf, weights)
    options = described(
        "paco", _abi.PacoOptions, radius=radius,
        psf_mode=choice("psf_mode", psf_mode, _PSF_MODES),
        convention=choice("convention", convention, _CONVENTIONS),
        rounding=choice("rounding", rounding, _ROUNDINGS), reverse_angles=reverse_angles,
        centre_given=center is not None, psf_vectors=psf_vectors)
    options.centre_x, options.centre_y = centre
    a, b = np.empty((height, width)), np.empty((height, width))
    counts = _abi.PacoCounts()
    with chosen(context).held() as handle, Watch(progress, "paco") as watch:
        options.progress = watch.function
        watch.done(lib.clv_paco(handle, ctypes.byref(given), ctypes.byref(options), address(a),
                                address(b), ctypes.byref(counts), report_handle(report)))
    snr, flux, sigma = (np.empty((height, width), np.float32) for _ in range(3))
    lib.clv_paco_maps(address(a), address(b), a.size, address(snr), address(flux), address(sigma))
    found = np.empty(0, _DETECTION)
    if threshold is not None and fwhm is not None:
        found = _detect(snr, flux, sigma, centre, fwhm, threshold)
    return PacoResult(a, b, snr, flux, sigma, found, fwhm,
                      {name: getattr(counts, name) for name, _ in counts._fields_})
