# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of arrays: the extension `fft` of the Python array API standard.

The host computes the transforms, by the fastest of NumPy, SciPy and FFTW that are installed; they are timed at the
second transform of a shape. The results are complex64 for inputs of float32 and complex64, complex128 for
all other inputs. NumPy 2.0 and later computes float32 in float32, earlier versions in float64.
"""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ._context import Context
from ._device_array import Array, array
from ._host_math import on_host
from ._transform import quick, transform

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
           "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]
_NORMS = ("backward", "ortho", "forward", None)
_SINGLE = (np.dtype(np.float32), np.dtype(np.complex64))


def _plain(name: str, x: Array, named: dict[str, Any]) -> tuple[tuple[int, ...], int | None] | None:
    """Returns the axes of a transform of the whole array, and the length that the caller asks for; None if elements are
    cut off or zeros added, or if an argument is wrong, which NumPy then says."""
    if "hfft" in name or (name.startswith("rfft") and x.dtype.kind == "c"):
        return None
    axes = (named["axis"],) if "axis" in named else named["axes"]
    axes = tuple(range(x.ndim)) if axes is None else tuple(axes)
    if not axes or not x.size or not all(type(i) is int and -x.ndim <= i < x.ndim for i in axes):
        return None
    axes = tuple(i % x.ndim for i in axes)
    sizes = (named["n"],) if "n" in named else named["s"]
    sizes = (None,) * len(axes) if sizes is None else tuple(sizes)
    if len(set(axes)) < len(axes) or len(sizes) != len(axes) or named["norm"] not in _NORMS:
        return None
    inverse_real = name.startswith("irfft")
    for place, (axis, size) in enumerate(zip(axes, sizes)):
        halved = inverse_real and place == len(axes) - 1
        if halved and (type(size) is not int and size is not None or (x.shape[axis] if size is None else
                                                                     2 * size) < 2 or
                       size is not None and size // 2 + 1 != x.shape[axis]):
            return None
        if not halved and size not in (None, x.shape[axis]):
            return None
    return axes, sizes[-1]


_ways: dict[Any, Any] = {}  # what transform() has returned, by name, shape, type and arguments
_MOST_WAYS = 1024


def _made(name: str, x: Any, is_complex: bool, *named: tuple[str, Any]) -> Array:
    x = x if isinstance(x, Array) else array(x)
    key, way = (name, x._shape, x.dtype, named), None
    try:
        way = _ways.get(key)
        keeps = len(_ways) < _MOST_WAYS
    except TypeError:  # axes in a list
        keeps = False
    made = quick(x, way) if way is not None else None
    if made is not None:
        return made
    plain = _plain(name, x, dict(named))
    if plain is not None:
        made, way = transform(x, plain[0], not name.startswith("i"), "rfft" in name, dict(named)["norm"], plain[1])
        if keeps:
            _ways[key] = way
        return made
    whole: Array = on_host(getattr(np.fft, name), x, **dict(named))
    single = x.dtype in _SINGLE
    kind = (np.complex64 if single else np.complex128) if is_complex else (np.float32 if single else np.float64)
    return whole.astype(kind, copy=False)


def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Array:
    """Returns the transform along one axis."""
    return _made("fft", x, True, ("n", n), ("axis", axis), ("norm", norm))


def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Array:
    """Returns the inverse of fft."""
    return _made("ifft", x, True, ("n", n), ("axis", axis), ("norm", norm))


def _axes(x: Any, s: Any, axes: Any) -> Any:
    return tuple(range(np.ndim(x) - len(s), np.ndim(x))) if s is not None and axes is None else axes


def fftn(x: Any, /, s: Sequence[int] | None = None, axes: Any = None, norm: Any = "backward") -> Array:
    """Returns the transform along several axes, or along all of them."""
    return _made("fftn", x, True, ("s", s), ("axes", _axes(x, s, axes)), ("norm", norm))


def ifftn(x: Any, /, s: Sequence[int] | None = None, axes: Any = None, norm: Any = "backward") -> Array:
    """Returns the inverse of fftn."""
    return _made("ifftn", x, True, ("s", s), ("axes", _axes(x, s, axes)), ("norm", norm))


def fft2(x: Any, s: Sequence[int] | None = None, axes: Any = (-2, -1), norm: Any = "backward") -> Array:
    """Returns the transform of images."""
    return _made("fft2", x, True, ("s", s), ("axes", axes), ("norm", norm))


def ifft2(x: Any, s: Sequence[int] | None = None, axes: Any = (-2, -1), norm: Any = "backward") -> Array:
    """Returns the inverse of fft2."""
    return _made("ifft2", x, True, ("s", s), ("axes", axes), ("norm", norm))


def rfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Array:
    """Returns the transform of real numbers, without the half that is the conjugate of the other half."""
    return _made("rfft", x, True, ("n", n), ("axis", axis), ("norm", norm))


def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Array:
    """Returns the inverse of rfft."""
    return _made("irfft", x, False, ("n", n), ("axis", axis), ("norm", norm))


def rfftn(x: Any, /, s: Sequence[int] | None = None, axes: Any = None, norm: Any = "backward") -> Array:
    """Returns the transform of real numbers along several axes, or along all of them."""
    return _made("rfftn", x, True, ("s", s), ("axes", _axes(x, s, axes)), ("norm", norm))


def irfftn(x: Any, /, s: Sequence[int] | None = None, axes: Any = None, norm: Any = "backward") -> Array:
    """Returns the inverse of rfftn."""
    return _made("irfftn", x, False, ("s", s), ("axes", _axes(x, s, axes)), ("norm", norm))


def rfft2(x: Any, s: Sequence[int] | None = None, axes: Any = (-2, -1), norm: Any = "backward") -> Array:
    """Returns the transform of real images."""
    return _made("rfft2", x, True, ("s", s), ("axes", axes), ("norm", norm))


def irfft2(x: Any, s: Sequence[int] | None = None, axes: Any = (-2, -1), norm: Any = "backward") -> Array:
    """Returns the inverse of rfft2."""
    return _made("irfft2", x, False, ("s", s), ("axes", axes), ("norm", norm))


def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Array:
    """Returns the transform along one axis of elements whose second half is the conjugate of the first half; the result
    is real."""
    return _made("hfft", x, False, ("n", n), ("axis", axis), ("norm", norm))


def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Array:
    """Returns the inverse of hfft."""
    return _made("ihfft", x, True, ("n", n), ("axis", axis), ("norm", norm))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Context | None = None) -> Array:
    """Returns the frequencies that belong to the elements of fft."""
    return array(np.fft.fftfreq(n, d), np.float32 if dtype is None else dtype, context=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Context | None = None) -> Array:
    """Returns the frequencies that belong to the elements of rfft."""
    return array(np.fft.rfftfreq(n, d), np.float32 if dtype is None else dtype, context=device)


def fftshift(x: Array, /, *, axes: Any = None) -> Array:
    """Moves frequency 0 to the middle of these axes."""
    from ._shapes import axes_of, roll
    moved = axes_of("fftshift", axes, x.ndim)
    return roll(x, tuple(x.shape[i] // 2 for i in moved), moved)


def ifftshift(x: Array, /, *, axes: Any = None) -> Array:
    """Moves frequency 0 from the middle of these axes to their beginning."""
    from ._shapes import axes_of, roll
    moved = axes_of("ifftshift", axes, x.ndim)
    return roll(x, tuple(-(x.shape[i] // 2) for i in moved), moved)
