# SPDX-License-Identifier: Apache-2.0
"""Cleave in Python: NumPy arrays in, NumPy arrays out, computed on the OpenCL devices of this machine.

    probe()                          says what this machine can compute with
    Context, devices()               choose devices, and how jobs are split over them
    paco(), blobs(), link(), specfit()   work on observations
    stage_drift(), registered()      measure how far a stage drifted, and remove that drift from the movie
    TemplateMaker, spectra_library()   make templates of stars for specfit() from models
    matmul(), convolve_2d(), gaussian_2d(), eigvalsh(), eigvals(), monte_carlo_pi()   work on plain arrays
    array(), empty(), compute(), reduce(), product(), normalize(), linear_step(), linear_train()
                                     work on NumPy's arrays, or on arrays that stay on a device
    array_api, linalg, fft, random   are the Python array API standard on arrays that stay on a device; its functions
                                     are also functions of cleave, such as cleave.zeros() and cleave.take()
    tokenize(), embed(), finetune(), classify(), Encoder, Trainer, Classifier, CrossEncoder
                                     turn texts into tokens, vectors and classes, and train models
    search(), semantic_search(), search_codes()   find the vectors that are most similar to each query
    LanguageModel                    continues texts, answers questions, returns the scores of the next token
    asynchronous(), synchronize()    let calls on arrays return before they are computed, and wait for them
    offload(), explain(), last_plan()   choose between host and device, and return the reasons
    ElementwiseKernel, fuse()        make one kernel of several operations on arrays
    ReductionKernel                  reduces an expression of arrays along axes
    Kernel, map()                    run your own OpenCL C, split over all devices
    Report, log_to()                 record what ran on which device, and why

The C library libcleave does all the work, except for linear algebra, Fourier transforms and random numbers of arrays,
which NumPy (transforms: also SciPy or FFTW) computes on the host. Other Python threads run while the library works.
All errors are subclasses of cleave.Error.
"""
from __future__ import annotations

import typing as _typing
from typing import Any as _Any

from . import errors
from ._array import convolve_2d, eigvals, eigvalsh, gaussian_2d, monte_carlo_pi
from ._asynchronous import asynchronous, synchronize
from ._blobs import SPOT, VOLUME_SPOT, BlobStream, blobs, volumes
from ._classifier import Class, Classifier, classify
from ._cross_encoder import CrossEncoder
from ._compute import (Normalized, compute, linear_step, linear_train, normalize, product,
                       reduce)
from ._context import Context, Device, MemoryRoom, MemoryStats, default_context, devices
from ._device_array import Array, ArrayStats, array, array_stats, empty
from ._encoder import Trainer, TrainResult, tokenize
from ._finetune import FinetuneResult, finetune
from ._fuse import ElementwiseKernel, fuse
from ._kernel import COUNT, FIRST, Kernel, Local, Out, Shared
from ._language import LanguageModel
from ._library import LIBRARY_PATH, has
from ._link import branches, link
from ._map import map_items as map
from ._matmul import matmul
from ._offload import Plan, explain, last_plan, offload
from ._asdi import AsdiResult, asdi
from ._companions import (CompanionResult, calibrate_snr, characterize, companions, frame_quality, frame_weights,
                         inject, mend, psf_recentre, star_position)
from ._contrast import ContrastResult, contrast
from ._paco import PacoResult, paco, psf_fwhm, psf_normalize
from ._probe import probe
from ._report import Report, Share
from ._quantize import quantize_embeddings
from ._reduction_kernel import ReductionKernel
from ._search import Found, search, search_codes, semantic_search
from ._sentences import Encoder, embed
from ._specfit import WARNINGS, specfit
from ._spectra_library import SpectraArm, SpectraLibrary
from ._stage import registered, stage_drift
from ._templates import TemplateMaker, spectra_library
from ._tracks import Diffusion, Tracks
from .errors import *  # noqa: F403: every exception
from .log import log_to
from .version import __version__

