#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a killed run leaves no partial file and no incomplete set of files that looks complete, and that later
runs remove its temporary files.

Formerly PACO's maps came from two different runs after 24 of 54 kills, and 78 temporary files were never removed. Two
kinds of runs, whose results differ, write to the same places in turn and are killed at moments from their beginning to
their end. After each kill, every file is one that a complete run wrote, and if there is a report.json, its digests
match all files. A killed `finetune` continues from its saved state, and ends with the bytes of a run without a kill. A
library of templates with a lib.json is complete.

usage: kills.py CLEAVE CLI_TESTS DATA [KILLS]    DATA: the folder tests/data. KILLS: how many in all; 80 unless given"""
import hashlib
import os
import subprocess
import sys
import time

import kit

sys.path.insert(0, sys.argv[2])
import text_embed  # noqa: E402

KILLS = int(sys.argv[4]) if len(sys.argv) > 4 else 80
FREE = ("report.json", "checkpoint.safetensors")  # has times in it; finetune continues from it


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def files(folder):
    return {os.path.relpath(path, folder): hashlib.sha256(data).hexdigest()
            for path, data in kit.listing(folder).items() if data is not None and not is_temporary(path)}


def is_temporary(path):
    return ".cleave-part" in path or "/cleave-templates-" in path


def check_set(folder, told):
    """Returns whether the set of files is complete. If there is a report, each file must match it."""
    path = os.path.join(folder, "report.json")
    if not os.path.exists(path):
        return False
    for name, want in kit.report(path)["sha256"].items():
        if digest(os.path.join(folder, name)) != want:
            kit.wrong("%s: %s is not of the set that report.json stands for" % (told, name))
    return True


OTHER = {"paco": ["--radius", "4"], "blobs": ["--threshold-sigma", "8"], "link": ["--search", "1"],
         "tracks": ["--min-length", "3", "--lags", "2"], "specfit": ["--max-vel=900"], "embed": ["--normalize"],
         "classify": ["--all"], "search": ["--top", "1"], "rank": ["--activation", "softmax"], "tokenize": ["--no-bos"],
         "detokenize": ["--special"]}


def prepare():
    """Returns {name: its two kinds of runs}; of two equal options, the later one counts."""
    lines = kit.small_commands(text_embed.make_model, 60, 64)
    lines.update(kit.more_commands(sys.argv[3]))
    del lines["generate"]  # this command writes to standard output
    found = {}
    for name, line in lines.items():
        line = [word.replace("out", "out-" + name, 1) if word[:4] in ("out", "out/") else word for word in line]
        line += [] if name in kit.HOST_ONLY else ["--mode", "reference"]
        found[name] = [line, line + OTHER.get(name, [])]
    return found


def ready(name, line):
    """Runs the command that a user would give after a kill: finetune resumes, and libraries are not replaced."""
    if name == "templates":
        for path in sorted(kit.listing("out-templates/library"), reverse=True):
            if not is_temporary(path):
                (os.rmdir if os.path.isdir(path) else os.remove)(path)
    state = os.path.join("out-" + name, "checkpoint.safetensors")
    return line + ["--resume"] if os.path.exists(state) else line


def whole_runs(lines):
    """Returns what each run writes when it is not killed, and how long it takes."""
    whole, seconds = {}, {}
    for name, pair in lines.items():
        folder = "out-" + name
        os.makedirs(folder, exist_ok=True)
        whole[name] = {}
        for line in pair:
            began = time.time()
            kit.same(" ".join(line), kit.run(*ready(name, line)).returncode, 0)
            seconds[name] = time.time() - began
            for file, found in files(folder).items():
                whole[name].setdefault(file, set()).add(found)
    return whole, seconds


def check_files(name, told):
    found = files("out-" + name)
    for file, digest in found.items():
        if file not in FREE and digest not in whole[name].get(file, ()):
            kit.wrong("%s: %s is of no whole run" % (told, file))
    if "library/lib.json" in found:
        kit.same(told + ": beside lib.json", sorted(found), sorted(whole[name]))


def kill(name, moment, line):
    """Kills a run; returns whether it was still running."""
    with subprocess.Popen([kit.CLEAVE, *ready(name, line)], env=kit.PLAIN, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.kill()
            return True
    return False


def temporaries(folder):
    return [path for path in kit.listing(folder) if is_temporary(path)]


lines = prepare()
kit.swept("kills", lines)
whole, seconds = whole_runs(lines)
died = broken_sets = 0
for i in range(KILLS):
    name = sorted(lines)[i % len(lines)]
    turn = i // len(lines)
    moment = seconds[name] * (turn * 7 % 17 + 0.5) / 17
    if name == "paco" and turn % 2:
        moment = seconds[name] * (0.8 + 0.2 * (turn % 7) / 7)  # while it writes its outputs
    died += kill(name, moment, lines[name][turn % 2])
    check_files(name, "kill %d of %s" % (i, name))
    if name == "paco" and not check_set("out-paco", "kill %d" % i):
        broken_sets += 1
for name in lines:  # an hour later
    folder = "out-" + name
    for path in temporaries(folder):
        os.utime(path, (time.time() - 3600, time.time() - 3600))
    kit.same(name + ": the next run", kit.run(*ready(name, lines[name][0])).returncode, 0)
    check_files(name, name + " at the end")
    kit.same(name + ": swept", temporaries(folder), [])
kit.same("the last set is whole", check_set("out-paco", "at the end"), True)
kit.same("enough runs died", died >= KILLS // 3, True)
print("%d runs of %d commands, %d killed; %d sets without a report" % (KILLS, len(lines), died, broken_sets))
kit.finish()
