#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cleave finetune` on a small model of random weights, in plain C and on a device: what is learnt,
the same bytes again and after an interruption, what is refused without leaving a file, and what
other programs read.

usage: text_finetune.py CLEAVE
Where $CLEAVE_TORCH_PYTHON names a Python with torch and safetensors (or this one has them), PyTorch
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
    expect("classes", {"0": "animal", "1": "number"}, config.get("id2label"))
    expect("other members", 8, config["hidden_size"])
    head = read_tensors(os.path.join(out, "model.safetensors"))
    expect("head", [[2, 8], [2]], [head[k]["shape"] for k in ("classifier.weight", "classifier.bias")])
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
    """Ctrl-C in the middle, then --resume: the bytes of a run that nobody stopped."""
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
    expect("resumed twice", (2, True), (twice.returncode, b"the run has ended" in twice.stderr))
    expect("goes on", True, 0 < len(losses(done.stdout)) < 590)
    expect("the same bytes", True, filecmp.cmp(os.path.join(whole, "model.safetensors"),
                                               os.path.join(broken, "model.safetensors"), False))
    expect("nothing stays", sorted(os.listdir(whole)), sorted(os.listdir(broken)))


def check_interrupted_test(folder, model, data):
    """Ctrl-C while the last epoch is tested: nothing of what was learnt is lost."""
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
        (2, "nothing behind its tab", ["--data", write(os.path.join(folder, "c.tsv"), ["a\t"])]),
        (2, "every line has the label", ["--data", write(os.path.join(folder, "d.tsv"), ["a\tx", "b\tx"])]),
        (2, "no line", ["--data", write(os.path.join(folder, "e.tsv"), [])]),
        (2, "cannot open", ["--data", os.path.join(folder, "f.tsv")]),
        (2, "has the label \"x\"", ["--data", data, "--val",
                                   write(os.path.join(folder, "g.tsv"), ["cat\tx"])]),
        (2, "--freeze 3: the model has 2 layers", ["--data", data, "--freeze=3"]),
        (2, "--freeze 2: with --task pairs nothing would learn",
         ["--data", data, "--freeze=2", "--task=pairs"]),
        (2, "--epochs: 0 given", ["--data", data, "--epochs=0"]),
        (2, "--lr: 0 given", ["--data", data, "--lr=0"]),
        (2, "--warmup: 1 given", ["--data", data, "--warmup=1"]),
        (2, "--batch-size: 1 given, expected 2", ["--data", data, "--batch-size=1", "--task=pairs"]),
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
    expect("its own folder", (2, True), (same.returncode, b"own folder" in same.stderr))


def check_rates(folder, model, data):
    """--lr is the highest rate, also where the warm-up ends within a step; a run that diverges
    writes no model."""
    out = os.path.join(folder, "rates")
    done = run(model, "--mode=reference", "--data", data, "--epochs=1", "--batch-size=2", "--lr=0.01",
               "-o", out)
    rates = [float(x) for x in re.findall(rb" rate ([0-9.e-]+)$", done.stdout, re.M)]
    expect("rates", [0.01, 0.008889], rates[:2])
    lost = os.path.join(folder, "lost")
    done = run(model, "--mode=reference", "--data", data, "--epochs=60", "--lr=1000", "--clip=0",
               "--optimizer=sgd", "-o", lost)
    expect("diverges", (2, True), (done.returncode, b"the loss is" in done.stderr and b"--lr" in done.stderr))
    expect("no model of no numbers", False, os.path.exists(os.path.join(lost, "model.safetensors")))


def check_modules(folder, model, data):
    """The pooling lies where modules.json says, and goes there."""
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
    # files of another model would rule this one
    done = run(model, "--mode=reference", "--data", data, "--epochs=1", "-q", "-o", out)
    expect("mixed", (2, True), (done.returncode, b"has a file modules.json, and the model none" in done.stderr))
    # a folder that cannot be completed: what was learnt is not lost
    late = write(os.path.join(folder, "late"), [])
    os.mkdir(os.path.join(folder, "half"))
    shutil.move(late, os.path.join(folder, "half", "0_Mean"))
    rules = [origin, "--mode=reference", "--data", data, "--epochs=1", "-q", "-o", os.path.join(folder, "half")]
    done = run(*rules)
    expect("half", (1, True), (done.returncode, b"--resume writes it" in done.stderr))
    os.remove(os.path.join(folder, "half", "0_Mean"))
    expect("whole", 0, run(*rules, "--resume").returncode)
    expect("as it would have been", True, filecmp.cmp(os.path.join(out, "model.safetensors"), os.path.join(
        folder, "half", "model.safetensors"), False))
    expect("no state", sorted(os.listdir(out)), sorted(os.listdir(os.path.join(folder, "half"))))


LOAD = """
import sys
try:
    import torch
    from safetensors.torch import load_file
except ImportError as missing:
    print(missing)
    sys.exit(77)
tensors = load_file(sys.argv[1])
layer = torch.nn.Linear(8, 2)
layer.load_state_dict({k[11:]: v for k, v in tensors.items() if k.startswith("classifier.")})
print(len(tensors), all(torch.isfinite(t).all().item() for t in tensors.values()))
"""


def check_pytorch(out):
    python = os.environ.get("CLEAVE_TORCH_PYTHON", sys.executable)
    done = subprocess.run([python, "-c", LOAD, os.path.join(out, "model.safetensors")],
                          capture_output=True, timeout=600)
    if done.returncode == 77:
        print("not compared with PyTorch: %s (CLEAVE_TORCH_PYTHON names another Python)"
              % done.stdout.decode().strip())
        return
    expect("PyTorch loads it", (0, b"39 True\n"), (done.returncode, done.stdout))


def main():
    folder = tempfile.mkdtemp()
    try:
        model = make_model(os.path.join(folder, "model"))
        data = write(os.path.join(folder, "data.tsv"),
                     ["%s\t%s" % (text, label) for pair in zip(ANIMALS, NUMBERS)
                      for text, label in zip(pair, ("animal", "number"))])
        check_pytorch(check_classes(folder, model, data))
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
