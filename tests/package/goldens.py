#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the files in tests/data are those that were committed: each has the checksum in tests/data/SHA256SUMS,
none is missing, none is not listed, and together they take less than 40 MB.

usage: goldens.py SOURCES            exit code 1 if a file differs
       goldens.py SOURCES --update   writes SHA256SUMS again, after you have added or changed a golden file

A test that allows a tolerance cannot see every change of the numbers that it compares with; this one can.
"""
import hashlib
import os
import sys

LIST, SUFFIXES, MOST_BYTES = "SHA256SUMS", (".md", ".py", ".pyc"), 40_000_000


def files_of(folder):
    """Returns the names of the data in SHA256SUMS. Texts and programs are not listed, so that they can change
    freely."""
    for where, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.relpath(os.path.join(where, name), folder)
            if path != LIST and not name.endswith(SUFFIXES):
                yield path


def checksum(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def listed(folder):
    with open(os.path.join(folder, LIST), encoding="utf-8") as file:
        return {name: digest for digest, name in (line.rstrip("\n").split("  ", 1) for line in file)}


def differences(folder, want):
    have = set(files_of(folder))
    for name in sorted(want.keys() - have):
        yield f"{name} is missing"
    for name in sorted(have - want.keys()):
        yield f"{name} is not in {LIST}: add it with tests/package/goldens.py . --update"
    for name in sorted(have & want.keys()):
        if checksum(os.path.join(folder, name)) != want[name]:
            yield f"{name} is not the file that was committed"
    total = sum(os.path.getsize(os.path.join(folder, name)) for name in have)
    if total >= MOST_BYTES:
        yield f"all files together have {total} bytes; they must stay below {MOST_BYTES}"


def main():
    folder = os.path.join(sys.argv[1], "tests", "data")
    if sys.argv[2:] == ["--update"]:
        with open(os.path.join(folder, LIST), "w", encoding="utf-8") as file:
            file.writelines(f"{checksum(os.path.join(folder, name))}  {name}\n" for name in files_of(folder))
        return 0
    wrong = list(differences(folder, listed(folder)))
    print("\n".join(f"tests/data: {line}" for line in wrong) or "tests/data: every file is as it was committed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
