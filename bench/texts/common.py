# SPDX-License-Identifier: Apache-2.0
"""What the checks of promises.py share: running `cleave`, folders with models of random weights, texts."""
import json
import os
import random
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "peers"),
                os.path.join(HERE, "..", "..", "tests", "data", "model", "families")]
import make_families  # noqa: E402

SIZE = {"width": 48, "heads": 4, "layers": 2, "ffn": 80, "positions": 130, "pieces": 900}


class Room:
    """A folder for files, the program, the seed, and the words of which texts consist."""

    def __init__(self, folder, cleave, seed):
        self.folder, self.cleave = folder, cleave
        self.chance = random.Random(seed)
        self.lines = make_families.corpus()
        self.words = sorted({word for line in self.lines for word in line.split() if word.isalpha()})

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, least=1, most=20):
        return " ".join(self.chance.choices(self.words, k=self.chance.randint(least, most)))

    def write(self, name, content):
        with open(self.path(name), "w", encoding="utf-8", newline="") as file:
            file.write(content)
        return self.path(name)

    def run(self, *arguments, fails=False):
        """Runs `cleave`; returns its standard error. Ends the check if it fails, or if it does not with `fails`."""
        done = subprocess.run([self.cleave, *map(str, arguments)], capture_output=True, text=True)
        if bool(done.returncode) != fails:
            raise AssertionError("cleave %s: exit code %d: %s" % (arguments[0], done.returncode, done.stderr[-300:]))
        return done.stderr

    def model(self, family="distilbert"):
        """A folder of sentence-transformers of this family."""
        folder = self.path(family)
        if not os.path.isdir(folder):
            make_families.make(family, folder, SIZE, self.lines, "nmt_nfkc", 100)
        return folder

    def bert(self, **config):
        """A folder with a BERT, a tokenizer and mean pooling, but without a pooler."""
        import folders_sentences
        folder = folders_sentences.Folder(self.path("bert%d" % len(os.listdir(self.folder))),
                                          folders_sentences.vocabulary(), **config)
        folder.modules(("Pooling", folders_sentences.OLD))
        return folder

    def vectors(self, folder, texts, *options):
        """The vectors that `cleave embed` writes."""
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        out = self.path("vectors.npy")
        self.run("embed", folder, "-i", self.write("texts.jsonl", lines), "-o", out, "-q", *options)
        return np.load(out)


def apart(a, b):
    return float(np.max(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))))
