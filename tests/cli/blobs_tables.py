#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tables of spots in every form: `cleave blobs` writes them, and `cleave link` reads and writes them.

    blobs_tables.py CLEAVE
"""
import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET

import numpy as np

import parquet
from blobs_kit import WRONG, say


def movie(path):
    """Writes five frames with six spots, which move by at most 1.5 pixels per frame."""
    rng = np.random.default_rng(29)
    y, x = np.indices((96, 128))
    place = rng.uniform(15, 80, (6, 2)) + [[0, 20 * (i % 2)] for i in range(6)]
    frames = []
    for _ in range(5):
        light = np.full(y.shape, 20.0)
        for py, px in place:
            light += 300 * np.exp(-((y - py) ** 2 + (x - px) ** 2) / (2 * 1.5 ** 2))
        frames.append(rng.poisson(light))
        place = place + rng.uniform(-1, 1, place.shape)
    np.save(path, np.array(frames, np.uint16))


def read(path):
    """Returns the rows of a table as dictionaries of texts or numbers."""
    if path.endswith(".npy"):
        records = np.load(path)
        return [dict(zip(records.dtype.names, row)) for row in records.tolist()]
    if path.endswith(".parquet"):
        return parquet.read(path)
    if path.endswith(".json"):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    if path.endswith(".xml"):
        return [dict(s.attrib) for s in ET.parse(path).iter("Spot")]
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t" if path.endswith(".tsv") else ","))
    return rows[3:] if rows and rows[0].get("FRAME") == "Frame" else rows


def places(rows):
    """Returns frame, y and x in pixels, whatever their columns are called."""
    names = ("FRAME", "POSITION_Y", "POSITION_X") if "FRAME" in rows[0] else ("frame", "y", "x")
    names = ("axis-0", "axis-1", "axis-2") if "axis-0" in rows[0] else names
    return np.array([[float(r[n]) for n in names] for r in rows])


def partition(rows, column):
    """Returns which rows belong together, independent of their identifiers."""
    groups = {}
    for i, row in enumerate(rows):
        groups.setdefault(str(row[column]), []).append(i)
    return sorted(groups.values())


def run(*words, text=None):
    return subprocess.run(words, capture_output=True, text=True, input=text, check=False)


def every_form(command, work):
    source = os.path.join(work, "movie.npy")
    movie(source)
    forms = [("s.csv", ()), ("s.tsv", ()), ("s.json", ()), ("s.npy", ()), ("s.parquet", ()),
             ("s.xml", ()), ("tm.csv", ("trackmate",)),
             ("tm.tsv", ("trackmate",)), ("napari.csv", ("napari",)), ("xy.csv", ("xy",)), ("xy.json", ("xy",))]
    want = groups = None
    for name, form in forms:
        path = os.path.join(work, name)
        options = ("--format", *form) if form else ()
        done = run(command, "blobs", source, "-o", path, "-q", *options)
        say(done.returncode == 0, f"{name} is written: {done.stderr.strip()}")
        got = places(read(path))
        want = got if want is None else want
        say(got.shape == want.shape and np.abs(got - want).max() < 1e-4, f"{name}: the same {len(got)} spots")
        for ending in ("csv", "json", "npy", "parquet", "tsv"):
            linked = os.path.join(work, "linked." + ending)
            done = run(command, "link", path, "-o", linked, "--search", "4", "--min-length", "2")
            if done.returncode:
                say(False, f"{name} to .{ending}: {done.stderr.strip()}")
                continue
            mine = partition(read(linked), "particle")
            groups = mine if groups is None else groups
            say(mine == groups and len(read(linked)[0]) == len(read(path)[0]) + 1,
                f"{name} is linked to .{ending}: {len(mine)} tracks, all columns")
        told = "columns recognised by their names" in done.stderr
        say(told == (name.startswith(("tm", "napari")) or name.endswith("xml")),
            f"{name}: a guess is told, and only then")
    say(len(groups) == 6, "six tracks")


def as_napari(path):
    """Returns the positions and properties of a CSV file by the rules of napari's reader: columns `axis-...` are
    positions, a first column `index` is left out, and all other columns are properties, as numbers if each field of the
    column is one."""
    with open(path, newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    assert {"axis-0", "axis-1"} <= set(names) and names[0] == "index", names
    columns = {n: [r[i] for r in rows] for i, n in enumerate(names)}
    try:
        from napari_builtins.io import csv_to_layer_data  # napari's own reader, if it is installed
        layer = csv_to_layer_data(path, require_type="any")
        assert layer[2] == "points"
        return np.asarray(layer[0]), layer[1]["properties"]
    except ImportError:
        pass
    at = np.array([[float(v) for v in columns[n]] for n in names if n.startswith("axis-")]).T
    return at, {n: np.array([float(v) for v in c]) for n, c in columns.items() if n[:5] not in ("axis-", "index")}


def napari(command, work):
    source, path, plain = (os.path.join(work, n) for n in ("movie.npy", "points.csv", "plain.csv"))
    options = ("-q", "--link", "4", "--subpixel", "fit", "--pixel-size", "0.1um")
    run(command, "blobs", source, "-o", plain, *options)
    done = run(command, "blobs", source, "-o", path, "--format", "napari", *options)
    say(done.returncode == 0, f"a table for napari: {done.stderr.strip()}")
    at, properties = as_napari(path)
    want = read(plain)
    say(np.array_equal(at, places(want)), "napari: the positions are frame, y, x")
    say(list(properties) == [n for n in want[0] if n not in ("frame", "y", "x")], f"properties {list(properties)}")
    for name, values in properties.items():
        own = np.array([float(r[name] or "nan") for r in want])
        say(values.dtype.kind in "if" and np.array_equal(values, own, equal_nan=True), f"napari: {name} are numbers")
    # a failed fit has no error: an empty field would turn the whole column into text
    dots = os.path.join(work, "dots.npy")
    image = np.zeros((1, 64, 64), np.float32)
    image[0, 20, 20], image[0, 40, 30:34] = 1000, 5000
    np.save(dots, image)
    done = run(command, "blobs", dots, "-o", path, "--format", "napari", "--subpixel", "fit", "-q", "--threshold", "5")
    _, properties = as_napari(path)
    say(properties["y_err"].dtype.kind == "f" and np.isnan(properties["y_err"]).any(), "a missing error is nan")
    for name in ("p.tsv", "p.json", "p.npy"):
        done = run(command, "blobs", source, "-o", os.path.join(work, name), "--format", "napari")
        say(done.returncode == 2 and ".csv" in done.stderr, f"napari reads CSV alone: {done.stderr.strip()}")


def trackmate(command, work):
    """Checks, element by element, what TrackMate's reader (TmXmlReader of TrackMate 7) requires."""
    source, path = os.path.join(work, "movie.npy"), os.path.join(work, "tracks.xml")
    done = run(command, "blobs", source, "-o", path, "-q", "--link", "4", "--pixel-size", "0.1um", "--interval", "0.5")
    say(done.returncode == 0, f"XML with tracks and units: {done.stderr.strip()}")
    root = ET.parse(path).getroot()
    say(root.tag == "TrackMate" and root.get("version", "")[:2] == "7.", "its root has a version")
    model = root.find("Model")
    say((model.get("spatialunits"), model.get("timeunits")) == ("um", "sec"), "units")
    declared = {}
    for kind in ("SpotFeatures", "EdgeFeatures", "TrackFeatures"):
        features = model.find("FeatureDeclarations").find(kind).findall("Feature")
        declared[kind] = {f.get("feature") for f in features}
        say(all(f.get(a) for f in features for a in ("feature", "name", "shortname")) and
            all(f.get("isint") in ("true", "false") and f.get("dimension") in
                ("NONE", "QUALITY", "COST", "INTENSITY", "POSITION", "VELOCITY", "LENGTH", "TIME", "ANGLE", "RATE",
                 "ANGLE_RATE", "STRING") for f in features), f"{kind} are declared")
    spots, frames = {}, []
    for frame in model.find("AllSpots"):
        frames.append(int(frame.get("frame")))
        for s in frame:
            spots[int(s.get("ID"))] = s
            if int(s.get("FRAME")) != frames[-1] or float(s.get("POSITION_T")) != 0.5 * frames[-1]:
                say(False, f"spot {s.attrib} is in frame {frames[-1]}")
    say(frames == sorted(set(frames)) and len(spots) == int(model.find("AllSpots").get("nspots")),
        f"{len(spots)} spots by frame, each with an ID of its own")
    say(all(set(s.attrib) - {"ID", "name"} == declared["SpotFeatures"] for s in spots.values()) and
        all(float(v) >= 0 for s in spots.values() for k, v in s.attrib.items() if k != "name"),
        "spots have the features that are declared, as numbers")
    tracks = model.find("AllTracks").findall("Track")
    ids = [int(t.get("TRACK_ID")) for t in tracks]
    say(sorted(ids) == sorted({int(t.get("TRACK_ID")) for t in model.find("FilteredTracks")}) and len(set(ids)) == 6,
        "six tracks, all shown")
    edges = [(int(e.get("SPOT_SOURCE_ID")), int(e.get("SPOT_TARGET_ID"))) for t in tracks for e in t.findall("Edge")]
    say(len(set(edges)) == len(edges) == len(spots) - 6 and
        all(int(spots[a].get("FRAME")) < int(spots[b].get("FRAME")) for a, b in edges),
        "edges lead from each spot to a later one")
    say(all(set(t.attrib) - {"name"} == declared["TrackFeatures"] for t in tracks), "tracks have their features")
    settings = root.find("Settings")
    image = settings.find("ImageData")
    say(image.get("filename") == "movie.npy" and
        [float(image.get(k)) for k in ("width", "height", "nslices", "nframes", "pixelwidth", "pixelheight",
                                       "timeinterval")] == [128, 96, 1, 5, 0.1, 0.1, 0.5], "the image is described")
    say(settings.find("DetectorSettings").get("DETECTOR_NAME") == "MANUAL_DETECTOR" and
        float(settings.find("DetectorSettings").get("RADIUS")) > 0 and
        settings.find("TrackerSettings").get("TRACKER_NAME") == "MANUAL_TRACKER" and
        settings.find("InitialSpotFilter").get("isabove") == "true", "detector and tracker")
    say(all(settings.find(n) is not None for n in ("BasicSettings", "SpotFilterCollection", "TrackFilterCollection"))
        and [c.tag for c in settings.find("AnalyzerCollection")] ==
        ["SpotAnalyzers", "EdgeAnalyzers", "TrackAnalyzers"] and
        root.find("GUIState").get("state") and json.loads(root.find("DisplaySettings").text)["spotDisplayRadius"] == 1,
        "filters, analyzers and the display are there")
    linked = os.path.join(work, "linked.xml")
    done = run(command, "link", path, "-o", linked, "--search", "0.4")
    say(done.returncode == 0 and len(ET.parse(linked).getroot().find("Model").find("AllTracks")) == 6,
        "a linked table becomes XML")


