#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures rvspecfit: whole fits in two processes of one thread, and the functions that a fit consists of.

Its libraries are made here from ours, by its own writers. Whole fits are measured by `desi_fit.proc_desi`, with reading
and writing; each process fits half of the stars. Parts are measured by the time of one call times the number of calls
that the case's name states.

usage: specfit_rvspecfit.py FOLDER OUT VARIANT"""
import os
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"
os.environ["RVS_NN_DEVICE"] = "cpu"
import json
import logging
import multiprocessing
import sys
import time

import numpy as np
import rvspecfit
import torch
from rvspecfit import fitter_ccf, make_ccf, serializer, spec_fit, spec_inter, utils
from rvspecfit.desi import desi_fit
from rvspecfit.nn.NNInterpolator import NNInterpolator, save_checkpoint

SAME_FORMULAS = False  # has another optimiser; tests compare the results of both
FROM_FILES = False  # proc_desi reads and writes, so the time includes this
PROCESSES = 2
WHOLE, LARGE, NETWORK, SPLINE, VALUES, SCAN, START, PREPARE, JUDGE = range(9)
chosen = {"variant": WHOLE}
pools = {}


def name():
    return f"rvspecfit {rvspecfit.__version__}"


def can(case):
    return case["variant"] not in (LARGE, PREPARE, JUDGE) and case["size"][0] > 2


def choose(case):
    chosen.update(case)


def load_array(*parts):
    return np.load(os.path.join(*parts) + ".npy")


def make_network(source, target, arm, described):
    layers = described["layers"]
    inner = len(layers) - 3
    net = NNInterpolator(indim=4, nlayers=inner - 1, width=layers[1], npc=layers[-2],
                         npix=layers[-1], withbn=False)
    state = net.state_dict()
    for key in state:
        state[key] = torch.tensor(load_array(source, arm, key.replace(".", "_")))
    net.load_state_dict(state)
    save_checkpoint(net, os.path.join(target, f"NNstate_{arm}.sav"))
    first, last, points = described["lam0"], described["lam1"], described["npix"]
    lam = np.exp(np.linspace(np.log(first), np.log(last), points))
    serializer.save_dict_to_hdf5(os.path.join(target, f"interp_{arm}.h5"), {
        "mapper_module": "rvspecfit.nn.NNInterpolator", "mapper_class_name": "Mapper",
        "mapper_args": (load_array(source, arm, "mean"), load_array(source, arm, "std"), [0]),
        "parnames": ["teff", "logg", "feh", "alpha"], "lam": lam, "log_spec": True,
        "log_step": True, "module": "rvspecfit.nn.RVSInterpolator",
        "class_name": "RVSInterpolator", "device": "cpu",
        "class_kwargs": {"indim": 4, "npc": layers[-2], "nlayers": inner - 1, "width": layers[1],
                         "npix": points, "withbn": False},
        "outside_class_name": "OutsideInterpolator",
        "outside_kwargs": {"pts": load_array(source, arm, "hull_pts")},
        "nn_file": f"NNstate_{arm}.sav", "revision": "", "git_rev": rvspecfit.__version__,
        "cmdline": "", "interpolation_type": "generic"})


def make_starts(source, target, arm, described):
    told = described["ccf"]
    conf = make_ccf.get_ccf_config(logl0=told["logl0"], logl1=told["logl1"],
                                   npoints=told["npoints"], splinestep=told["splinestep"])
    params, models = load_array(source, "ccf_params"), load_array(source, arm, "ccf_models")
    models = models.astype(float)
    vsinis = os.path.join(source, "ccf_vsinis.npy")
    vsinis = np.load(vsinis).astype(float) if os.path.exists(vsinis) else np.zeros(len(params))
    serializer.save_dict_to_hdf5(os.path.join(target, make_ccf.get_ccf_info_name(arm)), {
        "params": params, "ccfconf": conf, "vsinis": vsinis,
        "parnames": ["teff", "logg", "feh", "alpha"], "revision": "", "cmdline": ""})
    np.save(os.path.join(target, make_ccf.get_ccf_mod_name(arm)), models)
    np.savez(os.path.join(target, make_ccf.get_ccf_dat_name(arm)), fft=np.fft.rfft(models, axis=1),
             fft2=np.fft.rfft(models**2, axis=1))


def library(folder):
    """Makes the library in rvspecfit's formats once, and returns the settings that point to it."""
    source = os.path.join(folder, "..", "specfit-library")
    target = os.path.join(folder, "..", "specfit-rvspecfit")
    settings = os.path.join(target, "config.yaml")
    if not os.path.exists(settings):
        os.makedirs(target, exist_ok=True)
        with open(os.path.join(source, "lib.json"), encoding="ascii") as file:
            arms = json.load(file)["arms"]
        for arm, described in arms.items():
            make_network(source, target, arm, described)
            make_starts(source, target, arm, described)
        with open(settings, "w", encoding="ascii") as file:
            file.write(f"template_lib: '{target}/'\nmin_vel: -1000\nmax_vel: 1000\n"
                       "min_vel_step: 0.2\nvel_step0: 5\nmin_vsini: 0.1\nmax_vsini: 500\n"
                       "second_minimizer: 1\nlsf_sigma0_angstrom:\n  b: 0.5\n  r: 0.5\n  z: 0.5\n")
    return settings


