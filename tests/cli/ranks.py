#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands under mpirun, in plain C: any number of ranks gives the bytes of a local run, with Open MPI and MPICH; ranks
other than 0 are silent; a rank that dies or finds no input ends the job with an error; and without a launcher nothing
of MPI is loaded.

usage: ranks.py CLEAVE [--all] [CASE...]      --all: 1, 2, 4 and 8 ranks of every case, with both"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cluster_kit as kit
import testdata
from text_embed import CLEAVE, WRONG

os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_rmaps_base_oversubscribe="1",
                  OMPI_MCA_plm_rsh_agent="false", OMPI_MCA_btl="self,vader,tcp")
LAUNCHERS = {"openmpi": ["--oversubscribe"], "mpich": []}


def launcher(name, ranks):
    return [f"mpirun.{name}", *LAUNCHERS[name], "-n", str(ranks)]


def check_case(case, name, ranks):
    kit.fresh("out")
    done = kit.run(*kit.line_of(case, "out"), before=launcher(name, ranks))
    kit.same(f"{case} on {ranks} ranks of {name}", done, WANTED[case])
    if done.stdout or done.stderr:
        kit.wrong(f"{case} on {ranks} ranks of {name} said {done.stdout} {done.stderr.decode()}")


def check_alone():
    """The command neither needs nor loads MPI, and one rank or none does not either."""
    needed = subprocess.run(["ldd", CLEAVE], capture_output=True, text=True, check=True).stdout
    done = kit.run(*kit.line_of("search", "out"), env={**os.environ, "LD_DEBUG": "files"})
    for what, text in ("needs", needed), ("loads", done.stderr.decode()):
        if "libmpi" in text or "cleave-mpi" in text or "libopen-" in text:
            kit.wrong(f"the command {what} MPI")


def check_other(name):
    """A command that cannot share its work is done by rank 0."""
    line = ["link", "spots.csv", "--search", "3", "-o", "out/tracks.csv", "-q"]
    kit.fresh("out")
    kit.run(*line)
    wanted = kit.files_in("out")
    kit.fresh("out")
    kit.same(f"link under {name}", kit.run(*line, before=launcher(name, 3)), wanted)


def refuses(what, part, name, *arguments, ranks=3, **options):
    kit.fresh("out")
    started = time.monotonic()
    done = kit.run(*arguments, before=launcher(name, ranks), **options)
    said = done.stderr.decode() + done.stdout.decode()
    if not done.returncode or part not in said or kit.files_in("out") or time.monotonic() - started > 60:
        kit.wrong(f"{what}: exit code {done.returncode}, {said[-800:]!r}, expected {part!r}")


def check_efficiency(name):
    """1,000 units that sleep 20 ms on 8 ranks. On a quiet machine it is 0.97 to 0.99 (docs/clusters.md)."""
    program = os.path.join(os.path.dirname(CLEAVE), "sleepers")
    for speeds, least in ("1", 0.8), ("1,2,4,8", 0.6):
        done = subprocess.run([*launcher(name, 8), program, "1000", "20", speeds], capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL, text=True)
        words = done.stdout.split()
        if done.returncode or words[3:4] == [] or float(words[3].strip(",")) < least or "0 wrong" not in done.stdout:
            kit.wrong(f"sleepers at speeds {speeds} under {name}: {done.returncode} {done.stdout!r} {done.stderr!r}, "
                      f"expected {least} at least")


def check_faults(name):
    line = kit.line_of("classify", "out")
    away = ["sh", "-c", 'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 2 ]; then cd elsewhere; fi; exec "$@"', "sh"]
    os.makedirs("elsewhere/out", exist_ok=True)
    kit.fresh("out")
    done = subprocess.run([*launcher(name, 3), *away, os.path.abspath(CLEAVE), *line], capture_output=True,
                          timeout=300, stdin=subprocess.DEVNULL)
    said = done.stderr.decode() + done.stdout.decode()
    if not done.returncode or "rank 2: " not in said or kit.files_in("out"):
        kit.wrong(f"a rank without inputs: {done.returncode} {said[-800:]!r}")
    refuses("shards under MPI", "exclude each other", name, *line, "--shard", "1/2", "--record", "r")
    refuses("no such plugin", "cannot be loaded", name, *line,
            env={**os.environ, "CLEAVE_MPI_PLUGIN": "/nowhere/plugin.so"})
    # a rank that is killed long before the job ends
    kit.fresh("out")
    job = subprocess.Popen([*launcher(name, 3), CLEAVE, *kit.line_of("long", "out")], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    victim, deadline = None, time.monotonic() + 60
    while not victim and time.monotonic() < deadline:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    here = {b"OMPI_COMM_WORLD_RANK=1", b"PMI_RANK=1"} & set(file.read().split(b"\0"))
                mine = here and os.readlink(f"/proc/{pid}/exe") == os.path.realpath(CLEAVE) and \
                    os.readlink(f"/proc/{pid}/cwd") == os.path.realpath(".")
            except OSError:
                continue
            victim = int(pid) if mine else victim
        time.sleep(0.1)
    time.sleep(0.2)
    if victim and job.poll() is None:
        os.kill(victim, signal.SIGKILL)
    said = job.communicate(timeout=120)[0].decode()
    if not job.returncode or kit.files_in("out") or not victim:
        kit.wrong(f"a killed rank: {job.returncode} {said[-800:]!r}")


def main():
    names = [name for name in LAUNCHERS if shutil.which(f"mpirun.{name}") and
             os.path.exists(os.path.join(os.path.dirname(CLEAVE), f"../lib/libcleave-mpi-{name}.so"))]
    if not names:
        testdata.skip("no mpirun.openmpi or mpirun.mpich, or no plugin for it")
    every = "--all" in sys.argv
    cases = [word for word in sys.argv[2:] if word != "--all"] or list(kit.CASES)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        kit.make_inputs()
        WANTED.update((case, kit.local(case)) for case in cases)
        for number, case in enumerate(cases):
            for name in names:
                for ranks in (1, 2, 4, 8) if every else ((8, 2)[name == "mpich"],) if case == "search" else \
                        (3,) if names[number % len(names)] == name else ():
                    check_case(case, name, ranks)
        check_alone()
        with open("spots.csv", "w", encoding="ascii") as file:
            file.write("frame,y,x\n0,1,1\n1,1.5,1\n2,2,1\n")
        check_other(names[0])
        check_efficiency(names[0])
        for name in names if every else names[:1]:
            check_faults(name)
        os.chdir("/")
    print("\n".join(WRONG))
    sys.exit(bool(WRONG))


WANTED = {}
CLEAVE = os.path.abspath(CLEAVE)
main()
