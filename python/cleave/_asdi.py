# SPDX-License-Identifier: Apache-2.0
"""Searches sequences of several wavelengths for companions (PACO ASDI)."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, dtype_of, seen_at
from ._astro import companion_table, degrees, hdus, image, pixels, plain
from ._check import described, real
from ._companions import _options
from ._context import Context, chosen
from ._library import lib
from ._paco import _describe, _weights_of, psf_fwhm
from ._report import Report, report_handle
from ._watch import Progress, Watch
from .errors import ShapeError

_COMPANION = dtype_of(_abi.Companion)


@dataclass(frozen=True)
class AsdiResult:
    """The result of asdi(). The maps [channels, height, width] are computed separately for every channel.

    companions  structured array as CompanionResult.companions; flux is the mean of all channels
    fluxes, flux_errs  [companions, channels]: the spectrum of each companion, in units of each channel's PSF
    spectrum    [companions]: index of the spectrum that fits best
    snr         calibrated S/N of all channels together, float32 [height, width]
    snr_raw     S/N before calibration and before the correction for the number of spectra tried
    a, b        PACO's sums (see paco()), float64 [channels, height, width]
    rest        the cube without the companions
    fwhm        FWHM of the PSF in pixels, the mean of all channels
    """
    companions: NDArray[np.void]
    fluxes: NDArray[np.float64]
    flux_errs: NDArray[np.float64]
    spectrum: NDArray[np.uintp]
    snr: NDArray[np.float32]
    snr_raw: NDArray[np.float32]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    rest: NDArray[np.float32]
    fwhm: float

    def to_hdus(self) -> Any:
        """Returns the maps as an astropy HDUList: SNR, SNR_RAW, A, B and REST."""
        return hdus({name: getattr(self, name.lower()) for name in ("SNR", "SNR_RAW", "A", "B", "REST")}, self.fwhm)

    def to_table(self, *, pixel_scale: Any = None, star_flux: Any = None, true_north: float = 0.0) -> Any:
        """Returns the table of CompanionResult.to_table(), with the further columns fluxes and flux_errs [channels]."""
        made = companion_table(self.companions, pixel_scale, star_flux, true_north)
        made["fluxes"], made["flux_errs"], made["spectrum"] = self.fluxes, self.flux_errs, self.spectrum
        return made


def asdi(cube: Any, angles: Any, psf: Any, *, spectra: Any = None, radius: int = 4, fwhm: float | None = None,
         threshold: float | None = 5.0, center: tuple[float, float] | None = None, reverse_angles: bool = False,
         weights: Any = None, context: Context | None = None, report: Report | None = None,
         progress: Progress = None) -> AsdiResult:
    """Searches all wavelengths of a sequence together for companions (Flasseur et al. 2020, A&A 637, A9).

    cube     [channels, T, H, W], not scaled with wavelength: a planet is at the same place in all channels
    psf      [S, S] for all channels, or [channels, S, S]
    spectra  [channels] or [N, channels]: spectra that a companion may have, as fluxes in any unit. The spectrum
             that fits best is used, and the S/N is lowered for the number of spectra tried. None: the same flux in all
             channels
    threshold  S/N of the faintest companion to find; None: compute only the maps

    The other parameters are those of companions(). Returns an AsdiResult. Raises what paco() raises.
    """
    cube = np.ascontiguousarray(image("cube", cube, 4))
    angles = degrees("angles", angles)
    channels, _, height, columns = cube.shape
    images = np.asarray(plain("psf", psf))
    images = np.ascontiguousarray(image("psf", images[np.newaxis] if images.ndim == 2 else images, 3))
    if images.shape[0] not in (1, channels) or images.shape[1] != images.shape[2]:
        raise ShapeError(f"psf: got shape {images.shape}, but [S, S] or [{channels}, S, S] is expected")
    weights = _weights_of(weights)
    shapes = np.empty((0, channels)) if spectra is None else np.atleast_2d(np.asarray(spectra, np.float64))
    if shapes.ndim != 2 or shapes.shape[1] != channels:
        raise ShapeError(f"spectra: got shape {shapes.shape}, but [N, {channels}] is expected")
    shapes = np.ascontiguousarray(shapes)
    options = _options(radius, center, reverse_angles)
    width = float(np.mean([psf_fwhm(p) for p in images])) if fwhm is None else pixels("asdi: fwhm", fwhm)
    inputs = (_abi.PacoInput * channels)(*(
        _describe(cube[c], (0, 0), angles, images[c if len(images) > 1 else 0], weights) for c in range(channels)))
    wanted = described("asdi", _abi.AsdiOptions, fwhm_px=width, spectrum_count=len(shapes),
                       threshold=np.inf if threshold is None else real("asdi: threshold", threshold))
    wanted.spectra = address(shapes) if len(shapes) else None
    plane = (height, columns)
    a, b = np.empty((channels, *plane)), np.empty((channels, *plane))
    snr, raw, rest = np.empty(plane, np.float32), np.empty(plane, np.float32), np.empty_like(cube)
    found = _abi.AsdiCompanions()
    try:
        with chosen(context).held() as handle, Watch(progress, "asdi") as watch:
            options.progress = watch.function
            watch.done(lib.clv_paco_asdi(
                handle, inputs, channels, ctypes.byref(options), ctypes.byref(wanted), address(a), address(b),
                address(snr), address(raw), address(rest), ctypes.byref(found), report_handle(report)))
        count = found.count
        companions: NDArray[Any] = np.empty(0, _COMPANION)
        fluxes: NDArray[Any] = np.empty((0, channels, 2))
        best: NDArray[Any] = np.empty(0, np.uintp)
        if count:
            companions = seen_at(found.companions, count, _COMPANION).copy()
            best = seen_at(found.spectrum, count, np.dtype(np.uintp)).copy()
            fluxes = seen_at(found.fluxes, count * channels * 2, np.dtype(np.float64)).copy()
            fluxes = fluxes.reshape(count, channels, 2)
    finally:
        lib.clv_asdi_companions_clear(ctypes.byref(found))
    return AsdiResult(companions, fluxes[..., 0].copy(), fluxes[..., 1].copy(), best, snr, raw, a, b, rest, width)
