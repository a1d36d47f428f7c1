# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of `cleave paco`: they read and write files, choose devices, and make synthetic sequences. They
need only Python's standard library."""
import array
import ast
import json
import math
import os
import random
import signal
import struct
import subprocess
import sys

import testdata

CODES = {"<f4": "f", "<f8": "d", "<i2": "h", "<u4": "I", "<i4": "i", "|b1": "b", "|u1": "B",
         "<i8": "q"}


class Grid:
    """A shape and its numbers; the last axis varies fastest."""

    def __init__(self, shape, values):
        self.shape, self.values = tuple(shape), values

    def __len__(self):
        return len(self.values)

    def at(self, *index):
        place = 0
        for extent, i in zip(self.shape, index):
            place = place * extent + i
        return self.values[place]


def npy_read(path):
    with open(path, "rb") as file:
        data = file.read()
    assert data[:6] == b"\x93NUMPY", path
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode("latin-1"))
    assert not header["fortran_order"], path
    values = array.array(CODES[header["descr"]])
    values.frombytes(data[10 + length:])
    return Grid(header["shape"], values)


def npy_write(path, shape, values, dtype="<f4"):
    """Writes an NPY file. If `dtype` begins with '>', the bytes are swapped."""
    header = repr({"descr": dtype, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        numbers = array.array(CODES["<" + dtype[1:] if dtype[0] == ">" else dtype], values)
        if dtype[0] == ">":
            numbers.byteswap()
        file.write(numbers.tobytes())


def fits_bytes(shape, values, bitpix=-32, cards=()):
    """Returns the bytes of a FITS image; integers are stored as (value - BZERO) / BSCALE, with the values of the
    cards."""
    known = dict(cards)
    zero, scale = known.get("BZERO", 0), known.get("BSCALE", 1)
    lines = [("SIMPLE", True), ("BITPIX", bitpix), ("NAXIS", len(shape))]
    lines += [(f"NAXIS{i + 1}", n) for i, n in enumerate(reversed(shape))]
    text = ""
    for key, value in [*lines, *cards]:
        if isinstance(value, bool):
            shown = f"{'T' if value else 'F':>20}"
        elif isinstance(value, str):
            shown = f"'{value:<8}'"
        else:
            shown = f"{value:>20}"
        text += f"{key:<8}= {shown}".ljust(80)
    text = (text + "END".ljust(80))
    text += " " * (-len(text) % 2880)
    code = {8: "B", 16: "h", 32: "i", -32: "f", -64: "d"}[bitpix]
    if bitpix > 0:
        values = [round((v - zero) / scale) for v in values]
    data = struct.pack(f">{len(values)}{code}", *values)
    return text.encode("ascii") + data + b"\0" * (-len(data) % 2880)


def fits_write(path, *args, **more):
    with open(path, "wb") as file:
        file.write(fits_bytes(*args, **more))


def fits_table(names, columns, units):
    """Returns the bytes of a FITS file with a table of float64 columns, each with its unit."""
    cards = [("XTENSION", "BINTABLE"), ("BITPIX", 8), ("NAXIS", 2), ("NAXIS1", 8 * len(names)),
             ("NAXIS2", len(columns[0])), ("PCOUNT", 0), ("GCOUNT", 1), ("TFIELDS", len(names))]
    for i, (name, unit) in enumerate(zip(names, units), 1):
        cards += [(f"TTYPE{i}", name), (f"TFORM{i}", "D"), (f"TUNIT{i}", unit)]
    text = ""
    for key, value in cards:
        shown = f"'{value:<8}'" if isinstance(value, str) else f"{value:>20}"
        text += f"{key:<8}= {shown}".ljust(80)
    head = (text + "END".ljust(80)).encode("ascii")
    data = b"".join(struct.pack(">d", float(v)) for row in zip(*columns) for v in row)
    empty = b"".join(c.ljust(80).encode("ascii") for c in (
        "SIMPLE  =                    T", "BITPIX  =                    8", "NAXIS   =                    0", "END"))
    return empty.ljust(2880) + head.ljust(-(-len(head) // 2880) * 2880) + data.ljust(
        -(-len(data) // 2880) * 2880, b"\0")


def fits_read(path):
    """Returns (cards, Grid) of the first image."""
    with open(path, "rb") as file:
        data = file.read()
    assert len(data) % 2880 == 0, path
    cards, at = {}, 0
    while True:
        card = data[at:at + 80].decode("ascii")
        at += 80
        if card.startswith("END "):
            break
        if card[8:10] == "= ":
            text = card.split("'")[1] if "'" in card else card[10:].split("/")[0]
            value = text.strip()
            cards[card[:8].strip()] = value
    at += -at % 2880
    shape = [int(cards[f"NAXIS{i}"]) for i in range(int(cards["NAXIS"]), 0, -1)]
    code = {8: "B", 16: "h", 32: "i", -32: "f", -64: "d"}[int(cards["BITPIX"])]
    count = math.prod(shape)
    return cards, Grid(shape, struct.unpack_from(f">{count}{code}", data, at))


def environment(**variables):
    """Returns the caller's environment without the variables that a user may have set for the command."""
    own = {k: v for k, v in os.environ.items()
           if not (k.startswith("CLEAVE_") and not k.startswith("CLEAVE_TEST"))}
    if "CLEAVE_TEST_ICDS" in own:
        own["OCL_ICD_VENDORS"] = own["CLEAVE_TEST_ICDS"]
        own["RUSTICL_ENABLE"] = "llvmpipe"
    own["CLEAVE_TUNE"] = "0"
    own.update(variables)
    return own


def link_programs(source, target):
    """Links compiled programs of drivers from one cache into another; their names say what is in them. A program for
    which no link is made is compiled again."""
    for name in os.listdir(source):
        if name.endswith(".clb"):
            try:
                os.link(os.path.join(source, name), os.path.join(target, name))
            except FileExistsError:
                pass
            except OSError:
                return


def bring_programs(cache):
    """Starts a cache with the programs that other tests have compiled, because some drivers keep no programs
    themselves."""
    shared = os.environ.get("CLEAVE_TEST_PROGRAMS")
    if shared:
        os.makedirs(os.path.join(cache, "programs"), mode=0o700, exist_ok=True)
        os.chmod(cache, 0o700)
        link_programs(shared, os.path.join(cache, "programs"))


def keep_programs(cache):
    """Leaves the new programs in a cache to other tests."""
    shared = os.environ.get("CLEAVE_TEST_PROGRAMS")
    if shared:
        link_programs(os.path.join(cache, "programs"), shared)


def options_for(command, platform, cache):
    """Returns the options that choose a platform (pocl, intel or mesa) or the plain C path (reference), and prints the
    choice, as the tests in C do. Without a device of the platform the test is skipped, or fails if
    $CLEAVE_TEST_PLATFORMS names that platform."""
    if platform == "reference":
        print("device: plain C [reference]", flush=True)
        return ["--mode", "reference"]
    bring_programs(cache)
    answer = subprocess.run([command, "probe", "--json"], env=environment(CLEAVE_CACHE_DIR=cache),
                            capture_output=True, text=True, check=False)
    report = json.loads(answer.stdout)
    for device in report["devices"]:
        vendor = report["opencl"]["platforms"][device["platform"]]["vendor_norm"]
        if device["usable"] and vendor == platform:
            print(f"device {device['index']}: {device['name']} [{vendor}]", flush=True)
            return ["--device", str(device["index"])]
    if platform in os.environ.get("CLEAVE_TEST_PLATFORMS", "").split(","):
        sys.exit(f"CLEAVE_TEST_PLATFORMS promises {platform}, which is not here")
    return testdata.skip(f"no OpenCL device of {platform}")


# Maps without preparation: no search for the star, no frame left out or weighted, nothing filled in, S/N = b / sqrt(a).
AS_IT_IS = ["--center", "middle", "--reject-frames", "none", "--frame-weights", "none", "--nan", "mask", "--snr", "raw",
            "--no-subtract"]


class Sequence:
    """A halo, noise that neighbouring pixels share, and a rotating field. The frames are not square unless you ask for
    it."""

    def __init__(self, frames=8, height=21, width=24, turn=50.0, psf_size=13, seed=3):
        rng = random.Random(seed)
        self.frames, self.height, self.width, self.psf_size = frames, height, width, psf_size
        self.cube = []
        for _ in range(frames):
            white = [rng.uniform(-1, 1) for _ in range((height + 1) * (width + 1))]
            for y in range(height):
                for x in range(width):
                    halo = 1 + 9 * math.exp(-math.hypot(y - height // 2, x - width // 2) / 5)
                    w = y * (width + 1) + x
                    noise = white[w] + 0.5 * white[w + 1] + 0.4 * white[w + width + 1]
                    self.cube.append(round(100 * (halo + 0.2 * halo * noise)))
        self.angles = [turn * l / frames for l in range(frames)]
        middle = psf_size // 2
        self.psf = [math.exp(-((i // psf_size - middle) ** 2 + (i % psf_size - middle) ** 2) / 3.5)
                    for i in range(psf_size * psf_size)]

    @property
    def shape(self):
        return (self.frames, self.height, self.width)

    def write(self, folder):
        """Writes three NPY files and returns their paths."""
        paths = [os.path.join(folder, name) for name in ("cube.npy", "angles.npy", "psf.npy")]
        npy_write(paths[0], self.shape, self.cube)
        npy_write(paths[1], [self.frames], self.angles, "<f8")
        npy_write(paths[2], [self.psf_size, self.psf_size], self.psf)
        return paths


def processor_seconds(process):
    """Returns the processor time that the process has used, which shows its progress however busy the machine is."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", maxsplit=1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def catches_interrupts(process):
    """Returns whether the process has installed its signal handler. Before that it loads drivers, which takes seconds
    on a busy machine."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        caught = next(line for line in file if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1)
