# SPDX-License-Identifier: Apache-2.0
"""Makes templates of stellar spectra from high-resolution models."""
from __future__ import annotations

import ctypes
from typing import Any, Mapping

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, as_floats
from ._check import described, given, not_zero, whole
from ._context import Context, chosen
from ._library import InThisProcess, check, has, lib
from ._report import Report, report_handle
from ._spectra_library import SpectraArm, SpectraLibrary
from .errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedError

#: Constants of `cleave templates`: values that differ by less than _SAME are one node; a parameter with a single value
#: gets a second node _BESIDE above it, for which parameters of up to _LARGEST have digits enough; Morton's curve uses
#: _BITS bits per axis.
_SAME, _BESIDE, _LARGEST, _BITS = 1e-6, 1e-3, 1e6, 16


class TemplateMaker(InThisProcess):
    """Makes the templates of an arm from models that have the same wavelengths. The models are smoothed with a
    Gaussian, averaged over the templates' pixels, and divided by their median and slope.

    Parameters
    ----------
    wavelength   [P] wavelengths of the models, Angstrom in vacuum, rising, reaching 5 sigmas and `margin` beyond
                 first and last
    first, last  range of the spectra that will be fitted, Angstrom
    step         step of the templates in the middle between first and last, Angstrom
    sigma        standard deviation of the Gaussian that is the templates' resolution, Angstrom
    resolving_power   wavelength / FWHM of that Gaussian; give either this or sigma
    model_power  wavelength / FWHM of the models; None: infinitely sharp
    margin       how far templates reach beyond first and last, km/s
    keep_slope   False: a straight line in ln flux is divided out

    Raises ArgumentError, ShapeError (wavelengths that do not rise, or do not cover the arm).
    """

    def __init__(self, wavelength: Any, first: float, last: float, step: float, *, sigma: float | None = None,
                 resolving_power: float | None = None, model_power: float | None = None, margin: float = 1000.0,
                 keep_slope: bool = False):
        self._handle: int | None = None
        if not has("clv_template_maker_create"):
            raise UnsupportedError("TemplateMaker: the loaded libcleave does not have it; install version 0.2 or later")
        wave = np.ascontiguousarray(as_floats("TemplateMaker: wavelength", wavelength, 1, np.float64))
        if (sigma is None) == (resolving_power is None):
            raise ArgumentError("TemplateMaker: give either sigma or resolving_power" +
                                ("; neither is given" if sigma is None else ", not both"))
        not_zero("TemplateMaker", sigma=sigma, resolving_power=resolving_power, model_power=model_power, margin=margin)
        source = described("TemplateMaker", _abi.TemplateSource, points=len(wave), wavelength=address(wave),
                           resolving_power=model_power or 0.0)
        arm = described("TemplateMaker", _abi.TemplateArm, first=first, last=last, step=step, sigma=sigma or 0.0,
                        resolving_power=resolving_power or 0.0, margin_kms=margin, keep_slope=keep_slope)
        made = ctypes.c_void_p()
        check(lib.clv_template_maker_create(ctypes.byref(source), ctypes.byref(arm), ctypes.byref(made)))
        self._handle, self._points = made.value, len(wave)
        self._grid = lib.clv_template_maker_grid(self._handle)

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            lib.clv_template_maker_free(handle)

    @property
    def points(self) -> int:
        """The number of points of a template; they are equidistant in ln lambda."""
        return int(self._grid.points)

    @property
    def wavelength(self) -> NDArray[np.float64]:
        """The [points] wavelengths of the templates, in Angstrom."""
        return np.geomspace(self._grid.first, self._grid.last, self.points)

    @property
    def sigma(self) -> float:
        """The standard deviation of the Gaussian in the middle of the range, in Angstrom."""
        return float(self._grid.sigma)

    def log_flux(self, flux: Any, *, context: Context | None = None,
                 report: Report | None = None) -> NDArray[np.float32]:
        """Makes templates [N, points] of models [N, P], whose flux per wavelength may have any unit. The result is ln
        flux, within 5e-6 of float64.

        Raises ShapeError, FormatError (a flux that is not a number, or not above 0 after smoothing), DeviceError.
        """
        wide = np.atleast_2d(as_floats("TemplateMaker: flux", flux, np.ndim(flux), np.float64))
        if wide.ndim != 2 or wide.shape[1] != self._points or not len(wide):
            raise ShapeError(f"TemplateMaker: got flux of shape {np.shape(flux)}, but [N, {self._points}] is expected")
        with np.errstate(divide="ignore", invalid="ignore"):  # the library refuses fluxes that are NaN or not above 0
            scale = np.nanmax(np.abs(wide), axis=1, keepdims=True, initial=0.0)
            dense = np.ascontiguousarray(wide / np.where(np.isfinite(scale) & (scale > 0), scale, 1), np.float32)
        made = np.empty((len(dense), self.points), np.float32)
        with chosen(context).held() as handle:
            check(lib.clv_template_maker_run(self._handle, handle, address(dense), len(dense), address(made),
                                             report_handle(report)))
        return made

    def start_templates(self, log_flux: Any) -> NDArray[np.float32]:
        """Makes start templates [K, a power of two] of templates [K, points]: divides them by their continuum, a robust
        quadratic spline in ln flux."""
        dense = np.ascontiguousarray(self._templates("TemplateMaker: log_flux", log_flux))
        made = np.empty((len(dense), int(self._grid.ccf_points)), np.float32)
        check(lib.clv_template_maker_starts(self._handle, address(dense), len(dense), address(made)))
        return made

    def _templates(self, what: str, log_flux: Any) -> NDArray[np.float32]:
        table = as_floats(what, log_flux, 2)
        if table.shape[1] != self.points:
            raise ShapeError(f"{what} is {table.shape}, but it must be [N, {self.points}]")
        return table


