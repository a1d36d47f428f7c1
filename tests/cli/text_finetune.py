#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `cleave finetune` on a small model of random weights, in plain C and on a device: the model learns; a second
run and a run that was interrupted write the same bytes; refused calls leave no file; and other programs read the model.

usage: text_finetune.py CLEAVE
Where $CLEAVE_TORCH_PYTHON names a Python with torch and transformers (or this one has them), transformers
loads the result as well."""
import filecmp
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import text_embed
from text_embed import CLEAVE, WRONG, expect, make_model

ANIMALS = ["the cats run", "unaffable cats", "the cat was here", "running cats", "cats the cats"]
NUMBERS = ["12 and 12", "1 2 3 4", "12 running", "the 12", "3 and 2 and 1"]


def run(*arguments, **options):
    return subprocess.run([CLEAVE, "finetune", *arguments], capture_output=True, timeout=600, **options)


def write(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
    return path


def read_tensors(path):
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length))


def losses(output):
    return [float(x) for x in re.findall(rb"^step \d+/\d+ epoch \d+ loss ([0-9.]+) rate", output, re.M)]


def check_classes(folder, model, data):
    out, again = os.path.join(folder, "out"), os.path.join(folder, "again")
    report = os.path.join(folder, "report.json")
    rules = ["--mode=reference", "--data", data, "--val", data, "--epochs=12", "--batch-size=4",
             "--lr=0.02", "--seed=5"]
    done = run(model, *rules, "-o", out, "--report", report)
    expect("exit code", 0, done.returncode)
    expect("what was read", b"10 texts, 2 classes: animal 5, number 5", done.stderr.splitlines()[0])
    found = losses(done.stdout)
    expect("a line a step", 36, len(found))
    accuracies = [float(x) for x in re.findall(rb"validation loss [0-9.]+ accuracy ([0-9.]+)", done.stdout)]
    expect("a line an epoch", 12, len(accuracies))
    expect("learns", True, accuracies[-1] == 1 and sum(found[-3:]) < 0.3 * sum(found[:3]))
    expect("files", ["config.json", "model.safetensors", "tokenizer.json"], sorted(os.listdir(out)))
    with open(os.path.join(out, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    expect("a number of more than 64 bits", 1e30, config["limit_of_none"])  # formerly not read, after all steps
    expect("classes", {"0": "animal", "1": "number"}, config.get("id2label"))
    expect("other members", 8, config["hidden_size"])
    expect("what it is", (["BertForSequenceClassification"], "single_label_classification"),
           (config.get("architectures"), config.get("problem_type")))
    head = read_tensors(os.path.join(out, "model.safetensors"))
    expect("head", [[2, 8], [2]], [head[k]["shape"] for k in ("classifier.weight", "classifier.bias")])
    expect("names of transformers", True, "bert.pooler.dense.weight" in head and
           "bert.encoder.layer.1.output.dense.bias" in head and len(head) == 42)
    with open(report, encoding="utf-8") as file:
        notes = json.dumps(json.load(file))
    expect("report", True, '"steps": 36' in notes and '"validation_accuracy": 1' in notes)
    second = run(model, *rules, "-o", again)
    expect("the same lines", done.stdout, second.stdout)
    expect("the same bytes", True, filecmp.cmp(os.path.join(out, "model.safetensors"),
                                               os.path.join(again, "model.safetensors"), False))
    embedded = subprocess.run([CLEAVE, "embed", out, "--mode=reference", "-o", "-"], input=b"cats\n",
                              capture_output=True, timeout=600)
    expect("embed reads it", (0, 1), (embedded.returncode, len(text_embed.read_npy(embedded.stdout))))
    return out


def check_interrupted(folder, model, data):
    """Tests Ctrl-C in the middle, followed by --resume: the bytes are those of an uninterrupted run."""
    whole, broken = os.path.join(folder, "whole"), os.path.join(folder, "broken")
    rules = ["--mode=reference", "--data", data, "--epochs=200", "--batch-size=4", "--lr=0.001"]
    expect("whole", 0, run(model, *rules, "-q", "-o", whole).returncode)
    process = subprocess.Popen([CLEAVE, "finetune", model, *rules, "-o", broken],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stdout:
        if line.startswith(b"step 20/"):
            process.send_signal(signal.SIGINT)
            break
    rest, message = process.communicate(timeout=600)
    expect("interrupted", (130, True), (process.returncode, b"--resume" in message))
    expect("a state", ["checkpoint.safetensors"], os.listdir(broken))
    again = run(model, *rules, "-o", broken)
    expect("a state is in the way", (2, True), (again.returncode, b"--resume" in again.stderr))
    other = run(model, *rules, "--seed=9", "--resume", "-o", broken)
    expect("of another run", (2, True), (other.returncode, b"another run" in other.stderr))
    done = run(model, *rules, "--resume", "-o", broken)
    expect("resumed", 0, done.returncode)
    twice = run(model, *rules, "--resume", "-o", broken)
    expect("resumed twice", (2, True), (twice.returncode, b"the run has finished" in twice.stderr))
    expect("goes on", True, 0 < len(losses(done.stdout)) < 590)
    expect("the same bytes", True, filecmp.cmp(os.path.join(whole, "model.safetensors"),
                                               os.path.join(broken, "model.safetensors"), False))
    expect("nothing stays", sorted(os.listdir(whole)), sorted(os.listdir(broken)))


def check_interrupted_test(folder, model, data):
    """Tests Ctrl-C while the last epoch is tested: nothing that was learnt is lost."""
    whole, broken = os.path.join(folder, "trained"), os.path.join(folder, "untested")
    rules = ["--mode=reference", "--data", data, "--epochs=1", "--batch-size=4", "--lr=0.001"]
    expect("trained", 0, run(model, *rules, "-q", "-o", whole).returncode)
    many = write(os.path.join(folder, "many.tsv"),
                 ["%s\t%s" % pair for pair in (("the cats run 12 " * 4, "animal"), ("12", "number"))] * 50000)
    process = subprocess.Popen([CLEAVE, "finetune", model, *rules, "--val", many, "-o", broken],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stdout:
        if line.startswith(b"step 3/3 "):
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            break
    rest, message = process.communicate(timeout=600)
    expect("its test was interrupted", (130, True, b""), (process.returncode, b"--resume" in message, rest))
    expect("a state before the test", ["checkpoint.safetensors"], os.listdir(broken))
    done = run(model, *rules, "--val", data, "--resume", "-o", broken)
    expect("goes on with the test", (0, 0, True), (done.returncode, len(losses(done.stdout)),
                                                   b"epoch 1 validation loss" in done.stdout))
    expect("the bytes of a run without a test", True, done.returncode == 0 and
           filecmp.cmp(os.path.join(whole, "model.safetensors"),
                       os.path.join(broken, "model.safetensors"), False))


def check_pairs(folder, model):
    out = os.path.join(folder, "pairs")
    data = write(os.path.join(folder, "pairs.tsv"), ["%s\t%s" % pair for pair in zip(ANIMALS, NUMBERS)])
    done = run(model, "--mode=reference", "--task=pairs", "--data", data, "-o", out, "--epochs=20",
               "--batch-size=5", "--lr=0.02", "--freeze=1")
    found = losses(done.stdout)
    expect("pairs", (0, 20), (done.returncode, len(found)))
    expect("pairs are learnt", True, found[-1] < 0.6 * found[0])
    expect("no head", False, "classifier.weight" in read_tensors(os.path.join(out, "model.safetensors")))


def check_refused(folder, model, data):
    out = os.path.join(folder, "never")
    latin1 = os.path.join(folder, "latin1.tsv")
    with open(latin1, "wb") as file:
        file.write(b"cats\tanimal\ndogs\tx\xff\n")
    bad = [
        (2, "no tab", ["--data", write(os.path.join(folder, "a.tsv"), ["a\tb", "c"])]),
        (2, "line 1 has more than one tab", ["--data", write(os.path.join(folder, "b.tsv"), ["a\tb\tc"])]),
        (2, "empty after its tab", ["--data", write(os.path.join(folder, "c.tsv"), ["a\t"])]),
        (2, "every line has the label", ["--data", write(os.path.join(folder, "d.tsv"), ["a\tx", "b\tx"])]),
        (2, "no line", ["--data", write(os.path.join(folder, "e.tsv"), [])]),
        (2, "cannot open", ["--data", os.path.join(folder, "f.tsv")]),
        (2, "the label \"x\" does not occur", ["--data", data, "--val",
                                   write(os.path.join(folder, "g.tsv"), ["cat\tx"])]),
        (2, "--freeze is 3, but the model has only 2 layers", ["--data", data, "--freeze=3"]),
        (2, "--freeze is 2, which leaves nothing to train",
         ["--data", data, "--freeze=2", "--task=pairs"]),
        (2, "--epochs is 0", ["--data", data, "--epochs=0"]),
        (2, "--lr is 0", ["--data", data, "--lr=0"]),
        (2, "--warmup is 1", ["--data", data, "--warmup=1"]),
        (2, "--batch-size is 1, but it must be 2", ["--data", data, "--batch-size=1", "--task=pairs"]),
        (2, "line 2: byte 1 of the label (0xFF)", ["--data", latin1]),
        (2, "there is no", ["--data", data, "--resume"]),
        (2, "--data FILE is missing", []),
    ]
    for code, part, arguments in bad:
        done = run(model, "--mode=reference", *arguments, "-o", out)
        expect(part, (code, True, 1), (done.returncode, part in done.stderr.decode(),
                                       done.stderr.count(b"\n")))
        expect(part + ": no folder", False, os.path.exists(out))
    same = run(model, "--mode=reference", "--data", data, "-o", model)
    expect("its own folder", (2, True), (same.returncode, b"is the folder of the model" in same.stderr))


def check_rates(folder, model, data):
    """Tests that --lr is the highest rate, even if the warm-up ends within a step, and that a run that diverges writes
    no model."""
    out = os.path.join(folder, "rates")
    done = run(model, "--mode=reference", "--data", data, "--epochs=1", "--batch-size=2", "--lr=0.01",
               "-o", out)
    rates = [float(x) for x in re.findall(rb" rate ([0-9.e-]+)$", done.stdout, re.M)]
    expect("rates", [0.01, 0.008889], rates[:2])
    lost = os.path.join(folder, "lost")
    done = run(model, "--mode=reference", "--data", data, "--epochs=60", "--lr=1000", "--clip=0",
               "--optimizer=sgd", "-o", lost)
    expect("diverges", (2, True), (done.returncode, b"the loss has become" in done.stderr and b"--lr" in done.stderr))
    expect("no model of no numbers", False, os.path.exists(os.path.join(lost, "model.safetensors")))


def check_modules(folder, model, data):
    """Tests that the pooling is read from the place that modules.json names, and written to the same place."""
    origin, out = os.path.join(folder, "elsewhere"), os.path.join(folder, "pooled")
    shutil.copytree(model, origin)
    os.mkdir(os.path.join(origin, "0_Mean"))
    for name, content in (
            ("modules.json", [{"path": "", "type": "sentence_transformers.models.Transformer"},
                              {"path": "0_Mean", "type": "sentence_transformers.models.Pooling"}]),
            ("0_Mean/config.json", {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True})):
        with open(os.path.join(origin, name), "w", encoding="ascii") as file:
            json.dump(content, file)
    done = run(origin, "--mode=reference", "--data", data, "--epochs=1", "-q", "-o", out)
    expect("another folder of the pooling", 0, done.returncode)
    embedded = subprocess.run([CLEAVE, "embed", out, "--mode=reference", "-o", "-"], input=b"cats\n",
                              capture_output=True, timeout=600)
    expect("embed reads that as well", 0, embedded.returncode)
    # files of another model in the output folder would change how the new model works
    done = run(model, "--mode=reference", "--data", data, "--epochs=1", "-q", "-o", out)
    expect("mixed", (2, True), (done.returncode, b"has a file modules.json, which the trained model" in done.stderr))
    # a folder that cannot be completed: the trained weights are not lost
    late = write(os.path.join(folder, "late"), [])
    os.mkdir(os.path.join(folder, "half"))
    shutil.move(late, os.path.join(folder, "half", "0_Mean"))
    rules = [origin, "--mode=reference", "--data", data, "--epochs=1", "-q", "-o", os.path.join(folder, "half")]
    done = run(*rules)
    expect("half", (1, True), (done.returncode, b"--resume tries again" in done.stderr))
    os.remove(os.path.join(folder, "half", "0_Mean"))
    expect("whole", 0, run(*rules, "--resume").returncode)
    expect("as it would have been", True, filecmp.cmp(os.path.join(out, "model.safetensors"), os.path.join(
        folder, "half", "model.safetensors"), False))
    expect("not the state", sorted(os.listdir(out)), sorted(os.listdir(os.path.join(folder, "half"))))


LOAD = """
import json
import sys
try:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
except ImportError as missing:
    print(missing)
    sys.exit(77)
