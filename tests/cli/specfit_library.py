#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the converter of libraries of rvspecfit with a network and a regular grid, both written by rvspecfit.

usage: specfit_library.py CLEAVE CONVERTER PEERS
Needs a Python with rvspecfit, astropy and torch ($CLEAVE_RVSPECFIT_PYTHON, else this one). The network has the same
numbers after the conversion. The grid lacks one node; its templates are those that rvspecfit makes. Stars made of these
templates are found, and rvspecfit's chi-square at the optimum equals that of `cleave specfit`."""
import contextlib
import csv
import io
import json
import os
import subprocess
import sys
import tempfile

import specfit_templates
import testdata

# the same number of each: rvspecfit 0.9 cannot write others with a recent NumPy
TEFF, LOGG, FEH, ALPHA = [4500, 5000, 5600, 6300], [2, 3, 4, 5], [-2, -1, -0.5, 0], [0, 0.1, 0.2, 0.4]
STARS = [(120.0, 5300.0, 3.6, -0.7, 0.15), (-75.0, 4700.0, 2.4, -1.4, 0.3),
         (15.0, 6100.0, 4.3, -0.3, 0.1)]


def interpreter():
    """Returns a Python that has rvspecfit, or None."""
    for python in (os.environ.get("CLEAVE_RVSPECFIT_PYTHON"), sys.executable):
        if python and subprocess.run([python, "-c", "import rvspecfit, astropy, h5py, torch"],
                                     capture_output=True).returncode == 0:
            return python
    return None


# ---- what runs in that Python -----------------------------------------------------------------


def make_grid(work, arm):
    """Makes spectra of the reference's network at the nodes in the form of rvspecfit's tools; rvspecfit makes their
    grid and start templates."""
    import numpy as np
    from rvspecfit import make_ccf, make_nd, serializer
    folder = os.path.join(testdata.path_of("specfit/lib"), arm)

    def load(name):
        return np.load(os.path.join(folder, name + ".npy"))

    nodes = np.array(np.meshgrid(TEFF, LOGG, FEH, ALPHA, indexing="ij"), float).reshape(4, -1)
    nodes = nodes[:, 1:]  # the first node is missing
    x = nodes.T.copy()
    x[:, 0] = np.log10(x[:, 0])
    h = ((x - load("mean")) / load("std")).astype(np.float32)
    layer = 0
    while os.path.exists(os.path.join(folder, f"model_lin_{layer}_weight.npy")):
        h = h @ load(f"model_lin_{layer}_weight").T + load(f"model_lin_{layer}_bias")
        h = h / (1 + np.exp(-h))
        layer += 1
    flux = (h @ load("pc_layer_weight").T + load("pc_layer_bias")).astype(np.float32)
    serializer.save_dict_to_hdf5(os.path.join(work, f"specs_{arm}.h5"), {
        "specs": flux, "vec": nodes, "lam": load("lam"),
        "parnames": ["teff", "logg", "feh", "alpha"], "mapper_module": "rvspecfit.read_grid",
        "mapper_class_name": "LogParamMapper", "mapper_args": ([0],),
        "lognorms": np.zeros(len(flux)), "log_spec": True, "log_step": True})
    make_nd.execute(arm, prefix=work, regular=True, revision="test")
    told = json.load(open(os.path.join(testdata.path_of("specfit/lib"), "lib.json"), encoding="ascii"))
    ccf = told["arms"][arm]["ccf"]
    conf = make_ccf.get_ccf_config(logl0=ccf["logl0"], logl1=ccf["logl1"], npoints=ccf["npoints"])
    with contextlib.redirect_stdout(io.StringIO()):
        make_ccf.ccf_executor(arm, conf, work, work, 9, [0.0])
    return load("lam")


