#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the results stay the same after damage to any file that Cleave or a driver keeps between runs.

PoCL uses all files in its folder of compiled kernels unchecked. Formerly an empty or cut file ended every later run,
`probe --check` did not help, and one wrong byte in a kernel of matrix products gave wrong vectors with exit code 0.
Here each kept file is emptied, cut, changed in one byte, replaced by another one, and removed; then the same vectors
must come out. A run that died inside the driver, and `probe --check`, leave no kernels behind.

usage: kernels_kept.py CLEAVE CLI_TESTS [--every]    --every: each file in each way, else a choice"""
import fcntl
import glob
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import kernels_kit
import kit

sys.path.insert(0, sys.argv[2])
import text_embed  # noqa: E402

EVERY = "--every" in sys.argv
CACHE = kit.ENVIRONMENT["CLEAVE_CACHE_DIR"]
POCL = os.path.join(CACHE, "drivers", "pocl")
HERE = kernels_kit.pocl_alone() or sys.exit(77)


def embed():
    """Returns the vectors and the messages. The device must compute, because a fallback to the host would hide
    everything."""
    done = kit.run("embed", "model", "-i", "texts.txt", "-o", "v.npy", "--mode", "cpu", "--report", "r.json",
                   environment=HERE, timeout=600)
    said = done.stderr.decode(errors="replace")
    if done.returncode != 0:
        return None, "exit code %d: %s" % (done.returncode, said)
    with open("v.npy", "rb") as file:
        vectors = file.read()
    shares = [share for job in kit.report("r.json")["jobs"] for share in job["shares"]]
    if not any(share["chunks"] for share in shares):
        return None, "no device took part: %r" % shares
    return vectors, said


def kept(pattern="**/*"):
    found = [path for path in glob.glob(os.path.join(CACHE, pattern), recursive=True) if os.path.isfile(path)]
    return sorted(path for path in found if "tempfile_" not in path and not path.endswith(".lock"))


def restore(saved):
    shutil.rmtree(CACHE)
    shutil.copytree(saved, CACHE)


def check_damage(wanted):
    saved = os.path.abspath("saved")
    shutil.copytree(CACHE, saved)
    files = [os.path.relpath(path, CACHE) for path in kept()]
    drivers = [name for name in files if name.startswith("drivers/pocl/")]
    if not any(name.endswith(".so") for name in drivers):
        kit.wrong("PoCL keeps no kernels where they are looked for: %r" % files[:20])
    cases = 0
    if not EVERY:  # the kernels of products, one file of each other kind, and all of our own files
        chosen, kinds = [], set()
        for name in files:
            kind = os.path.splitext(name)[1] if name in drivers else name
            if kind not in kinds or "gemm" in name and name.endswith(".so") and len(chosen) < 8:
                kinds.add(kind)
                chosen.append(name)
        files = chosen
    for name in files:
        path = os.path.join(CACHE, name)
        with open(path, "rb") as file:
            data = file.read()
        if not data:
            continue
        for what, bent in kernels_kit.bent(data) if EVERY else list(kernels_kit.bent(data))[cases % 4::4]:
            mode = os.stat(path).st_mode
            with open(path, "wb") as file:
                file.write(bent)
            os.chmod(path, mode)
            vectors, said = embed()
            cases += 1
            if vectors != wanted:
                kit.wrong("%s %s: %s" % (name, what, said if vectors is None else "other vectors"))
            restore(saved)
    shutil.rmtree(os.path.join(POCL, os.path.relpath(drivers[0], "drivers/pocl").split("/")[0]))
    if embed()[0] != wanted:
        kit.wrong("a program that is gone changes the vectors")
    print("%d damages of %d kept files" % (cases, len(files)))


def check_repair(wanted):
    """Tests that damage is reported once."""
    with open(kept("drivers/pocl/**/clv_pool.so")[0], "wb"):
        pass
    vectors, said = embed()
    if vectors != wanted or "damaged" not in said:
        kit.wrong("damage is not told: %r" % said)
    vectors, said = embed()
    if vectors != wanted or "damaged" in said:
        kit.wrong("damage is told again: %r" % said)


def check_beside():
    """Tests that a run removes nothing while another run uses the folder: a file that looks damaged may be one that the
    other run is writing. Formerly the other run then ended, because its kernels could not be linked. The vectors come
    from kernels in another folder."""
    wanted = embed()[0]
    path = kept("drivers/pocl/**/clv_pool.so")[0]
    with open(POCL + ".lock", "rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        with open(path, "wb") as file:
            file.write(b"not a kernel")
        vectors, said = embed()
        if vectors != wanted or "another run" not in said:
            kit.wrong("a file that another run writes: %s, %r" % ("other vectors", said))
        with open(path, "rb") as file:
            if file.read() != b"not a kernel":
                kit.wrong("what another run writes was removed")
    vectors, said = embed()
    if vectors != wanted or "damaged" not in said:
        kit.wrong("alone again, and damage is not told: %r" % said)


def check_limits():
    """Tests limits of open files, under which whole kernels were called damaged and removed, and of file sizes, under
    which PoCL's linker ends the process: then a temporary file stayed beside the output."""
    before = kept("drivers/pocl/**/*")
    movie = kit.movie(frames=4, size=32)
    os.mkdir("limited")
    for what, most in (resource.RLIMIT_NOFILE, 6), (resource.RLIMIT_NOFILE, 9), (resource.RLIMIT_FSIZE, 50000):
        def limit(what=what, most=most):
            resource.setrlimit(what, (most, most))
        done = kit.run("blobs", movie, "-o", "limited/spots.csv", "--mode", "cpu", environment=HERE, preexec_fn=limit)
        said = done.stderr.decode(errors="replace")
        if "ulimit" not in said or "damaged" in said:
            kit.wrong("a limit of %d: exit code %d, %s" % (most, done.returncode, said))
        if what == resource.RLIMIT_NOFILE and kept("drivers/pocl/**/*") != before:
            kit.wrong("a limit of %d: kernels are gone" % most)
        left = [name for name in os.listdir("limited") if name.endswith(".cleave-part")]
        if left and done.returncode != -signal.SIGABRT:  # PoCL's abort comes after its LLVM replaced our handler
            kit.wrong("a limit of %d: %r stay" % (most, left))
        for name in left:
            os.remove(os.path.join("limited", name))