def _axes_of(parameters: NDArray[np.float64]) -> tuple[list[NDArray[np.float64]], NDArray[np.int64], list[bool]]:
    """Returns the nodes of each axis, the index of each model's node on each axis, and for each axis whether all models
    have the same value."""
    values = parameters.copy()
    values[:, 0] = np.log10(values[:, 0])
    axes, numbers, single = [], [], []
    for column in values.T:
        ordered = np.sort(column)
        axis = ordered[np.concatenate(([True], np.diff(ordered) > _SAME))]
        numbers.append(np.searchsorted(axis, column + 0.5 * _SAME) - 1)
        single.append(len(axis) == 1)
        axes.append(np.append(axis, axis + _BESIDE) if single[-1] else axis)
    return axes, np.array(numbers).T, single


def _along_curve(nodes: NDArray[np.int64], axes: list[NDArray[np.float64]], single: list[bool]) -> NDArray[np.int64]:
    """Returns the indices of the models in the order of Morton's curve through the grid, as in rvspecfit's make_ccf."""
    last = np.array([1 if one else len(axis) - 1 for axis, one in zip(axes, single)])
    whole_ = np.minimum(nodes / last * (1 << _BITS), (1 << _BITS) - 1).astype(np.uint64)
    key = np.zeros(len(nodes), np.uint64)
    for k in range(4):
        for bit in range(_BITS):
            key |= (whole_[:, k] >> np.uint64(bit) & np.uint64(1)) << np.uint64(4 * bit + k)
    return np.argsort(key.view(np.int64), kind="stable")


def spectra_library(arms: Mapping[str, tuple[TemplateMaker, Any]], parameters: Any, *,
                    starts: int = 300) -> SpectraLibrary:
    """Makes a library of templates on a regular grid of parameters, as `cleave templates` does.

    Parameters
    ----------
    arms        {name: (maker, log_flux)}: log_flux [N, maker.points] as maker.log_flux() returns it
    parameters  [N, 4] teff (K), logg, feh, alpha of the models. They form a regular grid, in which nodes may be absent.
                A parameter with a single value gets a second node beside it: fix it in specfit(fixed=...)
    starts      approximate number of start templates, which are chosen along a curve through the grid

    Raises ShapeError, ArgumentError (two models with the same parameters, a temperature that is not above 0, another
    parameter beyond 1e6).
    """
    table = np.ascontiguousarray(as_floats("spectra_library: parameters", parameters, 2, np.float64))
    if table.shape[1] != 4 or not len(table):
        raise ShapeError(f"spectra_library: got parameters of shape {table.shape}, but [N, 4] is expected")
    if not np.isfinite(table).all() or not (table[:, 0] > 0).all():
        raise ArgumentError("spectra_library: parameters: a number is not finite, or a temperature is 0 K or less")
    for name, column in zip(("logg", "feh", "alpha"), table.T[1:]):
        far = float(column[np.abs(column).argmax()])
        if abs(far) > _LARGEST:
            raise ArgumentError(f"spectra_library: parameters: {name} is {far:g}, but it must lie between "
                                f"{-_LARGEST:g} and {_LARGEST:g}")
    if not isinstance(arms, Mapping) or not arms:
        raise ArgumentTypeError(f"spectra_library: arms is {given(arms)}, but it must be {{name: (maker, log_flux)}}")
    axes, nodes, single = _axes_of(table)
    shape = tuple(map(len, axes))
    _, first = np.unique(nodes, axis=0, return_index=True)
    if len(first) != len(table):
        twice = sorted(set(range(len(table))) - set(first.tolist()))[0]
        raise ArgumentError(f"spectra_library: parameters: two models have the parameters {table[twice].tolist()}")
    grid = np.full(shape, -1, np.int32)
    grid[tuple(nodes.T)] = np.arange(len(table))
    for axis, one in enumerate(single):
        if one:
            grid = np.repeat(np.take(grid, [0], axis), 2, axis)
    every = -(-len(table) // whole("spectra_library: starts", starts, 1))
    picked = _along_curve(nodes, axes, single)[::every]
    made = []
    for name, (maker, log_flux) in arms.items():
        if not isinstance(maker, TemplateMaker):
            raise ArgumentTypeError(f"spectra_library: arm {name}: got {given(maker)}, but a cleave.TemplateMaker is "
                                    "expected")
        flux = maker._templates(f"spectra_library: arm {name}: log_flux", log_flux)
        if len(flux) != len(table):
            raise ShapeError(f"spectra_library: arm {name}: there are {len(flux)} templates, but {len(table)} models")
        about = maker._grid
        made.append(SpectraArm(name, about.first, about.last, [], [], np.zeros(4), np.ones(4), np.zeros((0, 4)),
                               maker.start_templates(flux[picked]), about.ccf_log0, about.ccf_log1,
                               about.ccf_spline_kms, about.sigma, axes, grid, flux))
    return SpectraLibrary(made, table[picked])