def separators(command, work):
    def link(text, *options, name="t.csv"):
        path = os.path.join(work, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = run(command, "link", path, "-o", "-", "--search", "2", *options)
        return done, list(csv.DictReader(done.stdout.splitlines()))

    done, rows = link("frame;y;x;note\n0;1,25;2,5;a,b\n1;1,5;2,75;c\n")
    say([(r["y"], r["x"], r["note"], r["particle"]) for r in rows] == [("1.25", "2.5", "a,b", "0"),
                                                                       ("1.5", "2.75", "c", "0")] and
        "decimal commas" in done.stderr, f"semicolons and decimal commas: {done.stderr.strip()}")
    done, rows = link("frame\ty\tx\n0\t1.5\t2\n")
    say([r["y"] for r in rows] == ["1.5"], "tabs")
    done, _ = link("frame;y;x\n0;1,250;2,500\n")
    say(done.returncode == 2 and "thousands" in done.stderr, f"not clear: {done.stderr.strip()}")
    done, rows = link("frame;y;x\n0;1,250;2,500\n", "--decimal", "comma")
    say([r["y"] for r in rows] == ["1.250"], "until it is said")
    done, _ = link("frame;y;x\n0;1,25;2.5\n")
    say(done.returncode == 2 and "points and commas" in done.stderr, f"mixed: {done.stderr.strip()}")
    done, _ = link("frame;y,x\n0;1,2\n")
    say(done.returncode == 2 and "equal number" in done.stderr, f"two separators: {done.stderr.strip()}")

    table = "t,row,col,height\n0,1,1,9\n1,1,2,1\n2,1,2,1\n"
    done, rows = link(table)
    say(done.returncode == 0 and "frame from 't', y from 'row', x from 'col'" in done.stderr,
        f"a guess is told: {done.stderr.strip()}")
    done, rows = link(table, "--columns", "frame=t,y=row,x=col,z=height")
    say([r["particle"] for r in rows] == ["0", "1", "1"] and "by their names" not in done.stderr, "columns by option")
    done, _ = link(table, "--columns", "frame=t,y=rows,x=col")
    say(done.returncode == 2 and "no column 'rows'" in done.stderr, "a column that is not there")
    for wrong in ("y", "w=t", "y=row,y=col", "", "particle=t"):
        done, _ = link(table, "--columns", wrong)
        say(done.returncode == 2 and "--columns" in done.stderr, f"--columns {wrong}")
    done, _ = link("frame,Y,y_px,X,x\n0,1,1,2,3\n")
    say(done.returncode == 0 and "y from 'Y'" in done.stderr, "the usual names have an order")
    done, _ = link("Frame,FRAME,y,x\n0,0,1,2\n")
    say(done.returncode == 2 and "could both be frame" in done.stderr, f"two that fit: {done.stderr.strip()}")

    old = "frame,y,x,particle\n0,1,1,7\n1,1,1,8\n"
    done, _ = link(old)
    say(done.returncode == 2 and "--replace" in done.stderr and not done.stdout, "a column particle stays")
    done, rows = link(old, "--replace")
    say([r["particle"] for r in rows] == ["0", "0"] and list(rows[0]) == ["frame", "y", "x", "particle"], "--replace")
    done, rows = link(old, "--particle", "mine")
    say([(r["particle"], r["mine"]) for r in rows] == [("7", "0"), ("8", "0")], "--particle")
    done, rows = link("frame,y,x,a\n0,1,1,\n1,1,1,3\n")
    say([r["a"] for r in rows] == ["", "3"], "empty fields stay")

    path = os.path.join(work, "points.npy")
    points = np.array([(0, 1.0, 2.0, "a", True), (1, 1.5, 2.0, "b", False)],
                      [("frame", ">i2"), ("y", ">f8"), ("x", "<f4"), ("name", "U3"), ("good", "?")])
    np.save(path, points)
    out = os.path.join(work, "out.npy")
    done = run(command, "link", path, "-o", out, "--search", "2", "-q")
    got = np.load(out) if done.returncode == 0 else None
    say(got is not None and got["particle"].tolist() == [0, 0] and got["y"].tolist() == [1, 1.5] and
        got["x"].dtype == np.float32 and got["name"].tolist() == [b"a", b"b"], f"NumPy's other types: {done.stderr}")
    np.save(path, np.zeros((4, 3)))
    done = run(command, "link", path, "-o", out, "--search", "2")
    say(done.returncode == 2 and "names" in done.stderr, f"an array without names: {done.stderr.strip()}")
    for name, text in (("bad.json", '[{"frame": 0, "y": [1], "x": 2}]'), ("bad.json", '[{"frame": 0'),
                       ("empty.json", "[]"), ("bad.xml", '<Spot FRAME="0" POSITION_Y=1 />')):
        done, _ = link(text, name=name)
        say(done.returncode == 2 and name in done.stderr, f"damaged: {done.stderr.strip()}")


def units(command, work):
    source = os.path.join(work, "movie.npy")
    scaled = ("--pixel-size", "0.25um", "--interval", "0.5", "-q")
    for name in ("u.csv", "u.json", "u.npy"):
        path = os.path.join(work, name)
        done = run(command, "blobs", source, "-o", path, "--link", "4", *scaled)
        rows = read(path) if done.returncode == 0 else [{}]
        say(list(rows[0])[-4:] == ["y_um", "x_um", "t_s", "particle"] and
            all(abs(float(r[a + "_um"]) - 0.25 * float(r[a])) < 1e-5 for r in rows for a in "yx") and
            all(float(r["t_s"]) == 0.5 * int(r["frame"]) for r in rows), f"{name}: columns in um and s {done.stderr}")
    done = run(command, "blobs", source, "-o", "-", "--interval", "2", "-q")
    say(done.stdout.splitlines()[0].endswith(",flags,t_s"), "the interval alone")
    done = run(command, "blobs", source, "-o", "-", "-q")
    say(done.stdout.splitlines()[0].endswith(",flags"), "neither: pixels and frames alone")
    for options, says in ((("--pixel-size", "0.25"), "has no unit"), (("--pixel-size", "um"), "must be a size"),
                          (("--pixel-size", "1um", "--format", "xy"), "in pixels and frames")):
        done = run(command, "blobs", source, "-o", "-", *options)
        say(done.returncode == 2 and says in done.stderr, f"{options}: {done.stderr.strip()}")


def linked_units(command, work):
    """Tests that the XML for TrackMate from `cleave link` equals that from `cleave blobs`, with units from columns or
    from options."""
    def model(path):
        found = ET.parse(path).getroot().find("Model")
        spots = [[float(s.get(k)) for k in ("ID", "POSITION_X", "POSITION_Y", "POSITION_T", "FRAME", "RADIUS")]
                 for s in found.iter("Spot")]
        return [found.get("spatialunits"), found.get("timeunits")], sorted(spots), len(list(found.iter("Edge")))

    source, scaled = os.path.join(work, "movie.npy"), ("--pixel-size", "0.25um", "--interval", "0.5")
    path = {name: os.path.join(work, "lu-" + name) for name in ("own.xml", "u.csv", "p.csv", "a.xml", "b.xml", "c.xml")}
    for name, options in (("own.xml", ("--link", "4", *scaled)), ("u.csv", scaled), ("p.csv", ())):
        run(command, "blobs", source, "-o", path[name], "-q", *options)
    done = [run(command, "link", path["u.csv"], "-o", path["a.xml"], "--search", "4"),
            run(command, "link", path["p.csv"], "-o", path["b.xml"], "--search", "4", *scaled),
            run(command, "link", path["p.csv"], "-o", path["c.xml"], "--search", "4")]
    say("pixel size: 0.25 um" in done[0].stderr and done[1].stderr == "", "units that are taken from columns are told")
    own, columns, options, plain = (model(path[name]) for name in ("own.xml", "a.xml", "b.xml", "c.xml"))
    for found in columns, options:
        say(found[0] == own[0] == ["um", "sec"] and found[2] == own[2] and
            all(abs(a - b) < 1e-5 * (1 + abs(b)) for one, other in zip(found[1], own[1], strict=True)
                for a, b in zip(one, other, strict=True)), f"linked spots are in {found[0]}")
    say(plain[0] == ["pixel", "frame"] and abs(plain[1][0][1] - 4 * own[1][0][1]) < 1e-4, "or in pixels and frames")
    for arguments, says in ((("-o", "-", "--interval", "2"), "for TrackMate's XML"),
                            (("-o", "x.xml", "--pixel-size", "um"), "must be a size"),
                            (("-o", "x.xml", "--interval", "0"), "more than 0")):
        wrong = run(command, "link", path["p.csv"], "--search", "4", *arguments)
        say(wrong.returncode == 2 and says in wrong.stderr, f"{arguments}: {wrong.stderr.strip()}")


def stop(line, delay):
    """Runs the command and interrupts it after `delay` seconds, even if the parent ignores interrupts."""
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        return process.communicate()[1], process.returncode


def interrupted(command, work):
    """Tests Ctrl-C with --partial: the finished frames are written, and are the same as without Ctrl-C."""
    source, whole, part = (os.path.join(work, name) for name in ("long.npy", "whole.csv", "part.csv"))
    frames = np.load(os.path.join(work, "movie.npy"))
    np.save(source, np.concatenate([frames] * 100))
    line = [command, "blobs", source, "--mode", "reference", "-o"]
    began = time.time()
    done = run(*line, whole, "-q")
    early, late = 0, time.time() - began
    say(done.returncode == 0, f"without: {late:.1f} s")
    for _ in range(10):  # the delay after which some, but not all blocks of 64 frames are finished
        delay = (early + late) / 2
        said, code = stop([*line, part, "--partial"], delay)
        if code == 130 and os.path.exists(part):
            break
        early, late = (early, delay) if code == 0 else (delay, late)
        if os.path.exists(part):
            os.remove(part)
    told = re.search(r"stopped after (\d+) of 500 frames", said)
    say(code == 130 and told, f"with: exit code {code}, {said.strip()[-300:]}")
    if not told:
        return
    with open(whole, encoding="ascii") as a, open(part, encoding="ascii") as b:
        rows, kept = a.read().splitlines(), b.read().splitlines()
    want = [r for r in rows[1:] if int(r.split(",")[0]) < int(told[1])]
    say(kept == rows[:1] + want and 0 < len(want) < len(rows) - 1, f"{len(want)} of {len(rows) - 1} rows are kept")
    os.remove(part)
    said, code = stop([*line, part], delay)
    say(code in (0, -signal.SIGINT) or (code == 130 and "of 500 frames" in said and not os.path.exists(part)),
        f"without --partial: exit code {code}, {said.strip()[-120:]}")


def write_tiff(path, frames, sample_format):
    """Writes a little-endian, uncompressed TIFF file with a page for each frame."""
    bits, data, at = 8 * frames.dtype.itemsize, b"", 8
    for i, frame in enumerate(frames):
        pixels = frame.astype(frame.dtype.newbyteorder("<")).tobytes()
        pixels += b"\0" * (len(pixels) % 2)
        height, width = frame.shape
        tags = [(256, width), (257, height), (258, bits), (259, 1), (262, 1), (273, at + 2 + 12 * 10 + 4), (277, 1),
                (278, height), (279, frame.nbytes), (339, sample_format)]
        end = at + 2 + 12 * len(tags) + 4 + len(pixels)
        data += len(tags).to_bytes(2, "little")
        for tag, value in tags:
            data += tag.to_bytes(2, "little") + (4).to_bytes(2, "little") + (1).to_bytes(4, "little")
            data += value.to_bytes(4, "little")
        data += (end if i + 1 < len(frames) else 0).to_bytes(4, "little") + pixels
        at = end
    with open(path, "wb") as file:
        file.write(b"II*\0" + (8).to_bytes(4, "little") + data)


def forms_of_pixels(command, work):
    """Tests that movies of int8 and float16 give the spots of uint8, in every file format."""
    frames = np.minimum(np.load(os.path.join(work, "movie.npy")) // 3, 127)
    shape = ",".join(str(n) for n in frames.shape)
    want = None
    for kind, code, sample_format in (("uint8", "u8", 1), ("int8", "i8", 2), ("float16", "f16", 3),
                                      ("float32", "f32", 3)):
        # subtracting a constant moves no spot, and makes the numbers of int8 negative
        same = (frames.astype(int) - 64 if kind == "int8" else frames).astype(kind)
        for ending in ("npy", "tif", "raw"):
            path = os.path.join(work, f"{kind}.{ending}")
            if ending == "npy":
                np.save(path, same)
            elif ending == "tif":
                write_tiff(path, same, sample_format)
            else:
                same.tofile(path)
            options = ("--raw", f"{shape},{code}") if ending == "raw" else ()
            out = os.path.join(work, "pixels.csv")
            done = run(command, "blobs", path, "-o", out, *options)
            if done.returncode:
                say(False, f"{kind} in .{ending}: {done.stderr.strip()}")
                continue
            got = places(read(out))
            want = got if want is None else want
            say(got.shape == want.shape and len(got) == 30 and np.abs(got - want).max() < 2e-3,
                f"{kind} in .{ending}: the same {len(got)} spots")
            narrow = {"int8": "become int16", "float16": "become float32"}.get(kind)
            say(narrow is None or ending == "npy" or narrow in done.stderr,
                f"{kind} in .{ending}: what it becomes is told")


def folder_of_frames(command, work):
    """Tests a folder with a file for each frame, which are read in the order of the numbers in their names."""
    frames, folder = np.load(os.path.join(work, "movie.npy")), os.path.join(work, "frames")
    os.mkdir(folder)
    for i, frame in enumerate(frames):
        write_tiff(os.path.join(folder, f"img_t{8 + i}.tif"), frame[None], 1)  # the numbers 8, 9, 10, 11, 12
    with open(os.path.join(folder, "notes.md"), "w", encoding="ascii") as file:
        file.write("of the day\n")
    out = os.path.join(work, "folder.csv")
    done = run(command, "blobs", folder, "-o", out)
    want = places(read(os.path.join(work, "s.csv")))
    got = places(read(out)) if done.returncode == 0 else np.empty(0)
    say(got.shape == want.shape and np.array_equal(got, want), f"a folder gives the same {len(got)} spots")
    say("5 files" in done.stderr and "img_t8.tif to img_t12.tif" in done.stderr and "1 other" in done.stderr,
        f"its order is told: {done.stderr.strip()[:120]}")
    np.save(os.path.join(folder, "img_t13.npy"), frames[0, :-1])
    done = run(command, "blobs", folder, "-o", out)
    say(done.returncode == 2 and "img_t13.npy" in done.stderr, f"another size is refused: {done.stderr.strip()[-140:]}")
    for i in range(5):
        os.remove(os.path.join(folder, f"img_t{8 + i}.tif"))
    np.save(os.path.join(folder, "img_t13.npy"), frames)
    done = run(command, "blobs", folder, "-o", out)
    say(done.returncode == 2 and "5 frames" in done.stderr, f"so are movies: {done.stderr.strip()[-120:]}")
    os.remove(os.path.join(folder, "img_t13.npy"))
    done = run(command, "blobs", folder, "-o", out)
    say(done.returncode == 2 and ".tif" in done.stderr, f"and a folder without frames: {done.stderr.strip()[-120:]}")


def light_of(shape, spots):
    """Returns an image of Gaussians that are integrated over the pixels: rows of y, x, sigma, photons."""
    total = np.zeros(shape)
    error = np.vectorize(math.erf)
    for y, x, sigma, photons in spots:
        rows, columns = (np.diff(error((np.arange(n + 1) - 0.5 - at) / sigma / math.sqrt(2))) / 2
                         for n, at in zip(shape, (y, x)))
        total += photons * np.outer(rows, columns)
    return total


def errors_of_places(command, work):
    """Tests the errors that a fit states against the truth: the pulls have a standard deviation of 1."""
    rng = np.random.default_rng(7)
    frames, truth = [], []
    for _ in range(12):
        spots = [(18 + 28 * (i // 9) + rng.uniform(-2, 2), 18 + 28 * (i % 9) + rng.uniform(-2, 2), 1.4,
                  (600, 3000, 20000)[i % 3]) for i in range(81)]
        frames.append(rng.poisson(20 + light_of((260, 260), spots)))
        truth.append(np.array(spots))
    path, out = os.path.join(work, "bright.npy"), os.path.join(work, "fitted.csv")
    np.save(path, np.array(frames, np.uint16))
    done = run(command, "blobs", path, "-o", out, "-q", "--subpixel", "fit")
    rows = read(out)
    pulls = {600: [], 3000: [], 20000: []}
    for row in rows:
        near = truth[int(row["frame"])]
        away = np.hypot(near[:, 0] - float(row["y"]), near[:, 1] - float(row["x"]))
        own = near[away.argmin()]
        if away.min() < 2:
            pulls[own[3]] += [(float(row[a]) - own[i]) / float(row[a + "_err"]) for i, a in enumerate("yx")]
    for photons, found in pulls.items():
        say(len(found) > 600 and 0.9 < np.std(found) < 1.1 and abs(np.mean(found)) < 0.15,
            f"{photons} photons: {len(found)} pulls scatter by {np.std(found):.3f} around {np.mean(found):.3f}")
    for ending in ("npy", "json"):
        other = os.path.join(work, "fitted." + ending)
        done = run(command, "blobs", path, "-o", other, "-q", "--subpixel", "fit")
        same = np.array([[float(r[n]) for n in ("y_err", "x_err")] for r in read(other)])
        want = np.array([[float(r[n]) for n in ("y_err", "x_err")] for r in rows])
        say(done.returncode == 0 and np.allclose(same, want, rtol=1e-5), f".{ending} has the errors")
    linked = os.path.join(work, "gaps.csv")
    done = run(command, "blobs", path, "-o", linked, "-q", "--subpixel", "fit", "--link", "3", "--memory", "3",
               "--fill-gaps")
    made = [r for r in read(linked) if r["flags"] == "16"]
    say(all(r["y_err"] == "" for r in made) and all(float(r["y_err"]) > 0 for r in read(linked) if r["flags"] == "0"),
        f"{len(made)} filled spots have no errors, fitted ones have")


def motion(command, work):
    """Tests the options of links that use motion instead of distance alone."""
    table, out = os.path.join(work, "flow.csv"), os.path.join(work, "flow.xml")
    with open(table, "w", encoding="ascii") as file:  # accelerating spots, fastest in the middle of the channel
        file.write("frame,y,x\n" + "".join(f"{f},{10 * y},{20 * x + f * f * (0.2 + 0.4 * min(y, 8 - y))}\n"
                                            for f in range(6) for y in range(9) for x in range(25)))
    for options, all_linked in (((), False), (("--predict", "channel", "--channel-bin", "9"), True)):
        done = run(command, "link", table, "-o", os.path.join(work, "l.csv"), "--search", "4", *options)
        say(done.returncode == 0 and all_linked == (" 225 tracks" in done.stdout), f"{options}: {done.stdout.strip()}")
    with open(table, "w", encoding="ascii") as file:
        rows = [(f, 0, f) for f in range(9)] + [(f, 2 + f - 3, f) for f in range(3, 9)] \
            + [(f, f - 7.5, f) for f in range(6)]
        file.write("frame,y,x\n" + "".join("%d,%g,%g\n" % row for row in rows))
    done = run(command, "link", table, "-o", os.path.join(work, "b.csv"), "--search", "1.5", "--branches", "3")
    got = read(os.path.join(work, "b.csv"))
    first = {r["particle"]: r for r in reversed(got)}
    kinds = sorted((r["parent"] != "-1", r["child"] != "-1") for r in first.values())
    say(done.returncode == 0 and kinds == [(False, False), (False, True), (True, False)] and
        "1 splits and 1 merges" in done.stdout, f"one splits, one merges: {done.stdout.strip()}")
    done = run(command, "link", table, "-o", out, "--search", "1.5", "--branches", "3")
    tracks = list(ET.parse(out).iter("Track"))
    say(len(tracks) == 1 and len(list(tracks[0].iter("Edge"))) == 8 + 5 + 5 + 2, "to TrackMate they are one track")
    with open(table, "w", encoding="ascii") as file:
        file.write("frame,y,x\n" + "".join(f"{f},{y},{x + 0.1 * f}\n" for f in range(2)
                                           for y in range(5) for x in range(5)))
    crowd = ("link", table, "-o", os.path.join(work, "c.csv"), "--search", "3")
    done = run(command, *crowd, "--adaptive-stop", "0.2", "--adaptive-step", "0.5")
    say(done.returncode == 0 and " 25 tracks" in done.stdout, f"--adaptive-stop: {done.stdout.strip()}")
    done = run(command, *crowd, "--adaptive-stop", "2.9")
    say(done.returncode == 2 and "adaptive_stop" in done.stderr, done.stderr.strip())
    source = os.path.join(work, "movie.npy")
    done = run(command, "blobs", source, "-o", os.path.join(work, "p.csv"), "--link", "4", "--predict", "drift")
    say(done.returncode == 0 and "6 tracks" in done.stdout, f"blobs --predict: {done.stdout.strip()}")
    done = run(command, "blobs", source, "-o", os.path.join(work, "p.csv"), "--predict", "drift")
    say(done.returncode == 2 and "--link" in done.stderr, done.stderr.strip())


def endings(command, work):
    source = os.path.join(work, "movie.npy")
    for name in ("s.feather", "s.xlsx", "s.h5"):
        done = run(command, "blobs", source, "-o", os.path.join(work, name))
        say(done.returncode == 2 and ".xml" in done.stderr and ".json" in done.stderr
            and "pandas.read_csv" in done.stderr, done.stderr.strip()[-120:])
    done = run(command, "blobs", source, "-o", os.path.join(work, "s.npy"), "--format", "trackmate")
    say(done.returncode == 2, "TrackMate's columns are text or XML")


def main():
    command = sys.argv[1]
    with tempfile.TemporaryDirectory() as work:
        every_form(command, work)
        napari(command, work)
        trackmate(command, work)
        separators(command, work)
        endings(command, work)
        units(command, work)
        linked_units(command, work)
        interrupted(command, work)
        forms_of_pixels(command, work)
        folder_of_frames(command, work)
        errors_of_places(command, work)
        motion(command, work)
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
