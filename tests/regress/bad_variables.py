#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that an environment variable with an unusable value causes one error, which names the variable.

Formerly CLEAVE_TUNE=yes, CLEAVE_LOG=loud and CLEAVE_CACHE=no were ignored; CLEAVE_MODE=fast caused the error "mode:
"fast" given", as if an option had been wrong; a CLEAVE_TRACE that could not be written was reported only after the
work, and with -q never; and all errors came after the inputs had been read.

usage: bad_variables.py CLEAVE"""
import kit

kit.write("file", "")
VALUES = {
    "CLEAVE_MODE": ["fast", "must be auto, cpu, gpu, hybrid or reference"],
    "CLEAVE_SCHED": ["best", "must be adaptive, static, dynamic or hguided"],
    "CLEAVE_MEM_LIMIT": ["plenty", "must be a size such as 2G or a share such as 50%"],
    "CLEAVE_CACHE": ["no", "must be 0 or 1"],
    "CLEAVE_TUNE": ["yes", "must be 0 or 1"],
    "CLEAVE_BIND": ["2", "must be 0 or 1"],
    "CLEAVE_LOG": ["loud", "must be none, error, warn, info or debug"],
    "CLEAVE_CL_DIR": ["nowhere", "must be a folder"],
    "CLEAVE_CACHE_DIR": ["file", "must be a folder"],
    "CLEAVE_TRACE": ["nowhere/trace.json", "must be a file that can be written"],
}
for name, (value, expected) in VALUES.items():
    start = 'the environment variable %s is "%s", but it %s' % (name, value, expected)
    # the error comes before the inputs are read, which do not exist
    for command in (["blobs", "no.npy", "-o", "spots.csv"], ["embed", "no-model", "-o", "new.npy"],
                    ["paco", "no.npy", "no.npy", "no.npy", "-o", "maps"],
                    ["specfit", "no.fits", "--library", "no", "-o", "new.csv"], ["demo"],
                    ["finetune", "no-model", "--data", "no.txt", "-o", "out"]):
        kit.expect(2, start, *command, environment=kit.without_drivers(**{name: value}))
    # an empty variable counts as not set
    kit.expect(2, "no.npy", "blobs", "no.npy", "-o", "spots.csv",
               environment=kit.without_drivers(**{name: ""}))
# a name that is too long was not used, without a word
kit.expect(2, 'CLEAVE_CACHE_DIR is "%s", but it must be a folder whose name has at most 1023 bytes' % ("d/" * 100),
           "blobs", "no.npy", "-o", "spots.csv", environment=kit.without_drivers(CLEAVE_CACHE_DIR="d/" * 512))
kit.expect(2, "no.npy", "blobs", "no.npy", "-o", "spots.csv",
           environment=kit.without_drivers(CLEAVE_CACHE_DIR="d/" * 511 + "d"))
for command in "probe", "bench":
    kit.expect(2, 'CLEAVE_MODE is "fast"', command,
               environment=kit.without_drivers(CLEAVE_MODE="fast"))
for name in "CLEAVE_LOG", "CLEAVE_CACHE":
    kit.expect(2, name + ' is "x"', "cache", environment=kit.without_drivers(**{name: "x"}))
kit.same("files", sorted(kit.listing()), ["./file"])
kit.finish()