__all__ = [
    "Array", "ArrayStats", "AsdiResult", "BlobStream", "COUNT", "Class", "Classifier",
    "CompanionResult", "Context", "ContrastResult", "CrossEncoder", "Device", "Diffusion",
    "ElementwiseKernel", "Encoder", "FIRST", "FinetuneResult", "Found", "Kernel", "LIBRARY_PATH", "LanguageModel",
    "Local", "MemoryRoom", "MemoryStats", "Normalized", "Out", "PacoResult", "Plan", "ReductionKernel", "Report",
    "SPOT", "Share", "Shared", "SpectraArm", "SpectraLibrary", "TemplateMaker", "Tracks", "TrainResult", "Trainer",
    "VOLUME_SPOT",
    "WARNINGS", "__version__", "array", "array_stats", "asdi", "asnumpy", "asynchronous", "blobs", "branches",
    "calibrate_snr", "characterize", "classify", "companions", "compute", "contrast", "convolve_2d",
    "default_context", "devices", "eigvals", "eigvalsh", "embed", "empty", "explain", "finetune", "frame_quality",
    "frame_weights", "fuse", "gaussian_2d", "has", "inject", "last_plan", "linear_step", "linear_train", "link",
    "log_to", "map", "matmul", "mend", "monte_carlo_pi", "normalize", "offload", "paco", "probe", "product",
    "psf_fwhm", "psf_normalize", "psf_recentre", "quantize_embeddings", "reduce", "registered", "search",
    "search_codes", "semantic_search", "specfit", "spectra_library", "stage_drift", "star_position", "synchronize",
    "tokenize", "volumes",
    *errors.__all__]


_MODULES = ("array_api", "fft", "linalg", "random")


if _typing.TYPE_CHECKING:
    from . import array_api as array_api, fft as fft, linalg as linalg, random as random
    from .array_api import (abs as abs, all as all, any as any, arange as arange, argmax as argmax, argmin as argmin,
                            argsort as argsort, asarray as asarray, astype as astype, bool as bool,
                            broadcast_arrays as broadcast_arrays, broadcast_shapes as broadcast_shapes,
                            broadcast_to as broadcast_to, can_cast as can_cast, clip as clip,
                            complex128 as complex128, complex64 as complex64, concat as concat,
                            count_nonzero as count_nonzero, cumulative_prod as cumulative_prod,
                            cumulative_sum as cumulative_sum, diff as diff, e as e, empty_like as empty_like,
                            expand_dims as expand_dims, eye as eye, finfo as finfo, flip as flip, float16 as float16,
                            float32 as float32, float64 as float64, from_dlpack as from_dlpack, full as full,
                            full_like as full_like, iinfo as iinfo, inf as inf, int16 as int16, int32 as int32,
                            int64 as int64, int8 as int8, isdtype as isdtype, isin as isin, linspace as linspace,
                            matrix_transpose as matrix_transpose, max as max, mean as mean, meshgrid as meshgrid,
                            min as min, moveaxis as moveaxis, nan as nan, negative as negative, newaxis as newaxis,
                            nonzero as nonzero, ones as ones, ones_like as ones_like, permute_dims as permute_dims,
                            pi as pi, positive as positive, prod as prod, repeat as repeat, reshape as reshape,
                            result_type as result_type, roll as roll, searchsorted as searchsorted, sort as sort,
                            squeeze as squeeze, stack as stack, std as std, sum as sum, take as take,
                            take_along_axis as take_along_axis, tensordot as tensordot, tile as tile, tril as tril,
                            triu as triu, uint16 as uint16, uint32 as uint32, uint64 as uint64, uint8 as uint8,
                            unique_all as unique_all, unique_counts as unique_counts,
                            unique_inverse as unique_inverse, unique_values as unique_values, unstack as unstack,
                            var as var, vecdot as vecdot, where as where, zeros as zeros, zeros_like as zeros_like)
else:
    def __getattr__(name: str) -> _Any:
        """Returns a function of the array API standard or a submodule, and imports its module at the first use."""
        import importlib
        if name in _MODULES:
            return importlib.import_module("." + name, __name__)
        if not name.startswith("_"):
            from . import array_api
            if name in array_api.__all__:
                return getattr(array_api, name)
        raise AttributeError(f"module 'cleave' has no attribute {name!r}")


def asnumpy(a: _Any) -> _Any:
    """Returns a copy of an array on the host, as cupy.asnumpy() does; a NumPy array is returned as it is."""
    return a.numpy() if isinstance(a, Array) else a
