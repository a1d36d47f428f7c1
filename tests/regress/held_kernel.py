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


shutil.copytree(sys.argv[2], "kernels")
damage("kernels/blob")
kit.movie(frames=64, size=256)
os.mkdir("out")
environment = dict(kit.ENVIRONMENT, CLEAVE_CL_DIR=os.path.abspath("kernels"), CLEAVE_TUNE="0", CLEAVE_COMPILERS="1")
listed = kit.run("probe", "--print-mode", environment=environment).stdout.decode()
if "cpu" not in listed:
    print("SKIPPED: no driver of the CPU (mode %s)" % listed.strip())
    sys.exit(77)
for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
    with subprocess.Popen([kit.CLEAVE, "blobs", "movie.npy", "--mode", "cpu", "-o", "out/spots.csv"], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        time.sleep(15)  # compiles, and then hangs in the kernel
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
