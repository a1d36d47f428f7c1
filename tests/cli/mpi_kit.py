# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of ranks: finds the MPI launchers of this machine, and runs commands under them."""
import os
import shutil
import signal
import subprocess
import time

import cluster_kit as kit
import testdata

CLEAVE = os.path.abspath(kit.CLEAVE)
LAUNCHERS = {"openmpi": ["--oversubscribe"], "mpich": []}
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_rmaps_base_oversubscribe="1",
                  OMPI_MCA_plm_rsh_agent="false", OMPI_MCA_btl="self,vader,tcp")


def launcher(name, ranks):
    return [f"mpirun.{name}", *LAUNCHERS[name], "-n", str(ranks)]


def names():
    """Returns the installed implementations of MPI that have a plugin; if there is none, the test is skipped."""
    found = [name for name in LAUNCHERS if shutil.which(f"mpirun.{name}") and
             os.path.exists(os.path.join(os.path.dirname(CLEAVE), f"../lib/libcleave-mpi-{name}.so"))]
    if not found:
        testdata.skip("no mpirun.openmpi or mpirun.mpich, or no plugin for it")
    return found


def as_rank(number, shell):
    """Returns what to put before a command, so that rank `number` runs the lines `shell` first."""
    return ["sh", "-c", f'if [ "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" = {number} ]; then {shell}; fi; exec "$@"', "sh"]


def process_of(number):
    """Returns the process of a rank that runs in this folder once it has loaded MPI, or None."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                own = file.read().split(b"\0")
            if not {b"OMPI_COMM_WORLD_RANK=%d" % number, b"PMI_RANK=%d" % number} & set(own) or \
                    os.readlink(f"/proc/{pid}/exe") != os.path.realpath(CLEAVE) or \
                    os.readlink(f"/proc/{pid}/cwd") != os.path.realpath("."):
                continue
            with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
                if "libcleave-mpi" in file.read():
                    return int(pid)
        except OSError:
            continue
    return None


class Job:
    """A command that runs under mpirun, and one of whose ranks gets a signal."""

    def __init__(self, name, ranks, *arguments):
        self.process = subprocess.Popen([*launcher(name, ranks), CLEAVE, *arguments], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def signal(self, number, which, after=lambda: True):
        """Sends a signal to rank `number` when it runs and `after` is true. Returns the process, or None."""
        deadline, victim = time.monotonic() + 60, None
        while self.process.poll() is None and time.monotonic() < deadline:
            victim = victim or process_of(number)
            if victim and after():
                os.kill(victim, which)
                return victim
            time.sleep(0.005)
        return None

    def end(self):
        """Waits for the job; returns its exit code and its output."""
        try:
            said = self.process.communicate(timeout=120)[0].decode()
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGTERM)
            said = self.process.communicate()[0].decode() + " (it hung)"
        return self.process.returncode, said
