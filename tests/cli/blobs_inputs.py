#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that `cleave blobs` finds the same spots in OME-Zarr folders of both versions and with every compression, in
PNG frames, and in one array, and that it reports damaged files. The test makes the files byte by byte, so that it needs
no library.

    blobs_inputs.py CLEAVE
"""
import gzip
import itertools
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import zlib

from blobs_kit import WRONG, say

T, C, Z, Y, X = 3, 2, 3, 36, 44
SCALE = [0.5, 1, 0.4, 0.1, 0.1]
PLAIN = ("--mode", "reference")  # the contents of files can be tested without loading a driver


def make_scene():
    """Returns {(t, c, z): rows of numbers}."""
    rng, planes = random.Random(4), {}
    for key in itertools.product(range(T), range(C), range(Z)):
        rows = [[int(40 + rng.gauss(0, 4)) for _ in range(X)] for _ in range(Y)]
        for _ in range(3):
            sy, sx = rng.uniform(8, Y - 8), rng.uniform(8, X - 8)
            for y, x in itertools.product(range(int(sy) - 5, int(sy) + 7), range(int(sx) - 5, int(sx) + 7)):
                rows[y][x] += int(150 * math.exp(-((y - sy) ** 2 + (x - sx) ** 2) / 4.5))
        planes[key] = [[min(max(v, 0), 255) for v in row] for row in rows]
    return planes


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


def zstd(data):
    """Returns one Zstandard frame of uncompressed blocks."""
    out = struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data))
    for at in range(0, len(data), 1 << 17):
        part = data[at:at + (1 << 17)]
        out += struct.pack("<I", len(part) << 3 | (at + len(part) >= len(data)))[:3] + part
    return out


def blosc(data):
    """Returns a Blosc header and the uncompressed bytes."""
    return struct.pack("<BBBBIII", 2, 1, 2, 2, len(data), len(data), len(data) + 16) + data


def chunk_of(scene, where, size, order):
    """Returns the numbers of a chunk, with zeros outside the array."""
    numbers = []
    axes = [range(w * s, w * s + s) for w, s in zip(where, size)]
    grid = itertools.product(*axes) if order == "C" else (k[::-1] for k in itertools.product(*axes[::-1]))
    for t, c, z, y, x in grid:
        inside = t < T and c < C and z < Z and y < Y and x < X
        numbers.append(scene[t, c, z][y][x] if inside else 0)
    return numbers


def grid_of(size):
    return itertools.product(*(range(-(-n // s)) for n, s in zip((T, C, Z, Y, X), size)))


def multiscales():
    axes = [{"name": n, "type": k} for n, k in zip("tczyx", ["time", "channel", "space", "space", "space"])]
    axes[0]["unit"] = "second"
    for axis in axes[2:]:
        axis["unit"] = "micrometer"
    return [{"axes": axes,
             "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": SCALE}]}]}]


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else json.dumps(data).encode())


def make_old(path, scene, size=(2, 1, 2, 20, 32), code="<H", dtype="<u2", name=None, pack=bytes, order="C",
             between="/"):
    put(path + "/.zgroup", {"zarr_format": 2})
    put(path + "/.zattrs", {"multiscales": multiscales()})
    put(path + "/0/.zarray", {"zarr_format": 2, "shape": [T, C, Z, Y, X], "chunks": list(size), "dtype": dtype,
                              "compressor": name and {"id": name}, "fill_value": 0, "order": order, "filters": None,
                              "dimension_separator": between})
    for where in grid_of(size):
        numbers = chunk_of(scene, where, size, order)
        put(path + "/0/" + between.join(map(str, where)),
            pack(struct.pack(code[0] + str(len(numbers)) + code[1], *numbers)))


def make_new(path, scene, size=(1, 1, 1, 20, 32), codecs=(), pack=bytes, shards=None, endian="little"):
    number = [{"name": "bytes", "configuration": {"endian": endian}}] + list(codecs)
    if shards:
        number = [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": list(size), "codecs": number, "index_location": "end",
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}]
    whole = [s * n for s, n in zip(size, shards or (1,) * 5)]
    put(path + "/zarr.json", {"zarr_format": 3, "node_type": "group",
                              "attributes": {"ome": {"version": "0.5", "multiscales": multiscales()}}})
    put(path + "/0/zarr.json", {
        "zarr_format": 3, "node_type": "array", "shape": [T, C, Z, Y, X], "data_type": "uint16", "codecs": number,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": whole}}, "fill_value": 0,
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}})
    for outer in grid_of(whole):
        body, index = b"", b""
        for inner in itertools.product(*(range(n) for n in shards or (1,) * 5)):
            where = [o * n + i for o, n, i in zip(outer, shards or (1,) * 5, inner)]
            numbers = chunk_of(scene, where, size, "C")
            if shards and not any(numbers):
                index += struct.pack("<QQ", 2 ** 64 - 1, 2 ** 64 - 1)
                continue
            data = pack(struct.pack(("<" if endian == "little" else ">") + "%dH" % len(numbers), *numbers))
            index += struct.pack("<QQ", len(body), len(data))
            body += data
        put(path + "/0/c/" + "/".join(map(str, outer)), body + index + crc32c(index) if shards else body)


def png(rows, bits, colour=0):
    """Returns a PNG picture: grey, or in colour with the numbers in the green channel."""
    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    def number(value):
        return struct.pack(">H" if bits == 16 else "B", value)
    lines = b"".join(b"\0" + b"".join(number(7) + number(v) + number(9) if colour else number(v) for v in row)
                     for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", X, Y, bits, colour, 0, 0, 0)) +
            part(b"IDAT", zlib.compress(lines)) + part(b"IEND", b""))


def write_npy(path, planes, shape):
    header = "{'descr': '<u2', 'fortran_order': False, 'shape': %s, }" % (shape,)
    header += " " * (118 - len(header) - 1) + "\n"
    flat = [v for rows in planes for row in rows for v in row]
    put(path, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
        struct.pack("<%dH" % len(flat), *flat))


def main():
    cleave = os.path.abspath(sys.argv[1])
    scene = make_scene()
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(folder + "/drivers")  # an empty folder of drivers, so that none is loaded

        def run(movie, *options):
            out = folder + "/out.csv"
            if os.path.exists(out):
                os.remove(out)
            result = subprocess.run([cleave, "blobs", movie, *PLAIN, "-o", out, *options], capture_output=True,
                                    text=True, check=False, cwd=folder,
                                    env={**os.environ, "OCL_ICD_VENDORS": folder + "/drivers"})
            text = open(out, encoding="ascii").read() if result.returncode == 0 else ""
            return result, text

        one = [scene[t, 1, 2] for t in range(T)]
        write_npy(folder + "/one.npy", one, (T, Y, X))
        scale = ("--pixel-size", "0.1um", "--interval", "0.5")
        want = run("one.npy", *scale)[1]
        say(want.count("\n") > 3 * T, f"the array has spots: {want.count(chr(10)) - 1} rows")
        write_npy(folder + "/all.npy", [scene[t, 1, z] for t in range(T) for z in range(Z)], (T, Z, Y, X))
        want_deep = run("all.npy", "--voxel-size", "0.4,0.1,0.1um", "--interval", "0.5")[1]

        crc = {"name": "crc32c"}
        forms = {
            "v2 without packing, big-endian": lambda p: make_old(p, scene, code=">H", dtype=">u2"),
            "v2 blosc": lambda p: make_old(p, scene, name="blosc", pack=blosc),
            "v2 zstd": lambda p: make_old(p, scene, name="zstd", pack=zstd),
            "v2 gzip, names with points": lambda p: make_old(p, scene, name="gzip", pack=gzip.compress, between="."),
            "v2 zlib, first axis fastest": lambda p: make_old(p, scene, name="zlib", pack=zlib.compress, order="F"),
            "v3 without packing, big-endian": lambda p: make_new(p, scene, endian="big"),
            "v3 zstd, checksum behind": lambda p: make_new(p, scene, codecs=[{"name": "zstd"}, crc],
                                                           pack=lambda d: zstd(d) + crc32c(zstd(d))),
            "v3 checksum, then gzip": lambda p: make_new(p, scene, codecs=[crc, {"name": "gzip"}],
                                                         pack=lambda d: gzip.compress(d + crc32c(d))),
            "v3 shards of blosc": lambda p: make_new(p, scene, codecs=[{"name": "blosc"}], pack=blosc,
                                                     shards=(2, 1, 3, 2, 3)),
        }
        for number, (name, make) in enumerate(forms.items()):
            make(f"{folder}/f{number}.zarr")
            result, got = run(f"f{number}.zarr", "--channel", "1", "--z", "2")
            told = "" if got == want else result.stderr[-200:]
            say(got == want, f"{name}: one plane gives the array's spots {told}")
        for number in (1, 8):
            result, got = run(f"f{number}.zarr", "--channel", "1")
            say(got == want_deep, f"form {number}: stacks give the array's spots, with the file's units")
        say("y_um" in want and "t_s" in want, "columns in the units of the file")

        put(folder + "/bf/.zattrs", {"bioformats2raw.layout": 3})
        os.rename(folder + "/f1.zarr", folder + "/bf/0")
        say(run("bf", "--channel", "1", "--z", "2")[1] == want, "the layout of bioformats2raw")

        for bits, colour, options in ((16, 0, ()), (8, 0, ()), (8, 2, ("--channel", "1"))):
            for t in range(T):
                put(f"{folder}/p{bits}{colour}/frame{t + 8}.png", png(one[t], bits, colour))
            result, got = run(f"p{bits}{colour}", *scale, *options)
            told = "" if got == want else result.stderr[-200:]
            say(got == want, f"PNG frames of {bits} bits, colour type {colour} {told}")

        # ---- several files as one movie
        files = [f"p160/frame{t + 8}.png" for t in range(T)]
        result, got = run(files[0], *files[1:], *scale)
        say(got == want and "frame9.png before frame10.png" not in result.stderr, "a list of files, one frame each")
        result, got = run("p160/frame*.png", *scale)
        say(got == want, f"a pattern in quotes, in the order of the numbers {'' if got == want else result.stderr}")
        write_npy(folder + "/first.npy", one[:2], (2, Y, X))
        write_npy(folder + "/rest.npy", one[2:], (T - 2, Y, X))
        result, got = run("first.npy", "rest.npy", *scale)
        say(got == want, f"two files of several frames {'' if got == want else result.stderr}")
        result, _ = run(*sorted(files), *scale)
        say("in the order given" in result.stderr, "files that a shell has sorted as text are told")

        # ---- inputs that are refused
        def refuses(movie, part, *options):
            result, _ = run(movie, *options)
            say(result.returncode == 2 and part in result.stderr,
                f"{movie}: {part!r} {'' if part in result.stderr else result.stderr[-300:]}")

        refuses("nothing*.png", "none matches it as a pattern")
        refuses("p160/frame8.png", "holds", "first.npy", "--pixel-size", "0.1um")
        refuses("first.npy", "cannot", "missing.npy")
        write_npy(folder + "/narrow.npy", [one[0][:Y - 1]], (Y - 1, X))
        refuses("first.npy", "but the first file is", "narrow.npy")
        refuses("f2.zarr", "2 channels", "--z", "1")
        refuses("p82", "choose one with --channel 0 to 2")
        first = folder + "/f6.zarr/0/c/0/1/2/0/0"
        data = open(first, "rb").read()
        put(first, data[:-1] + bytes([data[-1] ^ 1]))
        refuses("f6.zarr", "checksum", "--channel", "1", "--z", "2")
        put(first, data[:-30])
        refuses("f6.zarr", "checksum", "--channel", "1", "--z", "2")
        for name in ("f2.zarr/0/0/1/1/0/0", "f4.zarr/0/0/1/1/0/0"):
            data = open(f"{folder}/{name}", "rb").read()
            put(f"{folder}/{name}", data[:len(data) // 2])
            refuses(name.split("/", maxsplit=1)[0], name, "--channel", "1", "--z", "2")
        shard = folder + "/f8.zarr/0/c/0/1/0/0/0"
        data = open(shard, "rb").read()
        put(shard, data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
        refuses("f8.zarr", "checksum", "--channel", "1", "--z", "2")
        os.remove(folder + "/f0.zarr/0/0/1/1/0/0")
        result, got = run("f0.zarr", "--channel", "1", "--z", "2")
        say(result.returncode == 0 and got != want, "a chunk that is not there has the fill value")
        meta = json.load(open(folder + "/f0.zarr/0/.zarray", encoding="ascii"))
        for change, part in (({"compressor": {"id": "lz4"}}, '"lz4"'), ({"filters": [{"id": "delta"}]}, '"delta"'),
                             ({"dtype": "<c8"}, '"<c8"'), ({"chunks": [1, 1, 0, 4, 4]}, "size of 0"),
                             ({"shape": [4, 4]}, "expected 2")):
            put(folder + "/f0.zarr/0/.zarray", {**meta, **change})
            refuses("f0.zarr", part)
        put(folder + "/none/.zgroup", {"zarr_format": 2})
        refuses("none", "multiscales")
        put(folder + "/bad.png", png(one[0], 8)[:200])
        refuses("bad.png", "PNG")
    print(f"{len(WRONG)} wrong")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
