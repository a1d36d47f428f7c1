# SPDX-License-Identifier: Apache-2.0
"""Asynchronous calls on arrays: they return as soon as they are checked and enqueued."""
from __future__ import annotations

import contextlib
import threading
from typing import Iterator

from ._context import Context, chosen
from ._library import check, lib

_lock = threading.Lock()  # guards the number of blocks of each context


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
        with _lock:
            check(lib.clv_array_set_asynchronous(handle, True))
            context._asynchronous += 1
        try:
            yield
        except BaseException:  # is more telling than an error of a call
            _leave(context, handle)
            raise
        check(_leave(context, handle) or lib.clv_array_synchronize(handle))


def _leave(context: Context, handle: int) -> int:
    """Ends one of the blocks of a context. Calls are synchronous again after the last one, which waits for them and
    returns the status of the first one that failed."""
    with _lock:
        context._asynchronous -= 1
        return 0 if context._asynchronous else int(lib.clv_array_set_asynchronous(handle, False))
