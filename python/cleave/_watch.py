# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of a long call, and cancels the call on Ctrl-C or when the progress function asks for that.

The library calls back about ten times per second on the caller's thread. A handler of Ctrl-C
records the signal, the callback cancels the call, and the interrupt is raised once the library no longer uses the
caller's memory.
"""
from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Union

from . import _abi
from ._check import given
from ._library import check
from .errors import ArgumentTypeError

if TYPE_CHECKING:
    from signal import SIGINT, getsignal, signal
else:
    try:  # saves the 3 us per call that the module `signal` takes to convert to enumerations
        from _signal import SIGINT, getsignal, signal
    except ImportError:
        from signal import SIGINT, getsignal, signal

ProgressFunction = Callable[[int, int], Any]
#: How a call shows its progress. None or False: not at all. True: by a bar (tqdm's if it is installed). A function is
#: called with (done, total); the call is cancelled if it returns False or raises an exception.
Progress = Union[None, bool, ProgressFunction]


class _Line:
    """The progress bar that is used if tqdm is not installed: one line on stderr."""

    def __init__(self, name: str):
        self.name, self.shown = name, ""

    def show(self, done: int, total: int) -> None:
        text = f"\r{self.name}: {100 * done // max(total, 1)} % of {total}"
        if text != self.shown:
            sys.stderr.write(text)
            sys.stderr.flush()
            self.shown = text

    def close(self) -> None:
        if self.shown:
            sys.stderr.write("\n")


class _Tqdm:
    def __init__(self, name: str, tqdm: Any):
        self.bar = tqdm(desc=name, total=None)

    def show(self, done: int, total: int) -> None:
        self.bar.total = total
        self.bar.update(done - self.bar.n)

    def close(self) -> None:
        self.bar.close()


def _bar(name: str) -> _Line | _Tqdm:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Line(name)
    return _Tqdm(name, tqdm)


class Watch:
    """Watches one call: `with Watch(progress, "paco") as watch:` gives `watch.function` to the library and passes the
    status to `watch.done(status)`."""

    def __init__(self, progress: Progress | Callable[[str], Any], name: str, *,
                 of_probe: bool = False):
        self.failure: BaseException | None = None
        self.signals: list[tuple[int, Any]] = []
        self.bar: _Line | _Tqdm | None = None
        self.tell: Callable[..., Any] | None = None
        if callable(progress):
            self.tell = progress
        elif progress is not None and not isinstance(progress, bool):
            raise ArgumentTypeError(f"{name}: progress is {given(progress)}, but it must be a bool or a function")
        if progress is True:
            self.bar = _bar(name)
            self.tell = self.bar.show
        self.before: Any = None
        if of_probe:
            self.function = _abi.ProbeProgress(lambda doing, _user: self.called(doing.decode()))
        else:
            self.function = _abi.Progress(
                lambda _name, done, total, _user: self.called(done, total))

    def called(self, *arguments: Any) -> int:
        """Reports how far the call is. Returns 1 to end the call."""
        try:
            if self.tell and not self.failure and self.tell(*arguments) is False:
                return 1
        except BaseException as error:  # raised again by done()
            self.failure = error
        return 1 if self.signals or self.failure else 0

    def _interrupted(self, number: int, frame: Any) -> None:
        self.signals.append((number, frame))

    def __enter__(self) -> "Watch":
        if threading.current_thread() is threading.main_thread():
            before = getsignal(SIGINT)
            if callable(before):
                signal(SIGINT, self._interrupted)
                self.before = before
        return self

    def __exit__(self, *_unused: Any) -> None:
        if self.before is not None:
            signal(SIGINT, self.before)
        if self.bar:
            self.bar.close()
        if self.signals:
            self.before(*self.signals[0])  # Python's default handler raises KeyboardInterrupt

    def done(self, status: int) -> None:
        """Raises what the progress function raised, or else the error of the status. After an interrupt it raises
        neither: the end of the `with` block raises the interrupt."""
        if self.failure:
            raise self.failure
        if not self.signals:
            check(status)
