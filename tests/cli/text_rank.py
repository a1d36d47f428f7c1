#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `cleave rank` in plain C: it gives the scores and ranks of sentence-transformers' CrossEncoder; and formats and
refusals.

usage: text_rank.py CLEAVE"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import testdata

CLEAVE = sys.argv[1]
WRONG = []
with open(testdata.path_of("cross_encoder/scores.json"), encoding="utf-8") as golden:
    GOLDEN = json.load(golden)


def run(*arguments, text=b""):
    return subprocess.run([CLEAVE, "rank", *arguments, "--mode=reference"], input=text, capture_output=True,
                          timeout=600)


def expect(what, wanted, got):
    if wanted != got:
        WRONG.append("%s: expected %r, got %r" % (what, wanted, got))


def near(what, wanted, got):
    expect(what + ": rows", len(wanted), len(got))
    for i, (want, have) in enumerate(zip(wanted, got)):
        want = want if isinstance(want, list) else [want]
        expect("%s %d: %r beside %r" % (what, i, have, want), True,
               len(want) == len(have) and max(abs(a - b) for a, b in zip(want, have)) < 5e-6)


def make_model(folder, name):
    target = os.path.join(folder, name)
    shutil.copytree(testdata.path_of("cross_encoder/" + name), target)
    shutil.copy(testdata.path_of("model/tiny/tokenizer.json"), target)
    return target


def check_pairs(models):
    lines = "".join("%s\t%s\n" % tuple(pair) for pair in GOLDEN["pairs"]).encode()
    for name, header in ("one", "score"), ("three", "LABEL_0\tLABEL_1\tLABEL_2"):
        for options, kind in ([], "scores"), (["--activation=none"], "raw"):
            done = run(models[name], "--pairs", *options, text=lines)
            expect("exit code", 0, done.returncode)
            expect("cut", True, b"6 of 16 pairs were cut at 16 tokens" in done.stderr)
            head, *rows = done.stdout.decode().splitlines()
            expect("header", header, head)
            near(name + " " + kind, GOLDEN[name][kind], [[float(x) for x in row.split("\t")] for row in rows])
    sums = [sum(map(float, row.split("\t"))) for row in run(
        models["three"], "--pairs", "--activation=softmax", text=lines).stdout.decode().splitlines()[1:]]
    expect("softmax", True, len(sums) == 16 and all(abs(one - 1) < 1e-6 for one in sums))
    expect("no pair", (0, b"score\n"), (lambda d: (d.returncode, d.stdout))(run(models["one"], "--pairs")))


def check_ranks(folder, models):
    passages = [second for _, second in GOLDEN["pairs"]]
    target, report = os.path.join(folder, "ranks.json"), os.path.join(folder, "report.json")
    done = run(models["one"], "--query", "the cats", "-o", target, "--report", report,
               text="\n".join(passages).encode())
    expect("ranks", 0, done.returncode)
    with open(target, encoding="utf-8") as file:
        rows = json.load(file)
    expect("ranks from 1", list(range(1, 17)), [row["rank"] for row in rows])
    expect("texts", [passages[row["row"]] for row in rows], [row["text"] for row in rows])
    near("ranked", [score for _, score in GOLDEN["one"]["ranks"]], [[row["score"]] for row in rows])
    expect("rows", sorted(range(16)), sorted(row["row"] for row in rows))
    for row, (number, score) in zip(rows, GOLDEN["one"]["ranks"]):  # texts with equal scores may change places
        expect("row of %g" % score, passages[number], row["text"])
    with open(report, encoding="utf-8") as file:
        notes = json.load(file)["operation"]
    expect("report", (16, 16), (notes["pairs"], notes["max_length"]))
    table = os.path.join(folder, "passages.csv")
    with open(table, "w", encoding="utf-8") as file:
        file.write("id,text\n" + "".join('%d,"%s"\n' % (i, one) for i, one in enumerate(passages)))
    done = run(models["one"], "--query=the cats", "-i", table, "--top=2", "--format=csv", "-q")
    expect("--top", ["rank,row,score,text", "1,%d" % rows[0]["row"], "2,%d" % rows[1]["row"]],
           [",".join(line.split(",")[:2]) if i else line for i, line in enumerate(done.stdout.decode().splitlines())])


