#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a first run under resource limits does not affect later runs: the second run uses the device.

Formerly, if the helper of a driver was killed for lack of memory, or ended by a limit of CPU time, file size or
descriptors, the driver was recorded as bad and not used for an hour."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import kit

LIMITS = {"descriptors": (resource.RLIMIT_NOFILE, (12, 9, 7)), "CPU time": (resource.RLIMIT_CPU, (0, 1)),
          "file size": (resource.RLIMIT_FSIZE, (0, 5000)),
          "address space": (resource.RLIMIT_AS, (300 << 20, 600 << 20, 900 << 20))}
LINE = ["blobs", kit.movie(frames=16, size=128), "-o", "spots.csv", "--report", "report.json"]


def attempt(name, before=None, meanwhile=None):
    """Makes a first run, which may succeed or fail, and a second one with the same cache folder."""
    shutil.rmtree("kept", ignore_errors=True)
    with subprocess.Popen([kit.CLEAVE, *LINE], env=kit.ENVIRONMENT, stdin=subprocess.DEVNULL, preexec_fn=before,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        if meanwhile:
            meanwhile(process)
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            kit.wrong("%s: the first run does not end" % name)
            process.kill()
    if os.path.exists("report.json"):
        os.remove("report.json")
    done = kit.run(*LINE, environment=kit.ENVIRONMENT)
    kit.same("%s: the second run" % name, done.returncode, 0)
    if not devices():
        kit.wrong("%s: the second run used no device: %r" % (name, done.stderr))


def devices():
    """Returns the devices that computed a part."""
    return [share["device"] for job in kit.report("report.json")["jobs"] for share in job["shares"]
            if share["units"] and "reference" not in share["device"]]


def kill_helpers(process):
    """Kills helpers as the kernel does when memory runs out."""
    until = time.time() + 5
    while time.time() < until and process.poll() is None:
        listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(process.pid)], stdout=subprocess.PIPE,
                                check=False).stdout.decode()
        for line in listed.splitlines():
            number, words = line.split(None, 1)
            if "probe" in words or "helper" in words:
                try:
                    os.kill(int(number), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        time.sleep(0.005)


clean = kit.run(*LINE, environment=kit.ENVIRONMENT)
if not devices():
    print("SKIPPED: no device that blobs takes")
    sys.exit(77)
attempt("helpers are killed", meanwhile=kill_helpers)
for what, (number, values) in LIMITS.items():
    for value in values:
        attempt("%s: %d" % (what, value),
                lambda: resource.setrlimit(number, (value, resource.getrlimit(number)[1])))  # noqa: B023
kit.finish()
