#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests selftest, demo and bench, which run other workloads, with a driver that fails: the k-th OpenCL call of each
process fails, or many fail. Long sweeps also make the k-th malloc of the program fail.

A run passes, or it says what failed: the exit code is 1 if the run itself failed, 3 if the device cannot be used, and 5
if a result is wrong. No run ends by a signal, without a message, or with a temporary file. `selftest` must notice a
driver of which every 40th command fails.

usage: fails_apart.py CLEAVE FAULT_LAYER MALLOC_FAILS
The variable CLEAVE_TEST_SWEEP=N asks for N values of k per command, and more command lines."""
import os
import shutil
import sys

import kit
import kernels_kit

LAYER, MALLOC = (os.path.abspath(path) for path in sys.argv[2:4])
MANY = int(os.environ.get("CLEAVE_TEST_SWEEP", "0"))
MOVIES = ["bench", "blobs", "--sizes", "32x32x4", "--no-cold", "--repeats", "1", "--turns", "1", "--patience", "2",
          "-q"]
STARS = ["bench", "specfit", "--library", "made/specfit-library", "--coadd", "made/specfit-coadd.fits", "--no-cold",
         "--no-files", "--repeats", "1", "--turns", "1", "--patience", "2", "-q", "--json", "out/b.json"]
OTHERS = [["bench", part, "--only", only, "--no-files", "--repeats", "1", "--turns", "1", "--patience", "1", "-q",
           "--html", "out/b.html"] for part, only in (("paco", "100x100, T=50"), ("transformer", "feed forward 256"),
                                                      ("arrays", "sum of|matmul 512"))] + [
    ["bench", "runtime", "--repeats", "1", "--turns", "1", "--patience", "1", "-q", "--json", "out/b.json"],
    ["bench", "generate", "--model", "tiny.gguf", "--repeats", "1", "--turns", "1", "--no-files", "--no-cold",
     "--patience", "2", "-q", "--markdown", "out/b.md"]]
DEMO = ["demo", "-q", "-o", "out", "--mode", "cpu", "--only"]
# command line, exit codes, values of k
LINES = [(["selftest", "--timeout", "60", "--json", "out/s.json"], (0, 1, 3, 5), (2000,)),
         (DEMO + ["filter,matrices"], (0, 1, 3, 5), (60,)),
         (MOVIES, (0, 1, 3), (150,)), (STARS, (0, 1, 3), ())]
WORKLOADS = ("paco", "blobs", "specfit", "transformer", "search", "arrays", "filter", "matrices", "regression",
             "generate")


def values(few, count, most=6000):
    """Returns the values of k: few, or as many as `count`, one half with equal ratios, the other with equal steps."""
    half = (count + 1) // 2
    return sorted({round(most ** (i / half)) for i in range(1, half + 1)} |
                  {most * i // half for i in range(1, half + 1)}) if count else few


def fresh():
    """Brings back the notes of a run without a fault. What a run with faults has noted of the driver is removed."""
    for name in "kept", "out":
        shutil.rmtree(name, ignore_errors=True)
    if os.path.isdir("good"):
        shutil.copytree("good", "kept")
    os.mkdir("out")


def run(line, codes, environment, faults, variable="CLEAVE_FAULTS"):
    fresh()
    done = kit.run(*line, environment=dict(environment, **{variable: faults}), timeout=300)
    told = "%s, %s %s" % (" ".join(line), variable, faults)
    said = done.stdout + done.stderr
    if done.returncode not in codes:
        kit.wrong("%s: exit code %d: %r" % (told, done.returncode, said[-600:]))
    elif done.returncode and not done.stderr and line[0] != "selftest":
        kit.wrong("%s: exit code %d without a word" % (told, done.returncode))
    left = [name for name in kit.listing("out") if name.endswith(".cleave-part")]
    if left:
        kit.wrong("%s: %r stay" % (told, left))
    return done.returncode


def short_of_memory_at_first(environment, values_of_k):
    """Tests that a driver is not held to be bad because its first run, with an empty cache, lacked memory: the k-th
    malloc failed in the command and in each helper that asked the driver."""
    line = ["blobs", "made/blobs-movie.npy", "--mode", "cpu", "-q", "-o", "out/spots.csv"]
    failed = 0
    for k in values_of_k:
        shutil.rmtree("kept", ignore_errors=True)
        first = kit.run(*line, environment=dict(environment, LD_PRELOAD=MALLOC, CLEAVE_FAIL_MALLOC_OWN=str(k)))
        second = kit.run(*line, environment=dict(environment, LD_PRELOAD=MALLOC, CLEAVE_FAIL_MALLOC_OWN="0"))
        failed += first.returncode != 0
        if first.returncode not in (0, 1, 3) or second.returncode != 0:
            kit.wrong("first run with malloc %d failing: exit code %d, %r; the run after it: exit code %d, %r" % (
                k, first.returncode, first.stderr[-300:], second.returncode, second.stderr[-300:]))
    kit.same("runs without memory fail", failed > 0, True)


def devices_that_do_not_work(environment):
    """Tests selftest on a device that hangs in a check, and on one that fails the check of the probe."""
    fresh()
    done = kit.run("selftest", "--timeout", "2", environment=dict(environment, CLEAVE_FAULTS="hang=30:30"), timeout=100)
    if done.returncode != 5 or b"2 s" not in done.stdout:
        kit.wrong("selftest on a device that hangs: exit code %d: %r" % (done.returncode, done.stdout[-600:]))
    fresh()
    shutil.rmtree("kept")
    done = kit.run("selftest", environment=dict(environment, CLEAVE_FAULTS="wrong=0"), timeout=100)
    if done.returncode != 5 or b"qualification" not in done.stdout:
        kit.wrong("selftest on a device that fails its check: exit code %d: %r" % (
            done.returncode, (done.stdout + done.stderr)[-600:]))


def blocked(environment):
    """Tests demo and selftest where a folder stands in the place of an output, a model does not exist, or a name is too
    long."""
    for name in ("paco-frame.png", "paco-snr.png", "paco-cube.npy", "paco-angles.npy", "paco-psf.npy",
                 "blobs-tracks.png", "blobs-movie.npy", "specfit-coadd.fits", "specfit-library/lib.json",
                 "report.json"):
        fresh()
        os.makedirs("out/" + name)
        done = kit.run(*DEMO, name.split("-")[0] if "-" in name else "filter", "--report", "out/report.json",
                       environment=environment, timeout=300)
        if done.returncode not in (1, 2) or name.split("/")[0] not in done.stderr.decode():
            kit.wrong("demo, whose %s is a folder: exit code %d: %r" % (name, done.returncode, done.stderr))
    for model, workload in ("CLEAVE_MINILM_DIR", "transformer"), ("CLEAVE_MODEL", "generate"):
        fresh()
        done = kit.run(*DEMO, workload, environment=dict(environment, **{model: "nowhere"}), timeout=300)
        if done.returncode not in (1, 2) or b"nowhere" not in done.stderr:
            kit.wrong("demo without the model of %s: exit code %d: %r" % (model, done.returncode, done.stderr))
    kit.expect(2, "-o", "demo", "-o", "x" * 3001, environment=environment)
    kit.expect(1, "nowhere", "selftest", "--json", "nowhere/s.json", environment=environment)


def main():
    pocl = kernels_kit.pocl_alone()
    if not pocl:
        sys.exit(77)
    if "POCL_CACHE_DIR" in os.environ:  # starts with the kernels that other tests compiled
        pocl["POCL_CACHE_DIR"] = os.environ["POCL_CACHE_DIR"]
    environment = dict(pocl, OPENCL_LAYERS=LAYER, CLEAVE_MODEL="tiny.gguf")
    kit.make_inputs("made")
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/generate/tiny/tiny-legacy.gguf"),
                "tiny.gguf")
    fresh()
    kit.same("blobs without a fault", kit.run(*MOVIES, environment=environment).returncode, 0)
    shutil.copytree("kept", "good")
    found = {}
    for line, codes, few in LINES + [(line, (0, 1, 3), ()) for line in OTHERS if MANY]:
        for k in values(few, MANY // 8):
            code = run(line, codes, environment, "call=%d" % k)
            found.setdefault(line[0], []).append(code)
    code = run(LINES[0][0], (5,), environment, "every=40")
    kit.same("every 40th command fails: exit code of selftest", code, 5)
    devices_that_do_not_work(environment)
    short_of_memory_at_first(environment, range(1, 70) if MANY else (8, 50))
    if MANY:
        own = dict(environment, LD_PRELOAD=MALLOC)
        demos = [DEMO + [name] for name in WORKLOADS]
        for line, codes, most, count in [
                (LINES[0][0], LINES[0][1], 9000, MANY), *((line, (0, 1, 3, 5), 3000, MANY // 2) for line in demos),
                *((line, (0, 1, 3), 3000, MANY // 2) for line in (MOVIES, STARS, *OTHERS))]:
            for k in values((), count, most):
                run(line, codes, own, str(k), "CLEAVE_FAIL_MALLOC_OWN")
        for line in demos:
            for faults in "times=1", "wrong=2", "wrong=5", "wrong=20", "lost=60":
                run(line, (0, 1, 3, 5), environment, faults)
        blocked(environment)
        for line, codes, _ in LINES:
            for faults in "build=2", "lost=30", "times=1", "every=7", "buffer=3", "event=2":
                run(line, codes, environment, faults)
    print("exit codes: %r" % found)
    kit.finish()


main()