def config_of(settings):
    return utils.read_config(settings, {"ccf_continuum_normalize": True})


def begin():
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)


def fit_some(work):
    coadd, settings, out, targets = work
    config = config_of(settings)
    table = os.path.join(out, f"rvtab_{targets[0]}.fits")
    desi_fit.proc_desi(coadd, table, os.path.join(out, f"rvmod_{targets[0]}.fits"), None, config,
                       fit_targetid=np.array(targets), doplot=False, npoly=10,
                       poolex=desi_fit.FakeExecutor())
    return len(targets)


def errors_of(ivar, flux):
    """Returns errors as rvspecfit's own preparation sets them: pixels without weight get a huge error."""
    good = ivar > 0
    return np.where(good, ivar, (1000 * np.median(flux[good]))**-2.)**-0.5


def load(folder):
    import astropy.io.fits as fits
    coadd = os.path.join(folder, "coadd.fits")
    begin()
    with fits.open(coadd) as file:
        targets = [int(t) for t in file["FIBERMAP"].data["TARGETID"]]
        spectra = [(arm, file[arm.upper() + "_WAVELENGTH"].data.astype(float),
                    file[arm.upper() + "_FLUX"].data[0].astype(float),
                    errors_of(file[arm.upper() + "_IVAR"].data[0].astype(float),
                              file[arm.upper() + "_FLUX"].data[0])) for arm in "brz"]
    settings = library(folder)
    return {"coadd": coadd, "settings": settings, "targets": targets, "out": folder,
            "spectra": [spec_fit.SpecData("desi_" + arm, lam, flux, error)
                        for arm, lam, flux, error in spectra]}


def halves(data):
    return [(data["coadd"], data["settings"], data["out"], data["targets"][i::PROCESSES])
            for i in range(PROCESSES)]


def warm(data):
    """Starts processes that have read the library and have fitted a star."""
    if "pool" not in pools:
        pools["pool"] = multiprocessing.get_context("fork").Pool(PROCESSES, begin)
    few = [(c, s, o, t[:1]) for c, s, o, t in halves(data)]
    pools["pool"].map(fit_some, few, chunksize=1)


def compute_network(data, config):
    for arm in "brz":
        spec_inter.getInterpolator("desi_" + arm, config).eval([5500.0, 4.0, -0.7, 0.1])


def templates(config):
    return {arm: (spec_inter.getInterpolator("desi_" + arm, config).lam,
                  spec_inter.getInterpolator("desi_" + arm, config).eval([5500., 4., -0.7, 0.1]))
            for arm in "brz"}


def timed(action, count):
    """Returns the seconds of `count` calls, from the fastest of several rounds of a few calls."""
    action()
    best, calls = np.inf, 4
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(calls):
            action()
        best = min(best, (time.perf_counter() - started) / calls)
    return best * count


def part(data):
    """Returns the function of a part, and how many calls are wanted."""
    config, spectra = config_of(data["settings"]), data["spectra"]
    variant = chosen["variant"]
    made = templates(config)
    waves = {arm: np.asarray(s.lam) for arm, s in zip("brz", spectra)}
    if variant == NETWORK:
        return lambda: compute_network(data, config), 128
    if variant == SPLINE:  # without the rotation, which our function includes
        def spline():
            for arm, (lam, spec) in made.items():
                spec_fit.evalRV(spec_fit.getRVInterpol(lam, spec), 12.0, waves[arm])
        return spline, 128
    if variant == VALUES:
        ready = []
        for (lam, spec), data_of in zip(made.values(), spectra):
            at = spec_fit.evalRV(spec_fit.getRVInterpol(lam, spec), 12.0, np.asarray(data_of.lam))
            ready.append((np.asarray(data_of.spec), at, spec_fit.get_basis(data_of, 10),
                          np.asarray(data_of.espec)))
        return lambda: [spec_fit.get_chisq0(d, t, p, espec=e) for d, t, p, e in ready], 128
    if variant == SCAN:
        grid = np.arange(416) * 2.0 - 400
        return lambda: spec_fit.find_best(spectra, grid, [(5500.0, 4.0, -0.7, 0.1)],
                                          rot_params=(10.0,), options={"npoly": 10},
                                          config=config), 1
    return lambda: fitter_ccf.fit(spectra, config), 1


def is_part():
    return chosen["variant"] != WHOLE


def part_seconds(data):
    """Measures a part in this process, because a call takes less time than starting a process."""
    action, count = part(data)
    return timed(action, count)


def compute(data, _):
    return sum(pools["pool"].map(fit_some, halves(data), chunksize=1))


def main():
    folder, out, _ = sys.argv[1:]
    data = load(folder)
    data["out"] = out
    with multiprocessing.get_context("fork").Pool(PROCESSES, begin) as pool:
        pool.map(fit_some, halves(data), chunksize=1)


if __name__ == "__main__":
    main()
