#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that damaged and malicious files of every kind that the command reads give a result or an error, within bounds
of time and memory.

Each file is changed in ways that damage and attackers choose: cut, bytes flipped, numbers in text or binary made huge,
pieces doubled, swapped, or filled with zeros. No run may end by a signal, exceed its limit of time or of memory,
leave a temporary file, or fail without a message. The same holds when a hole of 6 GB follows the bytes of the file,
and when the file is a pipe that nobody writes to, except texts and tables that a user names, which are read from pipes.

usage: mutated.py CLEAVE CLI_TESTS DATA [RUNS [SEED]]
DATA: the folder tests/data. RUNS: per file; 3, or what the variable CLEAVE_TEST_SWEEP says, unless given"""
import glob
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import time

import kit

sys.path.insert(0, sys.argv[2])
import text_embed  # noqa: E402

DATA = os.path.abspath(sys.argv[3])
RUNS = int(sys.argv[4]) if len(sys.argv) > 4 else int(os.environ.get("CLEAVE_TEST_SWEEP", "3"))
RANDOM = random.Random(int(sys.argv[5]) if len(sys.argv) > 5 else 25)
SECONDS, ROOM, HOLE = 60, 1500 << 20, 6 << 30
HUGE = (0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, 0x10000, 0xFFFFFFFFFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 1 << 40, 0)


def cut(data):
    return data if not data else data[:RANDOM.randrange(len(data))]


def flip(data):
    bent = bytearray(data)
    for _ in range(RANDOM.choice((1, 3, 20))):
        bent[place(bent, 1)] ^= 1 << RANDOM.randrange(8)
    return bytes(bent)


def place(data, length):
    """Returns a place, more often near the beginning, where headers are."""
    most = max(len(data) - length, 0)
    return RANDOM.randint(0, min(most, RANDOM.choice((64, 512, 4096, most))))


def number(data):
    """Changes a binary number of 2, 4 or 8 bytes, in either byte order."""
    size, order = RANDOM.choice((2, 4, 8)), RANDOM.choice("<>")
    at = place(data, size) & ~1
    value = RANDOM.choice(HUGE) & ((1 << 8 * size) - 1)
    return data[:at] + struct.pack(order + {2: "H", 4: "I", 8: "Q"}[size], value) + data[at + size:]


def digits(data):
    """Changes a number in text."""
    found = [m for m in re.finditer(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", data[:200000])]
    if not found:
        return flip(data)
    match = RANDOM.choice(found[:RANDOM.choice((5, 50, len(found)))])
    new = RANDOM.choice((b"999999999", b"4294967296", b"99999999999999999999", b"-1", b"0", b"1e308", b"nan", b"1e-320",
                         b"9223372036854775807"))
    if data[:6] == b"SIMPLE":  # FITS cards keep their length
        new = new[-len(match.group()):].rjust(len(match.group()))
    return data[:match.start()] + new + data[match.end():]


def double(data):
    at = place(data, 1)
    piece = data[at:at + RANDOM.choice((1, 16, 300, 2880))]
    return data[:at] + piece * RANDOM.choice((2, 3, 200)) + data[at:]


def swap(data):
    size = RANDOM.choice((4, 80, 2880))
    one, two = sorted((place(data, size), place(data, size)))
    if two < one + size:
        return flip(data)
    return data[:one] + data[two:two + size] + data[one + size:two] + data[one:one + size] + data[two + size:]


def zeros(data):
    at = place(data, 1)
    size = RANDOM.choice((1, 8, 80, 2000))
    return data[:at] + bytes(min(size, len(data) - at)) + data[at + size:]


WAYS = (cut, flip, number, digits, double, swap, zeros)


def limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(told, line):
    """Returns the exit code and the seconds of processor time."""
    shutil.rmtree("out", ignore_errors=True)
    os.mkdir("out")
    began = time.monotonic()
    with open("said", "wb") as said, subprocess.Popen(
            [kit.CLEAVE, *line], env=kit.PLAIN, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
            preexec_fn=limits) as child:
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - began > SECONDS:
                child.kill()
                os.wait4(child.pid, 0)
                child.returncode = -9
                kit.wrong("%s: takes more than %d s" % (told, SECONDS))
                return None, SECONDS
            time.sleep(0.002)
        child.returncode = os.waitstatus_to_exitcode(status)
    with open("said", "rb") as file:
        text = file.read()
    code = child.returncode
    if code not in (0, 1, 2, 3):
        kit.wrong("%s: exit code %d: %r" % (told, code, text[-300:]))
    if code in (1, 2) and not text:
        kit.wrong("%s: exit code %d without a word" % (told, code))
    if usage.ru_maxrss * 1024 > ROOM:
        kit.wrong("%s: took %d MiB" % (told, usage.ru_maxrss >> 10))
    left = [name for name in os.listdir("out") if name.endswith(".cleave-part")]
    if left:
        kit.wrong("%s: %r stay" % (told, left))
    return code, usage.ru_utime + usage.ru_stime


def files():
    """Yields (file, the command that reads it)."""
    lines = kit.small_commands(text_embed.make_model, 4, 32)
    plain = ["--mode", "reference", "--mem-limit", "512M"]
    chance = random.Random(1)
    kit.write_npy("cube.npy", (8, 21, 21), [chance.gauss(100, 3) for _ in range(8 * 21 * 21)])
    kit.write_npy("angles.npy", (8,), [5.0 * i for i in range(8)])
    kit.write_npy("psf.npy", (7, 7), [2.0 ** (-((i // 7 - 3) ** 2 + (i % 7 - 3) ** 2) / 2) for i in range(49)])
    paco = ["paco", "cube.npy", "angles.npy", "psf.npy", "-q", "--radius", "2", "-o", "out"] + plain
    for name in paco[1:4]:
        yield name, paco
    for name in "cube.fits", "cube.fits.gz":
        copy = shutil.copy(os.path.join(DATA, "io", name), name)
        yield copy, ["paco", copy, "angles.npy", "psf.npy", "-q", "--radius", "2", "-o", "out"] + plain
    stars = lines["specfit"] + plain
    yield "made/specfit-coadd.fits", stars
    for name in ["made/specfit-library/lib.json"] + sorted(glob.glob("made/specfit-library/*.npy"))[:1] + sorted(
            glob.glob("made/specfit-library/*/*.npy"))[:2]:
        yield name, stars
    yield "movie.npy", lines["blobs"] + plain
    for name in ("u16_bigtiff", "u16_deflate", "u16_imagej", "u16_lzw", "u16_ome", "f32_be"):
        name = os.path.join(DATA, "blobs/formats/fmt_%s.tif" % name)
        copy = shutil.copy(name, "copy-" + os.path.basename(name))
        yield copy, ["blobs", copy, "-q", "-o", "out/spots.csv"] + plain
    more = kit.more_commands(DATA)
    yield kit.write("spots.csv", kit.SPOTS), ["link", "spots.csv", "-q", "--search", "2", "-o", "out/tracks.csv"]
    yield "tracks.csv", more["tracks"]
    xml = ['<?xml version="1.0"?>\n<TrackMate version="7"><Model><AllSpots>']
    xml += ['<SpotsInFrame frame="%d"><Spot ID="%d" POSITION_X="%d.5" POSITION_Y="2" POSITION_Z="0" FRAME="%d"\n'
            'TRACK_ID="0"/></SpotsInFrame>' % (t, t, t, t) for t in range(6)]
    yield kit.write("tracks.xml", "\n".join(xml) + "</AllSpots></Model></TrackMate>\n"), [
        "tracks", "tracks.xml", "-q", "--columns", "particle=TRACK_ID", "-o", "out/found.csv"]
    for name in "models.csv", "model-5000-4.txt":
        yield name, more["templates"] + plain
    yield "ids.json", more["detokenize"]
    yield "vectors.npy", more["search"] + plain
    yield "pairs.tsv", more["rank"] + plain
    for name in "config.json", "model.safetensors":
        yield "classes/" + name, more["classify"] + plain
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer.json"):
        if os.path.exists("model/" + name):
            yield "model/" + name, lines["embed"] + plain
    yield kit.write("table.csv", "id,text\n1,the cats\n2,\"12, and\"\n"), [
        "embed", "model", "-i", "table.csv", "-q", "-o", "out/v.npy"] + plain
    yield kit.write("lines.jsonl", '{"id": 1, "text": "the cats"}\n{"text": "12 and"}\n'), [
        "embed", "model", "-i", "lines.jsonl", "-q", "-o", "out/v.npy"] + plain
    yield "train.tsv", lines["finetune"] + plain + ["--epochs", "1"]
    gguf = "tiny.gguf"
    yield gguf, ["generate", "tiny.gguf", "--prompt", "the", "-n", "2", "--temperature", "0", "-q"] + plain
    yield gguf, ["tokenize", "tiny.gguf", "-i", "texts.txt", "-q", "-o", "out/ids.json"]
    spectrum = "".join("%.1f %.3f 0.01\n" % (4000 + 0.5 * i, 1 + 0.1 * (i % 7)) for i in range(400))
    yield kit.write("star.txt", spectrum), ["specfit", "star.txt", "--library", "made/specfit-library", "-q",
                                            "-o", "out/stars.csv"] + plain


def with_hole(name, line, usual):
    """Returns whether the file system has files of that length. The command must not read through the hole, which would
    take seconds."""
    with open(name, "r+b") as file:
        try:
            file.truncate(os.path.getsize(name) + HOLE)
        except OSError:
            return False
    took = run("%s with a hole" % name, line)[1]
    if took > usual + 2:
        kit.wrong("%s with a hole: computes for %.1f s, without it for %.1f s" % (name, took, usual))
    return True


def as_pipe(name, line):
    if name in line and name.endswith((".csv", ".tsv", ".json", ".jsonl", ".xml")):
        return False
    os.remove(name)
    os.mkfifo(name)
    if run("%s as a pipe" % name, line)[0] == 0:
        kit.wrong("%s as a pipe: exit code 0" % name)
    return True


count = kinds = refused = holes = pipes = 0
read = set()
for name, line in list(files()):
    began = time.monotonic()
    with open(name, "rb") as file:
        whole = file.read()
    kit.same("%s holds something" % name, whole != b"", True)
    done, usual = run("%s as it is" % name, line)
    if done not in (0, 3) and name not in ("star.txt", "cube.fits", "cube.fits.gz"):
        with open("said", encoding="utf-8", errors="replace") as file:
            kit.wrong("%s as it is fails: %s" % (name, file.read()))
    kinds += 1
    read.add(line[0])
    for i in range(RUNS):
        way = WAYS[i % len(WAYS)] if i < len(WAYS) else RANDOM.choice(WAYS)
        bent = way(whole)
        if i >= len(WAYS):
            bent = RANDOM.choice(WAYS)(bent or b"\0")
        kit.write(name, bent)
        code, _ = run("%s, run %d, %s" % (name, i, way.__name__), line)
        if kit.WRONG and not os.path.exists("kept-" + os.path.basename(name)):
            shutil.copy(name, os.environ.get("CLEAVE_KEEP_MUTATED", kit.FOLDER) + "/kept-" + os.path.basename(name))
        count += 1
        refused += code in (1, 2)
    kit.write(name, whole)
    holes += with_hole(name, line, usual)
    pipes += as_pipe(name, line)
    os.remove(name)
    kit.write(name, whole)
    print("%s: %.1f s" % (name, time.monotonic() - began))
print("%d changed files of %d kinds: %d refused, the others had a result" % (count, kinds, refused))
print("%d files with a hole, %d pipes" % (holes, pipes))
kit.swept("changed files", read)
kit.same("some are refused", refused > count // 10, True)
kit.finish()
