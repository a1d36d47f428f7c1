# SPDX-License-Identifier: Apache-2.0
"""Templates of stellar spectra: networks or grids, and their files on disk."""
from __future__ import annotations

import ctypes
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, whole_numbers
from ._check import file_path, given
from .errors import ArgumentTypeError, FileError, FormatError, ShapeError


def _stems(layers: int) -> list[str]:
    """Returns the beginnings of the file names of a network's layers."""
    return [f"model_lin_{i}" for i in range(layers - 1)] + ["pc_layer"]


@dataclass
class SpectraArm:
    """The templates of one arm: exp(net((q - mean) / std)) at `points` wavelengths, which are equidistant in ln lambda
    from `first` to `last` (Angstrom). q is (log10 teff, logg, feh, alpha). SiLU follows every layer but the last.

    weights   one [out, in] per layer, the first with 4 inputs, the last with `points` outputs
    biases    one [out] per layer
    mean, std [4]
    hull      [N, 4] network inputs that bound the parameters
    ccf       [K, P] start templates divided by their continuum, P a power of two, on a grid that is equidistant in
              ln lambda from ccf_log0 to ccf_log1
    ccf_spline_kms  distance between the nodes of the continuum
    sigma     Angstrom: the Gaussian that the templates were convolved with; 0: library_sigma

    In place of the network (then weights and biases are empty), an arm may have a regular grid: ln flux is interpolated
    linearly in each parameter between nodes.

    axes      four rising lists of nodes: log10 teff, logg, feh, alpha
    grid      [n0, n1, n2, n3] rows of log_flux, -1 if there is no spectrum
    log_flux  [M, points]
    """
    name: str
    first: float
    last: float
    weights: Sequence[Any]
    biases: Sequence[Any]
    mean: Any
    std: Any
    hull: Any
    ccf: Any
    ccf_log0: float
    ccf_log1: float
    ccf_spline_kms: float
    sigma: float = 0.0
    axes: Sequence[Any] = ()
    grid: Any = None
    log_flux: Any = None

    def _fill_grid(self, arm: _abi.SpectraArm, keep: list[Any]) -> None:
        axes = [np.ascontiguousarray(axis, np.float64) for axis in self.axes]
        grid = whole_numbers(f"arm {self.name}: grid", self.grid, np.int32)
        flux = np.ascontiguousarray(self.log_flux, np.float32)
        if len(axes) != 4 or grid.shape != tuple(map(len, axes)) or flux.ndim != 2:
            raise ShapeError(f"arm {self.name}: a grid needs four axes, grid of their lengths (it is {grid.shape}), "
                             "and log_flux [M, points]")
        keep += [*axes, grid, flux]
        arm.nodes[:], arm.axis[:] = grid.shape, [address(axis) for axis in axes]
        arm.grid, arm.grid_spectra = address(grid), len(flux)
        arm.grid_log_flux, arm.points = address(flux), flux.shape[1]

    def _write(self, folder: Path) -> dict[str, Any]:
        """Writes the arm's arrays as files, and returns what lib.json says about them."""
        folder.mkdir()
        np.save(folder / "ccf_models.npy", np.asarray(self.ccf, np.float32))
        about: dict[str, Any] = {
            "npix": np.shape(self.biases[-1] if self.grid is None else self.log_flux)[-1],
            "lam0": float(self.first), "lam1": float(self.last),
            "ccf": {"npoints": np.shape(self.ccf)[1], "logl0": float(self.ccf_log0), "logl1": float(self.ccf_log1),
                    "splinestep": float(self.ccf_spline_kms)}}
        if self.sigma:
            about["sigma"] = float(self.sigma)
        if self.grid is not None:
            for k, axis in enumerate(self.axes):
                np.save(folder / f"axis_{k}.npy", np.asarray(axis, np.float64))
            np.save(folder / "grid.npy", np.asarray(self.grid, np.int32))
            np.save(folder / "log_flux.npy", np.asarray(self.log_flux, np.float32))
            return {**about, "nodes": list(np.shape(self.grid))}
        for i, stem in enumerate(_stems(len(self.weights))):
            np.save(folder / f"{stem}_weight.npy", np.asarray(self.weights[i], np.float32))
            np.save(folder / f"{stem}_bias.npy", np.asarray(self.biases[i], np.float32))
        for name, value in (("mean", np.ravel(self.mean)), ("std", np.ravel(self.std)), ("hull_pts", self.hull)):
            np.save(folder / f"{name}.npy", np.asarray(value, np.float64))
        return {**about, "layers": [4, *(len(bias) for bias in self.biases)]}

    def _fill(self, arm: _abi.SpectraArm, keep: list[Any]) -> None:
        def kept(value: Any, dtype: Any) -> NDArray[Any]:
            made = np.ascontiguousarray(value, dtype)
            keep.append(made)
            return made

        weights = [kept(w, np.float32) for w in self.weights]
        biases = [kept(b, np.float32) for b in self.biases]
        if self.grid is not None and (weights or biases):
            raise ShapeError(f"arm {self.name}: give either a network or a grid, not both")
        if self.grid is None and not 0 < len(weights) <= _abi.MAX_LAYERS or len(weights) != len(biases):
            raise ShapeError(f"arm {self.name}: got {len(weights)} weights and {len(biases)} biases, but both must "
                             "have "
                             f"the same number of layers, 1 to {_abi.MAX_LAYERS}")
        widths = [4, *(len(b) for b in biases)]
        for i, (weight, bias) in enumerate(zip(weights, biases)):
            if weight.shape != (widths[i + 1], widths[i]) or bias.ndim != 1:
                raise ShapeError(f"arm {self.name}: layer {i}: weight has the shape {weight.shape} and bias "
                                 f"{bias.shape}, but weight must be [{widths[i + 1]}, {widths[i]}]")
            arm.weight[i], arm.bias[i] = address(weight), address(bias)
        hull, ccf = kept(self.hull, np.float64), kept(self.ccf, np.float32)
        mean, std = np.ravel(self.mean).tolist(), np.ravel(self.std).tolist()
        if len(mean) != 4 or len(std) != 4 or hull.ndim != 2 or hull.shape[1] != 4 or ccf.ndim != 2:
            raise ShapeError(f"arm {self.name}: the shapes must be mean [4], std [4], hull [N, 4] and ccf [K, P]")
        keep.append(self.name.encode())
        arm.name, arm.points, arm.first, arm.last = keep[-1], widths[-1], self.first, self.last
        if self.grid is not None:
            self._fill_grid(arm, keep)
        else:
            arm.layers, arm.width[:len(widths)] = len(weights), widths
        arm.mean[:], arm.std[:] = mean, std
        arm.hull_count, arm.hull = len(hull), address(hull)
        arm.ccf, arm.ccf_points = address(ccf), ccf.shape[1]
        arm.ccf_log0, arm.ccf_log1 = self.ccf_log0, self.ccf_log1
        arm.ccf_spline_kms, arm.sigma = self.ccf_spline_kms, self.sigma


