#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a program with more rights than its caller ignores the caller's environment.

CLEAVE_CL_DIR names a folder of kernels. Formerly it was refused in set-uid programs, by a comparison of user numbers,
but not in programs with file capabilities, where these numbers are equal. The system reports such rights in AT_SECURE.
Here a copy of the command gets a file capability and is run by another user, with a CLEAVE_CL_DIR, a CLEAVE_CACHE_DIR
and a CLEAVE_TRACE that a program without this check would use or refuse.

usage: rights.py CLEAVE    as root; else it is skipped"""
import errno
import os
import shutil
import struct
import sys

import kit

NOBODY = 65534


def skip(why):
    print("SKIPPED: " + why)
    sys.exit(77)


def main():
    if os.geteuid() != 0:
        skip("only root can give rights to a program")
    os.chmod(kit.FOLDER, 0o755)
    program = os.path.join(kit.FOLDER, "cleave-with-rights")
    shutil.copy(kit.CLEAVE, program)
    os.chmod(program, 0o755)
    # version 2 of the attribute, effective; permits CAP_SYS_NICE (23)
    capability = struct.pack("<5I", 0x02000001, 1 << 23, 0, 0, 0)
    try:
        os.setxattr(program, "security.capability", capability)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP):
            raise
        skip("this system lets no program have file capabilities: %s" % error)
    plain, kit.CLEAVE = kit.CLEAVE, program
    kit.write("trace.json", "here")
    os.mkdir("cache")
    for name in "trace.json", "cache":
        os.chown(name, NOBODY, NOBODY)
    variables = {"CLEAVE_CL_DIR": "/nowhere", "CLEAVE_LOG": "nonsense", "CLEAVE_TRACE": kit.FOLDER + "/trace.json",
                 "CLEAVE_CACHE_DIR": kit.FOLDER + "/cache"}
    environment = kit.without_drivers(**variables)
    # the same variables are refused when they are obeyed
    kit.CLEAVE = plain
    kit.expect(2, "CLEAVE_", "selftest", "--device", "all", environment=environment)
    kit.CLEAVE = program
    done = kit.run("cache", "path", environment=environment, user=NOBODY, group=NOBODY)
    if done.stdout.strip().decode() == kit.FOLDER + "/cache":
        kit.wrong("CLEAVE_CACHE_DIR chose the cache of a program with rights")
    done = kit.run("demo", "--mode", "reference", "-q", environment=environment, user=NOBODY, group=NOBODY)
    if b"CLEAVE_" in done.stderr:
        kit.wrong("the environment was read in a program with rights: %r" % done.stderr)
    with open("trace.json", encoding="utf-8") as file:
        kit.same("CLEAVE_TRACE", file.read(), "here")


main()
kit.finish()
