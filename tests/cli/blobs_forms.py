#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that `cleave blobs` writes the same table of spots, byte for byte, for one movie in every form that it reads:
NPY, TIFF, ImageJ, OME, PNG, OME-Zarr, raw pixels, folders, patterns, several files, lists of files, and other types of
numbers. The same holds for a movie of stacks.

    blobs_forms.py CLEAVE
"""
import gzip
import itertools
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

import blobs_inputs
from blobs_kit import WRONG, say
from movie_forms import DEFLATE, LZW, OLD_DEFLATE, PACKBITS, imagej, npy, ome, tiff

T, Z, Y, X = 4, 5, 37, 46
PLAIN = ("--mode", "reference")  # the contents of files can be tested without loading a driver


def make_scene():
    """Returns T * Z planes of numbers from 0 to 127, with spots that extend over several planes."""
    rng, planes = random.Random(29), [[[0] * X for _ in range(Y)] for _ in range(T * Z)]
    for t in range(T):
        spots = [(rng.uniform(1, Z - 2), rng.uniform(7, Y - 8), rng.uniform(7, X - 8)) for _ in range(3)]
        for z, y, x in itertools.product(range(Z), range(Y), range(X)):
            light = 15 + rng.gauss(0, 2)
            for a, b, c in spots:
                light += 90 * math.exp(-((z - a) ** 2 + ((y - b) ** 2 + (x - c) ** 2) / 2) / 2)
            planes[t * Z + z][y][x] = min(max(int(light), 0), 127)
    return planes


def zarr(path, scene):
    """Writes a plain Zarr array of version 2, [T,Z,Y,X], with one chunk per row of planes."""
    blobs_inputs.put(path + "/.zarray", {"zarr_format": 2, "shape": [T, Z, Y, X], "chunks": [1, 2, Y, X],
                                         "dtype": "<u2", "compressor": None, "fill_value": 0, "order": "C",
                                         "filters": None, "dimension_separator": "/"})
    for t, z in itertools.product(range(T), range(0, Z, 2)):
        flat = [v for part in range(2) for row in scene[t * Z + min(z + part, Z - 1)] for v in row]
        blobs_inputs.put(f"{path}/{t}/{z // 2}/0/0", struct.pack("<%dH" % len(flat), *flat))


def main():
    cleave = os.path.abspath(sys.argv[1])
    scene = make_scene()
    frames = scene[2::Z]  # the movie is one plane of each stack
    blobs_inputs.T, blobs_inputs.C, blobs_inputs.Z, blobs_inputs.Y, blobs_inputs.X = T, 1, 1, Y, X
    planes = {(t, 0, 0): frames[t] for t in range(T)}
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(folder + "/drivers")  # an empty folder of drivers, so that none is loaded

        def run(movie, *options, out="out.csv"):
            if os.path.exists(f"{folder}/{out}"):
                os.remove(f"{folder}/{out}")
            return subprocess.run([cleave, "blobs", *([movie] if isinstance(movie, str) else movie), *PLAIN, "-o",
                                   out, *options], capture_output=True, text=True, check=False, cwd=folder,
                                  env={**os.environ, "OCL_ICD_VENDORS": folder + "/drivers"})

        def table(movie, *options):
            result = run(movie, *options)
            if result.returncode:
                return result.stderr[-300:]
            with open(folder + "/out.csv", encoding="ascii") as file:
                return file.read()

        scale = ("--pixel-size", "0.1um", "--interval", "0.5")
        npy(folder + "/movie.npy", frames, (T, Y, X))
        want = table("movie.npy", *scale)
        say(want.count("\n") > 2 * T, f"the movie has spots: {want.count(chr(10)) - 1} rows")

        def same(name, movie, *options):
            got = table(movie, *scale, *options)
            say(got == want, f"{name} {'' if got == want else got[:300]}")

        # ---- NPY
        for version, order, fortran in itertools.product((1, 2, 3), "<>", (False, True)):
            npy(folder + "/form.npy", frames, (T, Y, X), order=order, version=version, fortran=fortran)
            same(f"NPY version {version}, {order}u2, {'Fortran' if fortran else 'C'} order", "form.npy")

        # ---- TIFF
        packings = {"plain": {}, "LZW": {"packing": LZW}, "Deflate": {"packing": DEFLATE},
                    "old Deflate": {"packing": OLD_DEFLATE}, "PackBits": {"packing": PACKBITS},
                    "LZW, predictor": {"packing": LZW, "predictor": 2},
                    "Deflate, predictor": {"packing": DEFLATE, "predictor": 2}}
        cuts = {"one strip": {}, "strips of 7 rows": {"rows": 7}, "tiles of 16": {"tile": 16}}
        for (name, packing), (cut, how) in itertools.product(packings.items(), cuts.items()):
            tiff(folder + "/form.tif", frames, **packing, **how)
            same(f"TIFF {name}, {cut}", "form.tif")
        for order, big in itertools.product("<>", (False, True)):
            tiff(folder + "/form.tif", frames, order=order, big=big, packing=LZW, rows=10)
            same(f"TIFF {'big' if order == '>' else 'little'}-endian{', BigTIFF' * big}", "form.tif")
            tiff(folder + "/form.tif", frames, order=order, big=big, description=imagej(T, frames=T), contiguous=True)
            same(f"ImageJ, one directory, {order}{', BigTIFF' * big}", "form.tif")
        tiff(folder + "/form.tif", frames, description=imagej(T, frames=T))
        same("ImageJ, a directory each", "form.tif")
        tiff(folder + "/form.tif", frames, description=imagej(T, slices=T))
        same("ImageJ, slices as frames", "form.tif")
        tiff(folder + "/form.ome.tif", frames, description=ome(T, 1, Y, X))
        same("OME-TIFF", "form.ome.tif")

        says = "only the first is read"
        two = ome(T, 1, Y, X).replace("</OME>", '<Image ID="Image:1"><Pixels SizeT="2"></Pixels></Image></OME>')
        tiff(folder + "/form.ome.tif", frames + frames[:2], description=two)
        same("OME-TIFF of two images", "form.ome.tif")
        say(says in run("form.ome.tif").stderr, f"OME-TIFF of two images: {says!r}")
        parts = "".join(f'<TiffData FirstT="{t}" IFD="{{}}"><UUID FileName="{{}}">u</UUID></TiffData>'
                        for t in range(T))
        whole = f'<TiffData IFD="0" PlaneCount="{T}"/>'
        for name, pages in (("in order", range(T)), ("two files", [*range(3), *range(T - 3)])):
            files = ["ab"[name == "two files" and t > 2] for t in range(T)]
            tiff(folder + "/form.ome.tif", frames, description=ome(T, 1, Y, X).replace(
                whole, parts.format(*[v for pair in zip(pages, files) for v in pair])))
            same(f"OME-TIFF, a page for each plane, {name}", "form.ome.tif")
        tiff(folder + "/form.tif", frames, description=imagej(T, frames=T) + "unit=um\nfinterval=500\ntunit=ms\n")
        first = run("form.tif") and open(folder + "/out.csv", encoding="ascii").readline()
        say(first.strip().endswith(",t_ms"), f"ImageJ's unit of time: {first!r}")

        # ---- OME-Zarr, PNG, raw
        blobs_inputs.make_old(folder + "/old.zarr", planes, size=(2, 1, 1, 20, 32))
        same("OME-Zarr 0.4", "old.zarr")
        blobs_inputs.make_new(folder + "/new.zarr", planes, size=(1, 1, 1, 20, 32), shards=(2, 1, 1, 1, 2))
        same("OME-Zarr 0.5, shards", "new.zarr")
        blobs_inputs.make_new(folder + "/packed.zarr", planes, size=(1, 1, 1, 20, 16), shards=(1, 1, 1, 2, 1),
                              codecs=[{"name": "gzip"}], pack=gzip.compress)  # all shards have different indices
        same("OME-Zarr 0.5, shards of gzip", "packed.zarr")
        flat = [v for frame in frames for line in frame for v in line]
        blobs_inputs.put(folder + "/raw.bin", b"12345" + struct.pack(">%dH" % len(flat), *flat))
        same("raw pixels", "raw.bin", "--raw", f"{T},{Y},{X},>u16,5")

        # ---- several files
        for kind in ("tif", "npy", "png"):
            os.makedirs(f"{folder}/{kind}")
            for t in range(T):
                path = f"{folder}/{kind}/t{t + 8}.{kind}"
                if kind == "tif":
                    tiff(path, [frames[t]], packing=DEFLATE)
                elif kind == "npy":
                    npy(path, [frames[t]], (Y, X))
                else:
                    blobs_inputs.put(path, blobs_inputs.png(frames[t], 16))
            names = [f"{kind}/t{t + 8}.{kind}" for t in range(T)]
            same(f"a folder of {kind}", kind)
            same(f"a pattern of {kind}", f"{kind}/t*.{kind}")
            same(f"{kind} files, one frame each", names)
            blobs_inputs.put(f"{folder}/{kind}.txt", "\n".join(names).encode())
            same(f"a list of {kind}", f"{kind}.txt")
        npy(folder + "/first.npy", frames[:3], (3, Y, X))
        tiff(folder + "/last.tif", frames[3:], packing=LZW)
        same("two files of different kinds", ["first.npy", "last.tif"])
        os.makedirs(folder + "/lists")
        blobs_inputs.put(folder + "/lists/movie.lst",
                         b"\xef\xbb\xbf# frames\r\n\r\n  ../first.npy \r\n" + folder.encode() + b"/last.tif\r\n")
        same("a list in another folder, with a comment, blanks and CR", "lists/movie.lst")

        same("a list by its sign", "@lists/movie.lst")
        blobs_inputs.put(folder + "/lists/here.dat", b"first.npy\nlast.tif\n")
        same("a list whose paths count from the working folder", "@lists/here.dat")

        # ---- the same numbers in other types: the floats differ, because their noise is not that of integers
        rows = [line.split(",")[:3] for line in want.splitlines()[1:]]
        for kind in ("u1", "i1", "i2"):
            npy(folder + "/form.npy", frames, (T, Y, X), order="|" if kind[1] == "1" else "<", kind=kind)
            tiff(folder + "/form.tif", frames, kind=kind)
            same(f"NPY of {kind}", "form.npy")
            same(f"TIFF of {kind}", "form.tif")
        floats = set()
        for kind in ("f2", "f4", "f8"):
            npy(folder + "/form.npy", frames, (T, Y, X), kind=kind)
            tiff(folder + "/form.tif", frames, kind=kind, packing=LZW)
            floats |= {table("form.npy", *scale), table("form.tif", *scale)}
        say(len(floats) == 1, f"floats of 16, 32 and 64 bits, in NPY and TIFF: {len(floats)} tables")
        found = [line.split(",")[:3] for line in floats.pop().splitlines()[1:]]
        say(len(found) == len(rows) and all(
            a[0] == b[0] and math.dist(list(map(float, a[1:])), list(map(float, b[1:]))) < 1e-3
            for a, b in zip(found, rows)), "floats give the spots of integers")

        # ---- stacks
        scale = ("--voxel-size", "0.3,0.1,0.1um", "--interval", "0.5")
        npy(folder + "/stacks.npy", scene, (T, Z, Y, X))
        want = table("stacks.npy", *scale)
        say(want.startswith("frame,z,y,x") and want.count("\n") > 2 * T, f"the stacks have {want.count(chr(10)) - 1}")
        for order, big in itertools.product("<>", (False, True)):
            tiff(folder + "/form.tif", scene, order=order, big=big, packing=LZW, rows=9,
                 description=imagej(T * Z, slices=Z, frames=T))
            same(f"stacks: ImageJ hyperstack, {order}{', BigTIFF' * big}", "form.tif")
        tiff(folder + "/form.tif", scene, contiguous=True, description=imagej(T * Z, slices=Z, frames=T))
        same("stacks: ImageJ hyperstack, one directory", "form.tif")
        tiff(folder + "/form.ome.tif", scene, tile=16, description=ome(T, Z, Y, X))
        same("stacks: OME-TIFF", "form.ome.tif")
        zarr(folder + "/stacks.zarr", scene)
        same("stacks: Zarr array", "stacks.zarr")
        for t in range(T):
            tiff(f"{folder}/z{t}.tif", scene[t * Z:t * Z + Z], packing=DEFLATE)
            tiff(f"{folder}/j{t}.tif", scene[t * Z:t * Z + Z], description=imagej(Z, slices=Z, frames=1))
            npy(f"{folder}/n{t}.npy", scene[t * Z:t * Z + Z], (1, Z, Y, X))
        for kind, ending, options in (("z", "tif", ("--axes", "ZYX")), ("j", "tif", ("--axes", "ZYX")),
                                      ("n", "npy", ())):
            names = [f"{kind}{t}.{ending}" for t in range(T)]
            blobs_inputs.put(folder + "/stacks.txt", "\n".join(names).encode())
            same(f"stacks: files {kind}, one stack each", names, *options)
            same(f"stacks: a pattern of {kind}", f"{kind}?.{ending}", *options)
            same(f"stacks: a list of {kind}", "stacks.txt", *options)
        one = table("n1.npy", *scale)
        os.makedirs(folder + "/slices")
        for z in range(Z):
            tiff(f"{folder}/slices/z{z}.tif", [scene[Z + z]])
        say(one.count("\n") > 2 and table("slices", *scale, "--axes", "ZYX") == one, "a folder of planes is one stack")
        blobs_inputs.put(folder + "/slices.txt", "".join(f"slices/z{z}.tif\n" for z in range(Z)).encode())
        say(table("slices.txt", *scale, "--axes", "ZYX") == one, "a list of planes is one stack")

        # ---- what is refused
        def refuses(movie, part, *options, out="out.csv"):
            result = run(movie, *options, out=out)
            say(result.returncode == 2 and part in result.stderr,
                f"{movie}: {part!r} {'' if part in result.stderr else result.stderr[-300:]}")

        tiff(folder + "/back.ome.tif", frames[::-1], description=ome(T, 1, Y, X).replace(
            whole, parts.format(*[v for t in range(T) for v in (T - 1 - t, "a")])))
        refuses("back.ome.tif", "in another order than DimensionOrder says")
        tiff(folder + "/deep.tif", frames[:1], depth=2)
        refuses("deep.tif", "each page holds 2 planes")
        npy(folder + "/n9.npy", scene[:Z - 1], (1, Z - 1, Y, X))
        refuses(["n0.npy", "n9.npy"], "4 planes per stack, but the first file has 5")
        refuses("missing.txt", "missing.txt")
        blobs_inputs.put(folder + "/bad.txt", b"first.npy\n# next\nnowhere.tif\n")
        refuses("bad.txt", 'line 3 is "nowhere.tif", but there is no such file')
        blobs_inputs.put(folder + "/empty.txt", b"\n# nothing\n")
        refuses("empty.txt", "the list has no files")
        blobs_inputs.put(folder + "/own.txt", b"own.txt\n")
        refuses("own.txt", "a list of files inside a list of files")
        blobs_inputs.put(folder + "/zero.txt", b"first\0.npy\n")
        refuses("zero.txt", "line 1 has a NUL byte")
        blobs_inputs.put(folder + "/bad.csv", b"frame,y,x\n")
        refuses("bad.csv", ".txt or .lst")
        result = run("npy.txt", out="npy/t8.npy")  # run() has removed this file; the others still exist
        say(result.returncode == 2, "a file of the list that is not there")
        npy(folder + "/npy/t8.npy", [frames[0]], (Y, X))
        for movie in ("npy.txt", "npy", "npy/t*.npy"):
            result = subprocess.run([cleave, "blobs", movie, *PLAIN, "-o", "npy/t9.npy"], capture_output=True,
                                    text=True, check=False, cwd=folder)
            say(result.returncode == 2 and "is a file of the movie" in result.stderr,
                f"{movie}: no output replaces a frame")
        lines = b"npy/t0.npy\nnpy/t1.npy\n"
        blobs_inputs.put(folder + "/mine.csv", lines)
        result = subprocess.run([cleave, "blobs", "@mine.csv", *PLAIN, "-o", "mine.csv"], capture_output=True,
                                text=True, check=False, cwd=folder)
        with open(folder + "/mine.csv", "rb") as file:
            say(result.returncode == 2 and "mine.csv is a file that MOVIE" in result.stderr and file.read() == lines,
                "@mine.csv: no output replaces the list")
    print(f"{len(WRONG)} wrong")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
