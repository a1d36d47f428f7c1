#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No kill leaves half a file, or a set that looks whole and is not; what it leaves is swept.

PACO's maps were of two runs after 24 of 54 kills, and 78 temporaries stayed for ever. Two kinds of runs, whose results
differ, write to the same places in turn and are killed at moments that go from their beginning to their end. After
each kill every file is one that a whole run wrote, and where report.json stands, its digests fit all files.

usage: kills.py CLEAVE [KILLS]    KILLS: how many in all; 50 unless given"""
import hashlib
import os
import subprocess
import sys
import time

import kit

KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 50
FREE = ("report.json",)  # it has times in it


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def files(folder):
    return {name: digest(os.path.join(folder, name)) for name in os.listdir(folder)
            if not name.endswith(".cleave-part")}


def check_set(folder, told):
    """True: a whole set. With its report, each file is as the report says."""
    path = os.path.join(folder, "report.json")
    if not os.path.exists(path):
        return False
    for name, want in kit.report(path)["sha256"].items():
        if digest(os.path.join(folder, name)) != want:
            kit.wrong("%s: %s is not of the set that report.json stands for" % (told, name))
    return True


def prepare():
    kit.make_inputs("made")
    inputs = ["made/paco-%s.npy" % name for name in ("cube", "angles", "psf")]
    kit.movie(frames=120, size=64)
    rows = ["frame,y,x"] + ["%d,%d,%d" % (t, 20 * (i // 20) + t % 3, 20 * (i % 20))
                            for t in range(30) for i in range(200)]
    kit.write("many.csv", "\n".join(rows) + "\n")
    return {"paco": [["paco", *inputs, "-q", "--radius", radius, "--mode", "reference", "-o", "out-paco"]
                     for radius in ("3", "4")],
            "blobs": [["blobs", "movie.npy", "-q", "--threshold-sigma", value, "--mode", "reference",
                       "-o", "out-blobs/spots.csv"] for value in ("5", "8")],
            "link": [["link", "many.csv", "-q", "--search", value, "-o", "out-link/tracks.csv"]
                     for value in ("4", "1")]}


def whole_runs(lines):
    """What each run writes when nobody kills it, and how long it takes."""
    whole, seconds = {}, {}
    for name, pair in lines.items():
        folder = "out-" + name
        os.makedirs(folder, exist_ok=True)
        whole[name] = {}
        for line in pair:
            began = time.time()
            kit.same(" ".join(line), kit.run(*line).returncode, 0)
            seconds[name] = time.time() - began
            for file, found in files(folder).items():
                whole[name].setdefault(file, set()).add(found)
    return whole, seconds


lines = prepare()
whole, seconds = whole_runs(lines)
died = broken_sets = 0
for i in range(KILLS):
    name = sorted(lines)[i % len(lines)]
    moment = seconds[name] * ((i // len(lines)) % 17 + 0.5) / 17
    if name == "paco" and i % 2:
        moment = seconds[name] * (0.8 + 0.2 * (i % 7) / 7)  # while it writes
    with subprocess.Popen([kit.CLEAVE, *lines[name][i // len(lines) % 2]], env=kit.PLAIN, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.kill()
            died += 1
    for file, found in files("out-" + name).items():
        if file not in FREE and found not in whole[name].get(file, ()):
            kit.wrong("kill %d of %s: %s is of no whole run" % (i, name, file))
    if name == "paco" and not check_set("out-paco", "kill %d" % i):
        broken_sets += 1
for name in lines:  # an hour later
    folder = "out-" + name
    left = [file for file in os.listdir(folder) if file.endswith(".cleave-part")]
    for file in left:
        os.utime(os.path.join(folder, file), (time.time() - 3600, time.time() - 3600))
    kit.same(name + ": the next run", kit.run(*lines[name][0]).returncode, 0)
    kit.same(name + ": swept", [file for file in os.listdir(folder) if file.endswith(".cleave-part")], [])
kit.same("the last set is whole", check_set("out-paco", "at the end"), True)
kit.same("enough runs died", died >= KILLS // 3, True)
print("%d runs, %d killed; %d sets without a report" % (KILLS, died, broken_sets))
kit.finish()
