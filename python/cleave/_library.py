# SPDX-License-Identifier: Apache-2.0
"""Finds libcleave, loads it, and checks that it is the version that this package was written for."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
from pathlib import Path
from typing import Any, Iterator

from . import _abi, _functions
from .errors import BY_STATUS, Error, LibraryError
from .version import __version__

_HERE = Path(__file__).resolve().parent
_NUMBERS = __version__.split(".")  # the interface's version: the first two numbers before 1.0, then the first one
_SONAME = "libcleave.so." + ".".join(_NUMBERS[:2] if _NUMBERS[0] == "0" else _NUMBERS[:1])


def candidates() -> Iterator[str]:
    """Yields the paths and names under which to open the library, in order; only $CLEAVE_LIBRARY if it is set."""
    given = os.environ.get("CLEAVE_LIBRARY")
    if given:
        yield given
        return
    folders = [_HERE / "bundle" / "lib", _HERE]
    if (_HERE.parent.parent / "include" / "cleave" / "cleave.h").exists():  # this package is used from a source tree
        folders.append(_HERE.parent.parent / "build" / "lib")
    for folder in folders:
        if (folder / _SONAME).exists():
            yield str(folder / _SONAME)
    yield _SONAME  # the dynamic linker searches its folders
    named = ctypes.util.find_library("cleave")
    if named and named != _SONAME:
        yield named


def _open() -> tuple[ctypes.CDLL, str]:
    said = []
    for path in candidates():
        try:
            return ctypes.CDLL(path), path
        except OSError as error:
            said.append(str(error))
    raise LibraryError("libcleave is not found: install it (cmake --install build), set "
                       "CLEAVE_LIBRARY to its path, or install this package with pip install -e "
                       "from a source tree that is built",
                       "\n".join(said))


def _same_layout(library: ctypes.CDLL, path: str) -> None:
    """Compares the version, every function, and the size of every structure, and raises LibraryError if they
    differ, so that calls do not use wrong layouts. tests/python/test_abi.py compares every member with the headers."""
    try:
        library.clv_version.restype = ctypes.c_char_p
        found = library.clv_version().decode()
    except AttributeError:
        raise LibraryError(f"{path} is not libcleave: it has no clv_version") from None
    if found.split(".")[:2] != __version__.split(".")[:2]:
        raise LibraryError(f"{path} is version {found}, but this package is for {__version__}")
    try:
        _functions.declare(library)
    except AttributeError as error:
        raise LibraryError(f"{path}: {error}; it may be an older {found}") from None
    for kind in _abi.structures():
        size = library.clv_size_of(kind.__name__.encode())
        if kind._fields_[0][0] == "size" and size > ctypes.sizeof(kind):
            continue  # a later release of the same interface added fields, which stay zero
        if size != ctypes.sizeof(kind) and not hasattr(kind, "head_of"):
            raise LibraryError(f"{path} is version {found}, but not the one that this package was "
                               f"made for: {kind.__name__} has {size} bytes there, but "
                               f"{ctypes.sizeof(kind)} are expected")


def load(library: ctypes.CDLL, path: str) -> ctypes.CDLL:
    """Checks an opened library and declares its functions."""
    _same_layout(library, path)
    return library


_opened, LIBRARY_PATH = _open()
lib = load(_opened, LIBRARY_PATH)
libc = ctypes.CDLL(None)
libc.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
libc.memcpy.restype = None


def error_of(status: int) -> Error:
    """Returns the exception for a status, with the message of this thread's last failure."""
    message = lib.clv_error_message().decode(errors="replace")
    detail = lib.clv_error_detail().decode(errors="replace")
    kind = BY_STATUS.get(status, Error)
    return kind(message, detail, status, lib.clv_status_name(status).decode())


def check(status: int) -> None:
    """Raises the error of a status, unless it is CLV_OK."""
    if status:
        raise error_of(status)


def take_text(pointer: int | None) -> str:
    """Returns a text that the library allocated as str, and frees the library's text."""
    if not pointer:
        raise MemoryError("libcleave: not enough memory for a text")
    try:
        return ctypes.string_at(pointer).decode(errors="replace")
    finally:
        lib.clv_free(pointer)


class InThisProcess:
    """An object that holds pointers of the library. It cannot be copied or pickled: a copy would free them twice."""

    def __reduce__(self) -> Any:
        raise TypeError(f"cleave.{type(self).__name__}: it belongs to this process and cannot be "
                        "copied or pickled; make another one")


def take_word(text: bytes) -> str:
    """Returns a text that the library owns as str, and does not free it."""
    return text.decode(errors="replace")


def has(name: str) -> bool:
    """Tells whether the loaded library has a function. Older libraries lack those of OPTIONAL in _functions.py."""
    return hasattr(lib, name)
