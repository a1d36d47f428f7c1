#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `cleave tracks`: every table that it writes and every form that it reads, units, filters, and inputs that it
refuses.

    tracks.py CLEAVE
"""
import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile

from blobs_kit import WRONG, say

D, ERROR, COUNT, LENGTH = 0.4, 0.25, 60, 120


def run(command, *arguments, **options):
    return subprocess.run([command, "tracks", *arguments], capture_output=True, text=True, check=False, **options)


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        if path.endswith(".json"):
            return json.load(file)
        reader = csv.DictReader(file, delimiter="\t" if path.endswith(".tsv") else ",")
        return [{name: float(text) if text else None for name, text in row.items()} for row in reader]


def made_up(drift=0.0, seed=9):
    """Returns rows of frame, y, x, particle."""
    rng, rows = random.Random(seed), []
    for particle in range(COUNT):
        y, x = rng.uniform(0, 100), rng.uniform(0, 100)
        for frame in range(LENGTH):
            rows.append((frame, y + rng.gauss(0, ERROR), x + rng.gauss(0, ERROR), particle))
            y += rng.gauss(drift, math.sqrt(2 * D))
            x += rng.gauss(0, math.sqrt(2 * D))
    return rows


def write(path, names, rows, between=","):
    with open(path, "w", encoding="utf-8") as file:
        file.write(between.join(names) + "\n")
        file.writelines(between.join(map(str, row)) + "\n" for row in rows)
    return path


def results(command, work, table):
    out = {name: os.path.join(work, name) for name in (
        "o.csv", "s.json", "m.tsv", "tm.csv", "d.csv", "p.csv", "plot.png")}
    done = run(command, table, "-o", out["o.csv"], "--summary", out["s.json"], "--msd", out["m.tsv"], "--track-msd",
               out["tm.csv"], "--drift", out["d.csv"], "--positions", out["p.csv"], "--plot", out["plot.png"],
               "--pixel-size", "0.1um", "--interval", "0.05", "--lags", "20")
    say(done.returncode == 0 and done.stderr == "" and "um^2/s" in done.stdout, "everything is written")
    summary = rows_of(out["s.json"])[0]
    true = D * 0.01 / 0.05
    say(abs(summary["d_um2_per_s"] / true - 1) < 0.06 and summary["d_error_um2_per_s"] < 0.03 * true and
        abs(summary["position_error_um"] / (0.1 * ERROR) - 1) < 0.15, f"the summary tells D: {summary}")
    each = rows_of(out["o.csv"])
    say(len(each) == COUNT and abs(sum(r["d_um2_per_s"] for r in each) / COUNT / true - 1) < 0.15 and
        all(r["spots"] == LENGTH and r["last_frame"] == LENGTH - 1 for r in each), "each track has a row")
    msd, single = rows_of(out["m.tsv"]), rows_of(out["tm.csv"])
    say([r["lag"] for r in msd] == list(range(1, 21)) and abs(msd[3]["t_s"] - 0.2) < 1e-9 and
        all(abs(r["msd_um2"] - r["fit_um2"]) < 4 * r["msd_error_um2"] for r in msd),
        "the fit follows the displacements")
    own = [r["msd_um2"] for r in single if r["lag"] == 5]
    say(len(single) == 20 * COUNT and abs(sum(own) / COUNT / msd[4]["msd_um2"] - 1) < 1e-7,
        "those of single tracks have that mean")
    drift, spots = rows_of(out["d.csv"]), rows_of(out["p.csv"])
    say(len(drift) == LENGTH and drift[0]["y_um"] == 0, "the drift has a row for each frame")
    say(len(spots) == COUNT * LENGTH and set(spots[0]) == {"frame", "t_s", "y_um", "x_um", "particle"},
        "positions are in the unit")
    again = run(command, out["p.csv"], "--summary", "-")
    say(again.returncode == 0 and "from the columns y_um and x_um" in again.stderr and "column t_s" in again.stderr and
        abs(float(again.stdout.splitlines()[1].split(",")[7]) / summary["d_um2_per_s"] - 1) < 1e-4,
        "and are read in it, without options")
    with open(out["plot.png"], "rb") as file:
        say(file.read(8) == b"\x89PNG\r\n\x1a\n", "the plot is a picture")


def forms(command, work, rows):
    plain = run(command, write(os.path.join(work, "plain.csv"), ("frame", "y", "x", "particle"), rows), "-o", "-")
    lines = plain.stdout
    say("usually pixels" in plain.stderr and "in frames" in plain.stderr, "units that are not known are told")
    shuffled = [(row[3], row[0], row[2], row[1]) for row in rows]
    random.Random(1).shuffle(shuffled)
    other = write(os.path.join(work, "other.txt"), ("TRACK_ID", "t", "x [px]", "y [px]"), shuffled, ";")
    say(run(command, other, "-o", "-").stdout == lines, "other names, another order, semicolons")
    with open(other, encoding="utf-8") as file:
        text = file.read()
    say(run(command, "-", "-o", "-", input=text).stdout == lines, "standard input")
    say(run(command, other, "-o", "-", "--columns", "y=y [px],particle=TRACK_ID").stdout == lines, "columns by name")
    deep = write(os.path.join(work, "deep.csv"), ("frame", "z", "y", "x", "particle"),
                 [(f, 3.5, y, x, p) for f, y, x, p in rows] + [(3, 3.5, 7, 7, ""), (4, 3.5, 7, 7, -1)])
    say(run(command, deep, "-o", "-").stdout == lines, "a z that is the same everywhere; spots of no track")
    commas = write(os.path.join(work, "commas.tsv"), ("frame", "y", "x", "particle"),
                   [(f, str(y).replace(".", ","), str(x).replace(".", ","), p) for f, y, x, p in rows], "\t")
    say(run(command, commas, "-o", "-", "--decimal", "comma").stdout == lines, "decimal commas")


def options(command, work, rows):
    table = write(os.path.join(work, "t.csv"), ("frame", "y", "x", "particle"),
                  [row for row in rows if row[0] < 10 + 2 * row[3]])
    whole = rows_of_output(run(command, table, "-o", "-"))
    for names, keep in ((("--min-length", "50"), lambda r: r["spots"] >= 50),
                        (("--max-length", "50"), lambda r: r["spots"] <= 50),
                        (("--min-extent", "8"), lambda r: r["extent_px"] >= 8),
                        (("--max-extent", "8"), lambda r: r["extent_px"] <= 8),
                        (("--min-displacement", "5"), lambda r: r["displacement_px"] >= 5),
                        (("--max-displacement", "5"), lambda r: r["displacement_px"] <= 5)):
        done = run(command, table, "-o", "-", *names)
        want = [r for r in whole if keep(r)]
        say(rows_of_output(done) == want and 0 < len(want) < COUNT and
            f"{COUNT - len(want)} dropped" in done.stderr, " ".join(names))
    moving = write(os.path.join(work, "moving.csv"), ("frame", "y", "x", "particle"), made_up(1.0))
    plain, still = run(command, moving), run(command, moving, "--subtract-drift")
    smooth = run(command, moving, "--subtract-drift", "--smooth", "4", "--drift", "-")
    say("--subtract-drift removes it" in plain.stdout and "subtracted" in still.stdout, "drift is told")
    value = [float(done.split("D = ")[1].split()[0]) for done in (plain.stdout, still.stdout, smooth.stderr)]
    say(value[0] > 1.5 * D and all(abs(v / D - 1) < 0.06 for v in value[1:]), f"and taken away: {value}")
    say(abs(float(smooth.stdout.splitlines()[-1].split(",")[1]) / LENGTH - 1) < 0.1, "it is written")
    known = run(command, table, "--summary", "-", "-q", "--position-error", "0.25", "--exposure", "0")
    say(abs(rows_of_output(known)[0]["d_px2_per_frame"] / D - 1) < 0.06 and
        rows_of_output(known)[0]["position_error_px"] == 0.25, "known errors of positions")
    blurred = rows_of_output(run(command, table, "--summary", "-", "-q", "--exposure", "1"))[0]
    free = rows_of_output(run(command, table, "--summary", "-", "-q"))[0]
    say(abs(blurred["position_error_px"] ** 2 - free["position_error_px"] ** 2 - free["d_px2_per_frame"] / 3) < 1e-3,
        "exposure counts as blur")
    deep = write(os.path.join(work, "voxels.csv"), ("frame", "z", "y", "x", "particle"),
                 [(f, x / 3, y, x, p) for f, y, x, p in rows])
    voxels = rows_of_output(run(command, deep, "--summary", "-", "-q", "--voxel-size", "0.3,0.1,0.1um"))[0]
    say(abs(voxels["d_axial_um2_per_frame"] / (0.01 * D) - 1) < 0.06 and "drift_z_um" in voxels, "voxels")
    empty = write(os.path.join(work, "empty.csv"), ("frame", "y", "x", "particle"), [])
    done = run(command, empty, "-o", "-", "--plot", os.path.join(work, "empty.png"))
    say(done.returncode == 0 and len(done.stdout.splitlines()) == 1 and "too few" in done.stderr, "no tracks at all")


def rows_of_output(done):
    return [{name: float(text) if text else None for name, text in row.items()}
            for row in csv.DictReader(done.stdout.splitlines())]


def refused(command, work):
    table = write(os.path.join(work, "r.csv"), ("frame", "y", "x", "particle"), [(0, 1, 1, 0), (1, 1, 2, 0)])
    for arguments, part in (((table, "-o", "x.npy"), "-o is"), ((table, "--plot", "x.csv"), "--plot"),
                            ((table, "--pixel-size", "0.1"), "no unit"), ((table, "--pixel-size", "um"), "a size"),
                            ((table, "--voxel-size", "1,2um"), "--voxel-size"),
                            ((table, "--voxel-size", "1,2,2um", "--pixel-size", "1um"), "leave one of them out"),
                            ((table, "--interval", "0"), "--interval"), ((table, "--exposure", "1.5"), "0 to 1"),
                            ((table, "--position-error", "-1"), "0 or more"), ((table, "--lags", "0"), "--lags"),
                            ((table, "--smooth", "0"), "--smooth"), ((table, "--columns", "track=a"), "particle"),
                            ((table, "--columns", "particle=a"), "a"), ((), "TRACKS.csv")):
        done = run(command, *arguments, cwd=work)
        say(done.returncode == 2 and part in done.stderr, f"refused: {arguments[1:]}")
    for rows, part in (([(0, 1, 1, 0), (0, 2, 2, 0)], "two spots in frame 0"), ([(0.5, 1, 1, 0)], "not a whole number"),
                       ([(0, 1, 1, 1.5)], "not a whole number"), ([(0, 1, 1, "a")], "is not a number"),
                       ([(0, 1, "", 0)], "'x'")):
        done = run(command, write(os.path.join(work, "bad.csv"), ("frame", "y", "x", "particle"), rows))
        say(done.returncode == 2 and part in done.stderr, f"refused: {part}")
    done = run(command, write(os.path.join(work, "bad.csv"), ("frame", "y", "x"), [(0, 1, 1)]))
    say(done.returncode == 2 and "no column 'particle'" in done.stderr, "a table without tracks")


def main():
    command = sys.argv[1]
    with tempfile.TemporaryDirectory() as work:
        rows = made_up()
        results(command, work, write(os.path.join(work, "tracks.csv"), ("frame", "y", "x", "particle"), rows))
        forms(command, work, rows)
        options(command, work, rows)
        refused(command, work)
    print(f"{len(WRONG)} wrong")
    sys.exit(len(WRONG) > 0)


main()
