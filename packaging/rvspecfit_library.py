#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a template library of rvspecfit into one for `cleave specfit`.

usage: rvspecfit_library.py TEMPLATE_LIB OUT_DIR [ARM...]

TEMPLATE_LIB holds interp_ARM.h5, then NNstate_ARM.sav with the state of a network (as torch saves it) or
interpdat_ARM.npy with the spectra of a regular grid, and the start templates ccf_ARM.h5 and ccfmod_ARM.npy. ARM is a
name such as desi_b; without one, all arms are converted. OUT_DIR gets lib.json, ccf_params.npy, ccf_vsinis.npy and one
folder of .npy files per arm. For a network, these are lam, mean, std, hull_pts and the layers. For a grid, they are
lam, axis_0 to axis_3 (nodes of log10 teff, logg, feh, alpha), grid (for every node its row in log_flux, or -1 if there
is none) and log_flux. Both have ccf_models. Triangulations are not converted. The program needs rvspecfit and numpy,
and torch for networks."""
import glob
import json
import os
import re
import sys

import numpy as np

PARAMETERS = ["teff", "logg", "feh", "alpha"]


def save(folder, name, array, dtype):
    np.save(os.path.join(folder, name + ".npy"), np.ascontiguousarray(array, dtype=dtype))


def state_of(path):
    import torch
    state = torch.load(path, map_location="cpu", weights_only=True)
    state = state.get("state_dict", state)
    return {name: value.detach().numpy() for name, value in state.items() if hasattr(value, "numpy")}


def layers_of(state):
    """Yields the hidden layers in order, then the last one, under the names of rvspecfit's class."""
    hidden = {}
    for name in state:
        found = re.fullmatch(r"(?:module\.)?(?:model\.)?lin_(\d+)\.weight", name)
        if found:
            hidden[int(found.group(1))] = name[:-len(".weight")]
    last = [name[:-len(".weight")] for name in state if re.search(r"pc_layer\.weight$", name)]
    if len(last) != 1 or not hidden:
        sys.exit(f"not the network that was expected: {', '.join(sorted(state))}")
    if any("running_mean" in name for name in state):
        sys.exit("the network has batch norm: not supported")
    return [hidden[i] for i in sorted(hidden)] + last


def convert_network(info, source, folder, arm):
    state = state_of(os.path.join(source, f"NNstate_{arm}.sav"))
    names = layers_of(state)
    widths = [int(state[names[0] + ".weight"].shape[1])]
    for i, name in enumerate(names):
        weight, bias = state[name + ".weight"], state[name + ".bias"]
        label = "pc_layer" if i + 1 == len(names) else f"model_lin_{i}"
        save(folder, label + "_weight", weight, np.float32)
        save(folder, label + "_bias", bias, np.float32)
        widths.append(int(weight.shape[0]))
    mapper = info.get("mapper_kwargs") or info.get("mapper_args")
    mean, std = (mapper["mean"], mapper["std"]) if isinstance(mapper, dict) else mapper[:2]
    outside = info.get("outside_kwargs") or {}
    points = outside.get("pts") if isinstance(outside, dict) else None
    if points is None:
        points = info["vec"] if "vec" in info else np.array(
            [[(-2.0, 2.0)[i >> k & 1] for k in range(4)] for i in range(16)])
    save(folder, "mean", mean, float)
    save(folder, "std", std, float)
    save(folder, "hull_pts", points, float)
    return {"layers": widths}


