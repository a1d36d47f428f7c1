#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the drift of the stage is measured, subtracted from the positions, and removed from the movie.

    blobs_stage.py CLEAVE
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from blobs_kit import WRONG, say

FRAMES = 16
DRIFT = np.array([[0.31 * t, 0.9 * np.sin(t / 3) - 0.22 * t] for t in range(FRAMES)])


def movie(path):
    """Writes a movie of spots that stand still on a stage that drifts."""
    rng = np.random.default_rng(29)
    place = rng.uniform([-15, -15], [125, 155], (90, 2))
    y, x = np.arange(110)[:, None], np.arange(140)[:, None]
    frames = []
    for dy, dx in DRIFT:
        tall, wide = (np.exp(-(at - there) ** 2 / 4.5) for at, there in ((y, place[:, 0] + dy), (x, place[:, 1] + dx)))
        frames.append(rng.poisson(20 + 250 * tall @ wide.T))
    np.save(path, np.array(frames, np.uint16))


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.endswith(".tsv") else ","))


def columns(rows, *names):
    return np.array([[float(row[name]) for name in names] for row in rows])


def everything(command, source, work):
    drift, spots, raw, moved, report, picture = (os.path.join(work, name) for name in (
        "drift.csv", "spots.csv", "raw.csv", "moved.npy", "report.json", "overlay.png"))
    done = run(command, "blobs", source, "--stage-drift", drift, "--subtract-drift", "--registered", moved,
               "-o", spots, "--link", "1", "--overlay", picture, "--report", report, "--pixel-size", "0.2um",
               "--interval", "0.5")
    say(done.returncode == 0 and "the image moved by" in done.stdout and "subtracted" in done.stdout,
        f"it runs and says how far: {done.stdout} {done.stderr}")
    rows = table(drift)
    say(list(rows[0]) == ["frame", "y", "x", "y_err", "x_err", "y_um", "x_um", "t_s"], f"columns {list(rows[0])}")
    off = columns(rows, "y", "x") - DRIFT
    say(np.abs(off).max() < 0.08, f"the drift is right within {np.abs(off).max():.3f} pixels")
    say(np.allclose(columns(rows, "y_um"), 0.2 * columns(rows, "y"), rtol=1e-6), "and in micrometres")
    found = columns(table(spots), "frame", "y", "x", "particle")
    lasting = [p for p in set(found[:, 3]) if p >= 0 and (found[:, 3] == p).sum() == FRAMES]
    scatter = [found[found[:, 3] == p, 1:3].std(0).max() for p in lasting]
    say(len(lasting) > 15 and np.median(scatter) < 0.2,
        f"{len(lasting)} spots stay where they are, by {np.median(scatter):.3f} pixels")
    run(command, "blobs", source, "-o", raw, "-q")
    there = columns(table(raw), "frame", "y", "x")
    per = [np.median([(a - b) for a in there[there[:, 0] == t][:, 1:] for b in found[found[:, 0] == t][:, 1:3]
                      if np.hypot(*(a - b - DRIFT[t])) < 0.15], 0) for t in (0, 9, 15)]
    say(np.allclose(per, columns(rows, "y", "x")[[0, 9, 15]], atol=2e-3), "the drift is what is subtracted")
    still = np.load(moved)
    movie_again = np.load(source)
    say(still.shape == movie_again.shape and still.dtype == np.float32, f"the movie: {still.shape} {still.dtype}")
    say((still[0] == movie_again[0]).all() and np.isnan(still[-1]).any(), "its first frame, and its edges")
    spread = [np.nanstd(m[:, 30:-30, 30:-30].astype(float), 0).mean() for m in (movie_again, still)]
    say(spread[1] < 0.6 * spread[0], f"pixels change by {spread[1]:.1f} instead of {spread[0]:.1f}")
    with open(report, encoding="utf-8") as file:
        text = json.dumps(json.load(file))
    say("stage_y_px" in text and "stage_lost_frames" in text, "the report has it")


def forms(command, source, work):
    for name in ("d.tsv", "d.json"):
        path = os.path.join(work, name)
        done = run(command, "blobs", source, "--stage-drift", path, "--frames", "4:9", "-q")
        if name.endswith("json"):
            with open(path, encoding="utf-8") as file:
                rows = json.load(file)
        else:
            rows = table(path)
        off = columns(rows, "y", "x") - (DRIFT[4:9] - DRIFT[4])
        say(done.returncode == 0 and [int(r["frame"]) for r in rows] == list(range(4, 9)) and np.abs(off).max() < 0.08,
            f"{name}: without -o, frames 4 to 8 against frame 4")
    blank = np.load(source)
    blank[5] = 20
    path = os.path.join(work, "blank.npy")
    np.save(path, blank)
    done = run(command, "blobs", path, "--stage-drift", os.path.join(work, "b.csv"))
    rows = table(os.path.join(work, "b.csv"))
    say("1 of 16 frames have nothing in" in done.stderr and rows[5]["y_err"] == "" and rows[5]["y"] == rows[4]["y"],
        "a frame without a scene has the drift of the one before, and is told")


