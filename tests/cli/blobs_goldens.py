#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the spots of `cleave blobs` with golden data: the maxima that scikit-image finds, the spots that remain
after pruning, and the simulated spots.

    blobs_goldens.py CLEAVE PLATFORM|reference CASE...    CASE: of tests/data/blobs/manifest.json
"""
import csv
import json
import math
import os
import subprocess
import sys
import tempfile

import paco_kit as kit
import testdata

ENVIRONMENT = {}

LOOSE = {"g_weak_u16": 0.97, "real_stuck": 0.97, "real_bulk_water_u8": 0.97}


def read(path):
    with open(path, newline="") as f:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(f)]


def match(ours, golden, tolerance):
    """Pairs spots one-to-one, the nearest first: [(ours, golden, distance)]."""
    frames, pairs = {}, []
    for row in golden:
        frames.setdefault(row["frame"], []).append(row)
    candidates = []
    for i, a in enumerate(ours):
        for b in frames.get(a["frame"], ()):
            d = math.hypot(a["y"] - b["y"], a["x"] - b["x"])
            if d <= tolerance:
                candidates.append((d, abs(a.get("sigma", 0) - b.get("sigma", 0)), i, id(b), b))
    used, taken = set(), set()
    for d, _, i, j, b in sorted(candidates, key=lambda c: c[:4]):
        if i not in used and j not in taken:
            used.add(i)
            taken.add(j)
            pairs.append((ours[i], b, d))
    return pairs


def file_of(name):
    return testdata.path_of("blobs/" + name)


def movie_of(case):
    base = case.replace("e_border4", "e_border")
    return file_of(base + (".tif" if base == "real_stuck" else ".npy"))


def run(command, movie, arguments, options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "spots.csv")
        done = subprocess.run([command, "blobs", movie, "-o", path, "-q"] + arguments + options,
                              capture_output=True, text=True, env=ENVIRONMENT,
                              check=False)
        if done.returncode:
            raise SystemExit("%s: exit code %d: %s" % (movie, done.returncode, done.stderr))
        return read(path)


def ladder(p, kind):
    out = ["--min-sigma", repr(p["min_sigma"]), "--max-sigma", repr(p["max_sigma"])]
    if kind == "dog":
        out += ["--dog", "--sigma-ratio", repr(p["sigma_ratio"])]
    else:
        out += ["--num-sigma", str(p["num_sigma"])]
    return out + ["--exclude-border", str(p["exclude_border"])]


def thresholds(p, raw):
    if p["threshold"] is None:
        return ["--threshold-rel", repr(p["threshold_rel"])]
    return ["--threshold", repr(p["threshold_raw"] if raw else p["threshold"])]


def parity(command, case, kind, p, options):
    """Compares with the rows of *_peaks.csv: y, x and sigma are equal, and responses differ by at most 1e-5, except for
    ties and for responses near the threshold."""
    golden = read(file_of("%s_%s_peaks.csv" % (case, kind)))
    ours = run(command, movie_of(case), ladder(p, kind) + thresholds(p, False) +
               ["--kernel", "scipy", "--subpixel", "none", "--normalize", "dtype", "--prune", "off"],
               options)
    found = {(r["frame"], r["y"], r["x"], round(r["sigma"], 4)): r for r in ours}
    good = [g for g in golden
            if (g["frame"], g["y"], g["x"], round(g["sigma"], 4)) in found and
            abs(found[g["frame"], g["y"], g["x"], round(g["sigma"], 4)]["response"] - g["response"])
            <= 1e-5 * abs(g["response"]) + (2e-7 if p["threshold"] is None else 0)]
    recall, precision = len(good) / max(len(golden), 1), len(good) / max(len(ours), 1)
    bar = 0.995 if case.endswith("u8") else 0.999
    return recall >= bar and precision >= bar, "recall %.4f precision %.4f" % (recall, precision)


def product(command, case, kind, p, options):
    golden = read(file_of("%s_%s_stable.csv" % (case, kind)))
    ours = run(command, movie_of(case), ladder(p, kind) + thresholds(p, True), options)
    pairs = match(ours, golden, 1.0)
    recall, precision = len(pairs) / max(len(golden), 1), len(pairs) / max(len(ours), 1)
    bar = LOOSE.get(case, 0.985)
    return recall >= bar and precision >= bar, "recall %.4f precision %.4f" % (recall, precision)


# Case, kind, options in place of the manifest's, largest radial error, least recall and precision.
ACCURACY = (
    ("a_drift_u16", "log", [], 0.122 * 1.1, 1.0, 1.0),
    ("a_drift_u16", "dog", [], 0.139 * 1.1, 1.0, 1.0),
    ("b_odd_f32", "log", [], 0.104 * 1.1, 1.0, 1.0),
    ("b_odd_f32", "dog", [], 0.106 * 1.1, 1.0, 1.0),
    ("f_scales_f32", "log", [], 0.23 * 1.1, 1.0, 1.0),
    ("g_weak_u16", "log", ["--threshold-sigma", "4.0"], 0.6, 0.97, 0.95),
    ("a_drift_u16", "log", ["--subpixel", "fit"], 1.15, 1.0, 1.0),
    ("b_odd_f32", "log", ["--subpixel", "fit"], 1.15, 1.0, 1.0),
)


def accuracy(command, case, kind, extra, error, recall, precision, manifest, options):
    p = manifest[case][kind]
    truth = read(file_of(case + "_truth.csv"))
    asked = extra if "--threshold-sigma" in extra else thresholds(p, True) + extra
    ours = run(command, movie_of(case), ladder(p, kind) + asked, options)
    pairs = match(ours, truth, 2.0)
    got_recall, got_precision = len(pairs) / len(truth), len(pairs) / max(len(ours), 1)
    unit = 1.0
    if "fit" in extra: # only spots without a neighbour within 6 px, relative to the Cramer-Rao bound
        unit = manifest[case]["crlb_px"] * math.sqrt(2)
        alone = {id(t) for t in truth
                 if all(o is t or o["frame"] != t["frame"] or
                        math.hypot(o["y"] - t["y"], o["x"] - t["x"]) > 6 for o in truth)}
        pairs = [q for q in pairs if id(q[1]) in alone]
    rms = math.sqrt(sum(d * d for _, _, d in pairs) / max(len(pairs), 1)) / unit
    return (rms <= error and got_recall >= recall and got_precision >= precision,
            "recall %.4f precision %.4f rms %.4f%s (at most %.4f)" %
            (got_recall, got_precision, rms, " of the bound" if "fit" in extra else " px", error))


def degenerate(command, p, options):
    """Tests flat frames and ties: only the expected spots are found."""
    golden = read(file_of("z_degenerate_u16_expected.csv"))
    ours = run(command, movie_of("z_degenerate_u16"),
               ladder(p, "log") + thresholds(p, True) + ["--frames", "0:5"], options)
    pairs = match(ours, golden, 1.0)
    return (len(pairs) == len(golden) == len(ours),
            "%d spots, %d expected, %d shared" % (len(ours), len(golden), len(pairs)))


def check_all(command, manifest, cases, options):
    for case in cases:
        if case == "z_degenerate_u16":
            yield ("product", case, "log") + degenerate(command, manifest[case]["log"], options)
            continue
        for kind in ("log", "dog"):
            p = manifest[case].get(kind)
            if p:
                yield ("parity", case, kind) + parity(command, case, kind, p, options)
                yield ("product", case, kind) + product(command, case, kind, p, options)
        for name, kind, extra, *bars in ACCURACY:
            if name == case:
                yield ("accuracy", case, " ".join([kind] + extra)) + accuracy(
                    command, case, kind, extra, *bars, manifest, options)


def main():
    command, platform, *cases = sys.argv[1:]
    with open(file_of("manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    for case in cases:
        movie_of(case)  # ends the test if the data are missing
    failures, count = 0, 0
    with tempfile.TemporaryDirectory() as cache:
        options = kit.options_for(command, platform, cache)
        ENVIRONMENT.update(kit.environment(CLEAVE_CACHE_DIR=cache))
        for name, case, kind, ok, text in check_all(command, manifest, cases, options):
            count += 1
            failures += not ok
            print("%s %-8s %-20s %-14s %s" % ("ok  " if ok else "FAIL", name, case, kind, text),
                  flush=True)
        kit.keep_programs(cache)
    print("%d of %d hold" % (count - failures, count))
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
