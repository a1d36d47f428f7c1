#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cleave blobs`: options, formats, odd files, streams and exit codes, with the plain C path.

    blobs_options.py CLEAVE FOLDER
"""
import csv
import io
import os
import subprocess
import sys
import tempfile

import paco_kit as kit

WRONG = []


def say(ok, text):
    print("ok  " if ok else "FAIL", text, flush=True)
    if not ok:
        WRONG.append(text)


class Runner:
    def __init__(self, command, cache):
        self.command, self.cache = command, cache

    def __call__(self, *arguments):
        return subprocess.run([self.command, "blobs", *arguments], capture_output=True, text=True,
                              env=kit.environment(CLEAVE_CACHE_DIR=self.cache, CLEAVE_MODE="reference"),
                              check=False)


def usage(run, movie):
    for arguments, part in (
            ([movie], "-o FILE"), ([], "MOVIE"), ([movie, movie, "-o", "-"], "MOVIE"),
            ([movie, "-o", "-", "--min-sigma", "3", "--max-sigma", "2"], "--max-sigma"),
            ([movie, "-o", "-", "--num-sigma", "0"], "--num-sigma"),
            ([movie, "-o", "-", "--overlap", "2"], "--overlap"),
            ([movie, "-o", "-", "--frames", "4"], "A:B"),
            ([movie, "-o", "-", "--frames", "400:"], "the movie has"),
            ([movie, "-o", "-", "-T", "x.csv"], "--link"),
            ([movie, "-o", "-", "--link", "0"], "--link"),
            ([movie, "-o", "-", "--fill-gaps"], "--link"),
            ([movie, "-o", "-", "--kernel", "box"], "--kernel"),
            ([movie, "-o", "-", "--threshold", "-4"], "threshold"),
            ([movie, "-o", "-", "--threshold", "4", "--threshold-sigma", "4"], "threshold"),
            ([movie, "--preview", "99"], "--preview"),
            (["absent.tif", "-o", "-"], "absent.tif")):
        done = run(*arguments)
        say(done.returncode == 2 and part in done.stderr,
            f"wrong usage is told: {' '.join(arguments[1:]) or 'nothing'}")
        say(not done.stdout, "  and nothing is written")


def formats(run, folder, work):
    out = os.path.join(work, "spots.csv")
    arrays = {}
    for name in sorted(os.listdir(os.path.join(folder, "formats"))):
        path = os.path.join(folder, "formats", name)
        done = run(path, "-o", out)
        if name.startswith("fmt_"):
            say(done.returncode == 0, f"{name} is read")
            with open(out, encoding="ascii") as file:
                text = file.read()
            kind = "f32" if "f64" in name else name.split("_")[1].split(".")[0]
            say(arrays.setdefault(kind, text) == text and text.count("\n") > 50,
                f"{name} gives the spots of its array")
            say(("--invert" in done.stderr) == ("miniswhite" in name), f"{name}: notice of white zero")
        elif name == "bad_nan.npy":
            with open(out, encoding="ascii") as file:
                say(done.returncode == 0 and "nan" not in file.read() and "NaN" in done.stderr,
                    "NaN pixels are counted, and none is written")
        else:
            say(done.returncode == 2 and name in done.stderr, f"{name}: exit code 2: {done.stderr.strip()}")
            if "truncated" in name or "cycle" in name:
                say("last readable frame" in done.stderr, f"{name}: names the last readable frame")
                partial = run(path, "-o", out, "--partial")
                say(partial.returncode == 0 and "warning" in partial.stderr, f"{name}: --partial")


def outputs(run, folder, work):
    movie = os.path.join(folder, "e_border_u16.npy")
    plain = run(movie, "-o", "-", "--threshold", "60")
    rows = list(csv.DictReader(io.StringIO(plain.stdout)))
    say(list(rows[0]) == "frame,y,x,sigma,response,mass,background,snr,flags".split(","), "columns")
    order = [(int(r["frame"]), float(r["y"]), float(r["x"]), float(r["sigma"])) for r in rows]
    say(order == sorted(order), "rows by frame, y, x, sigma")
    say(any(int(r["flags"]) & 8 for r in rows), "spots at the border are flagged")
    say(" spots, " in plain.stderr and "frames/s" in plain.stderr, "a summary")
    part = run(movie, "-o", "-", "--threshold", "60", "--frames", "2:5", "-q")
    want = [r for r in rows if 2 <= int(r["frame"]) < 5]
    say(list(csv.DictReader(io.StringIO(part.stdout))) == want and not part.stderr, "--frames 2:5")
    border = run(movie, "-o", "-", "--threshold", "60", "--exclude-border", "4", "-q")
    say(all(3 < float(r["y"]) < 56 and 3 < float(r["x"]) < 68
            for r in csv.DictReader(io.StringIO(border.stdout))), "--exclude-border")
    mate = run(movie, "-o", "-", "--threshold", "60", "--format", "trackmate", "--pixel-size", "0.5um",
               "--interval", "2", "-q").stdout.splitlines()
    say(mate[0].startswith("LABEL,ID,TRACK_ID,QUALITY") and "(um)" in mate[3], "TrackMate's header")
    first = mate[4].split(",")
    say(abs(float(first[4]) - float(rows[0]["x"]) / 2) < 1e-5, "TrackMate's positions in units")
    seed = run(movie, "-o", "-", "--threshold", "60", "--format", "seed", "-q").stdout.splitlines()
    say(seed[0] == "frame,x,y,intensity,sigma,snr,id" and len(seed) == len(rows) + 1, "--format seed")
    picture = os.path.join(work, "overlay.png")
    done = run(movie, "-o", os.path.join(work, "a.csv"), "--overlay", picture, "--link", "4", "-T",
               os.path.join(work, "tracks.csv"))
    say(done.returncode == 0 and "tracks" in done.stdout, "--link")
    if os.path.exists(picture):
        with open(picture, "rb") as file:
            say(file.read(8) == b"\x89PNG\r\n\x1a\n", "--overlay")
    with open(os.path.join(work, "a.csv"), "rb") as a, open(os.path.join(work, "tracks.csv"), "rb") as b:
        say(a.read() == b.read(), "-o holds the particles too")
    preview = run(movie, "--preview", "1").stdout
    say(preview.count("--threshold-sigma") == 6 and preview.count("--threshold-rel") == 6, "--preview")
    weak = os.path.join(folder, "g_weak_u16.npy")
    scope = run(weak, "-o", "-", "--threshold-scope", "movie", "-q").stdout
    frame = run(weak, "-o", "-", "-q").stdout
    say(scope != frame and scope.count("\n") > 20, "--threshold-scope movie")
    fixed = run(movie, "-o", "/nonexistent/spots.csv")
    say(fixed.returncode in (1, 2) and "/nonexistent" in fixed.stderr, "an output that cannot be")


def main():
    command, folder = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        run = Runner(command, os.path.join(work, "cache"))
        usage(run, os.path.join(folder, "e_border_u16.npy"))
        formats(run, folder, work)
        outputs(run, folder, work)
        say(not [n for n in os.listdir(work) if n.startswith(".")], "no temporary file is left")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