def tables(command, source, work):
    """Tests that `cleave link` and `cleave tracks` subtract the drift from a table as `cleave blobs` does."""
    drift, raw, steady, linked, moved, um = (os.path.join(work, name) for name in (
        "d0.csv", "raw0.csv", "steady.csv", "linked.csv", "moved.csv", "um.csv"))
    size = ("--pixel-size", "0.2um", "-q")
    run(command, "blobs", source, "-o", raw, *size)
    run(command, "blobs", source, "--stage-drift", drift, "--subtract-drift", "--link", "1", "-T", steady, *size)
    names = ("frame", "y", "x", "y_um", "x_um", "particle")
    done = run(command, "link", raw, "--stage-drift", drift, "--search", "1", "-o", linked, "-q")
    a, b = columns(table(steady), *names), columns(table(linked), *names)
    a, b = (rows[np.lexsort(rows[:, 2::-1].round(3).T)] for rows in (a, b))
    say(done.returncode == 0 and a.shape == b.shape and np.abs(a - b)[:, :5].max() < 1e-4,
        f"link: {a.shape} {b.shape}, the same places {done.stderr}")
    say(len(set(zip(a[:, 5], b[:, 5]))) == len(set(a[:, 5])) == len(set(b[:, 5])), "and the same tracks")
    run(command, "link", raw, "--search", "1", "-o", moved, "-q")
    found = columns(table(moved), "particle")
    say(len(set(found[:, 0])) > len(set(b[:, 5])), "which break when the drift stays")
    for columns_of, unit in (((), "um"), (("--columns", "y=y,x=x"), "px")):
        out = os.path.join(work, f"positions-{unit}.csv")
        two = os.path.join(work, f"apart-{unit}.csv")
        run(command, "link", raw, "--search", "3", "-o", um, "-q")
        done = run(command, "tracks", um, "--stage-drift", drift, "--positions", out, "-q", *columns_of)
        run(command, "tracks", um, "--positions", two, "-q", *columns_of)
        keys = ["frame", *(("y_um", "x_um") if unit == "um" else ("y", "x")), "particle"]
        a, b = columns(table(out), *keys), columns(table(two), *keys)
        off = (b - a)[:, 1:3] / (0.2 if unit == "um" else 1)
        at = columns(table(drift), "y", "x")[a[:, 0].astype(int)]
        say(done.returncode == 0 and len(a) > 100 and np.abs(off - at).max() < 2e-3,
            f"tracks in {unit}: the drift is gone")
    short = os.path.join(work, "short.csv")
    with open(drift, encoding="utf-8") as file, open(short, "w", encoding="utf-8") as out:
        out.writelines(file.readlines()[:9])
    with open(drift, encoding="utf-8") as file, open(os.path.join(work, "gap.csv"), "w", encoding="utf-8") as out:
        out.writelines(line for i, line in enumerate(file) if i != 4)
    for bad, expected in ((short, "no drift for frame 8"), (os.path.join(work, "gap.csv"), "one row for each frame"),
                          (raw, "one row for each frame"), (os.path.join(work, "none.csv"), "none.csv")):
        for words in (("link", raw, "--search", "3", "-o", os.path.join(work, "no.csv")), ("tracks", um)):
            done = run(command, *words, "--stage-drift", bad)
            say(done.returncode == 2 and expected in done.stderr and not os.path.exists(os.path.join(work, "no.csv")),
                f"{words[0]} with {os.path.basename(bad)}: exit {done.returncode}, {done.stderr.strip()}")


def refusals(command, source, work):
    stack = os.path.join(work, "stack.npy")
    np.save(stack, np.zeros((2, 4, 40, 40), np.uint8))
    small = os.path.join(work, "small.npy")
    np.save(small, np.zeros((2, 20, 40), np.uint8))
    for words, expected in (((source, "--stage-drift", "x.csv", "--preview", "0"), "--preview"),
                            ((source, "--registered", "x.tif"), "x.tif"),
                            ((source, "--registered", "-"), "standard output"),
                            ((source, "--stage-drift", "x.xlsx"), ".xlsx"),
                            ((stack, "--subtract-drift", "-o", "x.csv"), "--subtract-drift is possible for"),
                            ((small, "--stage-drift", "x.csv"), "at least 32")):
        done = subprocess.run([command, "blobs", *words], capture_output=True, text=True, check=False, cwd=work)
        say(done.returncode == 2 and expected in done.stderr and not os.path.exists(os.path.join(work, "x.csv")),
            f"{words[1:]}: exit {done.returncode}, {done.stderr.strip()}")


def main():
    command = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        source = os.path.join(work, "movie.npy")
        movie(source)
        done = run(command, "blobs", source, "--stage-drift", os.path.join(work, "d.csv"), "-q")
        if "built without KISS FFT" in done.stderr:
            say(done.returncode != 0 and "libkissfft-dev" in done.stderr, "a build without KISS FFT says so")
        else:
            everything(command, source, work)
            forms(command, source, work)
            tables(command, source, work)
            refusals(command, source, work)
    sys.exit(1 if WRONG else 0)


main()