model, found = AutoModelForSequenceClassification.from_pretrained(sys.argv[1], output_loading_info=True)
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model.eval()
rows = []
with torch.no_grad():
    for text in json.loads(sys.stdin.read()):
        logits = model(**tokenizer(text, return_tensors="pt")).logits
        rows.append(torch.softmax(logits, 1)[0].tolist())
print(json.dumps({"rows": rows, "names": model.config.id2label,
                  "wrong": [sorted(found[k]) for k in ("missing_keys", "unexpected_keys")]}))
"""


def probabilities(model, texts):
    done = subprocess.run([CLEAVE, "classify", model, "--mode=reference", "--all", "-o", "-"],
                          input="\n".join(texts).encode(), capture_output=True, timeout=600)
    return [[float(x) for x in line.split("\t")[2:]] for line in done.stdout.decode().splitlines()[1:]]


def check_transformers(out):
    """Tests that transformers loads the folder without missing or superfluous weights, and gives the same answers."""
    python = os.environ.get("CLEAVE_TORCH_PYTHON", sys.executable)
    texts = ANIMALS + NUMBERS
    done = subprocess.run([python, "-c", LOAD, out], input=json.dumps(texts).encode(), capture_output=True,
                          timeout=600)
    if done.returncode == 77:
        print("not compared with transformers: %s (CLEAVE_TORCH_PYTHON names another Python)"
              % done.stdout.decode().strip())
        return
    expect("transformers loads it", 0, done.returncode)
    found = json.loads(done.stdout or b"{}")
    expect("all of it", [[], []], found.get("wrong"))
    expect("its names", {"0": "animal", "1": "number"}, found.get("names"))
    worst = max(abs(x - y) for mine, theirs in zip(probabilities(out, texts), found["rows"])
                for x, y in zip(mine, theirs))
    expect("the same probabilities", True, worst < 2e-6)


def macro_f1(matrix):
    scores = []
    for c, row in enumerate(matrix):
        both = sum(row) + sum(other[c] for other in matrix)
        if both:
            scores.append(2 * row[c] / both)
    return sum(scores) / len(scores)


def check_metrics(folder, model, data):
    """The numbers of --val and --test agree with what `cleave classify` predicts with the written model."""
    out, report = os.path.join(folder, "metrics"), os.path.join(folder, "metrics.json")
    texts = ANIMALS + NUMBERS + ANIMALS[:3] + NUMBERS[:2]
    labels = ["animal"] * 5 + ["number"] * 5 + ["number"] * 3 + ["animal"] * 2  # five labels are wrong
    test = write(os.path.join(folder, "test.tsv"), ["%s\t%s" % pair for pair in zip(texts, labels)])
    done = run(model, "--mode=reference", "--data", data, "--val", data, "--test", test, "--epochs=12",
               "--batch-size=4", "--lr=0.02", "-o", out, "--report", report)
    expect("metrics", 0, done.returncode)
    said = [row.index(max(row)) for row in probabilities(out, texts)]
    matrix = [[0, 0], [0, 0]]
    for label, c in zip(labels, said):
        matrix[("animal", "number").index(label)][c] += 1
    expect("what it learnt", [[5, 2], [3, 5]], matrix)
    with open(report, encoding="utf-8") as file:
        notes = json.load(file)["operation"]
    right = matrix[0][0] + matrix[1][1]
    for key, wanted in (("test_accuracy", right / 15), ("test_macro_f1", macro_f1(matrix))):
        expect(key, True, abs(notes[key] - wanted) < 1e-9)
    expect("test_confusion", matrix, json.loads(notes["test_confusion"]))
    expect("names in the report", ["animal", "number"], [notes["class 0"], notes["class 1"]])
    line = "test: loss %.6f, accuracy %.6f (%d of 15), macro F1 %.6f" % (
        notes["test_loss"], right / 15, right, macro_f1(matrix))
    stderr = done.stderr.decode().splitlines()
    expect("on the terminal", True, line in stderr)
    at = stderr.index(line) if line in stderr else 0
    expect("the matrix", [["0", "animal", *map(str, matrix[0])], ["1", "number", *map(str, matrix[1])]],
           [row.split() for row in stderr[at + 2:at + 4]])
    expect("epochs", 12, len(re.findall(rb" macro F1 [01]\.\d{4}$", done.stdout, re.M)))


def check_headers(folder, model, data):
    """The command leaves out a first line that names the columns and reports it; it keeps any other first line."""
    with open(data, encoding="utf-8") as file:
        lines = file.read().splitlines()
    whole = os.path.join(folder, "headless")
    rules = ["--mode=reference", "--epochs=1", "--batch-size=4"]
    expect("without a header", 0, run(model, *rules, "--data", data, "-q", "-o", whole).returncode)
    cases = [("Sentence\tLABEL", [], 2, b"treated as a header"), ("text\tkind", [], 2, b"treated as a header"),
             ("text\tkind", ["--header=no"], 3, None), ("a\tb", [], 3, b"label of line 1 occurs nowhere else"),
             ("a\tb", ["--header=yes"], 2, b"treated as a header"), ("text\tanimal", [], 2, None)]
    for i, (first, options, classes, words) in enumerate(cases):
        out = os.path.join(folder, "header%d" % i)
        table = write(os.path.join(folder, "header.tsv"), [first, *lines])
        done = run(model, *rules, "--data", table, "--val", table, *options, "-o", out)
        expect(first, (0, True), (done.returncode, b", %d classes: " % classes in done.stderr))
        expect(first + ": words", 0 if words is None else 2 if b"treated" in words else 1,
               done.stderr.count(words or b"ine 1"))
        if words and b"treated" in words:
            expect(first + ": the same bytes", True, done.returncode == 0 and filecmp.cmp(
                os.path.join(whole, "model.safetensors"), os.path.join(out, "model.safetensors"), False))
    pairs = write(os.path.join(folder, "named.tsv"), ["anchor\tpositive", *map("\t".join, zip(ANIMALS, NUMBERS))])
    done = run(model, *rules, "--task=pairs", "--data", pairs, "-o", os.path.join(folder, "named"))
    expect("pairs with a header", (0, True, True), (done.returncode, b"treated as a header" in done.stderr,
                                                    b"5 pairs" in done.stderr))
    alone = write(os.path.join(folder, "alone.tsv"), ["text\tlabel"])
    done = run(model, *rules, "--data", alone, "--header=yes", "-o", os.path.join(folder, "none"))
    expect("a header alone", (2, True), (done.returncode, b"no line after the header" in done.stderr))


def main():
    folder = tempfile.mkdtemp()
    try:
        model = make_model(os.path.join(folder, "model"), limit_of_none=10**30)
        data = write(os.path.join(folder, "data.tsv"),
                     ["%s\t%s" % (text, label) for pair in zip(ANIMALS, NUMBERS)
                      for text, label in zip(pair, ("animal", "number"))])
        check_transformers(check_classes(folder, model, data))
        check_metrics(folder, model, data)
        check_headers(folder, model, data)
        check_interrupted(folder, model, data)
        check_interrupted_test(folder, model, data)
        check_pairs(folder, model)
        check_refused(folder, model, data)
        check_rates(folder, model, data)
        check_modules(folder, model, data)
    finally:
        shutil.rmtree(folder)
    for line in WRONG:
        print(line)
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
