# SPDX-License-Identifier: Apache-2.0
"""A fine-tuned folder gives the same answers elsewhere, and metrics are scikit-learn's."""
import json

import numpy as np
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score

from common import apart

CLASSES = ["no", "yes", "maybe"]


def examples(room, count):
    """Texts whose first word depends on the class, mostly."""
    marks = {name: room.words[i * 7:i * 7 + 5] for i, name in enumerate(CLASSES)}
    for _ in range(count):
        name = room.chance.choice(CLASSES)
        mark = marks[name if room.chance.random() < 0.8 else room.chance.choice(CLASSES)]
        yield room.chance.choice(mark) + " " + room.text(2, 30), name


def find(report, key):
    """The last value of this key anywhere in the report."""
    found = None
    for name, value in report.items() if isinstance(report, dict) else enumerate(report):
        if name == key:
            found = value
        elif isinstance(value, (dict, list)):
            found = find(value, key) if find(value, key) is not None else found
    return found


def check(room):
    folder, tuned = room.bert(hidden_act="gelu").path, room.path("tuned")
    train, test = list(examples(room, 240)), list(examples(room, 120))
    for name, rows in ("train.tsv", train), ("test.tsv", test):
        room.write(name, "text\tlabel\n" + "".join("%s\t%s\n" % row for row in rows))
    words = room.run("finetune", folder, "--data", room.path("train.tsv"), "--test", room.path("test.tsv"),
                     "--epochs", 4, "--lr", "2e-3", "--seed", room.chance.randint(1, 99), "-o", tuned,
                     "--report", room.path("report.json"))
    yield "headers of tables are told and left out", "said so" if "header" in words else words[:60], "header" in words
    texts = [text for text, _ in test]
    room.run("classify", tuned, "-i", room.write("x.txt", "\n".join(texts) + "\n"), "-o", room.path("c.tsv"), "--all",
             "-q")
    rows = [line.split("\t") for line in open(room.path("c.tsv"), encoding="utf-8").read().strip().split("\n")]
    head = rows[0]
    rows = rows[-len(texts):]
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tuned).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tuned)
    with torch.inference_mode():
        p = torch.cat([model(**tokenizer([t], return_tensors="pt", truncation=True, max_length=64)).logits.softmax(-1)
                       for t in texts]).numpy()
    names = [model.config.id2label[i] for i in range(len(CLASSES))]
    theirs = [names[i] for i in p.argmax(1)]
    ours = [next(cell for cell in row if cell in CLASSES) for row in rows]
    same = sum(a == b for a, b in zip(ours, theirs))
    yield "classes equal those of AutoModelForSequenceClassification", "%d of %d" % (same, len(texts)), \
        same == len(texts)
    order = [names.index(name) for name in head[-len(CLASSES):]] if set(head[-3:]) == set(names) else [0, 1, 2]
    worst = apart([[float(cell) for cell in row[-3:]] for row in rows], p[:, order])
    yield "probabilities equal transformers'", "apart %.1e" % worst, worst < 5e-6
    wanted = SentenceTransformer(tuned, device="cpu").encode(texts)
    worst = apart(room.vectors(tuned, texts), wanted)
    yield "vectors of the tuned folder equal SentenceTransformer's", "apart %.1e" % worst, worst < 2e-6
    report = json.load(open(room.path("report.json"), encoding="utf-8"))
    truth = [name for _, name in test]
    f1 = f1_score(truth, ours, average="macro")
    for key, value in (("test_accuracy", accuracy_score(truth, ours)), ("test_macro_f1", f1)):
        worst = abs(find(report, key) - value)
        yield "%s as scikit-learn's" % key, "apart %.1e" % worst, worst < 1e-6
    ours_matrix = np.array(json.loads(find(report, "test_confusion")))
    wanted = confusion_matrix(truth, ours, labels=sorted(CLASSES))
    yield "confusion matrix as scikit-learn's", str(ours_matrix.tolist()), np.array_equal(ours_matrix, wanted)
