# SPDX-License-Identifier: Apache-2.0
"""Tests inputs that astronomers have: HDUs, quantities, tables. Astropy itself is not needed; objects that behave like
Astropy's are enough."""
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from test_companions import FRAMES, MIDDLE, RADIUS, SIDE, planets, spot

import cleave

ANGLES = np.linspace(-20, 75, FRAMES)
PSF = spot(13, 13, 6, 6).astype(np.float32)
PLACE = (30.6, 24.3)


def hdu(data):
    return SimpleNamespace(data=data, header={})


class Quantity(np.ndarray):
    """An array with a unit, as in Astropy."""
    unit = "rad"

    def to_value(self, unit):
        assert unit == "deg"
        if self.unit != "rad":
            raise ValueError(f"'{self.unit}' and 'deg' are not convertible")
        return np.degrees(np.asarray(self))


@pytest.fixture(name="cube", scope="module")
def made_up_cube():
    cube = np.random.default_rng(3).normal(size=(FRAMES, SIDE, SIDE)) + planets(ANGLES, (*PLACE, 30.0))
    return cube.astype(np.float32)


def test_hdus_tables_and_quantities_are_arrays(context, cube):
    options = {"radius": RADIUS, "context": context}
    want = cleave.companions(cube, ANGLES, PSF, **options)
    assert len(want.companions) == 1
    table = np.zeros(FRAMES, [("TIME", "f8"), ("ParAng", ">f8")])
    table["ParAng"] = ANGLES
    for angles in (hdu(ANGLES.astype(">f8")[:, None]), [hdu(None), hdu(table)], ANGLES[None, :],
                   np.radians(ANGLES).view(Quantity)):
        got = cleave.companions([hdu(None), hdu(cube.astype(">f4"))], angles, hdu(PSF.astype(">f8")),
                                center=(MIDDLE, SimpleNamespace(unit="pix", value=float(MIDDLE))), **options)
        np.testing.assert_allclose(got.snr_raw, want.snr_raw, rtol=1e-4, atol=1e-4)
    maps = cleave.paco(hdu(cube), hdu(ANGLES), hdu(PSF), radius=RADIUS, context=context)
    np.testing.assert_array_equal(maps.snr, want.snr_raw)


def test_what_has_no_such_meaning_is_refused(reference, cube):
    def refused(error, match, angles=ANGLES, psf=PSF, **options):
        with pytest.raises(error, match=match):
            cleave.companions(cube, angles, psf, radius=RADIUS, context=reference, **options)
    metres = np.ones(FRAMES).view(Quantity)
    metres.unit = "m"
    refused(cleave.ArgumentError, "'m' and 'deg' are not convertible", angles=metres)
    refused(cleave.ShapeError, "must be called PA, PARANG... or ANGLE", angles=hdu(np.zeros(FRAMES, [("TIME", "f8")])))
    refused(cleave.ShapeError, "psf: the HDU has no data", psf=hdu(None))
    refused(cleave.ArgumentError, "a number of pixels", fwhm=SimpleNamespace(unit="arcsec", value=4.0))
    refused(cleave.ArgumentTypeError, "column, row", center=3.0)


def test_results_say_that_they_need_astropy(context, cube, monkeypatch):
    found = cleave.companions(cube, ANGLES, PSF, radius=RADIUS, context=context)
    monkeypatch.setitem(sys.modules, "astropy", None)
    for name in ("astropy.io.fits", "astropy.table", "astropy.units"):
        monkeypatch.setitem(sys.modules, name, None)
    for ask in (found.to_hdus, found.to_table):
        with pytest.raises(ImportError, match="pip install astropy"):
            ask()