def template(ours, arm, parameters):
    """Returns a template of the converted library by the formula in its documentation."""
    import numpy as np

    def load(name):
        return np.load(os.path.join(ours, arm, name + ".npy"))

    axes, q = [load(f"axis_{k}") for k in range(4)], np.array(parameters, float)
    q[0] = np.log10(q[0])
    cell = [min(int(np.searchsorted(u, x, "right")) - 1, len(u) - 2) for u, x in zip(axes, q)]
    total = 0
    for corner in range(16):
        at = [c + (corner >> k & 1) for k, c in enumerate(cell)]
        row, weight = load("grid")[tuple(at)], 1.0
        assert row >= 0
        for k, (u, c) in enumerate(zip(axes, cell)):
            x = (q[k] - u[c]) / (u[c + 1] - u[c])
            weight *= x if corner >> k & 1 else 1 - x
        total = total + weight * load("log_flux")[row].astype(float)
    return np.exp(total)


def write_coadd(path, config):
    """Writes stars of the grid with two arms and S/N 60."""
    import numpy as np
    from astropy.io import fits
    from astropy.table import Table
    from rvspecfit import spec_fit, spec_inter
    random = np.random.RandomState(3)
    hdus = [fits.PrimaryHDU(), fits.BinTableHDU(Table({
        "TARGETID": np.arange(len(STARS), dtype=np.int64), "OBJTYPE": ["TGT"] * len(STARS),
        "COADD_FIBERSTATUS": np.zeros(len(STARS), np.int32)}), name="FIBERMAP")]
    for letter in "RZ":
        interpolator = spec_inter.getInterpolator("desi_" + letter.lower(), config)
        lam = interpolator.lam
        margin = 1 + 1050 / 299792.458
        wave = np.arange(lam[0] * margin + 1, lam[-1] / margin - 1, 0.8)
        flux = np.array([
            spec_fit.evalRV(spec_fit.getRVInterpol(lam, interpolator.eval(star[1:])), star[0], wave)
            for star in STARS])
        error = np.median(flux, axis=1)[:, None] / 60 * np.ones_like(flux)
        flux = flux + random.normal(size=flux.shape) * error
        for what, data in (("WAVELENGTH", wave), ("FLUX", flux.astype(np.float32)),
                           ("IVAR", (1 / error**2).astype(np.float32)),
                           ("MASK", np.zeros(flux.shape, np.int32))):
            hdus.append(fits.ImageHDU(data, name=f"{letter}_{what}"))
    fits.HDUList(hdus).writeto(path)


def value_of(config, coadd, row):
    """Returns the L2 that rvspecfit computes at the optimum that Cleave found."""
    from astropy.io import fits
    from rvspecfit import spec_fit
    from rvspecfit.desi import desi_fit
    with fits.open(coadd) as file:
        def of(what):
            return {arm: file[f"{arm.upper()}_{what}"].data.astype(float) for arm in "rz"}
        masks = {arm: file[f"{arm.upper()}_MASK"].data for arm in "rz"}
        data = desi_fit.get_specdata(of("WAVELENGTH"), of("FLUX"), of("IVAR"), masks, None,
                                     int(row["TARGETID"]), ["r", "z"])
    parameters = [float(row[name]) for name in ("TEFF", "LOGG", "FEH", "ALPHAFE")]
    return spec_fit.get_chisq(data, float(row["VRAD"]), parameters, (float(row["VSINI"]),),
                              config=config, options={"npoly": 10})


