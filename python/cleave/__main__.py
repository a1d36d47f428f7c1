# SPDX-License-Identifier: Apache-2.0
"""Runs the command `cleave ...` for `python -m cleave ...`."""
from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from ._library import LIBRARY_PATH


def find_command() -> str | None:
    """Returns the path of the command: $CLEAVE_COMMAND, else the command in ../bin or ../../bin of the library's
    folder, else the one in PATH; None if there is none."""
    given = os.environ.get("CLEAVE_COMMAND")
    if given:
        return given
    if os.sep in LIBRARY_PATH:
        folder = Path(LIBRARY_PATH).resolve().parent
        for place in (folder.parent, folder.parent.parent):
            command = place / "bin" / "cleave"
            if os.access(command, os.X_OK):
                return str(command)
    return shutil.which("cleave")


def main() -> int:
    command = find_command()
    if command is None:
        print("cleave: the command is not installed; set CLEAVE_COMMAND to its path",
              file=sys.stderr)
        return 1
    try:
        os.execv(command, ["cleave", *sys.argv[1:]])
    except OSError as error:
        print(f"cleave: {command}: {error.strerror}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