def check_check():
    """Tests that `probe --check` removes all compiled kernels, whatever their digests."""
    if not kept("drivers/pocl/**/*.so"):
        kit.wrong("there is no cache")
    done = kit.run("probe", "--check", "-q", environment=HERE, timeout=600)
    left = kept("drivers/pocl/**/*.so")
    if done.returncode != 0 or left:
        kit.wrong("probe --check: exit code %d, %d kernels stay: %r" % (done.returncode, len(left), done.stderr))


def check_check_beside():
    """Tests that kernels that `probe --check` may not remove, because another run uses them, are removed before the
    next run. Formerly they stayed, and `probe --check` lost the lock that protects the kernels of a run."""
    restore(os.path.abspath("saved"))
    with open(POCL + ".lock", "rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        child = subprocess.Popen([kit.CLEAVE, "probe", "--check", "-q"], env=HERE, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not any(map(os.path.getsize, glob.glob(POCL + ".run-*"))):
            time.sleep(0.005)
        time.sleep(0.05)
        fcntl.flock(other, fcntl.LOCK_UN)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if child.poll() is None:
                kit.wrong("probe --check beside another run lost its lock")
        except BlockingIOError:
            pass
        fcntl.flock(other, fcntl.LOCK_SH)
        said = child.communicate(timeout=600)[1]
        if child.returncode != 0 or not kept("drivers/pocl/**/*.so"):
            kit.wrong("probe --check beside another run: exit code %d, %r" % (child.returncode, said))
    done = kit.run("probe", "--list", environment=HERE)
    if done.returncode != 0 or done.stderr or kept("drivers/pocl/**/*.so"):
        kit.wrong("after probe --check beside another run: %d, %r" % (done.returncode, done.stderr))


def check_strangers():
    """Tests more files without a digest than were removed at a time; formerly the others were believed."""
    restore(os.path.abspath("saved"))
    for i in range(5000):
        os.makedirs(os.path.join(POCL, "ZZ", "PROGRAM%d" % i))
        kit.write(os.path.join(POCL, "ZZ", "PROGRAM%d" % i, "x.so"), b"x")
    done = kit.run("probe", "--list", environment=HERE)
    left = kept("drivers/pocl/ZZ/**/*.so")
    if done.returncode != 0 or left:
        kit.wrong("%d of 5000 strangers stay: %r" % (len(left), done.stderr))


def check_way_out():
    """Tests a list of digests that names a file outside the folder; formerly everything beside it was removed."""
    restore(os.path.abspath("saved"))
    before = kept()
    with open(POCL + ".sums", "a", encoding="ascii") as file:
        file.write("0" * 64 + " ../../file\n")
    kit.run("probe", "--list", environment=HERE)
    gone = sorted(set(before) - set(kept()))
    if gone:
        kit.wrong("a path that leaves the folder: %d files are gone: %r" % (len(gone), gone[:5]))


def check_death():
    """Tests that a run that a fatal signal ends inside the driver removes all kernels, and that a killed run removes
    only those that it had not finished."""
    saved = os.path.abspath("saved")
    for number in signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL:
        restore(saved)
        kernels = kept("drivers/pocl/**/*.so")
        unknown = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(kernels[0]))), "left-over.so")
        child = subprocess.Popen([kit.CLEAVE, "selftest"], env=HERE, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not glob.glob(POCL + ".run-*") and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        kit.write(unknown, b"half a kernel")
        child.send_signal(number)
        if child.wait(60) >= 0:
            kit.wrong("signal %d did not end the run: %d" % (number, child.returncode))
        done = kit.run("probe", "--list", environment=HERE)
        if (b"died inside" in done.stderr) != (number != signal.SIGKILL):
            kit.wrong("after signal %d: %r" % (number, done.stderr))
        if os.path.exists(unknown):
            kit.wrong("what a run left behind at signal %d is believed" % number)
        left = len(kept("drivers/pocl/**/*.so"))
        if left != (0 if number != signal.SIGKILL else left) or (number == signal.SIGKILL and not left):
            kit.wrong("after signal %d %d of %d kernels are kept" % (number, left, len(kernels)))
    if glob.glob(POCL + ".run-*"):
        kit.wrong("marks of runs stay: %r" % glob.glob(POCL + ".run-*"))


def check_together(wanted):
    """Tests that several runs share the kept files at the same time, and that none of them removes what another one
    writes."""
    restore(os.path.abspath("saved"))
    shutil.rmtree(os.path.dirname(os.path.dirname(os.path.dirname(kept("drivers/pocl/**/clv_pool.so")[0]))))
    children = []
    for i in range(3):
        children.append(subprocess.Popen(
            [kit.CLEAVE, "embed", "model", "-i", "texts.txt", "-o", "v%d.npy" % i, "--mode", "cpu", "-q"], env=HERE,
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE))
        time.sleep(0.5)
    for i, child in enumerate(children):
        said = child.communicate(timeout=600)[1]
        if child.returncode != 0:
            kit.wrong("run %d of several: %d, %r" % (i, child.returncode, said))
            continue
        with open("v%d.npy" % i, "rb") as file:
            if file.read() != wanted:
                kit.wrong("run %d of several has other vectors" % i)
    vectors, said = embed()
    if vectors != wanted or said:
        kit.wrong("after several runs: %r" % said)


def check_clear(wanted):
    """Tests that `cache clear` leaves the kernels of a driver to a run that uses them. Formerly it removed them, with
    their lock; then the run that used them could not compile, or a later run removed what it was writing."""
    before = kept("drivers/pocl/**/*")
    with open(POCL + ".lock", "rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        done = kit.run("cache", "clear", environment=HERE)
        if done.returncode != 1 or b"another run" not in done.stderr or b"removed from" not in done.stdout:
            kit.wrong("clearing beside another run: %d, %r" % (done.returncode, done.stderr))
        if kept("drivers/pocl/**/*") != before or kept("programs/*"):
            kit.wrong("clearing beside another run: %d kernels were kept, %r stay" % (len(before), kept()))
    done = kit.run("cache", "clear", environment=HERE)
    if done.returncode != 0 or done.stderr or kept():
        kit.wrong("clearing alone: %d, %r, %r stay" % (done.returncode, done.stderr, kept()))
    vectors, said = embed()
    if vectors != wanted or said:
        kit.wrong("after clearing: %r" % said)


text_embed.make_model("model")
kit.write("texts.txt", "the cats\nunaffable running\nthe cat the cat\n")
WANTED, SAID = embed()
if WANTED is None:
    kit.wrong(SAID)
    kit.finish()
embed()  # also keeps measured times
check_damage(WANTED)
check_repair(WANTED)
check_beside()
check_limits()
check_check()
check_check_beside()
check_strangers()
check_way_out()
check_death()
check_together(WANTED)
check_clear(WANTED)
kit.finish()
