# SPDX-License-Identifier: Apache-2.0
"""Measures detection limits of a sequence by injecting planets and searching for them."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, dtype_of
from ._astro import pixels
from ._check import described, real
from ._companions import _options, _places, _sequence
from ._context import Context, chosen
from ._library import lib
from ._paco import psf_fwhm
from ._report import Report, report_handle
from ._watch import Progress, Watch

_POINT = dtype_of(_abi.ContrastPoint)


@dataclass(frozen=True)
class ContrastResult:
    """The result of contrast(); fluxes are in units of the PSF.

    curve  structured array, one row for each separation: separation_px, flux (half of the planets of this flux are
           detected; NaN: no flux reaches half), flux_low and flux_high (16 % and 84 % are detected),
           flux_normal (without Student's correction), throughput, noise (standard deviation of b / a), threshold (in
           standard deviations of the noise) and injections
    map    flux at which a planet is detected, float32 [height, width]
    fwhm   FWHM of the PSF in pixels
    """
    curve: NDArray[np.void]
    map: NDArray[np.float32]
    fwhm: float


def contrast(cube: Any, angles: Any, psf: Any, separations: Any = None, *, injections: int = 0, snr: float = 5.0,
             calibrated: bool = True, known: Any = (), radius: int = 4, fwhm: float | None = None,
             center: tuple[float, float] | None = None, reverse_angles: bool = False,
             weights: Any = None, context: Context | None = None, report: Report | None = None,
             progress: Progress = None) -> ContrastResult:
    """Measures the faintest planets that companions() detects, by injecting planets and searching for them.

    cube         [T, H, W] without companions: CompanionResult.rest
    separations  pixels from the star; None: from one FWHM to the edge in steps of half a FWHM, at most 40
    injections   number of planets at each separation; 0: two for each FWHM of the circle, at least 24 and at most 200
    snr          least S/N of a detection: the calibrated S/N, or b / sqrt(a) if `calibrated` is false
    known        [N, 2] (column, row) of the companions that were in the cube

    The other parameters are those of companions(). Raises what paco() raises.
    """
    cube, angles, psf, weights, sequence = _sequence(cube, angles, psf, weights)
    options = _options(radius, center, reverse_angles)
    width = psf_fwhm(psf) if fwhm is None else pixels("contrast: fwhm", fwhm)
    height, columns = cube.shape[1:]
    if separations is None:
        x, y = (columns // 2, height // 2) if center is None else (options.centre_x, options.centre_y)
        far = min(x, y, columns - 1 - x, height - 1 - y) - radius - 0.5
        separations = np.arange(width, far, max(width / 2, (far - width) / 40))
    where = np.atleast_1d(np.asarray(separations, np.float64)).ravel()
    masked = np.ascontiguousarray(_places(known))
    points = np.zeros(len(where), _POINT)
    points["separation_px"] = where
    wanted = described("contrast", _abi.ContrastOptions, snr=real("contrast: snr", snr), injections=injections,
                       raw=not calibrated, known_count=len(masked))
    wanted.known_xy = address(masked) if len(masked) else None
    image = np.empty((height, columns), np.float32)
    with chosen(context).held() as handle, Watch(progress, "contrast") as watch:
        options.progress = watch.function
        watch.done(lib.clv_paco_contrast(
            handle, ctypes.byref(sequence), ctypes.byref(options), width, ctypes.byref(wanted), address(points),
            len(points), address(image), report_handle(report)))
    return ContrastResult(points, image, width)
