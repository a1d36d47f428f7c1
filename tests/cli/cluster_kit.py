# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of shards and of ranks: small inputs, a case for each command that can share its work, and the
comparison of the outputs with those of a local run, byte for byte."""
import array
import json
import os
import random
import shutil
import struct
import subprocess

from text_embed import CLEAVE, WIDTH, WRONG, make_model

ROWS, NUMBERS = 3000, 16
QUIET = ["-q", "--mode=reference"]
CASES = {  # command line without outputs; outputs; parts of the outputs that differ from run to run
    "paco": (["paco", "made/paco-cube.npy", "made/paco-angles.npy", "made/paco-psf.npy"],
             [("-o", "maps")]),
    "asdi": (["paco", "made/two.npy", "made/paco-angles.npy", "made/paco-psf.npy", "--wavelengths", "1.0,1.1"],
             [("-o", "maps")]),
    "blobs": (["blobs", "made/blobs-movie.npy", "--link", "3"],
              [("-o", "spots.csv"), ("--tracks", "tracks.csv"), ("--overlay", "spots.png")]),
    "specfit": (["specfit", "a.fits", "b.fits", "c.fits", "--library", "made/specfit-library"],
                [("-o", "stars.csv"), ("--models", "models.fits")]),
    "embed": (["embed", "model", "-i", "texts.txt"], [("-o", "vectors.npy"), ("--tokens-out", "ids.json")]),
    "search": (["search", "rows.npy", "--queries", "queries.npy", "--top", "5"], [("-o", "found.csv")]),
    "texts": (["search", "vectors8.npy", "--model", "model", "-i", "few.txt", "--top", "3"], [("-o", "found.tsv")]),
    "classify": (["classify", "classes", "-i", "texts.txt", "--all"], [("-o", "classes.csv")]),
}
VARIES = {"report.json"}


def wrong(text):
    WRONG.append(text)


def write_npy(name, kind, shape, data):
    head = repr({"descr": kind, "fortran_order": False, "shape": shape})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode("ascii") + data)


def data_of(name):
    with open(name, "rb") as file:
        data = file.read()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


def make_classes(model, folder, count=3, width=WIDTH):
    """Makes a BertForSequenceClassification with some classes from the weights of `model`."""
    shutil.copytree(model, folder)
    path, chance = os.path.join(folder, "model.safetensors"), random.Random(3)
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    header = {"bert." + name: one for name, one in header.items() if name != "__metadata__"}
    for name, shape in (("bert.pooler.dense.weight", [width, width]), ("bert.pooler.dense.bias", [width]),
                        ("classifier.weight", [count, width]), ("classifier.bias", [count])):
        numbers = shape[0] * (shape[1] if len(shape) == 2 else 1)
        raw = array.array("f", (chance.gauss(0, 0.5) for _ in range(numbers))).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode("ascii")
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config.update(architectures=["BertForSequenceClassification"],
                  id2label={str(i): f"class {i}" for i in range(count)})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)


def make_inputs():
    """Makes all inputs in the current folder."""
    os.mkdir("made")
    subprocess.run([os.environ["CLEAVE_TEST_MAKER"], "made"], check=True)
    cube = data_of("made/paco-cube.npy")
    side, frames = 40, 16
    write_npy("made/two.npy", "<f4", (2, frames, side, side), cube + cube)
    for name in "abc":
        shutil.copy("made/specfit-coadd.fits", name + ".fits")
    make_model("model")
    make_classes("model", "classes")
    make_classes("model", "one", 1)
    chance = random.Random(5)
    words = "the cats run running unaffable 12 and".split()
    lines = [" ".join(chance.choice(words) for _ in range(chance.randint(1, 14))) for _ in range(9000)]
    with open("texts.txt", "w", encoding="ascii") as file:
        file.write("\n".join(lines))
    with open("many.txt", "w", encoding="ascii") as file:
        file.write("\n".join(lines * 3))
    with open("pairs.txt", "w", encoding="ascii") as file:
        file.write("\n".join(f"{a}\t{b}" for a, b in zip(lines[:3000], lines[3000:])))
    with open("few.txt", "w", encoding="ascii") as file:
        file.write("\n".join(lines[:4]))
    for name, rows, width in ("rows", ROWS, NUMBERS), ("queries", 3, NUMBERS), ("vectors8", 500, WIDTH):
        numbers = array.array("f", (chance.gauss(0, 1) for _ in range(rows * width)))
        write_npy(name + ".npy", "<f4", (rows, width), numbers.tobytes())


OTHERS = {  # these commands have no shards
    "rank": (["rank", "classes", "--pairs", "-i", "pairs.txt"], [("-o", "scores.tsv")]),
    "passages": (["rank", "one", "--query", "running cats", "-i", "texts.txt"], [("-o", "ranks.csv")]),
    "whole": (["blobs", "made/blobs-movie.npy", "--threshold-scope", "movie"], [("-o", "spots.csv")]),
    "stop": (["embed", "model", "-i", "many.txt"], [("-o", "vectors.npy")]),  # runs long enough to be stopped
}


def line_of(case, folder):
    """Returns the command line of a case whose outputs go to `folder`, and all options that name an output."""
    words, outputs = {**CASES, **OTHERS}[case]
    return [*words, *QUIET, *(word for option, name in outputs for word in (option, f"{folder}/{name}"))]


def files_in(folder):
    found = {}
    for place, _, names in os.walk(folder):
        for name in set(names) - VARIES:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def run(*arguments, before=(), **options):
    return subprocess.run([*before, CLEAVE, *arguments], capture_output=True, timeout=300,
                          stdin=subprocess.DEVNULL, **options)


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)


def local(case):
    """Returns the outputs of a local run. All runs of a case write into a folder `out`, because headers contain its
    name."""
    fresh("out")
    done = run(*line_of(case, "out"))
    if done.returncode or not files_in("out"):
        wrong(f"{case}: a local run ended with {done.returncode}: {done.stderr.decode()}")
    return files_in("out")


def same(what, done, wanted, code=0):
    """Compares the files in `out`."""
    got = files_in("out")
    if done.returncode != code:
        wrong(f"{what}: exit code {done.returncode}, expected {code}: {done.stderr.decode()[-600:]}")
    for name in sorted(set(got) | set(wanted)):
        if got.get(name) != wanted.get(name):
            wrong(f"{what}: {name} differs: {len(got.get(name, b''))} bytes, {len(wanted.get(name, b''))} expected")
