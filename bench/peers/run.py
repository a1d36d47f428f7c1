#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the other programs that are installed for this Python, on files that `cleave bench` wrote, and prints the
results as lines of JSON, which `cleave bench` reads (bench/command/lines.c).

usage: run.py LIST --patience SECONDS --repeats N    LIST: cases.json of `cleave bench --peers`
       run.py --folder FOLDER [--variant shift] ...  one case by hand: FOLDER holds cube.npy,
                                                     angles.npy and psf.npy

Each other program has a file beside this one, WORKLOAD_NAME.py, with the functions `name()`, `can(case)`,
`load(folder)`, `warm(data)` (which tunes it) and `compute(data, shifted)`, which returns the maps a and b for PACO. A
function `note(result, case)` may say in words how good the result is. Run as a program it is `FOLDER OUT VARIANT`, from
files to files.
"""
import argparse
import importlib
import json
import os
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ["paco_vip", "paco_torch", "blobs_skimage", "blobs_clesperanto", "blobs_trackpy", "link_trackpy",
         "arrays_numpy",
         "specfit_rvspecfit", "transformer_torch", "transformer_sentences", "generate_llamacpp"]


def say(**line):
    print(json.dumps(line), flush=True)


def available():
    for module in PEERS:
        try:
            yield module, importlib.import_module(module)
        except ImportError:
            continue


def repeat(action, repeats, patience):
    """Returns the seconds of each run: as many runs as wanted, or fewer if they would take too long, but at least
    one."""
    seconds, begun = [], time.perf_counter()
    while len(seconds) < repeats:
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
        spent = time.perf_counter() - begun
        if spent + spent / len(seconds) > patience:
            break
    return seconds


def whole_program(module, folder, variant):
    """Runs a program from files to files in its own process, and returns the largest resident set in bytes."""
    with tempfile.TemporaryDirectory() as out:
        script = os.path.join(HERE, f"{module}.py")
        pid = os.posix_spawn(sys.executable, [sys.executable, script, folder, out, variant],
                             os.environ)
        _, status, usage = os.wait4(pid, 0)
        if os.waitstatus_to_exitcode(status):
            raise RuntimeError("the whole program failed")
        return usage.ru_maxrss * 1024


def agreement(a, ours):
    """Returns the worst relative difference of the map a from ours. One position in 500 may be a tie, for which another
    patch is equally correct."""
    want = np.load(os.path.join(ours, "a.npy"))
    both = np.isfinite(a) & np.isfinite(want)
    if both.sum() < 0.99 * np.isfinite(want).sum():
        return float("nan")
    off = np.sort(np.abs(a[both] / want[both] - 1))
    return float(off[-1 - off.size // 500])


def measure(module, peer, case, options):
    shifted = not case["variant"]
    variant = "shift" if shifted else "fixed"
    party, index = peer.name(), case["case"]
    if hasattr(peer, "choose"):  # only a part of the program is measured
        peer.choose(case)
    data = peer.load(case["folder"])
    if hasattr(peer, "is_part") and peer.is_part():
        say(party=party, case=index, metric="compute",
            seconds=[peer.part_seconds(data) for _ in range(options.repeats)])
        if hasattr(peer, "part_note"):
            say(party=party, case=index, note=peer.part_note())
        return 0
    peer.warm(data)
    kept = {}

    def compute():
        kept["maps"] = peer.compute(data, shifted)

    first = repeat(compute, 1, 0)
    rest = options.patience - first[0]
    seconds = repeat(compute, options.repeats, rest) if rest > first[0] else first
    say(party=party, case=index, metric="compute", seconds=seconds)
    if case.get("ours") and peer.SAME_FORMULAS:
        say(party=party, case=index, agreement=agreement(kept["maps"][0], case["ours"]))
    if case.get("ours") and hasattr(peer, "note"):
        say(party=party, case=index, note=peer.note(kept["maps"], case))
    if not getattr(peer, "FROM_FILES", True):  # the computation already includes reading and writing files
        return min(seconds) / case["effort"]
    memory = []
    files = repeat(lambda: memory.append(whole_program(module, case["folder"], variant)),
                   options.repeats, options.patience)
    say(party=party, case=index, metric="files", seconds=files, memory=max(memory))
    return min(seconds) / case["effort"]


def measure_all(module, peer, cases, options):
    """Measures small cases first, because they show which larger cases would take too long."""
    pace = {}
    for case in sorted(cases, key=lambda c: c["effort"]):
        index, kind = case["case"], case["variant"]
        if not peer.can(case):
            say(party=peer.name(), case=index, note="does not compute this")
            continue
        expected = pace.get(kind, 0) * case["effort"]
        if expected > options.patience:
            say(party=peer.name(), case=index, note=f"would take about {expected:.0f} s")
            continue
        say(doing=f"{peer.name()}: {case['workload']} {case['name']}")
        try:
            pace[kind] = measure(module, peer, case, options)
        except Exception as trouble:  # any error only leaves out this case
            say(party=peer.name(), case=index, note=f"{type(trouble).__name__}: {trouble}"[:119])


def case_by_hand(options):
    frames, height, width = np.load(os.path.join(options.folder, "cube.npy"), mmap_mode="r").shape
    return {"case": 0, "workload": "paco", "name": options.variant, "folder": options.folder,
            "size": [height, width, frames], "variant": int(options.variant == "fixed"),
            "effort": height * width * (frames + 16), "ours": options.ours}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("list", nargs="?")
    parser.add_argument("--folder")
    parser.add_argument("--ours", help="folder with our maps, to compare with")
    parser.add_argument("--variant", choices=["fixed", "shift"], default="fixed")
    parser.add_argument("--patience", type=float, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if bool(options.list) == bool(options.folder):
        parser.error("a list of cases or --folder is needed")
    if options.folder:
        cases = [case_by_hand(options)]
    else:
        with open(options.list, encoding="utf-8") as file:
            cases = json.load(file)["cases"]
    peers = list(available())
    if not peers:
        sys.exit("run.py: this Python has no peer; bench/peers/setup.sh installs them")
    for module, peer in peers:
        mine = [c for c in cases if c["workload"] == module.split("_", maxsplit=1)[0]]
        measure_all(module, peer, mine, options)


if __name__ == "__main__":
    main()
