# SPDX-License-Identifier: Apache-2.0
"""Cleave in Python: NumPy in, NumPy out, on whatever OpenCL devices this machine has.

    probe()                          what this machine can compute with
    Context, devices()               which devices work, and by which rules
    paco(), blobs(), link(), specfit()   operations on observations
    matmul(), convolve_2d(), gaussian_2d(), eigvalsh(), monte_carlo_pi()   on plain arrays
    Kernel, map()                    OpenCL C of your own, split over all devices
    Report, log_to()                 what ran where, and why

Everything is a call of the C library libcleave; the package itself computes nothing. While the
library works, other Python threads run. Errors are subclasses of cleave.Error.
"""
from __future__ import annotations

from . import errors
from ._array import convolve_2d, eigvalsh, gaussian_2d, monte_carlo_pi
from ._blobs import SPOT, BlobStream, blobs
from ._context import Context, Device, MemoryStats, default_context, devices
from ._kernel import COUNT, FIRST, Kernel, Local, Out, Shared
from ._library import LIBRARY_PATH, has
from ._link import link
from ._map import map_items as map
from ._matmul import matmul
from ._paco import PacoResult, paco, psf_fwhm, psf_normalize
from ._probe import probe
from ._report import Report, Share
from ._specfit import WARNINGS, specfit
from ._spectra_library import SpectraArm, SpectraLibrary
from .errors import *  # noqa: F403: every exception
from .log import log_to
from .version import __version__

__all__ = [
    "BlobStream", "COUNT", "Context", "Device", "FIRST", "Kernel", "LIBRARY_PATH", "Local",
    "MemoryStats", "Out", "PacoResult", "Report", "SPOT", "Share", "Shared", "SpectraArm",
    "SpectraLibrary", "WARNINGS", "__version__", "blobs", "convolve_2d", "default_context",
    "devices", "eigvalsh", "gaussian_2d", "has", "link", "log_to", "map", "matmul",
    "monte_carlo_pi", "paco", "probe", "psf_fwhm", "psf_normalize", "specfit", *errors.__all__]
