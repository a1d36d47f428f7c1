# SPDX-License-Identifier: Apache-2.0
"""Reads astropy's HDUs, quantities and tables, and returns results as HDUs and tables. Only the functions that return
astropy objects import astropy."""
from __future__ import annotations

import importlib
from typing import Any, Mapping

import numpy as np
from numpy.typing import NDArray

from ._arrays import as_floats
from ._check import given, real
from .errors import ArgumentError, ArgumentTypeError, ShapeError



def _is_angle(name: str) -> bool:
    return name.upper() == "PA" or name.upper().startswith(("PARANG", "ANGLE"))


def _is_hdu(value: Any) -> bool:
    return hasattr(value, "header") and hasattr(value, "data") and not isinstance(value, np.ndarray)


def plain(what: str, value: Any) -> Any:
    """Returns the data of an HDU, or of the first HDU of a list that has data; returns anything else unchanged."""
    if isinstance(value, (list, tuple)) and value and all(_is_hdu(v) for v in value):
        value = next((v for v in value if v.data is not None), value[0])
    if not _is_hdu(value):
        return value
    if value.data is None:
        raise ShapeError(f"{what}: the HDU has no data")
    return value.data


def image(what: str, value: Any, ndim: int) -> NDArray[Any]:
    """Returns the data of an array or of an HDU as as_floats() does, with `ndim` axes."""
    return as_floats(what, plain(what, value), ndim)


def degrees(what: str, value: Any) -> NDArray[np.float64]:
    """Returns angles in degrees. They may be an array, a quantity with any unit of angles, an image [T], [T,1] or
    [1,T], or a table with a column PA, PARANG... or ANGLE... (in degrees unless its unit says otherwise)."""
    tables = value if isinstance(value, (list, tuple)) else [value]
    units = next((t.columns for t in tables if getattr(t, "data", None) is not None and hasattr(t, "columns")), None)
    value = plain(what, value)
    names = getattr(getattr(value, "dtype", None), "names", None)
    if names:
        name = next((n for n in names if _is_angle(n)), None)
        if name is None:
            raise ShapeError(f"{what}: got a table with the columns {', '.join(names)}, but one of them must be "
                             "called PA, PARANG... or ANGLE...")
        value = value[name]
        if units is not None and str(units[name].unit).lower() in ("rad", "radian"):
            value = np.degrees(value)
    if getattr(value, "unit", None) is not None and hasattr(value, "to_value"):
        try:
            value = value.to_value("deg")
        except Exception as error:  # astropy's UnitConversionError; naming it would import astropy
            raise ArgumentError(f"{what}: {error}") from None
    array = np.asarray(value)
    if array.ndim == 2 and 1 in array.shape:
        value = array.ravel()
    return np.ascontiguousarray(as_floats(what, value, 1, np.float64))


def pixels(what: str, value: Any) -> float:
    """Returns a number, or the value of a quantity in pixels."""
    unit = getattr(value, "unit", None)
    if unit is None or not hasattr(value, "value"):
        return real(what, value)
    if str(unit) not in ("pix", "pixel", ""):
        raise ArgumentError(f"{what} is {value}, but it must be a number of pixels")
    return real(what, value.value)


def pair(what: str, value: Any) -> tuple[float, float]:
    """Returns (column, row) from numbers or from quantities in pixels."""
    try:
        column, row = value
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{what} is {given(value)}, but it must be (column, row)") from None
    return pixels(what, column), pixels(what, row)


# ---- results ----


def _astropy(module: str) -> Any:
    try:
        return importlib.import_module(f"astropy.{module}")
    except ImportError:
        raise ImportError("astropy is needed for this: pip install astropy") from None


def hdus(maps: Mapping[str, NDArray[Any]], fwhm: float | None) -> Any:
    """Returns an astropy HDUList: an empty primary HDU, and an image for each map."""
    fits = _astropy("io.fits")
    made = fits.HDUList([fits.PrimaryHDU()])
    for name, values in maps.items():
        hdu = fits.ImageHDU(values, name=name)
        if fwhm is not None:
            hdu.header["FWHM"] = (fwhm, "of the PSF [pixel]")
        made.append(hdu)
    return made


def _scale(value: Any) -> float | None:
    """Returns the number of milliarcseconds per pixel."""
    if value is None:
        return None
    if hasattr(value, "to_value"):
        units = _astropy("units")
        value = (value * units.pix).to_value("mas") if "pix" in str(value.unit) else value.to_value("mas")
    return real("pixel_scale", value)


def companion_table(found: NDArray[np.void], pixel_scale: Any, star_flux: Any, true_north: float) -> Any:
    """Returns an astropy QTable with the columns of detections.csv and their units."""
    units, table = _astropy("units"), _astropy("table")
    scale, made = _scale(pixel_scale), table.QTable()
    for name in ("x", "y", "x_err", "y_err"):
        made[name] = found[name] * units.pix
    made["separation_px"] = found["separation_px"] * units.pix
    made["position_angle"] = np.mod(found["position_angle"] + true_north, 360) * units.deg
    for name in ("snr", "flux", "flux_err", "false_alarm"):
        made[name] = found[name]
    if scale is not None:
        made["separation"] = found["separation_px"] * scale * units.mas
    if star_flux is not None:
        ratio = np.asarray(found["flux"], np.float64) / real("star_flux", star_flux)
        with np.errstate(invalid="ignore", divide="ignore"):
            made["delta_mag"] = -2.5 * np.log10(ratio) * units.mag
            made["delta_mag_err"] = 2.5 / np.log(10) * found["flux_err"] / found["flux"] * units.mag
    return made