def convert_grid(info, source, folder, arm):
    """Converts nodes in rvspecfit's own variables, of which only teff is transformed (to log10)."""
    if list(info["parnames"]) != PARAMETERS:
        sys.exit(f"{arm}: a grid of {', '.join(info['parnames'])}; {', '.join(PARAMETERS)} expected")
    axes, grid = [np.asarray(u, float) for u in info["uvecs"]], np.asarray(info["idgrid"])
    from rvspecfit import make_interpol
    mapper = make_interpol.get_mapper(info["mapper_module"], info["mapper_class_name"],
                                      info["mapper_args"])
    probe = np.array([5000.0, 3.0, -1.0, 0.2])
    if not np.allclose(mapper.forward(probe), [np.log10(5000.0), 3.0, -1.0, 0.2]):
        sys.exit(f"{arm}: its parameters are not log10 teff, logg, feh and alpha")
    if min(map(len, axes)) < 2:
        sys.exit(f"{arm}: an axis with one node")
    # ln flux: rvspecfit 0.9 treats every grid as logarithmic, whatever log_spec says
    flux = np.load(os.path.join(source, f"interpdat_{arm}.npy"), mmap_mode="r")
    for k, axis in enumerate(axes):
        save(folder, f"axis_{k}", axis, float)
    save(folder, "grid", grid, np.int32)
    save(folder, "log_flux", flux, np.float32)
    return {"nodes": [len(axis) for axis in axes]}


def convert_arm(source, target, arm):
    from rvspecfit import serializer
    info = serializer.load_dict_from_hdf5(os.path.join(source, f"interp_{arm}.h5"))
    kind = info.get("interpolation_type") or ("regulargrid" if "regular" in info else "")
    folder = os.path.join(target, arm)
    os.makedirs(folder, exist_ok=True)
    lam = np.asarray(info["lam"], float)
    if not info.get("log_step", True) or not np.allclose(np.diff(np.log(lam)),
                                                         np.log(lam[-1] / lam[0]) / (len(lam) - 1)):
        sys.exit(f"{arm}: its wavelengths are not equidistant in their logarithm")
    if kind == "regulargrid":
        described = convert_grid(info, source, folder, arm)
    elif kind == "generic" or "nn_file" in info or "class_kwargs" in info:
        described = convert_network(info, source, folder, arm)
    else:
        sys.exit(f"{arm}: a library of type \"{kind}\": only networks and regular grids are "
                 "converted")
    save(folder, "lam", lam, float)
    ccf = serializer.load_dict_from_hdf5(os.path.join(source, f"ccf_{arm}.h5"))
    models = np.load(os.path.join(source, f"ccfmod_{arm}.npy"))
    save(folder, "ccf_models", models, np.float32)
    conf = ccf["ccfconf"]
    described.update({
        "npix": len(lam), "lam0": float(lam[0]), "lam1": float(lam[-1]),
        "revision": str(info.get("revision") or ""),
        "ccf": {"logl0": float(conf["logl0"]), "logl1": float(conf["logl1"]),
                "npoints": int(conf["npoints"]), "splinestep": float(conf["splinestep"]),
                "maxcontpts": int(conf["maxcontpts"]), "continuum": bool(conf["continuum"])}})
    vsinis = [0.0 if v is None else float(v) for v in ccf["vsinis"]]
    return described, np.asarray(ccf["params"], float), vsinis


def main():
    if len(sys.argv) < 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    source, target, arms = sys.argv[1], sys.argv[2], sys.argv[3:]
    if not arms:
        arms = sorted(os.path.basename(path)[len("interp_"):-len(".h5")]
                      for path in glob.glob(os.path.join(source, "interp_*.h5")))
    if not arms:
        sys.exit(f"{source}: no interp_ARM.h5")
    os.makedirs(target, exist_ok=True)
    library = {"arms": {}, "parnames": PARAMETERS, "log10_params": [0],
               "activation": "SiLU", "output": "exp(clip(y,-300,300))", "log_step": True}
    for arm in arms:
        described, params, vsinis = convert_arm(source, target, arm)
        library["arms"][arm] = described
        save(target, "ccf_params", params, float)
        save(target, "ccf_vsinis", vsinis, float)
    with open(os.path.join(target, "lib.json"), "w", encoding="ascii") as file:
        json.dump(library, file, indent=1)
    print(f"{target}: {', '.join(arms)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
