# SPDX-License-Identifier: Apache-2.0
"""Computes operations that the library does not have by NumPy on the host, and returns the results as Arrays."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ._device_array import Array, array
from ._elementwise import context_of


def on_host(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Calls a NumPy function with copies of the Arrays on the host, and returns its results as Arrays of the same
    context."""
    context = context_of(given)
    result = function(*(one.numpy() if isinstance(one, Array) else one for one in given), **named)

    def back(one: Any) -> Any:
        return array(one, context=context) if isinstance(one, (np.ndarray, np.generic)) else one

    if isinstance(result, (tuple, list)):
        parts = [back(one) for one in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return back(result)
