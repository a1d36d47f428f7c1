# SPDX-License-Identifier: Apache-2.0
"""Asynchronous calls on arrays: they return as soon as they are checked and enqueued."""
from __future__ import annotations

import contextlib
from typing import Iterator

from ._context import Context, chosen
from ._library import check, lib


def synchronize(context: Context | None = None) -> None:
    """Waits until all calls on arrays that were made in a context have ended, and raises the error of the first one
    that failed, unless it was raised before. Without asynchronous() there is nothing to wait for."""
    with chosen(context).held() as handle:
        check(lib.clv_array_synchronize(handle))


@contextlib.contextmanager
def asynchronous(context: Context | None = None) -> Iterator[None]:
    """Inside the block, calls on Arrays of the context, by any thread, return before they have been computed. The end
    of the block waits for them and raises the error of the first call that failed.

    Operators, functions of elements, casts, copies, sums and the like, compute(), reduce() and product() are
    asynchronous, unless an operand is a NumPy array or shares its memory with one. Everything that reads or writes the
    elements of an Array waits for the calls that use it, and raises the error of the call that should have computed it.
    """
    context = chosen(context)
    with context.held() as handle:
        before = context._asynchronous
        check(lib.clv_array_set_asynchronous(handle, True))
        context._asynchronous = True
        try:
            yield
        except BaseException:  # is more telling than an error of a call
            context._asynchronous = before
            lib.clv_array_set_asynchronous(handle, before)
            raise
        context._asynchronous = before
        check(lib.clv_array_synchronize(handle) if before else lib.clv_array_set_asynchronous(handle, False))
