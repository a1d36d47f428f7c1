# SPDX-License-Identifier: Apache-2.0
"""Fits the velocities and parameters of stars to their spectra."""
from __future__ import annotations

import ctypes
import warnings
from typing import Any, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, dtype_of, numbers, seen_at
from ._check import described, given as shown, not_zero
from ._context import Context, chosen
from ._library import lib
from ._report import Report, report_handle
from ._spectra_library import SpectraLibrary
from ._watch import Progress, Watch
from .errors import ArgumentError, ArgumentTypeError, ShapeError

_RAW = dtype_of(_abi.SpecfitResult)
_ROWS, _COLUMNS = np.tril_indices(6)
#: The meanings of the bits of `warnings` in the result.
WARNINGS = {1: "low contrast", 2: "velocity at a limit", 4: "velocity error above 100 km/s",
            8: "parameter at a limit of the library", 16: "vsini above 100 km/s",
            32: "nothing to fit", 64: "errors are not to be trusted",
            128: "chi-square per degree of freedom above 3",
            256: "an error as large as the spread of the library's values"}


def _unit_of(ivar: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the median error of each star, so that flux / unit fits into float32 whatever the unit of flux."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # nanmedian warns about a star without valid pixels
        error = np.nanmedian(np.where(ivar > 0, ivar, np.nan) ** -0.5, axis=1)
    return np.where((error > 0) & np.isfinite(error), error, 1.0)


class _Spectra:
    """The spectra of all stars in one arm, in the form that the library needs."""

    def __init__(self, given: Mapping[str, Any], library: SpectraLibrary):
        if not isinstance(given, Mapping):
            raise ArgumentTypeError(f"specfit: got {shown(given)}, but a mapping with arm, wavelength, flux and ivar "
                                    "is expected")
        for name in ("arm", "wavelength", "flux", "ivar"):
            if name not in given:
                raise ArgumentError(f"specfit: a spectrum lacks {name!r}; it has {', '.join(given)}")
        self.arm = library.index(given["arm"])
        # masked pixels become NaN, which the library leaves out
        def dense(name: str, dtype: Any) -> NDArray[Any]:
            return np.ascontiguousarray(numbers(f"specfit: {name}", given[name], dtype))

        self.wavelength = dense("wavelength", np.float64)
        flux = np.atleast_2d(dense("flux", np.float64))
        ivar = np.atleast_2d(dense("ivar", np.float64))
        self.unit: NDArray[np.float64] = np.ones(len(flux))
        if flux.shape == ivar.shape and flux.size:
            self.unit = _unit_of(ivar)
            flux, ivar = flux / self.unit[:, None], ivar * self.unit[:, None] ** 2
        self.flux, self.ivar = flux.astype(np.float32), ivar.astype(np.float32)
        mask, resolution = given.get("mask"), given.get("resolution")
        self.mask = None if mask is None else np.ascontiguousarray(
            np.atleast_2d(mask) > 0, np.int32)  # converted to 0 or 1 first, because a mask may have bits above the 32nd
        self.resolution = None if resolution is None else np.ascontiguousarray(
            resolution, np.float32)
        if self.resolution is not None and self.resolution.ndim == 2:
            self.resolution = self.resolution[None]
        shape = self.flux.shape
        if (self.wavelength.shape != shape[1:] or self.ivar.shape != shape or
                (self.mask is not None and self.mask.shape != shape)):
            raise ShapeError(f"specfit: arm {given['arm']}: wavelength has the shape {self.wavelength.shape}, flux "
                             f"{shape} "
                             f"and ivar {self.ivar.shape}, but [P], [N, P] and [N, P] are expected")
        if self.resolution is not None and (
                self.resolution.ndim != 3 or
                (len(self.resolution), self.resolution.shape[2]) != shape):
            raise ShapeError(f"specfit: arm {given['arm']}: resolution has the shape {self.resolution.shape}, but "
                             "[N, D, P] is expected")

    def fill(self, item: _abi.Spectrum, star: int) -> None:
        item.arm, item.pixels = self.arm, len(self.wavelength)
        item.wavelength = address(self.wavelength)
        item.flux, item.ivar = address(self.flux[star]), address(self.ivar[star])
        item.unit = self.unit[star]
        item.mask = None if self.mask is None else address(self.mask[star])
        if self.resolution is not None:
            item.resolution = address(self.resolution[star])
            item.diagonals = self.resolution.shape[1]


def _table(raw: NDArray[np.void], spectra: int) -> NDArray[np.void]:
    """Returns the table without pointers, and with as many elements per column as there are spectra."""
    fields = []
    for name in _RAW.names or ():
        base, shape = _RAW[name].base, _RAW[name].shape
        if name == "covariance":
            shape = (6, 6)
        elif shape:
            shape = (spectra,)
        if name != "model":
            fields.append((name, base, shape))
    rows = np.zeros(len(raw), fields)
    for name in rows.dtype.names or ():
        if name == "covariance":
            rows[name][:, _ROWS, _COLUMNS] = raw[name]
            rows[name][:, _COLUMNS, _ROWS] = raw[name]
        else:
            rows[name] = raw[name][:, :spectra] if raw[name].ndim == 2 else raw[name]
    return rows


def _models(raw: NDArray[np.void], spectra: Sequence[_Spectra]) -> list[NDArray[np.float32]]:
    models = []
    for j, arm in enumerate(spectra):
        model = np.full(arm.flux.shape, np.nan, np.float32)
        for star, pointer in enumerate(raw["model"][:, j]):
            if pointer:
                model[star] = (seen_at(int(pointer), arm.flux.shape[1], model.dtype) *
                               arm.unit[star])
        models.append(model)
    return models


_UNKNOWNS = ("velocity", "vsini", "teff", "logg", "feh", "alpha")


def _priors_of(priors: Mapping[str, Any] | None, fixed: Mapping[str, Any] | None, count: int) -> Any:
    """Returns the priors and fixed values of all stars as an array of C structures; None if there are none."""
    if not priors and not fixed:
        return None
    rows = (_abi.StarPrior * max(count, 1))()
    for what, given_, parts in (("priors", priors, 2), ("fixed", fixed, 1)):
        for name, value in (given_ or {}).items():
            if name not in _UNKNOWNS:
                raise ArgumentError(f"specfit: {what}: got {name!r}, but one of {', '.join(_UNKNOWNS)} is expected")
            table = np.asarray(value, np.float64)
            shape = (2,) if parts == 2 else ()
            if table.shape not in (shape, (count, *shape)):
                raise ShapeError(f"specfit: {what}: {name}: got shape {table.shape}, but {shape} or "
                                 f"{(count, *shape)} is expected")
            numbers_ = np.broadcast_to(table, (count, *shape)).reshape(count, parts)
            at = _UNKNOWNS.index(name)
            for row, one in zip(rows, numbers_.tolist()):
                row.value[at], row.fixed[at] = one[0], parts == 1
                row.sigma[at] = one[1] if parts == 2 else 0.0
    return rows


def specfit(spectra: Mapping[str, Any] | Sequence[Mapping[str, Any]], library: SpectraLibrary, *,
            terms: int = 10, starts: int = 1, max_velocity: float = 1000.0,
            velocity_step: float = 5.0, max_vsini: float = 500.0, library_sigma: float = 0.5,
            min_velocity: float | None = None, ignored: Sequence[Sequence[float]] = (),
            reject_sigma: float = 6.0, priors: Mapping[str, Any] | None = None,
            fixed: Mapping[str, Any] | None = None, models: bool = False,
            context: Context | None = None, report: Report | None = None,
            progress: Progress = None) -> Any:
    """Fits velocity, vsini, teff, logg, feh and alpha of every star: finds the minimum of

        L2 = sum over spectra of log det M + 2 sum_k ln s_k + |D - a'S|^2,
        S_jk = P_j(lambda_k) t_k / s_k,  D_k = d_k / s_k,  M = S S',  a = M^-1 S D,

    where t is the template (rotated, shifted and convolved by the resolution matrix) and P the basis of the continuum.

    Parameters
    ----------
    spectra   for each arm a mapping with "arm" (its name in the library), "wavelength" [P] (Angstrom, rising),
              "flux" [N, P], "ivar" [N, P], and optionally "mask" [N, P] (above 0: bad) and "resolution" [N, D, P] in
              DESI's form. All arms have the same N stars
    library   a SpectraLibrary, see its load()
    terms     number of functions of the continuum, 1 to 15
    starts    number of start values for each star, 1 to 8
    max_velocity, min_velocity, velocity_step, max_vsini   in km/s; min_velocity None: -max_velocity
    library_sigma   in Angstrom
    ignored   ranges (from, to) of wavelengths in Angstrom to leave out of every spectrum
    reject_sigma   pixels further from the best fit than this many times their error and the local scatter are left
              out, and the star is fitted again; at least 3, or inf to reject none
    priors    {name: (mean, sigma)} or {name: [N, 2]}, names as in the result: ((x - mean) / sigma)^2 is added to L2
    fixed     {name: value} or {name: [N]}: the parameter keeps this value and has errors of 0
    models    True: return the best-fit models as well
    context, report, progress   see Context and Report; progress=True shows a bar

    Returns a structured array [N]: velocity, vsini (km/s), teff (K), logg, feh, alpha (dex), their errors, covariance
    [6, 6], start_velocity, neg2logl; chisq, chisq_continuum, pixels, rejected, signal_to_noise [arms]; starts_agreed,
    rounds, warnings (see WARNINGS). With models=True it returns a tuple of that array and a list of float32 [N, P], one
    for each arm. A star without data has NaN and the warning 32.

    Raises ShapeError (also if the library does not cover a spectrum), ArgumentError, FormatError, CancelledError,
    DeviceError. Ctrl-C ends the call.
    """
    if not isinstance(library, SpectraLibrary):
        raise ArgumentTypeError(f"specfit: library is {shown(library)}, but it must be a cleave.SpectraLibrary")
    if isinstance(spectra, Mapping):
        spectra = [spectra]
    if not isinstance(spectra, Sequence):
        raise ArgumentTypeError(f"specfit: spectra is {shown(spectra)}, but it must be a mapping for each arm")
    arms = [_Spectra(one, library) for one in spectra]
    counts = {len(arm.flux) for arm in arms}
    if len(counts) != 1 or len(arms) > _abi.MAX_SPECTRA:
        raise ShapeError(f"specfit: got {len(arms)} arms with {sorted(counts)} stars, but at most {_abi.MAX_SPECTRA} "
                         "arms "
                         "are possible, all with the same number of stars")
    count = counts.pop()
    items = (_abi.Spectrum * max(count * len(arms), 1))()
    for star in range(count):
        for j, arm in enumerate(arms):
            arm.fill(items[star * len(arms) + j], star)
    not_zero("specfit", terms=terms, starts=starts, max_velocity=max_velocity,
             velocity_step=velocity_step, max_vsini=max_vsini, library_sigma=library_sigma)
    ranges = np.ascontiguousarray(numbers("specfit: ignored", ignored, np.float64))
    if ranges.size and (ranges.ndim != 2 or ranges.shape[1] != 2):
        raise ShapeError(f"specfit: ignored: got shape {ranges.shape}, but pairs (from, to) are expected")
    known = _priors_of(priors, fixed, count)
    stars = _abi.SpectraStars(ctypes.sizeof(_abi.SpectraStars), count, len(arms), items, known)
    options = described(
        "specfit", _abi.SpecfitOptions, terms=terms, starts=starts,
        max_velocity_kms=max_velocity, velocity_step_kms=velocity_step, max_vsini_kms=max_vsini,
        library_sigma=library_sigma, models=models, reject_sigma=reject_sigma,
        ignored=address(ranges) if ranges.size else None, ignored_count=len(ranges),
        min_velocity_given=min_velocity is not None,
        min_velocity_kms=0.0 if min_velocity is None else min_velocity)
    raw = np.zeros(count, _RAW)
    try:
        with chosen(context).held() as handle, Watch(progress, "specfit") as watch:
            options.progress = watch.function
            watch.done(lib.clv_specfit(handle, ctypes.byref(library.raw), ctypes.byref(stars),
                                       ctypes.byref(options), address(raw),
                                       report_handle(report)))
        rows = _table(raw, len(arms))
        return (rows, _models(raw, arms)) if models else rows
    finally:
        lib.clv_specfit_results_clear(address(raw), count)
