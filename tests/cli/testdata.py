# SPDX-License-Identifier: Apache-2.0
"""Finds the data of the tests. Every test finds its files by this module."""
import os
import sys

SKIPPED = 77  # exit code of a skipped test
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")


def third_party(name):
    """Returns (path, reason) of data that tests/data/third_party.txt lists; (None, None) for our own data."""
    with open(os.path.join(FOLDER, "third_party.txt"), encoding="ascii") as file:
        for line in file:
            prefix, where, what = (line.split(None, 2) + ["", "", ""])[:3]
            if line.startswith("#") or not name.startswith(prefix):
                continue
            variable, below = where[1:].split("/", 1)
            folder = os.environ.get(variable, "")
            reason = f"third-party data ({what.strip()}): {where} is not here"
            return (os.path.join(folder, below + name[len(prefix):]) if folder else "", reason)
    return None, None


def skip(reason):
    """Ends the test as one that cannot run on this machine."""
    print("SKIPPED:", reason, flush=True)
    sys.exit(SKIPPED)


def has(name):
    """Returns whether a file or folder exists. If third-party data are missing, prints that a part of the test is
    skipped."""
    path, reason = third_party(name)
    if path is None or path and os.path.exists(path):
        return True
    print("SKIPPED:", reason, flush=True)
    return False


def path_of(name):
    """Returns the path of a file or folder of tests/data ("paco/syn50/cube.npy"), or of third-party data. If
    third-party data are missing, the test is skipped; if our own data are missing, it fails."""
    if not has(name):
        sys.exit(SKIPPED)
    path = third_party(name)[0] or os.path.join(FOLDER, name)
    if not os.path.exists(path):
        sys.exit(f"tests/data/{name} is missing")
    return path
