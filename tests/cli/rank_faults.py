#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests faults of one of several ranks: the rank stops for a while, has no OpenCL, finds no input, is killed, or its
disk is full. Also tests which devices a rank uses, the variables that srun sets, and ranks without work.

usage: rank_faults.py CLEAVE [--all] [FAULT...]
--all: every fault with Open MPI and with MPICH, and stops of 10 s"""
import json
import os
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
ENVIRONMENT = dict(os.environ, CLEAVE_TUNE="0")
if "CLEAVE_TEST_ICDS" in os.environ:
    ENVIRONMENT.update(OCL_ICD_VENDORS=os.environ["CLEAVE_TEST_ICDS"], RUSTICL_ENABLE="llvmpipe")
STARS = ["specfit", testdata.path_of("specfit/data/coadd-synth-a.fits.gz"),
         "--library", testdata.path_of("specfit/lib"), *kit.QUIET, "--starts", "1", "--save-every", "2", "--resume",
         "-o", "out/stars.fits", "--models", "out/models.fits",
         "--targets", ",".join(str(39600000000000 + i) for i in range(10))]
SEARCH = ["search", "many.npy", "--queries", "queries.npy", "--top", "5", "-o", "out/found.csv"]


def outputs():
    """Lists the files in `out`, without the temporary files of a rank that MPICH's launcher killed: a later run would
    remove these once they are old."""
    for name in os.listdir("out"):
        if name.endswith(".cleave-part"):
            os.remove(os.path.join("out", name))
    return set(kit.files_in("out"))


def check_stopped(name):
    """Tests that the other ranks continue without the stopped rank and wait for it at the end, and that the bytes are
    the same."""
    wanted = kit.local("stop")
    kit.fresh("out")
    job = mpi.Job(name, 3, *kit.line_of("stop", "out"))
    victim = job.signal(1, signal.SIGSTOP)
    if victim:
        time.sleep(10 if ALL else 2)
        if job.process.poll() is not None:
            kit.wrong(f"{name}: the job ended without the rank that was stopped")
        os.kill(victim, signal.SIGCONT)
    code, said = job.end()
    done = subprocess.CompletedProcess([], code, said.encode(), said.encode())
    kit.same(f"{name}: a rank that was stopped", done, wanted)
    if not victim:
        kit.wrong(f"{name}: there was no rank to stop: {said[-400:]}")


def check_killed(name):
    """Tests that the job ends with an error and without outputs, and that --resume continues and writes the same
    bytes."""
    kit.fresh("out")
    kit.run(*STARS)
    wanted, journal = kit.files_in("out"), "out/stars.fits.journal"
    kit.fresh("out")
    job = mpi.Job(name, 2, *STARS)

    def has_grown():  # larger than the header of some hundred bytes, so that it holds the first stars
        return os.path.exists(journal) and os.path.getsize(journal) > 5000

    victim = job.signal(1, signal.SIGKILL, has_grown)
    code, said = job.end()
    left = outputs()
    if not victim or not code or left != {"stars.fits.journal"}:
        kit.wrong(f"{name}: a rank that was killed: {code} {left} {said[-400:]!r}")
    lines = [word for word in STARS if word != "-q"]
    done = kit.run(*lines, before=mpi.launcher(name, 2))
    kit.same(f"{name}: resumed", done, wanted)
    for part in "resuming after", "with 2 ranks, finished stars are saved after every 4, not after every 2,":
        if part not in done.stderr.decode():
            kit.wrong(f"{name}: a resumed run does not say {part!r}: {done.stderr.decode()}")


def check_full_disk(name):
    """Tests that rank 0, which writes, reports a full disk by the usual message and exit code, and leaves no file."""
    os.makedirs("out", exist_ok=True)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64K", "none", "out"], check=False,
                                           capture_output=True).returncode != 0:
        print("SKIPPED: no file system can be mounted here, so no disk is full")
        return False
    try:
        done = kit.run(*kit.line_of("embed", "out"), before=mpi.launcher(name, 3))
        said = done.stderr.decode()
        if done.returncode != 1 or said.count("No space left") != 1 or "cleave embed: " not in said or \
                "rank " in said.split("No space left")[0] or os.listdir("out"):
            kit.wrong(f"{name}: a full disk: {done.returncode} {os.listdir('out')} {said[-600:]}")
    finally:
        subprocess.run(["umount", "-l", "out"], check=False)
    return True


def scores():
    with open("out/found.csv", encoding="ascii") as file:
        next(file)
        return [float(line.rstrip().split(",")[-1]) for line in file]


def check_without_opencl(name):
    """Tests that a rank without OpenCL computes in plain C beside the others, and reports this with --verbose."""
    kit.fresh("out")
    kit.run(*SEARCH, *kit.QUIET)
    wanted, parts = scores(), ("rank 2:   mode reference", "rank 2:   search: the plain C path")
    for _ in range(3):  # on a busy machine, the other ranks may take all of the work before this rank has started
        kit.fresh("out")
        done = kit.run(*SEARCH, "-v", env=ENVIRONMENT,
                       before=[*mpi.launcher(name, 3), *mpi.as_rank(2, "export OCL_ICD_VENDORS=/nowhere")])
        said = done.stderr.decode()
        got = [] if done.returncode else scores()
        if len(got) != len(wanted) or any(abs(a - b) > 1e-5 * abs(b) for a, b in zip(got, wanted)):
            kit.wrong(f"{name}: with a rank without OpenCL: {done.returncode} {got} {wanted} {said[-600:]}")
        if "rank 0:" in said or "search: the plain C path" in said.replace("rank 2:   search", ""):
            kit.wrong(f"{name}: another rank works in plain C: {said}")
        if all(part in said for part in parts):
            return
    kit.wrong(f"{name}: {parts} are not told: {said}")


def usable_devices():
    probe = subprocess.run([mpi.CLEAVE, "probe", "--json"], env=ENVIRONMENT, capture_output=True, check=True)
    return sorted({f"{one['platform']}:{one['ordinal']}" for one in json.loads(probe.stdout)["devices"]
                   if one["usable"]})


def check_devices(name):
    """Tests that each rank takes a device of its own, in turn."""
    usable = usable_devices()
    kit.fresh("out")
    done = kit.run(*SEARCH, "-v", "--device", ",".join(usable), "--devices-per-rank", "1", env=ENVIRONMENT,
                   before=mpi.launcher(name, len(usable) + 1))
    took = {}
    for line in done.stderr.decode().splitlines():
        who, found, device = line.partition("this rank takes the devices ")
        if found:
            took[int(who.strip(" :rank") or 0)] = device.strip()
    if done.returncode or sorted(took[i] for i in range(len(usable)) if i in took) != usable or \
            took.get(len(usable)) != took.get(0):
        kit.wrong(f"{name}: of the devices {usable} the ranks take {took}: {done.stderr.decode()[-800:]}")


def check_refusals(name):
    """Tests a rank that finds no input, a plugin that is missing, and shards under MPI."""
    line = kit.line_of("classify", "out")
    os.makedirs("elsewhere/out", exist_ok=True)
    for what, part, arguments, before, environment in (
            ("a rank without inputs", "rank 2: ", [], mpi.as_rank(2, "cd elsewhere"), os.environ),
            ("rank 0 without a place for its output", "no-folder", ["-o", "no-folder/x.csv"], [], os.environ),
            ("shards under MPI", "cannot be used together", ["--shard", "1/2", "--record", "r"], [], os.environ),
            ("no such plugin", "cannot be loaded", [], [], {**os.environ, "CLEAVE_MPI_PLUGIN": "/nowhere/p.so"})):
        kit.fresh("out")
        started = time.monotonic()
        done = subprocess.run([*mpi.launcher(name, 3), *before, mpi.CLEAVE, *line, *arguments], env=environment,
                              capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
        said = done.stderr.decode() + done.stdout.decode()
        if not done.returncode or part not in said or outputs() or time.monotonic() - started > 60:
            kit.wrong(f"{name}: {what}: {done.returncode} {said[-800:]!r}, expected {part!r}")


def check_slurm(name):
    """Tests the variables that srun sets: with PMI but without the variables of mpirun; and without PMI, where each
    task would do all the work."""
    line, wanted = kit.line_of("search", "out"), kit.local("search")
    alone = {word: text for word, text in os.environ.items() if not word.startswith(("SLURM_", "PMI", "OMPI_COMM"))}
    step = {**alone, "SLURM_STEP_NUM_TASKS": "3"}
    for what, environment, arguments, code, said in (
            ("task 0 of 3", {**step, "SLURM_PROCID": "0"}, [], 2, "srun runs this command 3 times"),
            ("task 1 of 3", {**step, "SLURM_PROCID": "1"}, [], 2, ""),
            ("task 1 of 3, alone", {**step, "SLURM_PROCID": "1", "CLEAVE_MPI": "off"}, [], 0, ""),
            ("task 0 of 1", {**step, "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, [], 0, ""),
            ("a batch script of 3 tasks", {**alone, "SLURM_PROCID": "0", "SLURM_NTASKS": "3"}, [], 0, ""),
            ("a shard", {**step, "SLURM_PROCID": "0"}, ["--shard", "1/1", "--record", "r"], 0, "")):
        kit.fresh("out")
        done = kit.run(*line, *arguments, env=environment)
        kit.same(f"{name}: {what}", done, {} if code or arguments else wanted, code)
        if said not in done.stderr.decode() or bool(said) != bool(done.stderr):
            kit.wrong(f"{name}: {what}: said {done.stderr.decode()!r}, expected {said!r}")
    rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    ranks = [*mpi.launcher(name, 2), "sh", "-c", f"export SLURM_LOCALID={rank} SLURM_STEP_TASKS_PER_NODE='2(x3)'; "
             'unset OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS; '
             'exec "$@"', "sh"]
    kit.fresh("out")
    usable = usable_devices()
    done = kit.run(*SEARCH, "-v", "--device", ",".join(usable), "--devices-per-rank", "1", env=ENVIRONMENT,
                   before=ranks)
    took = [text.split("takes the devices ")[1] for text in done.stderr.decode().splitlines() if "takes the d" in text]
    if done.returncode or len(set(took)) != min(2, len(usable)):
        kit.wrong(f"{name}: as ranks of srun, two take {took}: {done.stderr.decode()[-600:]}")


def check_odd(name):
    """Tests more ranks than units, another output for a rank that does not write, and an output that no rank can
    write."""
    stars = [word for word in STARS if word not in ("--save-every", "2", "--resume")]
    stars[stars.index("--targets") + 1] = "39600000000000,39600000000001"
    kit.fresh("out")
    kit.run(*stars)
    wanted = kit.files_in("out")
    kit.fresh("out")
    kit.same(f"{name}: 5 ranks, 2 stars", kit.run(*stars, before=mpi.launcher(name, 5)), wanted)
    wanted = kit.local("search")
    kit.fresh("out")
    own = mpi.as_rank(1, 'set -- "$@" -o out/other.csv')
    done = kit.run(*kit.line_of("search", "out"), before=[*mpi.launcher(name, 3), *own])
    kit.same(f"{name}: another output of rank 1", done, wanted)
    done = kit.run(*kit.line_of("search", "out"), "-o", "/proc/found.csv", before=mpi.launcher(name, 3))
    if not done.returncode or done.stderr.decode().count("/proc/found.csv") != 1:
        kit.wrong(f"{name}: an output in /proc: {done.returncode} {done.stderr.decode()}")


CHECKS = {"slurm": check_slurm, "odd": check_odd, "stopped": check_stopped, "killed": check_killed,
          "full_disk": check_full_disk, "without_opencl": check_without_opencl, "devices": check_devices,
          "refusals": check_refusals}


def main():
    names, whole = mpi.names(), True
    chosen = [word for word in sys.argv[2:] if word != "--all"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        kit.make_inputs()
        kit.write_npy("many.npy", "<f4", (20 * kit.ROWS, kit.NUMBERS), 20 * kit.data_of("rows.npy"))
        for number, (what, check) in enumerate(CHECKS.items()):
            if chosen and what not in chosen:
                continue
            for name in names if ALL else names[number % len(names):][:1]:
                started = time.monotonic()
                whole = check(name) is not False and whole
                print(f"{what}, {name}: {time.monotonic() - started:.1f} s")
        os.chdir("/")
    print("\n".join(WRONG))
    sys.exit(1 if WRONG else 0 if whole else 77)


main()
