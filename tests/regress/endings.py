#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the extension of an output's name determines the format of the file, or is refused.

Formerly `cleave blobs -o spots.xlsx` wrote CSV, `-o spots.csv.gz` plain CSV, `--format trackmate -o spots.npy` CSV as
well, `cleave embed -o vectors.bin` NPY, and `--report report.txt` JSON, all without a warning.

usage: endings.py CLEAVE"""
import os

import kit

kit.movie()
kit.write("spots.csv", kit.SPOTS)
kit.write("in.txt", "one\n")
os.mkdir("folder")

BLOBS = ["blobs", "movie.npy", "--link", "2"]
SPECFIT = ["specfit", "no.fits", "--library", "no"]
EMBED, CLASSIFY = ["embed", "no-model"], ["classify", "no-model"]
SEARCH = ["search", "no.npy", "--queries", "no.npy"]
RANK = ["rank", "no-model", "--query", "one"]
TABLE = ["-o", "new.csv"]
TABLES = [".csv", ".tsv", ".txt", ".npy", ".json", ".xml", ".parquet"]
COMMON = [("--report", [".json"]), ("--trace", [".json"])]
# command, its other arguments, option, endings that the option accepts
OUTPUTS = [
    (BLOBS, [], "-o", TABLES),
    (BLOBS + ["--format", "trackmate"], [], "-o", [".csv", ".tsv", ".txt", ".xml"]),
    (BLOBS, TABLE, "-T", TABLES),
    (BLOBS, TABLE, "--overlay", [".png"]),
    (BLOBS, TABLE, "--stage-drift", [".csv", ".tsv", ".txt", ".json"]),
    (BLOBS, TABLE, "--registered", [".npy"]),
    (["link", "spots.csv", "--search", "2"], [], "-o", TABLES),
    *((["tracks", "spots.csv"], [], option, [".csv", ".tsv", ".txt", ".json"])
      for option in ("-o", "--summary", "--msd", "--track-msd", "--drift", "--positions")),
    (["tracks", "spots.csv"], [], "--plot", [".png"]),
    (SPECFIT, [], "-o", [".csv", ".fits"]),
    (SPECFIT, TABLE, "--models", [".fits"]),
    (EMBED, [], "-o", [".npy", ".csv", ".tsv", ".txt", ".safetensors", ".parquet"]),
    (EMBED + ["--format", "csv"], [], "-o", [".csv"]),
    (EMBED, ["-o", "new.npy"], "--tokens-out", [".json"]),
    (CLASSIFY, [], "-o", [".csv", ".tsv", ".txt"]),
    (SEARCH, [], "-o", [".csv", ".tsv", ".txt", ".json"]),
    (RANK, [], "-o", [".csv", ".tsv", ".txt", ".json"]),
    (["tokenize", "no-model"], [], "-o", [".json"]),
    (["detokenize", "no-model"], [], "-o", [".txt"]),
    (["probe"], [], "--save", [".json"]),
    (["selftest", "--device", "99"], [], "--json", [".json"]),
    (["bench", "--device", "99"], [], "--json", [".json"]),
    (["bench", "--device", "99"], [], "--html", [".html", ".htm"]),
    (["bench", "--device", "99"], [], "--markdown", [".md"]),
]
for job, more in ((BLOBS, TABLE), (SPECFIT, TABLE), (EMBED, ["-o", "new.npy"]), (CLASSIFY, []), (SEARCH, []),
                  (RANK, []),
                  (["paco", "no", "no", "no"], ["-o", "maps"]), (["demo", "--device", "99"], ["-o", "made"]),
                  (["finetune", "no-model", "--data", "in.txt"], ["-o", "out"]),
                  (["templates", "no-models"], ["-o", "library"]),
                  (["generate", "no-model", "--prompt", "one"], [])):
    OUTPUTS += [(job, more, option, endings) for option, endings in COMMON]
EVERY = [".csv", ".tsv", ".txt", ".npy", ".fits", ".json", ".xml", ".parquet", ".png", ".html", ".htm", ".md",
         ".safetensors"]


def words(endings):
    ordered = [e for e in EVERY if e in endings]
    return ordered[0] if len(ordered) == 1 else ", ".join(ordered[:-1]) + " or " + ordered[-1]


def refused():
    before = kit.listing()
    for command, more, option, endings in OUTPUTS:
        use = "use a name that ends in " + words(endings)
        for ending in set(EVERY + [".xlsx", ".CSV", ".csv.gz", ".zip"]) - set(endings):
            if "--format" in command and ending in (".xlsx", ".CSV") and command[0] == "embed":
                continue  # an option gave the format, so the ending does not matter
            part = "Cleave does not write compressed files" if ending in (".csv.gz", ".zip") else \
                "but this output cannot be a %s file" % ending
            kit.expect(2, part + ": " + use, *command, *more, option, "other" + ending)
        if len(endings) > 1 and ".html" not in endings:
            kit.expect(2, "it has no ending that names the format", *command, *more, option, "other")
    for command, option in ((["paco", "no", "no", "no"], "-o"), (["demo"], "-o"),
                            (["finetune", "no-model", "--data", "in.txt"], "-o"),
                            (["templates", "no-models"], "-o"), (SPECFIT + TABLE, "--plot")):
        for name in "maps.fits", "picture.png", "model.safetensors":
            kit.expect(2, "which is the name of a file", *command, option, name)
    for command, option in ((["selftest"], "--json"), (["bench"], "--html"), (["probe"], "--save"),
                            (SPECFIT + TABLE, "--models")):
        kit.expect(2, "standard output is not possible there", *command, option, "-")
    kit.same("files", kit.listing(), before)


def taken():
    """Tests accepted endings: most commands then go on to inputs that do not exist, and a few succeed."""
    for command, more, option, endings in OUTPUTS:
        if command[0] in ("blobs", "link", "probe", "selftest", "bench", "demo"):
            continue
        for ending in endings + [] if len(endings) > 1 else endings + [""]:
            kit.expect(2, "no", *command, *more, option, "other" + ending)
    for name, start in ("a.csv", b"frame,y,x"), ("a.npy", b"\x93NUMPY"), ("a.parquet", b"PAR1"):
        kit.expect(0, None, *BLOBS, "-o", name, "--report", "report", "--overlay", "a.png")
        with open(name, "rb") as file:
            kit.same(name, file.read(len(start)), start)
    kit.same("CSV where no file is", kit.run(*BLOBS, "-q", "-o", "/dev/stdout").stdout[:9],
             b"frame,y,x")
    with open("to-a-file", "wb") as file:  # /dev/stdout is then a plain file without an ending
        kit.subprocess.run([kit.CLEAVE, *BLOBS, "-q", "-o", "/dev/stdout"], stdout=file, check=False,
                           env=kit.PLAIN)
    with open("to-a-file", "rb") as file:
        kit.same("CSV in a redirected output", file.read(9), b"frame,y,x")
    os.mkdir("old.fits")
    kit.expect(2, "no", "paco", "no", "no", "no", "-o", "old.fits")  # a name without an ending is a folder


def every_command():
    """Tests that the outputs of every command are in the list above, also those of new commands. `cache` has no
    outputs, and `merge` has those of other commands."""
    kit.same("the commands of this test", sorted({command[0] for command, *_ in OUTPUTS} | {"cache", "merge"}),
             sorted(kit.commands()))


every_command()
refused()
taken()
kit.finish()
