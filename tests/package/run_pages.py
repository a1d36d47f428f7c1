#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the blocks of shell and Python of pages, from top to bottom, and compares what they print.

Each page starts in a folder of its own with the files of `cleave demo` and links to the folders of the
sources; pages.py says which blocks are left out. Exit code 77: nothing of them could run here.

usage: run_pages.py ROOT CLEAVE PAGE...
    $CLEAVE_LIBRARY    the library for blocks of Python; without it, or without NumPy, they are left out
    $CLEAVE_MINILM_DIR the model for blocks that need all-MiniLM-L6-v2
    $CLEAVE_SMOLLM2    the model for blocks that need SmolLM2, whatever its quantisation
"""
import contextlib
import doctest
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

import pages

SKIP, TIMEOUT_S = 77, 600
# What a block can need: the variable that names it, and its name in the folder of a reader.
MODELS = {
    "all-MiniLM-L6-v2": ("CLEAVE_MINILM_DIR", "all-MiniLM-L6-v2"),
    "SmolLM2": ("CLEAVE_SMOLLM2", "SmolLM2-135M-Instruct-Q4_K_M.gguf"),
}
SAME = doctest.OutputChecker().check_output


def take_platforms(folder, command):
    """Takes the drivers that the tests promise to run on, no variable that a user may have set, and a cache of its
    own."""
    for name in ("CLEAVE_DEVICE", "CLEAVE_MODE", "CLEAVE_MEM_LIMIT", "CLEAVE_LOG", "CLEAVE_SCHED",
                 "CLEAVE_CACHE", "CLEAVE_TUNE"):
        os.environ.pop(name, None)
    if "CLEAVE_TEST_ICDS" in os.environ:
        os.environ["OCL_ICD_VENDORS"] = os.environ["CLEAVE_TEST_ICDS"]
        os.environ["RUSTICL_ENABLE"] = "llvmpipe"
    cache = os.path.join(folder, "cache")
    os.mkdir(cache, 0o700)
    os.environ["CLEAVE_CACHE_DIR"] = cache
    os.environ["PATH"] = os.path.dirname(command) + os.pathsep + os.environ["PATH"]


def why_no_python():
    if not os.environ.get("CLEAVE_LIBRARY"):
        return "no shared library"
    missing = [name for name in ("numpy", "cleave") if importlib.util.find_spec(name) is None]
    return "no Python module " + missing[0] if missing else None


def prepare(root, place, demo):
    """Makes a folder like that of a reader who ran the demo in the folder of the sources."""
    os.mkdir(place)
    for name in os.listdir(root):
        if os.path.isdir(os.path.join(root, name)) and not name.startswith((".", "build")):
            os.symlink(os.path.join(root, name), os.path.join(place, name))
    shutil.copytree(demo, os.path.join(place, "cleave-demo"), dirs_exist_ok=True)
    for variable, name in MODELS.values():
        if os.environ.get(variable):
            os.symlink(os.environ[variable], os.path.join(place, name))


class Page:
    """Runs the blocks of one page; Python blocks share their names."""

    def __init__(self, root, page, no_python):
        self.path, self.names = os.path.join(root, page), {"__name__": "page"}
        self.no_python, self.ran, self.left = no_python, 0, []

    def why_not(self, block):
        """Returns why a block is not run here; "" if it is not meant to be run."""
        if block.language not in ("sh", "python") or block.marked("not run") is not None:
            return ""
        need = block.marked("needs")
        if need not in (None, *MODELS):
            raise ValueError("%s:%d needs what nobody knows: %s" % (self.path, block.line, need))
        if need and not os.environ.get(MODELS[need][0]):
            return MODELS[need][0] + " is not set"
        return self.no_python if block.language == "python" else None

    def shell(self, block):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
        if done.returncode:
            raise RuntimeError("exit code %d\n%s" % (done.returncode, done.stderr[-2000:]))
        return done.stdout

    def python(self, block):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            # the compiler gets the position of the block, so that a traceback shows its line
            exec(compile("\n" * (block.line - 1) + block.text, self.path, "exec"), self.names)
        return printed.getvalue()

    def run(self, block):
        """Returns what is wrong with the block, or None."""
        try:
            got = self.python(block) if block.language == "python" else self.shell(block)
        except Exception:
            return traceback.format_exc(limit=-1)
        if block.prints is not None and not SAME(
                block.prints, got, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE):
            return "expected\n%s\nprinted\n%s" % (block.prints, got)
        return None

    def run_all(self, text):
        wrong = []
        for block in pages.blocks(text):
            why = self.why_not(block)
            if why is None:
                fault = self.run(block)
                self.ran += 1
                if fault:
                    wrong.append("%s:%d: %s" % (self.path, block.line, fault))
            elif why:
                self.left.append("line %d (%s)" % (block.line, why))
        return wrong


def main():
    root, command, *wanted = sys.argv[1:]
    folder = tempfile.mkdtemp()
    ran, wrong, no_python = 0, [], why_no_python()
    try:
        take_platforms(folder, command)
        demo = os.path.join(folder, "demo")
        subprocess.run([command, "demo", "--quiet", "--mode", "reference", "-o", demo], check=True,
                       stdout=subprocess.DEVNULL, timeout=TIMEOUT_S,
                       env={k: v for k, v in os.environ.items() if k not in ("CLEAVE_MINILM_DIR", "CLEAVE_SMOLLM2")})
        for i, name in enumerate(wanted):
            place = os.path.join(folder, str(i))
            prepare(root, place, demo)
            os.chdir(place)
            page = Page(root, name, no_python)
            wrong += page.run_all(pages.read(root, name))
            ran += page.ran
            print("%s: %d blocks ran%s" % (name, page.ran,
                                           "; not " + ", ".join(page.left) if page.left else ""))
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(wrong))
    if not ran:
        print("SKIPPED: no block of these pages can run here")
        return SKIP
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
