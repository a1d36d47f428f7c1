# SPDX-License-Identifier: Apache-2.0
"""Lends NumPy's BLAS to the library, for products of Arrays on the host."""
from __future__ import annotations

import ctypes
import functools
import os
from typing import Iterator

from ._library import has, lib

#: Names of cblas_sgemm, and the bits of its integers, in OpenBLAS (of NumPy's wheels and of Linux) and in MKL.
_NAMES = (("scipy_cblas_sgemm64_", 64), ("cblas_sgemm64_", 64), ("cblas_sgemm_64", 64), ("scipy_cblas_sgemm", 32),
          ("cblas_sgemm", 32))


def _loaded() -> Iterator[str]:
    """Yields the paths of the BLAS libraries that this process has loaded; reference BLAS, which is slow, is none."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "/" in line}
    except OSError:
        return
    for path in sorted(paths):
        if any(word in os.path.basename(path).lower() for word in ("openblas", "libmkl_rt", "libblis")):
            yield path


@functools.lru_cache(maxsize=None)
def lend() -> str | None:
    """Hands the fast BLAS that NumPy has loaded to the library, and returns its path; None if there is none.
    Only the first call does anything."""
    for path in _loaded() if has("clv_blas_use") else ():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name, bits in _NAMES:
            if hasattr(library, name):
                lib.clv_blas_use(ctypes.cast(getattr(library, name), ctypes.c_void_p), bits)
                return path
    return None

