# SPDX-License-Identifier: Apache-2.0
"""Defines the exceptions of the package, one per status of the library, with the library's messages."""
from __future__ import annotations

from typing import Any

__all__ = ["Error", "ArgumentError", "ArgumentTypeError", "ShapeError", "FormatError", "UnsupportedError",
           "HostMemoryError", "DeviceMemoryError", "NoDeviceError", "DeviceError", "BuildError",
           "WrongResultError", "FileError", "CancelledError", "BusyError", "InternalError",
           "LibraryError"]


class Error(Exception):
    """A call of the library failed.

    Attributes
    ----------
    status : int     number of the error, as in cleave/status.h
    name : str       name of the error: "CLV_E_SHAPE"
    message : str    one line: what was given, what was expected
    detail : str     text of several lines, such as a kernel's build log; often ""
    """

    status = 0
    name = "CLV_E"

    def __init__(self, message: str = "", detail: str = "", status: int | None = None,
                 name: str | None = None):
        super().__init__(f"{message}\n{detail}" if detail else message)
        self.message, self.detail = message, detail
        if status is not None:
            self.status = status
        if name is not None:
            self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.detail, self.status, self.name)


class ArgumentError(Error, ValueError):
    """A value is outside its range, or a name is unknown."""
    status, name = 1, "CLV_E_ARGUMENT"


class ArgumentTypeError(ArgumentError, TypeError):
    """A value has the wrong type, such as a text for a number, or None for a list."""


class ShapeError(Error, ValueError):
    """The shapes or types of arrays do not fit together."""
    status, name = 2, "CLV_E_SHAPE"


class FormatError(Error, ValueError):
    """A text or a file does not have the expected format."""
    status, name = 3, "CLV_E_FORMAT"


class UnsupportedError(Error, NotImplementedError):
    """The request is well formed, but this build, device or file format cannot do it."""
    status, name = 4, "CLV_E_UNSUPPORTED"


class HostMemoryError(Error, MemoryError):
    """There is not enough host memory."""
    status, name = 10, "CLV_E_MEMORY"


class DeviceMemoryError(Error, MemoryError):
    """No device has room for the smallest piece of the work."""
    status, name = 11, "CLV_E_DEVICE_MEMORY"


class NoDeviceError(Error):
    """A device or mode that was asked for is not on this machine."""
    status, name = 20, "CLV_E_NO_DEVICE"


class DeviceError(Error):
    """An OpenCL call failed, or a command ended with an error."""
    status, name = 21, "CLV_E_DEVICE"


class BuildError(Error):
    """A kernel did not compile; `detail` is the build log."""
    status, name = 22, "CLV_E_BUILD"


class WrongResultError(Error):
    """A device's result differs from the reference."""
    status, name = 23, "CLV_E_WRONG_RESULT"


class FileError(Error, OSError):
    """A file could not be opened, read, written or renamed."""
    status, name = 30, "CLV_E_IO"


class CancelledError(Error):
    """The progress function asked for the call to end."""
    status, name = 40, "CLV_E_CANCELLED"


class BusyError(Error):
    """The object is in use, for example by another thread. Try again later."""
    status, name = 41, "CLV_E_BUSY"


class InternalError(Error):
    """An invariant of the library broke: please report it."""
    status, name = 50, "CLV_E_INTERNAL"


class LibraryError(Error, ImportError):
    """libcleave was not found, or is not the version that this package was made for."""
    status, name = 0, "CLV_E_LIBRARY"


BY_STATUS = {kind.status: kind for kind in (
    ArgumentError, ShapeError, FormatError, UnsupportedError, HostMemoryError, DeviceMemoryError,
    NoDeviceError, DeviceError, BuildError, WrongResultError, FileError, CancelledError, BusyError,
    InternalError)}
