#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `cleave search` in plain C, for texts and for vectors of every type: it finds the same rows as sorting all
similarities in float64, prints the texts that it found, and refuses wrong inputs.

usage: text_search.py CLEAVE"""
import csv
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

import text_embed
from text_embed import CLEAVE, WRONG, expect, make_model

PASSAGES = ["the cats run", "12 and 12", "running cats, \"quoted\"", "unaffable", "12", "a\tcat", "", "cats"]
ROWS, WIDTH = 40, 7


def holds(what, condition):
    expect(what, True, bool(condition))


def run(*arguments, text=b"the cats\n12\n"):
    return subprocess.run([CLEAVE, "search", *arguments, "--mode=reference"], input=text, capture_output=True,
                          timeout=600)


def embed(texts, *arguments):
    done = subprocess.run([CLEAVE, "embed", "model", "--mode=reference", "-o", "-", *arguments],
                          input="\n".join(texts).encode(), capture_output=True, check=True, timeout=600)
    return done.stdout


def write_npy(name, rows, kind="<f4", order=False):
    code = {"<f4": "<f", ">f4": ">f", "<f8": "<d", "<f2": "<e", "<i4": "<i", "|u1": "<B"}[kind]
    head = repr({"descr": kind, "fortran_order": order, "shape": (len(rows), len(rows[0]))})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    numbers = [x for row in rows for x in row]
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode("ascii"))
        file.write(struct.pack(code[0] + "%d%s" % (len(numbers), code[1]), *numbers))
    return name


def ranked(query, rows, similarity):
    def length(v):
        return math.sqrt(sum(x * x for x in v))

    scores = []
    for i, row in enumerate(rows):
        score = sum(x * y for x, y in zip(query, row))
        scores.append((-score / (length(query) * length(row)) if similarity == "cosine" else -score, i))
    return sorted(scores)


def table(text, separator="\t"):
    return list(csv.DictReader(text.decode().splitlines(), delimiter=separator))


def check_ranks(told, got, queries, rows, similarity, top):
    want = [(q, rank + 1, i, -score) for q, query in enumerate(queries)
            for rank, (score, i) in enumerate(ranked(query, rows, similarity)[:top])]
    holds(told, [(int(r["query"]), int(r["rank"]), int(r["row"])) for r in got] == [w[:3] for w in want])
    holds(told + ": scores", all(abs(float(r["score"]) - w[3]) <= 1e-6 * max(1, abs(w[3])) for r, w in zip(got, want)))


def vectors():
    """Tests multiples of 1/16, which are exact even in half precision, so that all types give the same result."""
    dice = random.Random(5)
    rows = [[dice.randint(-40, 40) / 16 for _ in range(WIDTH)] for _ in range(ROWS)]
    queries = [[dice.randint(-40, 40) / 16 for _ in range(WIDTH)] for _ in range(3)]
    write_npy("q.npy", queries)
    for kind in "<f4", ">f4", "<f8", "<f2":
        name = write_npy("rows.npy", rows, kind)
        for similarity in "cosine", "dot":
            done = run(name, "--queries", "q.npy", "--top", "6", "--similarity", similarity)
            check_ranks("%s %s" % (kind, similarity), table(done.stdout), queries, rows, similarity, 6)
        write_npy("q2.npy", queries, kind)
        holds("queries of " + kind, run(name, "--queries", "q2.npy", "-q").stdout ==
               run(name, "--queries", "q.npy", "-q").stdout)
    done = run("rows.npy", "--queries", "q.npy", "--top", "100", "--report", "report.json")
    holds("all rows where more are wanted", len(table(done.stdout)) == 3 * ROWS)
    with open("report.json", encoding="utf-8") as file:
        report = json.load(file)
    holds("report", [report["operation"][k] for k in ("queries", "rows", "width", "top", "similarity")] ==
           [3, ROWS, WIDTH, 100, "cosine"])
    rows[3][2] = math.nan
    done = run(write_npy("nan.npy", rows), "--queries", "q.npy", "--top", "100")
    holds("a row with NaN", len(table(done.stdout)) == 3 * (ROWS - 1) and b"has NaN values: 3 of 3" in done.stderr)


def blocks():
    """Tests a file of more than one block in memory, in which only the marked rows are not zero."""
    wide, rows = 1024, 17000  # 66 MiB; a block has 64 MiB
    head = repr({"descr": "<f4", "fortran_order": False, "shape": (rows, wide)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    marked = {5: 1.0, 16383: 3.0, 16384: 4.0, 16999: 2.0}
    with open("large.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode("ascii"))
        start = file.tell()
        file.truncate(start + 4 * rows * wide)
        for row, value in marked.items():
            file.seek(start + 4 * row * wide)
            file.write(struct.pack("<f", value))
    write_npy("one.npy", [[1.0] + [0.0] * (wide - 1)])
    found = table(run("large.npy", "--queries", "one.npy", "--similarity", "dot", "--top", "5").stdout)
    holds("rows of two blocks: %r" % found, [(int(r["row"]), float(r["score"])) for r in found] ==
          [(16384, 4.0), (16383, 3.0), (16999, 2.0), (5, 1.0), (0, 0.0)])
    os.remove("large.npy")


def signs_agree(query, row):
    return sum((x > 0) == (y > 0) for x, y in zip(query, row))


def first_pass():
    """Tests the first pass: with all rows as candidates the result is exact; with two candidates, their signs
    decide."""
    dice = random.Random(8)
    rows = [[dice.gauss(0, 1) for _ in range(WIDTH)] for _ in range(ROWS)]
    queries = [[dice.gauss(0, 1) for _ in range(WIDTH)] for _ in range(3)]
    write_npy("q.npy", queries)
    for codes, kind in ("int8", "<f4"), ("binary", "<f8"), ("int8", "<f2"):
        write_npy("rows.npy", rows, kind)
        exact = run("rows.npy", "--queries", "q.npy", "--top", "10")
        both = ["rows.npy", "--queries", "q.npy", "--top", "10", "--first-pass", codes]
        holds(codes + " without a file", run(*both).stdout == exact.stdout)
        done = run(*both, "--codes", "codes.npy", "-o", "found.tsv", "--report", "report.json")
        with open("found.tsv", "rb") as file, open("report.json", encoding="utf-8") as report:
            holds(codes + ": codes are written", file.read() == exact.stdout and
                  b"codes for the next search: codes.npy" in done.stdout and b"may be missing" in done.stdout)
            holds(codes + ": report", json.load(report)["operation"]["first_pass"] == codes)
        with open("codes.npy", "rb") as file:
            data = file.read()
        width = WIDTH if codes == "int8" else 1
        holds("the file of codes: %r" % data[:128], len(data) == 128 + ROWS * width and
              b"'|%s1', 'fortran_order': False, 'shape': (40, %d)" % (b"i" if codes == "int8" else b"u", width) in data)
        done = run(*both, "--codes", "codes.npy")
        holds(codes + ": codes are read", done.stdout == exact.stdout and b"next search" not in done.stderr)
        os.remove("codes.npy")
    one = table(run("rows.npy", "--queries", "q.npy", "--top", "1", "--first-pass", "binary", "--rescore", "2").stdout)
    for q, query in enumerate(queries):
        best = sorted(range(ROWS), key=lambda i: (-signs_agree(query, rows[i]), i))[:2]
        holds("two candidates", int(one[q]["row"]) in best)


def texts():
    with open("passages.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(PASSAGES))
    with open("table.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["id", "text"]] + [[i, text] for i, text in enumerate(PASSAGES)])
    for name, arguments in ("v.npy", []), ("table.npy", ["-i", "table.csv", "--input-format", "csv"]):
        with open(name, "wb") as file:
            file.write(embed(PASSAGES, *arguments))
    rows = text_embed.read_npy(embed(PASSAGES))
    queries = text_embed.read_npy(embed(["the cats", "12"]))
    done = run("v.npy", "--model", "model", "--passages", "passages.txt", "--top", "3")
    got = table(done.stdout)
    check_ranks("texts", got, queries, rows, "cosine", 3)
    holds("the texts that were found", all(r["text"] == PASSAGES[int(r["row"])] for r in got))
    for ending, read in (".csv", lambda t: table(t, ",")), (".tsv", table), (".json", json.loads):
        run("v.npy", "--model", "model", "--passages", "table.csv", "--top", "8", "-o", "found" + ending)
        with open("found" + ending, "rb") as file:
            found = read(file.read())
        holds(ending, len(found) == 16 and all(r["text"] == PASSAGES[int(r["row"])] for r in found))
    done = run("v.npy", "--model", "model", "--passages", "passages.txt", text=b"")
    holds("no text", done.returncode == 0 and table(done.stdout) == [])
    done = run("v.npy", "--model", "model", "-o", "found.csv", "--top", "2")
    holds("what was done is told", b"2 queries, 8 vectors of" in done.stdout)


def refusals():
    write_npy("q.npy", [[1.0] * WIDTH])
    write_npy("rows.npy", [[1.0] * WIDTH] * 2)
    write_npy("wide.npy", [[1.0] * (WIDTH + 1)])
    write_npy("nan.npy", [[math.nan] * WIDTH])
    write_npy("ints.npy", [[1] * WIDTH] * 2, "<i4")
    write_npy("fortran.npy", [[1.0] * WIDTH] * 2, order=True)
    write_npy("bits.npy", [[254], [255]], "|u1")
    with open("short.npy", "wb") as file, open("rows.npy", "rb") as whole:
        file.write(whole.read()[:-3])
    with open("two.txt", "w", encoding="utf-8") as file:
        file.write("one\ntwo\nthree\n")
    for words, arguments in (
            ("there is nothing to search for", ["rows.npy"]),
            ("--model and --queries cannot be used together", ["rows.npy", "--queries", "q.npy", "--model", "model"]),
            ("-i two.txt and --queries q.npy cannot be used together",
             ["rows.npy", "--queries", "q.npy", "-i", "two.txt"]),
            ("--top is 0, but it must be 1 to 16384", ["rows.npy", "--queries", "q.npy", "--top", "0"]),
            ("VECTORS is missing", ["--queries", "q.npy"]),
            ("wide.npy has vectors of 8 numbers, but rows.npy has vectors of 7", ["rows.npy", "--queries", "wide.npy"]),
            ("model has vectors of", ["rows.npy", "--model", "model"]),
            ("element 0 of query 0 is nan", ["rows.npy", "--queries", "nan.npy"]),
            ("is of i4; expected float32, float16 or float64", ["ints.npy", "--queries", "q.npy"]),
            ("in Fortran order", ["fortran.npy", "--queries", "q.npy"]),
            ("truncated: the file has 53 bytes of data, expected 56", ["short.npy", "--queries", "q.npy"]),
            ("3 texts, but VECTORS has 2 rows", ["rows.npy", "--queries", "q.npy", "--passages", "two.txt"]),
            ("cannot open", ["rows.npy", "--queries", "none.npy"]),
            ("--codes codes.npy needs --first-pass",
             ["rows.npy", "--queries", "q.npy", "--codes", "codes.npy"]),
            ("--similarity dot cannot be used together",
             ["rows.npy", "--queries", "q.npy", "--first-pass", "int8", "--similarity", "dot"]),
            ("--rescore is 1639, but it must be at most", ["rows.npy", "--queries", "q.npy", "--first-pass", "int8",
                                                              "--rescore", "1639"]),
            ("would be int8 [2, 7]", ["rows.npy", "--queries", "q.npy", "--first-pass", "int8",
                                                          "--codes", "bits.npy"]),
            ("row 1 is not the code", ["rows.npy", "--queries", "q.npy", "--first-pass", "binary", "--codes",
                                       "bits.npy"]),
            ("expected codes in int8 or uint8", ["rows.npy", "--queries", "q.npy", "--first-pass", "int8",
                                                 "--codes", "ints.npy"]),
            ("codes.txt", ["rows.npy", "--queries", "q.npy", "--first-pass", "int8", "--codes", "codes.txt"]),
            ("rows.npy is a file that VECTORS reads", ["rows.npy", "--queries", "q.npy", "-o", "rows.npy"])):
        done = run(*arguments)
        told = done.stderr.decode()
        holds("%s: %d, %r" % (words, done.returncode, told),
               done.returncode == 2 and words in told and told.count("\n") == 1 and not done.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_model("model")
        for part in vectors, blocks, first_pass, texts, refusals:
            part()
    print("\n".join(WRONG) or "search: all as expected")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
