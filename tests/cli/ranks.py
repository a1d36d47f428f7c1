#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests commands under mpirun, in plain C: any number of ranks writes the bytes of a local run, with Open MPI and
MPICH; ranks other than 0 print nothing; and no MPI library is loaded without a launcher. rank_faults.py tests faults.

usage: ranks.py CLEAVE [--all] [CASE...]      --all: 1, 2, 4 and 8 ranks of every case, with both"""
import os
import subprocess
import sys
import tempfile

import cluster_kit as kit
import mpi_kit as mpi
from mpi_kit import CLEAVE
from text_embed import WRONG


def check_case(case, name, ranks):
    kit.fresh("out")
    more = ["--devices-per-rank", "1"] if case in ("paco", "blobs", "search") else []
    done = kit.run(*kit.line_of(case, "out"), *more, before=mpi.launcher(name, ranks))
    kit.same(f"{case} on {ranks} ranks of {name}", done, WANTED[case])
    if done.stdout or done.stderr:
        kit.wrong(f"{case} on {ranks} ranks of {name} said {done.stdout} {done.stderr.decode()}")


def check_alone():
    """Tests that the command neither needs nor loads MPI, and that a single rank does not, either."""
    library = os.path.join(os.path.dirname(CLEAVE), "../lib/libcleave.so")
    files = [CLEAVE, *filter(os.path.exists, [library])]
    needed = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True).stdout
    done = kit.run(*kit.line_of("search", "out"), env={**os.environ, "LD_DEBUG": "files"})
    for what, text in ("needs", needed), ("loads", done.stderr.decode()):
        if "libmpi" in text or "cleave-mpi" in text or "libopen-" in text:
            kit.wrong(f"the command or the library {what} MPI")


def check_other(name):
    """Tests that rank 0 runs a command that cannot share its work."""
    line = ["link", "spots.csv", "--search", "3", "-o", "out/tracks.csv", "-q"]
    kit.fresh("out")
    kit.run(*line)
    wanted = kit.files_in("out")
    kit.fresh("out")
    kit.same(f"link under {name}", kit.run(*line, before=mpi.launcher(name, 3)), wanted)


def check_efficiency(name):
    """Measures 1,000 units that sleep 20 ms on 8 ranks. On a quiet machine the efficiency is 0.97 to 0.99
    (docs/clusters.md)."""
    program = os.path.join(os.path.dirname(CLEAVE), "sleepers")
    cases = [("1", 0.8), ("1,2,4,8", 0.6)]
    for speeds, least in cases if ALL else cases[:1] if name == "openmpi" else cases[1:]:
        done = subprocess.run([*mpi.launcher(name, 8), program, "1000", "20", speeds], capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL, text=True)
        words = done.stdout.split()
        if done.returncode or words[3:4] == [] or float(words[3].strip(",")) < least or "0 wrong" not in done.stdout:
            kit.wrong(f"sleepers at speeds {speeds} under {name}: {done.returncode} {done.stdout!r} {done.stderr!r}, "
                      f"expected {least} at least")


def main():
    names = mpi.names()
    cases = [word for word in sys.argv[2:] if word != "--all"] or [*kit.CASES, "rank", "passages", "whole"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        kit.make_inputs()
        WANTED.update((case, kit.local(case)) for case in cases)
        for number, case in enumerate(cases):
            for name in names:
                for ranks in (1, 2, 4, 8) if ALL else ((8, 2)[name == "mpich"],) if case == "search" else \
                        (3,) if names[number % len(names)] == name else ():
                    check_case(case, name, ranks)
        check_alone()
        with open("spots.csv", "w", encoding="ascii") as file:
            file.write("frame,y,x\n0,1,1\n1,1.5,1\n2,2,1\n")
        check_other(names[0])
        for name in names:
            check_efficiency(name)
        os.chdir("/")
    print("\n".join(WRONG))
    sys.exit(bool(WRONG))


ALL = "--all" in sys.argv
WANTED = {}
main()
