#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `cleave blobs` on stacks of planes: it finds the same spots in every form of one movie; tracks in three
dimensions, tables and the overlay are correct; and wrong inputs are refused.

    blobs_volumes.py CLEAVE
"""
import csv
import itertools
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

from blobs_kit import WRONG, say

STACKS, DEPTH, SIDE = 3, 14, 56
PLAIN = ("--mode", "reference")  # the contents of files can be tested without loading a driver


def scene():
    """Returns planes of uint16, stack by stack, and the positions (z, y, x) of each stack's spots."""
    rng = random.Random(11)
    start = [(4.3, 12.2, 14.7), (9.6, 12.4, 15.1), (7.1, 40.5, 20.3), (5.8, 30.6, 43.9)]
    truth = [[(z + 0.2 * t, y + 0.7 * t, x - 0.6 * t) for z, y, x in start] for t in range(STACKS)]
    planes = []
    for spots in truth:
        for z in range(DEPTH):
            rows = []
            for y in range(SIDE):
                rows.append([int(100 + rng.gauss(0, 3) + 0.5) for _ in range(SIDE)])
            for sz, sy, sx in spots:
                far = math.exp(-(z - sz) ** 2 / (2 * 0.75 ** 2))
                for y, x in itertools.product(range(int(sy) - 6, int(sy) + 8), range(int(sx) - 6, int(sx) + 8)):
                    rows[y][x] += int(900 * far * math.exp(-((y - sy) ** 2 + (x - sx) ** 2) / (2 * 1.5 ** 2)))
            planes.append(b"".join(struct.pack("<%dH" % SIDE, *row) for row in rows))
    return planes, truth


def write_npy(path, planes, shape):
    header = "{'descr': '<u2', 'fortran_order': False, 'shape': %s, }" % (shape,)
    header += " " * (118 - len(header) - 1) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"".join(planes))


def write_tiff(path, planes, description, resolution=None):
    """Writes a little-endian TIFF file with a page for each plane."""
    text = description.encode() + b"\0"
    body, offsets, at = [], [], 8
    for i, plane in enumerate(planes):
        tags = [(256, 4, 1, SIDE), (257, 4, 1, SIDE), (258, 3, 1, 16), (259, 3, 1, 1), (262, 3, 1, 1),
                (277, 3, 1, 1), (278, 4, 1, SIDE), (279, 4, 1, len(plane))]
        extra = text if i == 0 else b""
        ratio = struct.pack("<II", *resolution) if resolution and i == 0 else b""
        count = len(tags) + 1 + (1 if extra else 0) + (1 if ratio else 0)
        data = at + 2 + 12 * count + 4
        tags.append((273, 4, 1, data + len(extra) + len(ratio)))
        if extra:
            tags.append((270, 2, len(extra), data))
        if ratio:
            tags.append((282, 5, 1, data + len(extra)))
        offsets.append(at)
        block = struct.pack("<H", count)
        for tag, kind, number, value in sorted(tags):
            block += struct.pack("<HHI", tag, kind, number)
            block += struct.pack("<I", value) if kind != 3 else struct.pack("<HH", value, 0)
        end = data + len(extra) + len(ratio) + len(plane)
        block += struct.pack("<I", end if i + 1 < len(planes) else 0)
        body.append(block + extra + ratio + plane)
        at = end
    with open(path, "wb") as file:
        file.write(b"II*\0" + struct.pack("<I", offsets[0]) + b"".join(body))


