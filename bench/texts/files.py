# SPDX-License-Identifier: Apache-2.0
"""Files in and out."""
import csv
import io
import json

import numpy as np
import pandas
from safetensors.numpy import load_file

from common import apart

ODD = ['first, "quoted"', "two\nlines", 'tab\tinside', "", "ünï 東京", "= plain"]


def table(texts, separator):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator="\n")
    writer.writerow(["id", "text"])
    writer.writerows(enumerate(texts))
    return out.getvalue()


def inputs(room, texts):
    yield "JSONL", room.write("in.jsonl", "".join(json.dumps({"text": t, "n": 1}) + "\n" for t in texts)), []
    yield "JSONL, --field", room.write("in2.jsonl", "".join(json.dumps({"a": "x", "b": t}) + "\n" for t in texts)), \
        ["--field", "b"]
    yield "CSV, quoted line ends", room.write("in.csv", table(texts, ",")), []
    yield "TSV, --column", room.write("in.tsv", table(texts, "\t")), ["--column", "text"]
    frame = pandas.DataFrame({"id": range(len(texts)), "text": texts})
    for codec in ("snappy", "gzip", "zstd", None):
        name = room.path("in-%s.parquet" % codec)
        frame.to_parquet(name, compression=codec)
        yield "Parquet, %s" % (codec or "not packed"), name, []


def check(room):
    folder = room.model()
    texts = ODD + [room.text() for _ in range(60)]
    wanted = room.vectors(folder, texts)
    for what, name, options in inputs(room, texts):
        room.run("embed", folder, "-i", name, "-o", room.path("out.npy"), "-q", *options)
        found = np.load(room.path("out.npy"))
        worst = apart(found, wanted) if found.shape == wanted.shape else float("inf")
        yield "%s in: the vectors of the same texts" % what, "apart %.1e" % worst, worst == 0
    room.write("t.jsonl", "".join(json.dumps({"text": t}) + "\n" for t in texts))
    readers = {"npy": np.load, "safetensors": lambda name: load_file(name)["embeddings"],
               "csv": lambda name: pandas.read_csv(name).to_numpy(),
               "tsv": lambda name: np.loadtxt(name, delimiter="\t", ndmin=2),
               "parquet": lambda name: pandas.read_parquet(name).to_numpy()}
    for ending, read in readers.items():
        out = room.path("o." + ending)
        room.run("embed", folder, "-i", room.path("t.jsonl"), "-o", out, "-q")
        worst = apart(read(out), wanted)
        yield ".%s out: read by its usual library" % ending, "apart %.1e" % worst, worst < 1e-6
    for ending in ("jsonl", "json", "xlsx", "pkl", "vectors"):
        words = room.run("embed", folder, "-i", room.path("t.jsonl"), "-o", room.path("o." + ending), fails=True)
        yield "-o x.%s is refused" % ending, words.strip().split("\n")[-1][:60].replace(room.folder, ""), True
    words = room.run("embed", folder, "-i", room.write("t.docx", "a\n"), "-o", room.path("o.npy"), fails=True)
    yield "-i x.docx is refused", words.strip().split("\n")[-1][:60].replace(room.folder, ""), True
