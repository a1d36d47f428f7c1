# SPDX-License-Identifier: Apache-2.0
"""Convolutions, Gaussian kernels, eigenvalues and a Monte Carlo count, on NumPy arrays."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, as_floats, numbers, with_strides
from ._check import given, real, real32, whole
from ._context import Context, chosen
from ._library import check, has, lib
from ._probe import choice
from ._report import Report, report_handle
from ._watch import Progress, Watch
from .errors import ArgumentTypeError, LibraryError, ShapeError

_JACOBI_ROWS = 128  # the most rows of a matrix whose eigenvalues are computed on devices
_EDGES = {"reflect": 0, "constant": 1, "nearest": 2, "mirror": 3, "wrap": 4}


def _needs(function: str) -> None:
    if not has(function):
        raise LibraryError(f"this libcleave has no {function}")


def convolve_2d(image: Any, kernel: Any, *, edge: str = "reflect", constant: float = 0.0,
                context: Context | None = None, report: Report | None = None,
                progress: Progress = None) -> NDArray[np.float32]:
    """Convolves an image: out[r,c] = sum_ij kernel[i,j] * image[r + h//2 - i, c + w//2 - j], as scipy.ndimage.convolve
    does.

    Parameters
    ----------
    image    [H, W]; float32 is used in place, other types are converted
    kernel   [h, w], at most 4096 elements
    edge     what lies beyond the border: "reflect", "constant" (the value of `constant`), "nearest", "mirror" or "wrap"
    context, report, progress   see Context and Report; progress=True shows a bar

    Returns float32 [H, W], with the same bits however the work is split.

    Raises ShapeError, ArgumentError, CancelledError, DeviceError. Ctrl-C ends the call.
    """
    _needs("clv_convolve_2d")
    image, strides = with_strides(as_floats("image", image, 2))
    kernel = np.ascontiguousarray(as_floats("kernel", kernel, 2))
    out = np.empty(image.shape, np.float32)
    options = _abi.ConvolveOptions(ctypes.sizeof(_abi.ConvolveOptions),
                                   choice("edge", edge, _EDGES),
                                   real32("convolve_2d: constant", constant), strides[0])
    with chosen(context).held() as handle, Watch(progress, "convolve") as watch:
        options.progress = watch.function
        watch.done(lib.clv_convolve_2d(handle, address(image), *image.shape, address(kernel),
                                       *kernel.shape, ctypes.byref(options), address(out),
                                       report_handle(report)))
    return out


def gaussian_2d(sigma: float, radius: int) -> NDArray[np.float32]:
    """Returns the kernel of a Gaussian that is cut off at `radius` along both axes and has the sum 1: float32 [2r+1,
    2r+1]."""
    _needs("clv_gaussian_2d")
    sigma, radius = real("gaussian_2d: sigma", sigma), whole(
        "gaussian_2d: radius", radius, 0, (1 << 15) - 1)
    kernel = np.empty((2 * radius + 1, 2 * radius + 1), np.float32)
    check(lib.clv_gaussian_2d(sigma, radius, address(kernel)))
    return kernel


def eigvalsh(matrices: Any, *, context: Context | None = None, report: Report | None = None,
             progress: Progress = None) -> NDArray[np.float32]:
    """Computes the eigenvalues of many symmetric matrices: by Jacobi rotations on devices, by QR steps on the host.

    Parameters
    ----------
    matrices  [count, n, n] or [n, n]; the lower triangle is read. Above n = 128, LAPACK computes on the host
    context, report, progress   see Context and Report; progress=True shows a bar

    Returns float32 [count, n] or [n], in ascending order, within 4 n 2^-24 of the matrix's Frobenius norm.

    Raises ShapeError, ArgumentError, UnsupportedError (n is above 128 and this machine has no LAPACK), CancelledError,
    DeviceError. Ctrl-C ends the call.
    """
    _needs("clv_eigvalsh")
    stack = np.ascontiguousarray(numbers("matrices", matrices))
    if stack.ndim not in (2, 3) or stack.shape[-1] != stack.shape[-2]:
        raise ShapeError(f"eigvalsh: got shape {stack.shape}, but [count, n, n] or [n, n] is expected")
    count = 1 if stack.ndim == 2 else len(stack)
    values = np.empty(stack.shape[:-1], np.float32)
    if not count:
        return values
    if stack.shape[-1] > _JACOBI_ROWS:
        lower = np.tril(stack)
        return np.ascontiguousarray(eigvals(lower + np.tril(stack, -1).swapaxes(-1, -2), context=context, report=report,
                                            progress=progress).real)
    options = _abi.EigenOptions(size=ctypes.sizeof(_abi.EigenOptions))
    with chosen(context).held() as handle, Watch(progress, "eigvalsh") as watch:
        options.progress = watch.function
        watch.done(lib.clv_eigvalsh(handle, address(stack), count, stack.shape[-1],
                                    ctypes.byref(options), address(values),
                                    report_handle(report)))
    return values


def eigvals(matrices: Any, *, context: Context | None = None, report: Report | None = None,
            progress: Progress = None) -> NDArray[np.complex64]:
    """Computes the eigenvalues of general real matrices [count, n, n] or [n, n] by LAPACK on the host, on all its
    cores.

    Returns complex64 [count, n] or [n], in ascending order of the real part, then of the imaginary part.

    Raises ShapeError, UnsupportedError (this machine has no LAPACK), CancelledError. Ctrl-C ends the call.
    """
    _needs("clv_eigvals")
    stack = np.ascontiguousarray(numbers("matrices", matrices))
    if stack.ndim not in (2, 3) or stack.shape[-1] != stack.shape[-2]:
        raise ShapeError(f"eigvals: got shape {stack.shape}, but [count, n, n] or [n, n] is expected")
    count = 1 if stack.ndim == 2 else len(stack)
    values = np.empty(stack.shape[:-1], np.complex64)
    real, imaginary = np.empty(values.shape, np.float32), np.empty(values.shape, np.float32)
    if count:
        options = _abi.EigenOptions(size=ctypes.sizeof(_abi.EigenOptions))
        with chosen(context).held() as handle, Watch(progress, "eigvals") as watch:
            options.progress = watch.function
            watch.done(lib.clv_eigvals(handle, address(stack), count, stack.shape[-1],
                                       ctypes.byref(options), address(real), address(imaginary),
                                       report_handle(report)))
    values.real, values.imag = real, imaginary
    return values


def monte_carlo_pi(samples: int, *, key: tuple[int, int] = (0, 0), context: Context | None = None,
                   report: Report | None = None, progress: Progress = None) -> int:
    """Counts how many of `samples` random points of the unit square lie in the quarter circle.

    4 * count / samples estimates pi with a standard error of 1.64 / sqrt(samples). Philox4x32-10 makes the points from
    `key`. The count is exact, and the same on every device and in every split.

    Raises ArgumentError, CancelledError, DeviceError. Ctrl-C ends the call.
    """
    _needs("clv_monte_carlo_pi")
    samples = whole("monte_carlo_pi: samples", samples, 0, 1 << 63)
    if not isinstance(key, (tuple, list)) or len(key) != 2:
        raise ArgumentTypeError(f"monte_carlo_pi: key is {given(key)}, but it must be two whole numbers")
    words = tuple(whole("monte_carlo_pi: key", word, 0, (1 << 32) - 1) for word in key)
    options = _abi.MonteCarloOptions(ctypes.sizeof(_abi.MonteCarloOptions), words)
    inside = ctypes.c_uint64()
    with chosen(context).held() as handle, Watch(progress, "monte carlo") as watch:
        options.progress = watch.function
        watch.done(lib.clv_monte_carlo_pi(handle, samples, ctypes.byref(options),
                                          ctypes.byref(inside), report_handle(report)))
    return inside.value