def grid_is_the_same(cleave, converter, folder):
    import numpy as np
    from rvspecfit import spec_inter, utils
    work, ours = os.path.join(folder, "grid"), os.path.join(folder, "ours")
    os.makedirs(work)
    for arm in ("desi_r", "desi_z"):
        make_grid(work, arm)
    settings = os.path.join(work, "config.yaml")
    with open(settings, "w", encoding="ascii") as file:
        file.write(f"template_lib: '{work}/'\nmin_vel: -1000\nmax_vel: 1000\nmin_vel_step: 0.2\n"
                   "vel_step0: 5\nmin_vsini: 0.1\nmax_vsini: 500\nsecond_minimizer: 1\n")
    config = utils.read_config(settings)
    subprocess.run([sys.executable, converter, work, ours], check=True)
    wrong = []
    random = np.random.RandomState(5)
    for arm in ("desi_r", "desi_z"):
        theirs = spec_inter.getInterpolator(arm, config)
        for _ in range(6):
            p = [random.uniform(5050, 6250), random.uniform(3.1, 4.9), random.uniform(-0.9, -0.1),
                 random.uniform(0.01, 0.39)]
            off = float(np.max(np.abs(template(ours, arm, p) / theirs.eval(p) - 1)))
            if not off < 2e-6:
                wrong.append(f"{arm} at {p}: templates differ by {off}")
    coadd, out = os.path.join(folder, "coadd.fits"), os.path.join(folder, "out.csv")
    write_coadd(coadd, config)
    for mode in (["--mode", "reference"], []):  # plain C, and any device of this machine
        subprocess.run([cleave, "specfit", coadd, "--library", ours, "-o", out, "-q", *mode],
                       check=True)
        with open(out, encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        for row, star in zip(rows, STARS):
            found = [float(row[name]) for name in ("VRAD", "TEFF", "LOGG", "FEH", "ALPHAFE")]
            print("   ", [f"{v:.3f}" for v in found], star, row["NEG2LOGL"], row["RVS_WARN"])
            for value, truth, allowed in zip(found, star, (3, 60, 0.15, 0.12, 0.1)):
                if not abs(value - truth) <= allowed:
                    wrong.append(f"{mode} star {row['TARGETID']}: {value}, truth {truth}")
            theirs = value_of(config, coadd, row)
            if not abs(theirs - float(row["NEG2LOGL"])) <= 0.1:
                wrong.append(f"{mode} star {row['TARGETID']}: -2 log L {row['NEG2LOGL']}, rvspecfit "
                             f"says {theirs}")
    return wrong


def network_comes_back(converter, peers, folder):
    """Tests our network after it was written in rvspecfit's formats by rvspecfit's writers and converted back."""
    import numpy as np
    sys.path.insert(0, peers)
    import specfit_rvspecfit
    source = testdata.path_of("specfit/lib")
    os.makedirs(os.path.join(folder, "x"))
    os.symlink(source, os.path.join(folder, "specfit-library"))
    specfit_rvspecfit.library(os.path.join(folder, "x"))
    ours = os.path.join(folder, "back")
    subprocess.run([sys.executable, converter, os.path.join(folder, "specfit-rvspecfit"), ours],
                   check=True)
    wrong = []
    for path, _, names in os.walk(source):
        for name in names:
            here, there = os.path.join(path, name), os.path.join(
                ours, os.path.relpath(path, source), name)
            if name == "ccf_vsinis.npy":  # the conversion to rvspecfit does not keep them
                continue
            if name.endswith(".npy") and not np.allclose(np.load(here), np.load(there), rtol=1e-12,
                                                         atol=0):
                wrong.append(f"{os.path.relpath(here, source)} differs")
    with open(os.path.join(ours, "lib.json"), encoding="ascii") as one, \
            open(os.path.join(source, "lib.json"), encoding="ascii") as two:
        got, want = json.load(one)["arms"], json.load(two)["arms"]
    for arm, about in want.items():
        for key in ("npix", "layers"):
            if about[key] != got[arm][key]:
                wrong.append(f"{arm}: {key} {got[arm][key]}, {about[key]} expected")
    return wrong


def builder_is_the_same(cleave, folder):
    """Tests that both builders make the same of models in PHOENIX's layout: ln flux, rows, grid and start templates."""
    import numpy as np
    from rvspecfit import make_ccf, make_interpol, read_grid, serializer
    made = specfit_templates
    source, work, ours = (os.path.join(folder, name) for name in ("phoenix", "theirs", "built"))
    made.write_phoenix(source, made.Models(), leave_out=(6000, 3.5, 0.0, 0.4))
    os.makedirs(work)
    first, last, step = made.ARM
    name = "PHOENIX-ACES-AGSS-COND-2011"
    prefix, wave = os.path.join(source, name) + "/", os.path.join(source, f"WAVE_{name}.fits")
    read_grid.makedb(prefix, dbfile=os.path.join(work, "files.db"), mask="*/*fits", name_metallicity="feh",
                     name_alpha="alpha", keywords={"teff": "PHXTEFF", "logg": "PHXLOGG", "feh": "PHXM_H",
                                                   "alpha": "PHXALPHA"})
    power = 4300.0
    with contextlib.redirect_stdout(io.StringIO()):
        make_interpol.process_all(("green", first, last, make_interpol.Resolution(resol=power), step, True),
                                  dbfile=os.path.join(work, "files.db"), oprefix=work, prefix=prefix, wavefile=wave,
                                  resolution0=100000, nthreads=1, log_parameters=[0])
        points = make_ccf.to_power_two(int((last - first) / step))
        conf = make_ccf.get_ccf_config(logl0=np.log(first), logl1=np.log(last), npoints=points)
        make_ccf.ccf_executor("green", conf, work, work, 2, [0.0])
    subprocess.run([cleave, "templates", source, "-o", ours, "--arm", f"green={first}:{last}:{step}", "-q",
                    "--resolving-power", str(power), "--model-power", "100000", "--starts", "12"], check=True)
    theirs = serializer.load_dict_from_hdf5(os.path.join(work, "specs_green.h5"))
    got, wrong = np.load(os.path.join(ours, "green", "log_flux.npy")), []
    with open(os.path.join(ours, "lib.json"), encoding="ascii") as file:
        about = json.load(file)["arms"]["green"]
    if got.shape != theirs["specs"].shape or abs(about["lam0"] / theirs["lam"][0] - 1) > 1e-12 or \
            abs(about["lam1"] / theirs["lam"][-1] - 1) > 1e-12:
        return [f"builder: {got.shape} from {about['lam0']}, rvspecfit {theirs['specs'].shape} from {theirs['lam'][0]}"]
    off = float(np.max(np.abs(np.exp(got.astype(float) - theirs["specs"]) - 1)))
    ccf = np.load(os.path.join(ours, "green", "ccf_models.npy"))
    their_ccf = np.load(os.path.join(work, "ccfmod_green.npy"))
    same = np.array_equal(np.load(os.path.join(ours, "ccf_params.npy")),
                          serializer.load_dict_from_hdf5(os.path.join(work, "ccf_green.h5"))["params"])
    off_ccf = float(np.max(np.abs(ccf - their_ccf))) if ccf.shape == their_ccf.shape else np.inf
    print(f"builder: flux within {off:.1e} of make_interpol, start templates within {off_ccf:.1e}")
    if not off < 1e-5:
        wrong.append(f"builder: flux differs by {off}")
    if not same or not off_ccf < 3e-3:
        wrong.append(f"builder: start templates differ by {off_ccf}, the same ones: {same}")
    return wrong


def main():
    cleave, converter, peers = (os.path.abspath(path) for path in sys.argv[1:4])
    python = interpreter()
    if not python:
        testdata.skip("no Python with rvspecfit and torch: CLEAVE_RVSPECFIT_PYTHON does not name one")
    if os.path.realpath(python) != os.path.realpath(sys.executable) or "--inside" not in sys.argv:
        return subprocess.run([python, __file__, cleave, converter, peers, "--inside"],
                              check=False).returncode
    with tempfile.TemporaryDirectory() as folder:
        wrong = network_comes_back(converter, peers, folder)
        wrong += grid_is_the_same(cleave, converter, folder)
        wrong += builder_is_the_same(cleave, folder)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
