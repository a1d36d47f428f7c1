# SPDX-License-Identifier: Apache-2.0
"""Computes operations that the library does not have by NumPy on the host, and returns the results as Arrays."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ._device_array import Array, array
from ._elementwise import context_of
from ._sharing import shared, wrapped

_LEAST = 1 << 16  # bytes from which on a result's memory becomes the Array's instead of being copied


def on_host(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Calls a NumPy function, which changes none of its arguments, with the Arrays on the host, and returns its results
    as Arrays of the same context. Where the device shares the host's memory, nothing is copied."""
    context = context_of(given)
    here = [shared(one) if isinstance(one, Array) else None for one in given]
    in_place = context is not None and any(one is not None for one in here)
    result = function(*(one if not isinstance(one, Array) else one.numpy() if there is None else there
                        for one, there in zip(given, here)), **named)

    def back(one: Any) -> Any:
        if not isinstance(one, (np.ndarray, np.generic)):
            return one
        made = None
        if isinstance(one, np.ndarray) and one.base is None and one.nbytes >= _LEAST and in_place and context:
            made = wrapped(one, context)
        return array(one, context=context) if made is None else made

    if isinstance(result, (tuple, list)):
        parts = [back(one) for one in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return back(result)
