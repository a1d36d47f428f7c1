#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that signals end the command soon, leave no temporary file, and stay ignored if the parent ignores them.

Formerly SIGINT and SIGHUP that the parent ignores (nohup, a job behind `&`) were caught; SIGHUP left temporary files
and folders; and a cancel could take 9 seconds, or never finish if a kernel does not end
(tests/faults/test_job_held.c). While PoCL compiled, its LLVM replaced the handlers: a signal that was ignored made the
compilation fail, and others were lost."""
import os
import resource
import shutil
import signal
import subprocess
import time

import kit
import kernels_kit

FRAMES, SIZE = 4000, 64
BIG = kit.movie("big.npy", frames=FRAMES, size=SIZE)
LINE = ["blobs", BIG, "--mode", "reference", "-o", "out/spots.csv"]
os.mkdir("out")
os.mkdir("temporary")
HERE = dict(kit.PLAIN, TMPDIR=os.path.abspath("temporary"))


def start(ignored=(), line=None, environment=None):
    def before():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
    return subprocess.Popen([kit.CLEAVE, *(line or LINE)], env=environment or HERE, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=before)


def wait_for_temporary(process, folder="out"):
    """Tests that a signal leaves no temporary file, even if it comes before the command can be cancelled and therefore
    ends it."""
    until = time.time() + 60
    while not any("cleave-" in name for name in os.listdir(folder)):
        if process.poll() is not None or time.time() > until:
            kit.wrong("no temporary was seen in %s: %s" % (folder, process.poll()))
            return
        time.sleep(0.002)


def ends(process, told, code):
    began = time.time()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        kit.wrong("%s does not end" % told)
        process.wait()
    took = time.time() - began
    said = process.stderr.read()
    if b"crashed" in said:
        kit.wrong("%s: a driver is blamed: %r" % (told, said))
    if process.returncode not in code:
        kit.wrong("%s: exit code %s, expected %s: %r" % (told, process.returncode, code, said))
    if took > 2:
        kit.wrong("%s: took %.1f s" % (told, took))
    for folder in "out", "temporary":
        kit.same("%s: what stays in %s" % (told, folder), os.listdir(folder), [])


def completes(process, told, output):
    """Tests that the command completes, however busy the machine is, and writes this output, which is then removed."""
    try:
        process.wait(120)
    except subprocess.TimeoutExpired:
        process.kill()
        kit.wrong("%s: not at its end after 120 s" % told)
        process.wait()
    kit.same("%s: exit code (%r)" % (told, process.stderr.read()), process.returncode, 0)
    kit.same("%s: output" % told, os.listdir("out"), output)
    kit.same("%s: temporary folders" % told, os.listdir("temporary"), [])
    for name in os.listdir("out"):
        os.remove(os.path.join("out", name))


def cancelled():
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        process = start()
        wait_for_temporary(process)
        process.send_signal(number)
        ends(process, "one %s" % number.name, (130, -number))
        process = start()
        wait_for_temporary(process)
        process.send_signal(number)
        process.send_signal(signal.SIGINT if number == signal.SIGTERM else signal.SIGTERM)
        process.wait()
        if process.returncode not in (130, -signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP):
            kit.wrong("two signals: exit code %s" % process.returncode)
        kit.same("two signals, first %s: what stays" % number.name, os.listdir("out"), [])


def ignored():
    for number in signal.SIGINT, signal.SIGHUP, signal.SIGTERM:
        process = start([number])
        wait_for_temporary(process)
        for _ in range(3):
            process.send_signal(number)
            time.sleep(0.02)
        completes(process, "%s is ignored" % number.name, ["spots.csv"])
        probe(number, [number], None)


def swift():
    """Tests that every other signal that can be caught ends the process as by default, but leaves no temporary file."""
    for number in (signal.SIGQUIT, signal.SIGPIPE, signal.SIGXCPU, signal.SIGUSR1, signal.SIGUSR2, signal.SIGVTALRM,
                   signal.SIGPROF, signal.SIGPOLL, signal.SIGPWR, signal.SIGSTKFLT):
        process = start()
        wait_for_temporary(process)
        process.send_signal(number)
        ends(process, number.name, (-number,))
    # stopping the process does not end it
    process = start()
    wait_for_temporary(process)
    process.send_signal(signal.SIGTSTP)
    time.sleep(0.3)
    kit.same("stopped, not ended", process.poll(), None)
    process.send_signal(signal.SIGCONT)
    completes(process, "stopped and continued", ["spots.csv"])


def children():
    """Tests a parent that ignores SIGCHLD. Then children have no exit code, so that formerly all of them "hung at their
    end"."""
    def before():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    done = kit.run("bench", "link", "--no-files", "--repeats", "1", preexec_fn=before)
    kit.same("bench whose parent ignores SIGCHLD: exit code (%r)" % done.stderr, done.returncode, 0)


