# SPDX-License-Identifier: Apache-2.0
"""Compares functions of other libraries on arrays of Cleave with the same functions on NumPy arrays. Run it on demand:
it needs scipy, scikit-learn, dask and xarray. docs/porting.md has the list. Exit code 1 if a result is wrong or raises.

usage: SCIPY_ARRAY_API=1 python tests/python/ecosystem.py [PART OF A NAME]"""
import os
import sys
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"  # set before SciPy is imported

import dask.array
import numpy as np
import scipy.cluster.vq
import scipy.differentiate
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats
import sklearn
import xarray
from sklearn import decomposition, discriminant_analysis, linear_model, metrics, mixture, preprocessing

import cleave

RNG = np.random.default_rng(0)
MATRIX, ROW = RNG.normal(size=(40, 5)), RNG.normal(size=200)
GIVEN = {"m": MATRIX, "p": np.abs(MATRIX), "v": ROW, "s": MATRIX[:5], "k": np.ones((3, 3)),
         "y": (MATRIX[:, 0] > 0).astype(np.int64)}


def cases():
    """Yields names, the letters of GIVEN that the functions take, and the functions."""
    sp, st, sf, ss = scipy.special, scipy.stats, scipy.fft, scipy.signal
    for name in ("logsumexp", "softmax", "log_softmax", "erf", "expit"):
        yield f"scipy.special.{name}", "m", getattr(sp, name)
    yield "scipy.special.xlogy", "pp", sp.xlogy
    for name in ("zscore", "skew", "kurtosis", "moment", "sem", "tmean", "kstat", "circmean"):
        yield f"scipy.stats.{name}", "v", getattr(st, name)
    for name in ("gmean", "hmean", "variation", "entropy"):
        yield f"scipy.stats.{name}", "p", getattr(st, name)
    yield "scipy.stats.pmean", "p", lambda p: st.pmean(p, 3)
    yield "scipy.stats.pearsonr", "v", lambda v: st.pearsonr(v, v[::-1]).statistic
    yield "scipy.stats.ttest_1samp", "v", lambda v: st.ttest_1samp(v, 0.0).statistic
    yield "scipy.stats.bartlett", "v", lambda v: st.bartlett(v, v * 2).statistic
    yield "scipy.stats.chisquare", "p", lambda p: st.chisquare(p[:, 0]).statistic
    for name, takes in (("fft", "v"), ("rfft", "v"), ("dct", "v"), ("fft2", "m")):
        yield f"scipy.fft.{name}", takes, getattr(sf, name)
    for name in ("detrend", "hilbert"):
        yield f"scipy.signal.{name}", "v", getattr(ss, name)
    yield "scipy.signal.fftconvolve", "vv", ss.fftconvolve
    yield "scipy.signal.savgol_filter", "v", lambda v: ss.savgol_filter(v, 5, 2)
    yield "scipy.signal.resample", "v", lambda v: ss.resample(v, 100)
    yield "scipy.cluster.vq.whiten", "m", scipy.cluster.vq.whiten
    yield "scipy.cluster.vq.vq", "m", lambda m: scipy.cluster.vq.vq(m, m[:3])[0]
    yield "scipy.ndimage.gaussian_filter", "m", lambda m: scipy.ndimage.gaussian_filter(m, 1.0)
    yield "scipy.ndimage.convolve", "mk", scipy.ndimage.convolve
    for name in ("trapezoid", "simpson", "cumulative_trapezoid"):
        yield f"scipy.integrate.{name}", "v", getattr(scipy.integrate, name)
    yield "scipy.differentiate.derivative", "v", lambda v: scipy.differentiate.derivative(lambda t: t ** 3, v[:3]).df
    yield "scipy.linalg.det", "s", scipy.linalg.det
    yield "scipy.linalg.inv", "s", scipy.linalg.inv
    for solver in ("full", "covariance_eigh"):
        yield f"sklearn PCA({solver})", "m", lambda m, solver=solver: abs(
            decomposition.PCA(2, svd_solver=solver).fit_transform(m))
    for name in ("MinMaxScaler", "MaxAbsScaler", "StandardScaler", "Normalizer"):
        yield f"sklearn {name}", "m", lambda m, name=name: getattr(preprocessing, name)().fit_transform(m)
    yield "sklearn Ridge(svd)", "m", lambda m: linear_model.Ridge(solver="svd").fit(m, m[:, 0]).predict(m)
    yield "sklearn LinearDiscriminantAnalysis(svd)", "my", lambda m, y: \
        discriminant_analysis.LinearDiscriminantAnalysis(solver="svd").fit(m, y).predict(m)
    yield "sklearn GaussianMixture", "m", lambda m: mixture.GaussianMixture(
        2, random_state=0, init_params="random").fit(m).predict(m)
    for name in ("r2_score", "mean_squared_error", "mean_absolute_error"):
        yield f"sklearn {name}", "m", lambda m, name=name: getattr(metrics, name)(m[:, 0], m[:, 1])
    for name in ("accuracy_score", "f1_score", "zero_one_loss"):
        yield f"sklearn {name}", "y", lambda y, name=name: getattr(metrics, name)(y, y[::-1])
    for name in ("euclidean_distances", "cosine_similarity", "rbf_kernel", "linear_kernel"):
        yield f"sklearn {name}", "mm", getattr(metrics.pairwise, name)
    yield "dask.array.sum", "m", lambda m: dask.array.from_array(m, chunks=(10, 5), asarray=False).sum(axis=0).compute()
    yield "xarray.DataArray.mean", "m", lambda m: (xarray.DataArray(m, dims=("a", "b")) * 2).mean("a").data


def blocks_of_dask():
    """Runs what docs/porting.md shows: each block of an array goes to the device and comes back."""
    made = dask.array.from_array(MATRIX, chunks=(10, 5)).map_blocks(lambda b: (np.exp(cleave.array(b)) * 2).numpy())
    return np.allclose(made.compute(scheduler="threads"), np.exp(MATRIX) * 2)


def main():
    warnings.simplefilter("ignore")
    sklearn.set_config(array_api_dispatch=True)
    wanted, wrong = sys.argv[1] if len(sys.argv) > 1 else "", 0
    there = {letter: cleave.array(values) for letter, values in GIVEN.items()}
    for name, takes, function in cases():
        if wanted not in name:
            continue
        said = "ok"
        try:
            got, want = function(*(there[k] for k in takes)), function(*(GIVEN[k] for k in takes))
            if not np.allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-8, equal_nan=True):
                said = "WRONG"
        except Exception as error:  # pylint: disable=broad-except
            said = f"{type(error).__name__}: {error}".splitlines()[0]
        wrong += said != "ok"
        print(f"{name}: {said}", flush=True)
    fine = blocks_of_dask()
    print(f"dask.array.map_blocks: {'ok' if fine else 'WRONG'}")
    return 1 if wrong or not fine else 0


if __name__ == "__main__":
    sys.exit(main())