class SpectraLibrary:
    """The templates of one instrument, for specfit().

    arms            a SpectraArm for each arm
    ccf_parameters  [K, 4] teff, logg, feh, alpha of the start templates
    """

    def __init__(self, arms: Sequence[SpectraArm], ccf_parameters: Any):
        self.arms = list(arms)
        for one in self.arms:
            if not isinstance(one, SpectraArm):
                raise ArgumentTypeError(f"library: one of the arms is {given(one)}, but each must be a "
                                        "cleave.SpectraArm")
        parameters = np.ascontiguousarray(ccf_parameters, np.float64)
        if parameters.ndim != 2 or parameters.shape[1] != 4 or not self.arms:
            raise ShapeError(f"library: got {len(self.arms)} arms and ccf_parameters of shape {parameters.shape}, "
                             "but at "
                             "least one arm and [K, 4] are expected")
        self._keep: list[Any] = [parameters]
        self._arms = (_abi.SpectraArm * len(self.arms))()
        for arm, raw in zip(self.arms, self._arms):
            arm._fill(raw, self._keep)
            if np.shape(arm.ccf)[0] != len(parameters):
                raise ShapeError(f"arm {arm.name}: got {np.shape(arm.ccf)[0]} start templates, but "
                                 f"{len(parameters)} are expected")
        self.raw = _abi.SpectraLibrary(ctypes.sizeof(_abi.SpectraLibrary), len(self.arms),
                                       self._arms, len(parameters),
                                       address(parameters))

    def index(self, arm: str | int) -> int:
        """Returns the number of an arm by its name."""
        names = [a.name for a in self.arms]
        if isinstance(arm, int):
            if 0 <= arm < len(names):
                return arm
        elif arm in names:
            return names.index(arm)
        raise FormatError(f"library: there is no arm {arm!r}; the arms are {', '.join(names)}")

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes lib.json and its .npy files, which load() and `cleave specfit` read. The folder must be new or empty.
        After an error, the folder is complete or absent.

        Raises FileError.
        """
        root = Path(file_path("SpectraLibrary.save: folder", folder))
        made = ""
        try:
            root.parent.mkdir(parents=True, exist_ok=True)
            made = tempfile.mkdtemp(prefix="cleave-library-", dir=root.parent)
            inside = Path(made, "library")  # gets the usual permissions of a new folder, unlike `made`
            inside.mkdir()
            described = {arm.name: arm._write(inside / arm.name) for arm in self.arms}
            np.save(inside / "ccf_params.npy", self._keep[0])
            (inside / "lib.json").write_text(
                json.dumps({"arms": described, "activation": "SiLU"}, indent=1) + "\n", encoding="utf-8")
            os.rename(inside, root)
        except OSError as error:
            raise FileError(f"{root}: {error.strerror or error}: give a folder that is new or empty") from error
        finally:
            shutil.rmtree(made, ignore_errors=True)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "SpectraLibrary":
        """Reads lib.json and its .npy files, as `cleave templates` and packaging/rvspecfit_library.py write them."""
        root = Path(file_path("SpectraLibrary.load: folder", folder))

        def array(*parts: str) -> NDArray[Any]:
            made: NDArray[Any] = np.load(root.joinpath(*parts).with_suffix(".npy"),
                                       allow_pickle=False)
            return made

        try:
            described = json.loads((root / "lib.json").read_text(encoding="utf-8"))
            arms = []
            for name, about in described["arms"].items():
                ccf = about["ccf"]
                if "nodes" in about:
                    arms.append(SpectraArm(
                        name, about["lam0"], about["lam1"], [], [], np.zeros(4), np.ones(4),
                        np.zeros((0, 4)), array(name, "ccf_models"), ccf["logl0"], ccf["logl1"],
                        ccf["splinestep"], about.get("sigma", 0.0),
                        axes=[array(name, f"axis_{k}") for k in range(4)], grid=array(name, "grid"),
                        log_flux=array(name, "log_flux")))
                    continue
                stems = _stems(len(about["layers"]) - 1)
                arms.append(SpectraArm(
                    name, about["lam0"], about["lam1"],
                    [array(name, stem + "_weight") for stem in stems],
                    [array(name, stem + "_bias") for stem in stems],
                    array(name, "mean"), array(name, "std"), array(name, "hull_pts"),
                    array(name, "ccf_models"), ccf["logl0"], ccf["logl1"], ccf["splinestep"],
                    about.get("sigma", 0.0)))
            return cls(arms, array("ccf_params"))
        except OSError as error:
            raise FileError(f"{error.filename or root}: {error.strerror or error}") from error
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise FormatError(f"{root / 'lib.json'}: {type(error).__name__}: {error}") from error