def compiling():
    """Tests signals that come while PoCL compiles in the process, or while a child of the self-test has a temporary
    folder."""
    pocl = kernels_kit.pocl_alone()
    if not pocl:
        return
    environment = dict(pocl, TMPDIR=HERE["TMPDIR"], CLEAVE_COMPILERS="1", CLEAVE_TUNE="0")
    line = ["blobs", kit.movie("small.npy", frames=4, size=32), "--mode", "cpu", "-o", "out/spots.csv"]

    def cold():
        for folder in "kept/drivers/pocl", "kept/programs":
            shutil.rmtree(folder, ignore_errors=True)

    def compiles():
        return any(files for _, _, files in os.walk("kept/drivers/pocl"))

    completes(start((), line, environment), "a first run", ["spots.csv"])
    cold()
    process, sent = start([signal.SIGHUP], line, environment), 0
    while process.poll() is None:
        sent += compiles()
        process.send_signal(signal.SIGHUP)
        time.sleep(0.02)
    completes(process, "SIGHUP is ignored while a kernel compiles", ["spots.csv"])
    kit.same("a kernel was compiled meanwhile", sent > 10, True)
    for number in signal.SIGQUIT, signal.SIGXCPU, signal.SIGUSR1, signal.SIGINT, signal.SIGTERM:
        cold()
        process = start((), line, environment)
        while process.poll() is None and not compiles():
            time.sleep(0.002)
        time.sleep(0.2)
        process.send_signal(number)
        ends(process, "%s while a kernel compiles" % number.name,
             (130, -number) if number in (signal.SIGINT, signal.SIGTERM) else (-number,))
    # While the probe's helpers check the driver. They are killed then, and the command, which ends a moment later, must
    # not take them for a driver that has crashed.
    for words in ["demo", "--only", "filter", "-o", "out"], line, line, line, line:
        shutil.rmtree("kept", ignore_errors=True)
        process = start((), words, environment)
        wait_for_temporary(process, "temporary")
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        ends(process, "%s, whose driver is checked" % words[0], (130, -signal.SIGTERM))
    process = start((), ["selftest"], environment)
    wait_for_temporary(process, "temporary")
    process.send_signal(signal.SIGHUP)
    ends(process, "selftest, whose child has a temporary folder", (130, -signal.SIGHUP))


def file_size():
    """Tests that a limit of file sizes causes an error message, and not an end by SIGXFSZ."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    done = kit.run(*LINE, environment=HERE, preexec_fn=limit)
    kit.same("file size: exit code", done.returncode, 1)
    if b"File too large" not in done.stderr:
        kit.wrong("a limit of file sizes is not told: %r" % done.stderr)
    kit.same("file size: what stays", os.listdir("out"), [])


def probe(number, ignores, code):
    """Tests a helper that waits, for at most 3 s, for a driver's library that comes from a silent pipe."""
    environment = dict(kit.ENVIRONMENT, TMPDIR=os.path.abspath("temporary"), CLEAVE_CACHE="0")
    process = start(ignores, ["--icd", os.path.abspath("slow.so"), "probe", "--list", "--timeout", "3"], environment)
    wait_for_temporary(process, "temporary")
    time.sleep(0.3)
    process.send_signal(number)
    if code:
        ends(process, "probe and one %s" % number.name, code)
        return
    completes(process, "probe under an ignored %s" % number.name, [])


def slow_driver():
    """Makes a library whose constructor sleeps."""
    kit.write("slow.c", "#include <unistd.h>\n__attribute__((constructor)) static void wait(void) { sleep(60); }\n")
    return subprocess.run(["cc", "-shared", "-fPIC", "-o", "slow.so", "slow.c"], check=False).returncode == 0


cancelled()
swift()
file_size()
children()
compiling()
if slow_driver():
    ignored()
    for each in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        probe(each, [], (130, -each))
else:
    kit.wrong("no C compiler for the driver that is slow")
kit.finish()