def table(path):
    """Tests the rows of tables, and the columns in addition to pixels: positions in physical units."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    scaled = [{k: row.pop(k) for k in list(row) if k.endswith("_um")} for row in rows]
    return rows, scaled


def blobs(command, work, *options):
    out = os.path.join(work, "out.csv")
    if os.path.exists(out):
        os.remove(out)
    options = [*options, *(() if "--mode" in options else PLAIN)]
    done = subprocess.run([command, "blobs", *options, "-o", out], capture_output=True, text=True, check=False,
                          cwd=work)
    if not os.path.exists(out):
        return done, []
    return done, table(out)[0]


def forms(command, work, planes, truth):
    write_npy(os.path.join(work, "stacks.npy"), planes, (STACKS, DEPTH, SIDE, SIDE))
    write_npy(os.path.join(work, "one.npy"), planes[:DEPTH], (DEPTH, SIDE, SIDE))
    imagej = "ImageJ=1.53c\nimages=%d\nslices=%d\nframes=%d\nhyperstack=true\nunit=um\nspacing=0.4\nloop=false\n"
    write_tiff(os.path.join(work, "ij.tif"), planes, imagej % (STACKS * DEPTH, DEPTH, STACKS), (10, 1))
    ome = ('<OME><Image ID="Image:0"><Pixels DimensionOrder="%s" SizeC="1" SizeT="%d" SizeX="56" SizeY="56" SizeZ="%d"'
           ' PhysicalSizeX="0.1" PhysicalSizeZ="0.4" Type="uint16"/></Image></OME>')
    write_tiff(os.path.join(work, "zct.ome.tif"), planes, ome % ("XYZCT", STACKS, DEPTH))
    turned = [planes[t * DEPTH + z] for z in range(DEPTH) for t in range(STACKS)]
    write_tiff(os.path.join(work, "tcz.ome.tif"), turned, ome % ("XYTCZ", STACKS, DEPTH))
    done, want = blobs(command, work, "stacks.npy", "--voxel-size", "0.4,0.1,0.1um")
    say(done.returncode == 0 and len(want) == sum(map(len, truth)), f"stacks.npy: {len(want)} spots\n{done.stderr}")
    say("3 stacks of 14 planes" in done.stderr, "what the file holds is told")
    for row in want:
        place = [float(row[name]) for name in "zyx"]
        near = min(math.dist(place, spot) for spot in truth[int(row["frame"])])
        if near > 0.2:
            say(False, f"a spot at {place} is {near:.2f} from the nearest one")
    done, rows = blobs(command, work, "stacks.npy", "--voxel-size", "0.4,0.1,0.1um", "--mode", "auto")
    say(done.returncode == 0 and [row["frame"] for row in rows] == [row["frame"] for row in want] and
        all(abs(float(a[name]) - float(b[name])) < 1e-3 for a, b in zip(rows, want) for name in "zyx"),
        "a device finds what the reference does")
    for name in ("ij.tif", "zct.ome.tif", "tcz.ome.tif"):
        done, rows = blobs(command, work, name)
        say(done.returncode == 0 and rows == want, f"{name}: the same spots")
        say("voxel size: 0.4 x 0.1 x 0.1" in done.stderr, f"{name}: the voxel is told")
    done, rows = blobs(command, work, "one.npy", "--axes", "ZYX", "--voxel-size", "0.4,0.1,0.1")
    say(rows == [row for row in want if row["frame"] == "0"], "one.npy as a stack: the first one's spots")
    write_npy(os.path.join(work, "four.npy"), planes[:DEPTH], (1, DEPTH, SIDE, SIDE))
    done, rows = blobs(command, work, "four.npy", "--axes", "ZYX", "--voxel-size", "0.4,0.1,0.1")
    say(rows == [row for row in want if row["frame"] == "0"], "four axes, of which time has one: --axes ZYX")
    with open(os.path.join(work, "stacks.npy"), "rb") as file:
        data = file.read()
    for name, missing in (("short.npy", 3), ("shorter.npy", 2 * DEPTH + 3)):
        with open(os.path.join(work, name), "wb") as file:
            file.write(data[:-missing * 2 * SIDE * SIDE])
    done, rows = blobs(command, work, "short.npy", "--partial", "--voxel-size", "4,1,1")
    say(rows == [row for row in want if row["frame"] != "2"] and "a part of one" in done.stderr,
        "--partial: the stacks that are whole")
    done, rows = blobs(command, work, "shorter.npy", "--partial")
    say(done.returncode == 2 and not rows and "fewer than a stack of 14" in done.stderr,
        f"--partial: no stack is whole\n{done.stderr}")
    units = ome.replace('PhysicalSizeZ="0.4"', 'PhysicalSizeXUnit="%s" PhysicalSizeY="0.1" PhysicalSizeYUnit="µm" '
                        'PhysicalSizeZ="%s" PhysicalSizeZUnit="%s"')
    for x, z, z_unit in (("µm", "400", "nm"), ("&#181;m", "0.4", "\u03BCm")):
        write_tiff(os.path.join(work, "units.ome.tif"), planes, units % ("XYZCT", STACKS, DEPTH, x, z, z_unit))
        done, rows = blobs(command, work, "units.ome.tif")
        say(done.returncode == 0 and rows == want and "voxel size: 0.4 x 0.1 x 0.1 µm" in done.stderr,
            f"planes {z} {z_unit} apart, pixels of 0.1 {x}: the same spots")
    done, rows = blobs(command, work, "stacks.npy", "--frames", "1:2", "--voxel-size", "4,1,1")
    say(rows == [row for row in want if row["frame"] == "1"], "--frames counts stacks")
    say(all(row[name] == "" for row in want for name in ("z_err", "y_err", "x_err")),
        "errors are empty where positions are not fitted")
    done, rows = blobs(command, work, "stacks.npy", "--voxel-size", "4,1,1", "--subpixel", "fit")
    say(rows and all(0 < float(row[name]) < 0.2 for row in rows for name in ("z_err", "y_err", "x_err")),
        "errors of fitted positions")
    done, rows = blobs(command, work, "one.npy")
    say("z" not in (rows or [{"z": 0}])[0], "one.npy without --axes: frames in time")
    done, rows = blobs(command, work, "ij.tif", "--z", "5")
    say(done.returncode == 0 and "z" not in (rows or [{"z": 0}])[0] and
        {row["frame"] for row in rows} == {"0", "1", "2"}, "--z: one plane of each stack")
    done, again = blobs(command, work, "stacks.npy", "--z", "5")
    say(done.returncode == 0 and again == rows, "--z: the same planes of the NPY file")
    write_tiff(os.path.join(work, "slices.tif"), planes[:DEPTH], imagej.replace("frames=%d\nhyperstack=true\n", "") %
               (DEPTH, DEPTH), (10, 1))
    done, rows = blobs(command, work, "slices.tif")
    say("--axes ZYX" in done.stderr and "z" not in (rows or [{"z": 0}])[0],
        "ImageJ's slices without frames are taken for time, and that is told")
    done, rows = blobs(command, work, "slices.tif", "--axes", "ZYX")
    say(rows == [row for row in want if row["frame"] == "0"], "... or as a stack")


def tables(command, work):
    tracks = os.path.join(work, "tracks.csv")
    picture = os.path.join(work, "views.png")
    done, rows = blobs(command, work, "ij.tif", "--link", "4", "-T", tracks, "--overlay", picture)
    say(done.returncode == 0 and len({row["particle"] for row in rows}) == 4 and "4 tracks" in done.stdout,
        f"links in space: 4 tracks\n{done.stderr}{done.stdout}")
    with open(picture, "rb") as file:
        start = file.read(24)
    wide, high = struct.unpack(">II", start[16:24])
    # 56 columns, a gap of 4, and 14 planes that are 4 pixels apart; all times a whole number
    say(start[:4] == b"\x89PNG" and wide == high and wide % (56 + 4 + 56) == 0, f"the overlay has {wide}x{high} pixels")
    again, scaled = table(tracks)
    say(again == rows, "-T writes the same rows")
    done = subprocess.run([command, "link", tracks, "-o", "-", "--search", "2", "--replace"], capture_output=True,
                          text=True, check=False)
    say(done.returncode == 0 and len({row["particle"] for row in csv.DictReader(done.stdout.splitlines())}) == 4,
        "cleave link reads the table, z and all")
    flat = os.path.join(work, "far.csv")
    with open(flat, "w", encoding="utf-8") as file:
        file.write("frame,z,y,x\n0,0,5,5\n1,9,5,5\n")
    done = subprocess.run([command, "link", flat, "-o", "-", "--search", "3"], capture_output=True, text=True,
                          check=False)
    say([row["particle"] for row in csv.DictReader(done.stdout.splitlines())] == ["0", "1"],
        "cleave link: spots that are 9 apart in z are not linked")
    out = os.path.join(work, "spots.npy")
    done = subprocess.run([command, "blobs", "ij.tif", "-o", out, *PLAIN], capture_output=True, text=True, check=False,
                          cwd=work)
    with open(out, "rb") as file:
        data = file.read()
    length = struct.unpack("<H", data[8:10])[0]
    header = data[10:10 + length].decode()
    say(done.returncode == 0 and "'shape': (12,)" in header and len(data) == 10 + length + 12 * (56 + 3 * 8) and
        (10 + length) % 64 == 0 and "('z_um', '<f8'), ('y_um', '<f8'), ('x_um', '<f8')" in header,
        "12 records in the NPY file, with positions in um")
    say(all(abs(float(u["z_um"]) - 0.4 * float(r["z"])) < 1e-5 and
            abs(float(u[a + "_um"]) - 0.1 * float(r[a])) < 1e-5 for u, r in zip(scaled, again) for a in "yx"),
        f"positions in um, as the file tells: {scaled[0]}")
    done, _ = blobs(command, work, "ij.tif", "--format", "napari")
    with open(os.path.join(work, "out.csv"), newline="", encoding="utf-8") as file:
        points = list(csv.DictReader(file))
    done, own = blobs(command, work, "ij.tif")
    say(list(points[0])[:6] == ["index", "axis-0", "axis-1", "axis-2", "axis-3", "sigma"] and
        [[p["axis-%d" % i] for i in range(4)] for p in points] ==
        [[r[n] for n in ("frame", "z", "y", "x")] for r in own] and
        all(value for p in points for value in p.values()), f"napari's columns: {points[0]}")
    done, _ = blobs(command, work, "ij.tif", "--format", "trackmate")
    with open(os.path.join(work, "out.csv"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    row = dict(zip(lines[0].split(","), lines[4].split(",")))
    say(len(lines) == 16 and 0 < float(row["POSITION_Z"]) < 5.6 and 0 < float(row["POSITION_X"]) < 5.6 and
        "um" in lines[3], f"TrackMate's columns in um: {row}")


def refusals(command, work):
    for options, says in ((("ij.tif", "--preview", "0"), "--preview is possible for frames only"),
                          (("ij.tif", "--threshold-scope", "movie"), "--threshold-scope movie is possible for frames"),
                          (("ij.tif", "--format", "xy"), "--format xy is possible for frames"),
                          (("ij.tif", "--voxel-size", "1,2"), "must be the sides along z, y and x"),
                          (("ij.tif", "--voxel-size", "0,1,1"), "must be the sides along z, y and x"),
                          (("ij.tif", "--z", "1", "--axes", "TZYX"), "--z reads one plane"),
                          (("one.npy", "--axes", "TZYX"), "does not say how many planes"),
                          (("one.npy", "--voxel-size", "1,1,1"), "--voxel-size is for stacks"),
                          (("ij.tif", "--voxel-size", "1,1,1", "--z", "3"), "--z reads one plane"),
                          (("stacks.npy", "--axes", "TYX"), "the four axes"),
                          (("stacks.npy", "--axes", "ZYX"), "the four axes"),
                          (("stacks.npy", "--z", "14"), "plane 14 was asked for, but there are 14"),
                          (("stacks.npy", "--z", "3", "--channel", "1"), "channel 1 was asked for"),
                          (("ij.tif", "--mem-limit", "50000"), "for one stack"),
                          (("ij.tif", "--voxel-size", "1,1,1um", "--pixel-size", "1um", "--format", "trackmate"),
                           "leave one of them out"),
                          (("ij.tif", "--axes", "TYX"), "--z 0 to 13"),
                          (("ij.tif", "--frames", "7:9"), "the stacks 0 to 2")):
        done, rows = blobs(command, work, *options)
        codes = (1,) if "--mem-limit" in options else (2, 3)  # not an error of usage
        say(done.returncode in codes and not rows and says in done.stderr,
            f"{' '.join(options)}: exit code {done.returncode}, {done.stderr.strip().splitlines()[-1:]}")


def main():
    command = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="cleave-volumes-") as work:
        planes, truth = scene()
        forms(command, work, planes, truth)
        tables(command, work)
        refusals(command, work)
    return 1 if WRONG else 0


sys.exit(main())
