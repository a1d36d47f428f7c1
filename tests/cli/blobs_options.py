#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the options, formats, odd files, streams and exit codes of `cleave blobs`, with the plain C path.

    blobs_options.py CLEAVE
"""
import csv
import io
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

from blobs_kit import WRONG, say
import paco_kit as kit
import testdata

# The columns of spots that TrackMate 7 exports: key, name, short name, unit.
TRACKMATE = ["LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,POSITION_Z,POSITION_T,FRAME,RADIUS,VISIBILITY",
             "Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame,Radius,Visibility",
             "Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame,R,Visibility",
             ",,,(quality),(um),(um),(um),(sec),,(um),"]


class Runner:
    """Runs the command without any driver: on a busy machine, a driver that does not answer in time causes a warning on
    stderr, which must be empty here."""

    def __init__(self, command, work):
        self.command, self.cache = command, os.path.join(work, "cache")
        self.no_drivers = os.path.join(work, "no drivers")
        os.mkdir(self.no_drivers)

    def environment(self):
        return kit.environment(CLEAVE_CACHE_DIR=self.cache, CLEAVE_MODE="reference",
                               OCL_ICD_VENDORS=self.no_drivers)

    def __call__(self, *arguments):
        return subprocess.run([self.command, "blobs", *arguments], capture_output=True, text=True,
                              env=self.environment(), check=False)


def usage(run, movie):
    for arguments, part in (
            ([movie], "-o FILE"), ([], "MOVIE"), ([movie, "absent2.tif", "-o", "-"], "absent2.tif"),
            ([movie, "-o", "-", "--min-sigma", "3", "--max-sigma", "2"], "--max-sigma"),
            ([movie, "-o", "-", "--num-sigma", "0"], "--num-sigma"),
            ([movie, "-o", "-", "--max-sigma", "1e9"], "--max-sigma is 1e+09"),
            ([movie, "-o", "-", "--exclude-border", "100"], "leaves nothing of"),
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
        done = run(path, "-o", out, "--threshold-rel", "0.2")
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
        elif name == "bad_4d.npy":
            say(done.returncode == 0 and "1 stack of 3 planes" in done.stderr, f"{name} is a stack of planes")
        else:
            say(done.returncode == 2 and name in done.stderr, f"{name}: exit code 2: {done.stderr.strip()}")
            if "truncated" in name or "cycle" in name:
                say("last readable frame" in done.stderr, f"{name}: names the last readable frame")
                partial = run(path, "-o", out, "--partial")
                say(partial.returncode == 0 and "warning" in partial.stderr, f"{name}: --partial")


def records(run, movie, rows, work):
    """Reads the same numbers from NumPy records, without NumPy."""
    for options, names, layout in (([], 9, "2I7f"), (["--link", "4"], 10, "2I7fq")):
        path = os.path.join(work, "spots.npy")
        done = run(movie, "-o", path, "--threshold", "60", "-q", *options)
        with open(path, "rb") as file:
            data = file.read()
        start = 10 + int.from_bytes(data[8:10], "little")
        header = eval(data[10:start])  # pylint: disable=eval-used
        say(done.returncode == 0 and start % 64 == 0 and len(header["descr"]) == names and
            header["shape"] == (len(rows),), f".npy: {names} fields")
        first = struct.unpack_from("=" + layout, data, start)
        say(len(data) == start + len(rows) * struct.calcsize("=" + layout) and
            [f"{v:.5g}" for v in first[2:9]] == [f"{float(rows[0][n]):.5g}" for n in (
                "y", "x", "sigma", "response", "mass", "background", "snr")], "  and their numbers")


def outputs(run, folder, work):
    movie = os.path.join(folder, "e_border_u16.npy")
    plain = run(movie, "-o", "-", "--threshold", "60")
    rows = list(csv.DictReader(io.StringIO(plain.stdout)))
    say(list(rows[0]) == "frame,y,x,sigma,response,mass,background,snr,flags".split(","), "columns")
    order = [(int(r["frame"]), float(r["y"]), float(r["x"]), float(r["sigma"])) for r in rows]
    say(order == sorted(order), "rows by frame, y, x, sigma")
    say(any(int(r["flags"]) & 8 for r in rows), "spots at the border are flagged")
    counts = [run(movie, "-o", "-", "--threshold-rel", "0.02", "--overlap", part).stdout.count("\n")
              for part in ("0", "1e-9", "1")]
    say(counts[0] == counts[1] < counts[2], f"--overlap 0 is no overlap: {counts} rows")
    done = run(movie, "-o", "/dev/full", "--threshold", "60")
    say(done.returncode == 1 and "No space left" in done.stderr, "a full disk is no bad input")
    say(" spots, " in plain.stderr and "frames/s" in plain.stderr, "a summary")
    part = run(movie, "-o", "-", "--threshold", "60", "--frames", "2:5", "-q")
    want = [r for r in rows if 2 <= int(r["frame"]) < 5]
    say(list(csv.DictReader(io.StringIO(part.stdout))) == want and not part.stderr,
        f"--frames 2:5 {part.stderr.strip()}")
    border = run(movie, "-o", "-", "--threshold", "60", "--exclude-border", "4", "-q")
    say(all(3 < float(r["y"]) < 56 and 3 < float(r["x"]) < 68
            for r in csv.DictReader(io.StringIO(border.stdout))), "--exclude-border")
    mate = run(movie, "-o", "-", "--threshold", "60", "--format", "trackmate", "--pixel-size", "0.5um",
               "--interval", "2", "-q").stdout.splitlines()
    say(mate[:4] == TRACKMATE, "TrackMate's header")
    first = mate[4].split(",")
    say(abs(float(first[4]) - float(rows[0]["x"]) / 2) < 1e-5, "TrackMate's positions in units")
    few = run(movie, "-o", "-", "--threshold", "60", "--format", "xy", "-q").stdout
    say(few.startswith("frame,x,y,intensity,sigma,snr,id\n") and few.count("\n") == len(rows) + 1, "--format xy")
    earlier = run(movie, "-o", "-", "--threshold", "60", "--format", "seed", "-q").stdout
    say(earlier == few, "--format seed, xy's earlier name")
    records(run, movie, rows, work)
    picture = os.path.join(work, "overlay.png")
    done = run(movie, "-o", os.path.join(work, "a.csv"), "--overlay", picture, "--link", "4", "-T",
               os.path.join(work, "tracks.csv"))
    say(done.returncode == 0 and "tracks" in done.stdout, "--link")
    if os.path.exists(picture):
        with open(picture, "rb") as file:
            say(file.read(8) == b"\x89PNG\r\n\x1a\n", "--overlay")
    bare, tiny = os.path.join(work, "bare.png"), os.path.join(work, "tiny.png")
    for name, *more in ((bare,), (tiny, "--pixel-size", "1e-320um")):  # so small that the scale has no length
        run(movie, "-o", os.path.join(work, "b.csv"), "--overlay", name, "-q", *more)
    if os.path.exists(bare):
        with open(bare, "rb") as a, open(tiny, "rb") as b:
            say(a.read() == b.read(), "no scale for pixels of 1e-320um")
    with open(os.path.join(work, "a.csv"), "rb") as a, open(os.path.join(work, "tracks.csv"), "rb") as b:
        say(a.read() == b.read(), "-o holds the particles too")
    preview = run(movie, "--preview", "1").stdout
    say(preview.count("--threshold-sigma") == 6 and preview.count("--threshold-rel") == 6, "--preview")
    weak = os.path.join(folder, "g_weak_u16.npy")
    scope = run(weak, "-o", "-", "--threshold-scope", "movie", "-q").stdout
    frame = run(weak, "-o", "-", "-q", "--threshold-rel", "0.2").stdout
    say(scope != frame and scope.count("\n") > 20, "--threshold-scope movie")
    usual, told = run(weak, "-o", "-"), run(weak, "-o", "-", "--threshold-sigma", "6")
    say(usual.stdout == told.stdout and "--threshold-sigma 6" in usual.stderr and
        "no threshold" not in told.stderr, "the default threshold, which is told")
    fixed = run(movie, "-o", "/nonexistent/spots.csv")
    say(fixed.returncode in (1, 2) and "/nonexistent" in fixed.stderr, "an output that cannot be")


def raw_pixels(run, folder, work):
    """Returns the pixels of an NPY file without its header, which is a version 1 header of 128 bytes."""
    movie, out = os.path.join(folder, "e_border_u16.npy"), os.path.join(work, "raw.csv")
    with open(movie, "rb") as file:
        data = file.read()
    start = 10 + int.from_bytes(data[8:10], "little")
    shape = eval(data[10:start])["shape"]  # pylint: disable=eval-used
    size = ",".join(map(str, shape))
    want = run(movie, "-o", "-", "-q").stdout
    for name, content, layout in (
            ("le", data[start:], f"{size},u16"), ("offset", data, f"{size},uint16,{start}"),
            ("all", data[start:], f"0,{shape[1]},{shape[2]},<u2"),
            ("be", b"".join(data[i + 1:i + 2] + data[i:i + 1] for i in range(start, len(data), 2)),
             f"{size},>u2")):
        path = os.path.join(work, f"{name}.bin")
        with open(path, "wb") as file:
            file.write(content)
        done = run(path, "-o", "-", "-q", "--raw", layout)
        say(done.returncode == 0 and done.stdout == want and want.count("\n") > 50, f"--raw {layout}")
    short = os.path.join(work, "short.bin")
    with open(short, "wb") as file:
        file.write(data[start:-100])
    done = run(short, "-o", out, "--raw", f"{size},u16")
    say(done.returncode == 2 and f"last readable frame is {shape[0] - 2}" in done.stderr,
        "--raw of a file that ends early")
    say(run(short, "-o", out, "--raw", f"{size},u16", "--partial").returncode == 0, "  --partial")
    for layout in ("4,5", "1,2,3,u7", "1,0,3,u8", "1,2,3,u8,x", "-1,2,3,u8", f"{size},u16,0,0"):
        done = run(short, "-o", out, "--raw", layout)
        say(done.returncode == 2 and "--raw" in done.stderr, f"--raw {layout} is refused")


def jumps(run, work):
    """Tests that the command warns about a frame with 200 spots after frames with 20 spots."""
    side, frames = 128, bytearray()
    for number in range(8):
        frame = bytearray(b"\x0a" * side * side)
        for i in range(200 if number == 5 else 20):
            at = (i * 7919 + number * 911) % (side * side)
            frame[at] = 255
        frames += frame
    path = os.path.join(work, "jump.bin")
    with open(path, "wb") as file:
        file.write(frames)
    done = run(path, "-o", os.path.join(work, "jump.csv"), "--raw", f"0,{side},{side},u8", "--threshold-rel", "0.2")
    say(done.returncode == 0 and "jumps: frame 5" in done.stderr, "a jump of the spots is told")
    done = run(path, "-o", os.path.join(work, "jump.csv"), "--raw", f"5,{side},{side},u8")
    say(done.returncode == 0 and "jumps" not in done.stderr, "no jump, no word")


def interrupted(run, work):
    """Tests Ctrl-C, also if each block of frames is a job that ends before it checks for a cancel."""
    movie, out = os.path.join(work, "long.bin"), os.path.join(work, "long.csv")
    frames, side = 400000, 64
    with open(movie, "wb") as file:
        file.truncate(frames * side * side)  # a file of zeros that takes no space on disk
    with subprocess.Popen([run.command, "blobs", movie, "-o", out, "--raw", f"{frames},{side},{side},u8"],
                          env=run.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        until = time.monotonic() + 60
        while time.monotonic() < until and process.poll() is None and not kit.catches_interrupts(process):
            time.sleep(0.01)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=120)[1]
    say(process.returncode == 130 and "cancelled after" in told, f"Ctrl-C ends a long movie: {told!r}")
    say(not os.path.exists(out), "  and no table stays")


def main():
    command, folder = sys.argv[1], testdata.path_of("blobs")
    with tempfile.TemporaryDirectory() as work:
        run = Runner(command, work)
        usage(run, os.path.join(folder, "e_border_u16.npy"))
        formats(run, folder, work)
        outputs(run, folder, work)
        raw_pixels(run, folder, work)
        jumps(run, work)
        interrupted(run, work)
        say(not [n for n in os.listdir(work) if n.startswith(".")], "no temporary file is left")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
