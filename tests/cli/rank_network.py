#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests three ranks in three network namespaces, between which packets take 1 ms and 1 % of them are lost: the outputs
are the bytes of a local run, with Open MPI and with MPICH, and the efficiency of ranks that sleep is high enough. If
the process that makes the network is killed, nothing of the network remains.

usage: rank_network.py CLEAVE [--all] [DELAY_MS [LOSS_PERCENT]]
--all: every command that shares its work, and 1,000 units that sleep 20 ms, at equal and at unequal speeds"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import cluster_kit as kit
import mpi_kit as mpi
import testdata
from text_embed import WRONG

ALL = "--all" in sys.argv
NUMBERS = [word for word in sys.argv[2:] if word != "--all"] or ["1"]
NETWORK = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "slow_network.py"),
           NUMBERS[0], *(NUMBERS[1:2] or ["1"])]
HOSTS = ",".join(f"10.83.0.{i}:1" for i in (1, 2, 3))
LAUNCH = {
    "openmpi": 'OMPI_MCA_plm_rsh_agent="$SLOW_AGENT" OMPI_MCA_btl=self,tcp OMPI_MCA_plm_rsh_no_tree_spawn=1 '
               "OMPI_MCA_btl_tcp_if_include=10.83.0.0/24 OMPI_MCA_oob_tcp_if_include=10.83.0.0/24 "
               f'mpirun.openmpi --host {HOSTS} -n 3 "$@"',
    "mpich": f'mpirun.mpich -launcher ssh -launcher-exec "$SLOW_AGENT" -hosts {HOSTS} -n 3 "$@"',
}


def launcher(name):
    with open(f"start-{name}", "w", encoding="ascii") as file:
        file.write(LAUNCH[name])
    return [*NETWORK, "sh", os.path.abspath(f"start-{name}")]


def count_packets(what, said):
    """Checks that the ranks have communicated over the network, and that it has lost some of their packets."""
    found = re.search(r"(\d+) packets, (\d+) of them lost", said)
    if not found or int(found[1]) < 100 or (NETWORK[-1] != "0" and int(found[2]) == 0):
        kit.wrong(f"{what}: the network of the test carried {found and found[0]}")


def check_bytes(name, case):
    wanted = kit.local(case)
    kit.fresh("out")
    done = kit.run(*kit.line_of(case, "out"), before=launcher(name))
    kit.same(f"{case}, {name}", done, wanted)
    count_packets(f"{case}, {name}", done.stderr.decode())


def check_efficiency(name, units, speeds, least, turns=2):
    """Takes the better of two turns, because one lost packet delays a short run by a fifth of a second."""
    program = os.path.join(os.path.dirname(mpi.CLEAVE), "sleepers")
    done = subprocess.run([*launcher(name), program, units, "20", speeds], capture_output=True, timeout=120, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    print(f"{name}, speeds {speeds}: {done.stdout.strip()}; {done.stderr.strip()}", flush=True)
    words = done.stdout.split()
    if done.returncode or "0 wrong" not in done.stdout:
        kit.wrong(f"sleepers, {name}: {done.returncode} {done.stdout} {done.stderr[-600:]}")
    elif float(words[3].strip(",")) < least:
        if turns > 1:
            check_efficiency(name, units, speeds, least, turns - 1)
        else:
            kit.wrong(f"sleepers, {name}: {done.stdout} {done.stderr[-600:]}, expected {least} at least")


def check_killed():
    """Tests that the kernel removes what a killed network has started: processes in two of its namespaces."""
    marks = [f"8{os.getpid()}.{i}" for i in (1, 2)]  # a duration of sleep that no other process uses

    def living():
        found = set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").split("\0")
            except OSError:
                continue
            if words[0] == "sleep":
                found |= set(words) & set(marks)
        return found

    def wait_for(wanted):
        deadline = time.monotonic() + 10
        while living() != wanted and time.monotonic() < deadline:
            time.sleep(0.05)
        return living() == wanted

    job = subprocess.Popen([*NETWORK, "sh", "-c", f"$SLOW_AGENT 10.83.0.2 sleep {marks[0]} & sleep {marks[1]}"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not wait_for(set(marks)):
        kit.wrong(f"a network to be killed runs {living()}, expected {marks}")
    job.send_signal(signal.SIGKILL)
    job.wait()
    if not wait_for(set()):
        kit.wrong(f"a network that was killed left {living()}")


def main():
    names = mpi.names()
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK) or \
            subprocess.run([*NETWORK, "true"], capture_output=True, check=False).returncode != 0:
        testdata.skip("no network namespaces and tun devices can be made here")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        kit.make_inputs()
        for number, name in enumerate(names):
            for case in [*kit.CASES, "rank", "passages", "whole"] if ALL else [("search", "embed")[number]]:
                check_bytes(name, case)
            check_efficiency(name, "1000" if ALL else "150", "1", 0.7)
            if ALL:
                check_efficiency(name, "1000", "1,2,4", 0.7)
        check_killed()
        os.chdir("/")
    print("\n".join(WRONG))
    sys.exit(bool(WRONG))


main()
