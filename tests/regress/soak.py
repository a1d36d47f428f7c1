#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same commands in turn for twenty minutes, and tests that every round writes the same bytes and that nothing
grows.

usage: soak.py CLEAVE CLI_TESTS [SECONDS]    SECONDS: 1200 unless given here or in CLEAVE_SOAK_S
`ctest --preset soak` runs this test. Kept files may not grow after the second round, no temporary file may remain, and
a run may take at most three times as long as the slowest of the first rounds, and at most 1.5 times their memory."""
import os
import shutil
import subprocess
import sys
import time

import kit

sys.path.insert(0, sys.argv[2])
import text_embed  # noqa: E402

SECONDS = float(sys.argv[3] if len(sys.argv) > 3 else os.environ.get("CLEAVE_SOAK_S", "1200"))
CACHE = kit.ENVIRONMENT["CLEAVE_CACHE_DIR"]
LEAST, FIRST = 20.0, 3  # runs of fewer seconds never count as slow; number of rounds that set the limits


def kept_bytes():
    return sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(CACHE) for name in names)


def run(line, environment):
    """Returns the exit code, standard error, and the largest resident size in bytes."""
    with open("said", "wb") as file, subprocess.Popen([kit.CLEAVE, *line], env=environment, stdin=subprocess.DEVNULL,
                                                      stdout=subprocess.DEVNULL, stderr=file) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    with open("said", "rb") as file:
        return child.returncode, file.read(), usage.ru_maxrss * 1024


def one_run(told, line, environment, first, times):
    shutil.rmtree("out", ignore_errors=True)
    os.mkdir("out")
    began = time.monotonic()
    code, said, memory = run(line, environment)
    took = time.monotonic() - began
    files = {name: data for name, data in kit.listing("out").items() if not name.endswith("report.json")}
    if code != 0:
        kit.wrong("%s: exit code %d: %r" % (told, code, said))
    if any(name.endswith(".cleave-part") for name in files):
        kit.wrong("%s: a temporary stays: %r" % (told, sorted(files)))
    if first.setdefault(told, files) != files:
        kit.wrong("%s: other bytes: %r" % (told, [n for n in files if files[n] != first[told].get(n)]))
    peaks.setdefault(told, []).append(memory)
    if memory > 1.5 * max(peaks[told][:FIRST]) + (16 << 20):
        kit.wrong("%s: took %d MiB, at first %d" % (told, memory >> 20, max(peaks[told][:FIRST]) >> 20))
    times.setdefault(told, []).append(took)
    pace = max(times[told][:FIRST])
    if len(times[told]) > FIRST and took > max(LEAST, 3 * pace):
        kit.wrong("%s: took %.1f s, at first %.1f s" % (told, took, pace))


lines, first, times, sizes, rounds, runs = kit.small_commands(text_embed.make_model, 40, 64), {}, {}, [], 0, 0
peaks = {}  # bytes of memory
lines.update(kit.more_commands(os.path.join(sys.argv[2], "../data")))
end = time.monotonic() + SECONDS
while time.monotonic() < end or rounds < 3:
    for name, line in lines.items():
        # devices share the work by their measured speeds, which change no bit; the first round measures them
        for mode, environment in (("reference", kit.PLAIN), ("cpu", kit.ENVIRONMENT)):
            runs += name not in kit.HOST_ONLY or mode == "reference"
            if name in kit.HOST_ONLY:
                if mode == "reference":
                    one_run(name, line, environment, first, times)
                continue
            if rounds or mode == "reference":
                one_run("%s, %s" % (name, mode), line + ["--mode", mode], environment, first, times)
            else:
                kit.run(*line, "--mode", mode, environment=environment, timeout=900)
                shutil.rmtree("out")
                os.mkdir("out")
    rounds += 1
    sizes.append(kept_bytes())
print("%d rounds, %d runs; kept %d bytes after the second round, %d at the end" % (rounds, runs, sizes[1], sizes[-1]))
for told, values in sorted(peaks.items()):
    print("%s: %d runs, memory %d to %d MiB" % (told, len(values), min(values) >> 20, max(values) >> 20))
if max(sizes[1:]) > sizes[1] * 1.05 + 65536:
    kit.wrong("what is kept grows: %r" % sizes)
kit.finish()
