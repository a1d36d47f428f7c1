#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `cleave classify` in plain C: it predicts what `cleave finetune` learnt, its probabilities are those of a
softmax computed here, it reads a classifier as transformers writes it; and formats and refusals.

usage: text_classify.py CLEAVE"""
import array
import csv
import io
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

import text_embed
import text_finetune
from text_embed import CLEAVE, LIBRARY, WIDTH, WRONG, expect, make_model
from text_finetune import ANIMALS, NUMBERS

TEXTS = "\n".join([*ANIMALS, *NUMBERS, "", "?"]).encode()
TEXT_COUNT = TEXTS.count(b"\n") + 1


def run(*arguments, text=TEXTS):
    return subprocess.run([CLEAVE, "classify", *arguments, "--mode=reference"], input=text,
                          capture_output=True, timeout=600)


def read_weights(folder):
    """Returns {name: (shape, numbers)} of a file of F32."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    header.pop("__metadata__", None)
    return {name: (one["shape"], array.array("f", data[slice(*one["data_offsets"])]))
            for name, one in header.items()}


def write_weights(folder, weights):
    header, data = {}, b""
    for name, (shape, numbers) in weights.items():
        raw = array.array("f", numbers).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode("ascii")
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def change_config(folder, **changes):
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**config, **changes}, file)


