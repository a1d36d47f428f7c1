#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the command with little free space on the disk of the cache, and with a limit of the address space.

PoCL's compiler ends the process when the disk is full (LLVM's error), and when an address-space limit of 400 to 900 MB
is reached. Therefore kernels are kept elsewhere if the cache's disk has less than 64 MB left, and the
command reports a limit before it loads drivers.

usage: limits.py CLEAVE"""
import os
import resource
import subprocess
import sys

import kit

CACHE = kit.ENVIRONMENT["CLEAVE_CACHE_DIR"]
HERE = {name: value for name, value in kit.ENVIRONMENT.items()
        if name not in ("POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR")}


def check_space():
    for megabytes, told in (600, True), (900, True), (4000, False):
        def limit(size=megabytes << 20):
            resource.setrlimit(resource.RLIMIT_AS, (size, size))
        done = kit.run("blobs", kit.movie(), "-o", "s.csv", "-q", environment=kit.PLAIN, preexec_fn=limit)
        if (b"address space" in done.stderr) != told:
            kit.wrong("with %d MB of address space: %r" % (megabytes, done.stderr))


def check_disk():
    os.mkdir("small")
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "none", "small"], check=False,
                                           capture_output=True).returncode != 0:
        print("SKIPPED: no file system can be mounted here, so no disk is full")
        return False
    try:
        environment = dict(HERE, CLEAVE_CACHE_DIR=os.path.abspath("small/cache"))
        for name in "first", "second":
            done = kit.run("blobs", kit.movie(), "-o", name + ".csv", "--mode", "cpu", environment=environment)
            if done.returncode not in (0, 3) or b"LLVM" in done.stderr:
                kit.wrong("on a full disk: %d, %r" % (done.returncode, done.stderr))
            if b"less than 64 MB left" not in done.stderr:
                kit.wrong("a full disk is not told: %r" % done.stderr)
            with open("small/filler", "ab") as file:
                try:
                    file.write(bytes(2 << 20))
                except OSError:
                    pass
    finally:
        subprocess.run(["umount", "-l", "small"], check=False)
    return True


check_space()
WHOLE = check_disk()
kit.finish() if WHOLE or kit.WRONG else sys.exit(77)
