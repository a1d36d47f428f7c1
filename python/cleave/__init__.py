# SPDX-License-Identifier: Apache-2.0
"""Cleave in Python: NumPy in, NumPy out, on whatever OpenCL devices this machine has.

    probe()                          what this machine can compute with
    Context, devices()               which devices work, and by which rules
    paco(), blobs(), link(), specfit()   operations on observations
    stage_drift(), registered()      how far the stage drifted; the movie without that drift
    TemplateMaker, spectra_library()   templates of stars for specfit() from models
    matmul(), convolve_2d(), gaussian_2d(), eigvalsh(), eigvals(), monte_carlo_pi()   on plain arrays
    array(), empty(), compute(), reduce(), product(), normalize(), linear_step(), linear_train()
                                     on NumPy's arrays or on such that stay on a device
    tokenize(), embed(), finetune(), classify(), Encoder, Trainer, Classifier, CrossEncoder
                                     texts: tokens, vectors, fine-tuning, classes
    search(), semantic_search()      the vectors that are most similar to others
    LanguageModel                    language models: texts that go on, answers, scores
    offload(), explain(), last_plan()   host or device, and why
    Kernel, map()                    OpenCL C of your own, split over all devices
    Report, log_to()                 what ran where, and why

Everything is a call of the C library libcleave; the package itself computes nothing. While the
library works, other Python threads run. Errors are subclasses of cleave.Error.
"""
from __future__ import annotations

from . import errors
from ._array import convolve_2d, eigvals, eigvalsh, gaussian_2d, monte_carlo_pi
from ._blobs import SPOT, VOLUME_SPOT, BlobStream, blobs, volumes
from ._classifier import Class, Classifier, classify
from ._cross_encoder import CrossEncoder
from ._compute import (Normalized, compute, linear_step, linear_train, normalize, product,
                       reduce)
from ._context import Context, Device, MemoryRoom, MemoryStats, default_context, devices
from ._device_array import Array, ArrayStats, array, array_stats, empty
from ._encoder import Encoder, Trainer, TrainResult, embed, tokenize
from ._finetune import FinetuneResult, finetune
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
from ._search import Found, search, semantic_search
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
    "Encoder", "FIRST", "FinetuneResult", "Found", "Kernel", "LIBRARY_PATH", "LanguageModel", "Local", "MemoryRoom",
    "MemoryStats", "Normalized", "Out", "PacoResult", "Plan", "Report", "SPOT", "Share", "Shared",
    "SpectraArm", "SpectraLibrary", "TemplateMaker", "Tracks", "TrainResult", "Trainer", "VOLUME_SPOT", "WARNINGS",
    "__version__",
    "array", "array_stats", "asdi", "blobs", "branches", "calibrate_snr", "characterize",
    "classify", "companions", "compute", "contrast", "convolve_2d", "default_context",
    "devices", "eigvals", "eigvalsh", "embed", "empty", "explain", "finetune", "frame_quality", "frame_weights",
    "gaussian_2d", "has", "inject",
    "last_plan", "linear_step", "linear_train", "link", "log_to", "map", "matmul", "mend", "monte_carlo_pi",
    "normalize", "offload", "paco", "probe", "product", "psf_fwhm", "psf_normalize", "psf_recentre",
    "reduce", "registered", "search", "semantic_search", "specfit", "spectra_library", "stage_drift", "star_position",
    "tokenize", "volumes", *errors.__all__]