def change(path, edit):
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    edit(content)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)


def check_tokenizers(folder, models):
    """Tests which end of a long text is kept, and tokenizers whose pairs differ from BERT's."""
    os.mkdir(os.path.join(folder, "left"))
    left = make_model(os.path.join(folder, "left"), "one")
    with open(os.path.join(left, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump({"truncation_side": "left"}, file)
    words = ["the", "cats", "sat", "on", "a", "mat"] * 4
    pairs = [["the cats\t%s\n" % " ".join(part), "%s\tthe cats\n" % " ".join(part)]
             for part in (words, words[-11:], words[:11])]
    for whole, last, first in zip(*pairs):
        for model, kept, lost in (left, last, first), (models["one"], first, last):
            want, other, got = (run(model, "--pairs", text=text.encode()).stdout for text in (kept, lost, whole))
            expect("the end that is kept", (True, True), (want == got, want != other))
    for name, edit, says in (
            ("frame", lambda c: c["post_processor"]["pair"].insert(4, c["post_processor"]["pair"][2]),
             "makes pairs differently from those of BERT and RoBERTa"),
            ("two separators", lambda c: c["post_processor"]["pair"].insert(3, c["post_processor"]["pair"][2]),
             "other types"),
            ("types", lambda c: c["post_processor"]["pair"][3]["Sequence"].update(type_id=0), "other types")):
        os.mkdir(os.path.join(folder, name))
        odd = make_model(os.path.join(folder, name), "one")
        change(os.path.join(odd, "tokenizer.json"), edit)
        done = run(odd, "--pairs", text=b"a\tb\n")
        expect(name, (2, True), (done.returncode, says in done.stderr.decode()))


def check_refusals(folder, models):
    odd = make_model(os.path.join(folder, "other"), "one")
    path = os.path.join(odd, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**config, "sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"}}, file)
    cases = [
        ("there is nothing to score", [models["one"]], b""),
        ("both --query and --pairs are given", [models["one"], "--query=x", "--pairs"], b""),
        ("--pairs cannot be combined with --top", [models["one"], "--pairs", "--top=3"], b""),
        ("line 2 has no tab", [models["one"], "--pairs"], b"a\tb\nc\n"),
        ("line 1 has more than one tab", [models["one"], "--pairs"], b"a\tb\tc\n"),
        ("gives 3 scores per pair", [models["three"], "--query=x"], b"a\n"),
        ("softmax of a single score", [models["one"], "--pairs", "--activation=softmax"], b"a\tb\n"),
        ("activation is torch.nn.modules.activation.Tanh", [odd, "--pairs"], b"a\tb\n"),
        ("not UTF-8", [models["one"], "--pairs"], b"a\t\xff\n"),
        ("max_length is 99", [models["one"], "--pairs", "--max-length=99"], b"a\tb\n"),
        ("cannot open", [os.path.join(folder, "nowhere"), "--pairs"], b"a\tb\n"),
    ]
    for part, arguments, text in cases:
        done = run(*arguments, text=text)
        expect(part, (2, True, b""), (done.returncode, part in done.stderr.decode(), done.stdout))
    expect("a named activation", 0, run(odd, "--pairs", "--activation=none", text=b"a\tb\n").returncode)
    done = subprocess.run([CLEAVE, "classify", models["one"], "--mode=reference"], input=b"a\n", capture_output=True,
                          timeout=600)
    expect("classify refuses one score", (2, True), (done.returncode, b"a single score, not classes" in done.stderr))


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "other"))
        models = {name: make_model(folder, name) for name in ("one", "three")}
        check_pairs(models)
        check_ranks(folder, models)
        check_tokenizers(folder, models)
        check_refusals(folder, models)
    for line in WRONG:
        print(line)
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