def pooled(folder, source, pooling):
    """Returns the pooled vectors, not divided by their lengths, from a copy of the model whose modules.json says so."""
    shutil.copytree(source, folder)
    os.mkdir(os.path.join(folder, "1_Pooling"))
    for name, content in (
            ("modules.json", [{"path": "", "type": "sentence_transformers.models.Transformer"},
                              {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]),
            ("1_Pooling/config.json", {"word_embedding_dimension": WIDTH, pooling: True})):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            json.dump(content, file)
    done = subprocess.run([CLEAVE, "embed", folder, "--mode=reference", "-o", "-"], input=TEXTS,
                          capture_output=True, check=True, timeout=600)
    return text_embed.read_npy(done.stdout)


def linear(vector, weight, bias):
    (_, columns), numbers = weight
    return [bias[1][i] + math.fsum(a * b for a, b in zip(vector, numbers[i * columns:(i + 1) * columns]))
            for i in range(len(bias[1]))]


def softmax(scores):
    powers = [math.exp(x - max(scores)) for x in scores]
    return [x / math.fsum(powers) for x in powers]


def read_rows(output):
    rows = [line.split("\t") for line in output.decode().splitlines()]
    return [(name, [float(x) for x in numbers]) for name, *numbers in rows
            if (name, numbers[0]) != ("class", "probability")]


def compare(what, names, wanted, rows):
    expect(what + ": rows", TEXT_COUNT, len(rows))
    for (name, (best, *every)), probabilities in zip(rows, wanted):
        expect(what + ": the most probable", names[probabilities.index(max(probabilities))], name)
        expect(what + ": its probability", max(every), best)
        far = max(abs(a - b) for a, b in zip(every, probabilities))
        expect("%s: %g from the softmax" % (what, far), True, len(every) == len(names) and far < 2e-6)


def check_learnt(folder, model):
    """Tests that the command predicts what was learnt: the softmax of the layer on the pooler's output for the first
    tokens."""
    data = text_finetune.write(os.path.join(folder, "data.tsv"), ["%s\tanimal" % one for one in ANIMALS] +
                               ["%s\tnumber" % one for one in NUMBERS])
    out = os.path.join(folder, "learnt")
    done = text_finetune.run(model, "--mode=reference", "--data", data, "--epochs=12", "--batch-size=4",
                             "--lr=0.02", "--seed=5", "-q", "-o", out)
    expect("finetune", (0, b""), (done.returncode, done.stderr))
    report = os.path.join(folder, "report.json")
    done = run(out, "--all", "--report", report)
    expect("exit code", 0, done.returncode)
    expect("header", b"class\tprobability\tanimal\tnumber", done.stdout.splitlines()[0])
    rows = read_rows(done.stdout)
    expect("the classes", ["animal"] * 5 + ["number"] * 5, [name for name, _ in rows[:10]])
    weights = read_weights(out)
    layer = weights["classifier.weight"], weights["classifier.bias"]
    pooler = weights["bert.pooler.dense.weight"], weights["bert.pooler.dense.bias"]
    wanted = [softmax(linear([math.tanh(x) for x in linear(one, *pooler)], *layer)) for one in
              pooled(os.path.join(folder, "raw"), out, "pooling_mode_cls_token")]
    compare("learnt", ["animal", "number"], wanted, rows)
    counted = [sum(name == one for name, _ in rows) for one in ("animal", "number")]
    expect("counted", True, b"animal %d, number %d\n" % tuple(counted) in done.stderr)
    with open(report, encoding="utf-8") as file:
        notes = json.dumps(json.load(file))
    expect("report", True, '"class 0 animal": %d' % counted[0] in notes and '"texts": 12' in notes)
    # the module Normalize is for vectors that are compared, not for classes
    with open(os.path.join(folder, "raw", "modules.json"), "r+", encoding="ascii") as file:
        modules = json.load(file)
        file.seek(0)
        json.dump([*modules, {"path": "2", "type": "sentence_transformers.models.Normalize"}], file)
    expect("normalized or not", done.stdout, run(os.path.join(folder, "raw"), "--all").stdout)
    return out, rows


def check_formats(folder, out, rows):
    short = run(out).stdout
    expect("without --all", [(name, numbers[:1]) for name, numbers in rows], read_rows(short))
    target = os.path.join(folder, "out.csv")
    change_config(out, id2label={"0": 'a "cat", or so', "1": "num\u00e9ro"})
    done = run(out, "--all", "-o", target, "-q")
    expect("csv", (0, b"", b""), (done.returncode, done.stdout, done.stderr))
    with open(target, encoding="utf-8", newline="") as file:
        head, *table = list(csv.reader(file))
    expect("header", ["class", "probability", 'a "cat", or so', "num\u00e9ro"], head)
    renamed = {"animal": 'a "cat", or so', "number": "num\u00e9ro"}
    expect("rows of csv", [(renamed[name], array.array("f", numbers)) for name, numbers in rows],
           [(name, array.array("f", map(float, numbers))) for name, *numbers in table])
    done = run(out, "--format=csv", "-q")
    expect("csv to standard output", len(rows), len(list(csv.DictReader(io.StringIO(done.stdout.decode())))))
    expect("no text", (0, b""), (run(out, text=b"").returncode, run(out, text=b"").stdout))
    field = run(out, "--column=2", text=b"1\tthe cats run\n2\t12 and 12\n").stdout
    expect("a column", read_rows(short)[0:1][0][1], read_rows(field)[0][1])
    path = os.path.join(out, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    del config["id2label"]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    expect("no names", {"LABEL_0", "LABEL_1"}, {name for name, _ in read_rows(run(out).stdout)})
    many = run(out, "-q", text=b"\n".join([b"the cats run", b"12 and 12"] * 9000)).stdout.splitlines()
    expect("many texts", (many[:2] * 9000), many)


def check_transformers(folder, model):
    """Tests BertForSequenceClassification, which uses the pooler's output for the first token."""
    out, chance = os.path.join(folder, "transformers"), random.Random(3)
    plain = pooled(os.path.join(folder, "first"), model, "pooling_mode_cls_token")
    shutil.copytree(model, out)

    def some(*shape):
        return list(shape), [chance.gauss(0, 0.5) for _ in range(math.prod(shape))]

    more = {"bert.pooler.dense.weight": some(WIDTH, WIDTH), "bert.pooler.dense.bias": some(WIDTH),
            "classifier.weight": some(3, WIDTH), "classifier.bias": some(3)}
    weights = {"bert." + name: value for name, value in read_weights(out).items()}
    write_weights(out, {**weights, **more})
    change_config(out, architectures=["BertForSequenceClassification"],
                  id2label={"0": "one", "1": "two", "2": "three"})
    wanted = []
    for vector in plain:
        hidden = [math.tanh(x) for x in linear(vector, more["bert.pooler.dense.weight"],
                                               more["bert.pooler.dense.bias"])]
        wanted.append(softmax(linear(hidden, more["classifier.weight"], more["classifier.bias"])))
    compare("transformers", ["one", "two", "three"], wanted, read_rows(run(out, "--all").stdout))
    return weights, more


def refuses(folder, part, *arguments, code=2):
    done = run(*arguments, "-o", os.path.join(folder, "never.tsv"))
    expect(part, (code, True, 1), (done.returncode, part in done.stderr.decode(),
                                   done.stderr.count(b"\n")))
    expect(part + ": no file", False, os.path.exists(os.path.join(folder, "never.tsv")))


def check_refusals(folder, model, weights, more):
    bad = os.path.join(folder, "bad")
    refuses(folder, "no tensor \"classifier.weight\"", model)
    refuses(folder, "MODEL_DIR is missing")
    refuses(folder, "must be fp32, fp16 or fp16-products", model, "--precision=int8")
    shutil.copytree(os.path.join(folder, "transformers"), bad)

    def with_tensors(part, **changes):
        changed = {**weights, **more, **{name.replace("__", "."): value for name, value in changes.items()}}
        write_weights(bad, {name: value for name, value in changed.items() if value})
        refuses(folder, part, bad, "-q")

    with_tensors("no tensor \"classifier.bias\"", classifier__bias=None)
    with_tensors("\"classifier.weight\" is 1x9", classifier__weight=([1, 9], [0] * 9),
                 classifier__bias=([1], [0]))
    with_tensors("names, but model.safetensors has 1 classes", classifier__weight=([1, 8], [0] * 8),
                 classifier__bias=([1], [0]))
    with_tensors("\"classifier.weight\" is 3x7", classifier__weight=([3, 7], [0] * 21))
    with_tensors("\"classifier.weight\" is 24x0 (rank 1)", classifier__weight=([24], [0] * 24))
    with_tensors("\"classifier.bias\" has 2 numbers, expected 3", classifier__bias=([2], [0] * 2))
    with_tensors("lacks \"bert.pooler.dense\"", bert__pooler__dense__weight=None)
    with_tensors("text 1: its probabilities are not finite", classifier__bias=([3], [math.nan] * 3))
    write_weights(bad, {**weights, **more})
    for part, changes in (
            ("architectures: BertForTokenClassification, expected BertForSequenceClassification",
             {"architectures": ["BertForTokenClassification"]}),
            ("id2label is a list, expected an object",
             {"architectures": None, "id2label": ["a", "b", "c"]}),
            ("id2label has 2 names, but model.safetensors has 3 classes", {"id2label": {"0": "a", "1": "b"}}),
            ("id2label has no name for class 1", {"id2label": {"0": "a", "2": "b", "3": "c"}}),
            ("the name of class 2 has a tab or a newline", {"id2label": {"0": "a", "1": "b", "2": "c\td"}}),
            ("problem_type is regression", {"id2label": {"0": "a", "1": "b", "2": "c"},
                                            "problem_type": "regression"})):
        change_config(bad, **changes)
        refuses(folder, part, bad, "-q")
    change_config(bad, problem_type="single_label_classification", id2label=None)
    expect("that is right again", 0, run(bad).returncode)
    with_infinity = {**more, "classifier.bias": ([3], [0, -math.inf, 0])}
    write_weights(bad, {**weights, **with_infinity})
    expect("a warning", True, b'"classifier.bias" holds values that are not finite' in run(bad).stderr)


def check_names(folder, out):
    """Tests class names of any kind, and classes with the same name."""
    report = os.path.join(folder, "names.json")
    change_config(out, id2label={"0": "same", "1": "same"})
    done = run(out, "--report", report)
    expect("one name", {"same"}, {name for name, _ in read_rows(done.stdout)})
    with open(report, encoding="utf-8") as file:
        notes = json.load(file)["operation"]
    expect("all are counted", TEXT_COUNT, notes["class 0 same"] + notes["class 1 same"])
    change_config(out, id2label={"0": "a\tb", "1": "\u00e9" * 200})
    done = run(out, "--format=csv", "-q", "--report", report)
    table = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    expect("odd names in csv", {"a\tb", "\u00e9" * 200}, {row["class"] for row in table})
    with open(report, encoding="utf-8") as file:
        notes = json.load(file)["operation"]
    expect("all are counted again", TEXT_COUNT,
           sum(value for key, value in notes.items() if key.startswith("class ")))


def check_what_finetune_keeps(folder, model):
    """Tests that a model with several classes per text learns one class per text when it is fine-tuned, and that the
    files say so."""
    base, out = os.path.join(folder, "multi"), os.path.join(folder, "single")
    shutil.copytree(model, base)
    change_config(base, problem_type="multi_label_classification")
    done = text_finetune.run(base, "--mode=reference", "--data", os.path.join(folder, "data.tsv"), "-q",
                             "--epochs=1", "-o", out)
    expect("finetune of several classes at a time", (0, b""), (done.returncode, done.stderr))
    with open(os.path.join(out, "config.json"), encoding="utf-8") as file:
        expect("problem_type", "single_label_classification", json.load(file).get("problem_type"))
    expect("its classes", 0, run(out).returncode)


def check_subfolder(folder, model):
    """Tests that a classifier that was trained from a folder with the transformer in a subfolder has its files there,
    too, and can be read."""
    base, out, flat = (os.path.join(folder, name) for name in ("nested", "nested-out", "flat-out"))
    os.makedirs(os.path.join(base, "1_Pooling"))
    shutil.copytree(model, os.path.join(base, "0_Transformer"))
    for name, content in (("modules.json", [{"type": LIBRARY + "Transformer", "path": "0_Transformer"},
                                            {"type": LIBRARY + "Pooling", "path": "1_Pooling"}]),
                          ("1_Pooling/config.json", {"pooling_mode": "mean"})):
        with open(os.path.join(base, name), "w", encoding="utf-8") as file:
            json.dump(content, file)
    for source, target in (base, out), (model, flat):
        done = text_finetune.run(source, "--mode=reference", "--data", os.path.join(folder, "data.tsv"), "-q",
                                 "--epochs=1", "-o", target)
        expect("finetune of %s" % source, (0, b""), (done.returncode, done.stderr))
    expect("files", True, os.path.exists(os.path.join(out, "0_Transformer", "model.safetensors")))
    expect("the same classes", (0, run(flat).stdout), (run(out).returncode, run(out).stdout))


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(os.path.join(folder, "model"))
        out, rows = check_learnt(folder, model)
        check_formats(folder, out, rows)
        check_names(folder, out)
        check_what_finetune_keeps(folder, model)
        check_subfolder(folder, model)
        check_refusals(folder, model, *check_transformers(folder, model))
    print("\n".join(WRONG) or "classify: all as expected")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
