#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that one signal ends the command within two seconds although a kernel never ends on a CPU driver.

Formerly the job waited for the kernel for ever, because the kernel may use the job's memory, and the first SIGTERM or
SIGINT had no effect.

usage: held_kernel.py CLEAVE KERNELS    KERNELS: the folder cl"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import kit

HELD = "volatile int held = 1; while (held) {}\n"


def damage(folder):
    """Damages every kernel that finds spots, in its first line."""
    count = 0
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        text, found = re.subn(r"(?ms)^(__kernel|kernel)(.*?)^\{\n", lambda m: m.group(0) + HELD, text)
        count += found
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    kit.same("some kernel was damaged", count > 0, True)


def busy_s(process):
    """Returns the processor time of a process in seconds."""
    with open("/proc/%d/stat" % process.pid, encoding="ascii", errors="replace") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def wait_until_held(process, compiles):
    """Waits until a process hangs in the kernel. The first one compiles before, for longer than it takes to start."""
    began = time.time()
    while process.poll() is None and time.time() < began + 15:
        time.sleep(0.2)
        if not compiles and busy_s(process) > 4:
            break


shutil.copytree(sys.argv[2], "kernels")
damage("kernels/blob")
kit.movie(frames=64, size=256)
os.mkdir("out")
environment = dict(kit.ENVIRONMENT, CLEAVE_CL_DIR=os.path.abspath("kernels"), CLEAVE_TUNE="0", CLEAVE_COMPILERS="1")
listed = kit.run("probe", "--print-mode", environment=environment).stdout.decode()
if "cpu" not in listed:
    print("SKIPPED: no driver of the CPU (mode %s)" % listed.strip())
    sys.exit(77)
for turn, number in enumerate((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)):
    with subprocess.Popen([kit.CLEAVE, "blobs", "movie.npy", "--mode", "cpu", "-o", "out/spots.csv"], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        wait_until_held(process, turn == 0)
        if process.poll() is not None:
            kit.wrong("it was not held: exit code %d, %r" % (process.returncode, process.stderr.read()))
        began = time.time()
        process.send_signal(number)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            kit.wrong("%s: still there after 20 s" % number.name)
            process.kill()
            process.wait()
        took = time.time() - began
        said = process.stderr.read()
        kit.same("%s: exit code (%r)" % (number.name, said), process.returncode, 130)
        if took > 2:
            kit.wrong("%s: ended after %.1f s" % (number.name, took))
        kit.same("%s: files" % number.name, os.listdir("out"), [])
kit.finish()
