#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Cleave with sentence-transformers and tokenizers for each family of encoders, on models of random weights.

usage: families_sentences.py CLEAVE [--texts N] [--seed N] [--characters] [--speed] [--mode MODE] [--device SEL]
                             [--folder DIR] [FAMILY...]

For each family it makes a model (tests/data/model/families/make_families.py says how, and with which packages) with
the character map of SentencePiece where the family has one. It compares the token ids of N random Unicode texts
[20000], the vectors of 300 of them, and with --characters also the ids of every character of Unicode. --speed prints
texts per second of both on 1000 texts with a model as wide as all-MiniLM-L6-v2. It exits with 1 if an id differs or a
cosine is below 0.999999.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "data", "model", "families"))
import make_families  # noqa: E402

MEDIUM = {"width": 96, "heads": 6, "layers": 3, "ffn": 200, "positions": 130, "pieces": 2000}
MINILM = {"width": 384, "heads": 12, "layers": 6, "ffn": 1536, "positions": 514, "pieces": 3000}
BLOCKS = [(0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF), (0x900, 0xDFF), (0xE00, 0x10FF),
          (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x2BFF), (0x3000, 0x31FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
          (0xF900, 0xFFEF), (0x10000, 0x1FFFF), (0x20000, 0x3FFFF), (0xE0000, 0xE01FF), (1, 0x10FFFF)]
SPECIALS = ["<s>", "</s>", "<pad>", "<unk>", "<mask>", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]",
            "\r\n", "e\u0301", "\u200d", "▁", "Ġ",
            "##", "'s", "'LL", "\u0915\u093f", "＜mask＞", "<MASK>", "[mask]", "\u3000", "\u00a0", "``", "''"]


def random_text(chance, words):
    """Returns words, characters of one Unicode block or of any, special tokens and spaces, in random order."""
    parts = []
    for _ in range(chance.randint(0, 12)):
        kind = chance.random()
        if kind < 0.35:
            parts.append(chance.choice(words))
        elif kind < 0.45:
            parts.append(chance.choice(SPECIALS))
        else:
            low, high = chance.choice(BLOCKS)
            parts.append("".join(chr(c) for c in (chance.randint(low, high) for _ in range(chance.randint(1, 8)))
                                 if not 0xD800 <= c < 0xE000))
        parts.append(chance.choice(["", " ", " ", "  ", "\t", "\n"]))
    return "".join(parts)


def characters():
    """Yields every character: alone, inside a word, and behind a letter with which it may combine."""
    for c in range(1, 0x110000):
        if not 0xD800 <= c < 0xE000:
            yield chr(c)
            yield "a%sb" % chr(c)
            yield "e%s\u0301\u0327o" % chr(c)


def run(arguments, texts, *outputs):
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("texts.jsonl", *outputs)]
        with open(names[0], "w", encoding="ascii") as file:
            for text in texts:
                file.write(json.dumps({"text": text}) + "\n")
        command = [arguments[0], arguments[1], arguments[2], "-i", names[0], *arguments[3:], "-o", names[1]]
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        took = time.perf_counter() - began
        if done.returncode:
            raise SystemExit("%s: %s" % (" ".join(command[:3]), done.stderr))
        if names[1].endswith(".json"):
            with open(names[1], encoding="ascii") as file:
                return json.load(file), took
        return numpy.load(names[1]), took


def compare_ids(a, family, folder, model, texts, what):
    got, _ = run([a.cleave, "tokenize", folder, "--max-length", str(model.max_seq_length)], texts, "ids.json")
    wanted = make_families.ids_of(model, texts)
    wrong = [i for i, (x, y) in enumerate(zip(got, wanted)) if x != y]
    print("%-12s %d of %d texts (%s) have other ids" % (family, len(wrong), len(texts), what), flush=True)
    for i in wrong[:a.show]:
        print("   ", ascii(texts[i]), got[i][:24], wanted[i][:24])
    return not wrong


def compare_vectors(a, family, folder, model, texts):
    where = (["--mode", a.mode] if a.mode else []) + (["--device", a.device] if a.device else [])
    got, _ = run([a.cleave, "embed", folder, *where], texts, "v.npy")
    wanted = model.encode(texts, convert_to_numpy=True, show_progress_bar=False).astype(numpy.float64)
    lengths = numpy.linalg.norm(got.astype(numpy.float64), axis=1) * numpy.linalg.norm(wanted, axis=1)
    cosine = (got * wanted).sum(1) / numpy.maximum(lengths, 1e-30)
    print("%-12s least cosine %.9f, largest difference %.2g" % (family, cosine.min(), abs(got - wanted).max()),
          flush=True)
    return cosine.min() >= 0.999999


def compare_speed(a, family, lines):
    with tempfile.TemporaryDirectory() as folder:
        model = make_families.make(family, folder, MINILM, lines, "nmt_nfkc", 256)
        chance = random.Random(3)
        texts = [" ".join(chance.choice(lines) for _ in range(chance.randint(1, 2))) for _ in range(1000)]
        run([a.cleave, "embed", folder], texts[:50], "v.npy")
        _, ours = run([a.cleave, "embed", folder], texts, "v.npy")
        model.encode(texts[:50], show_progress_bar=False)
        began = time.perf_counter()
        model.encode(texts, show_progress_bar=False)
        theirs = time.perf_counter() - began
        print("%-12s %.0f texts/s, sentence-transformers %.0f" % (family, len(texts) / ours, len(texts) / theirs),
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cleave")
    parser.add_argument("families", nargs="*", default=make_families.FAMILIES)
    parser.add_argument("--texts", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--characters", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--mode")
    parser.add_argument("--device")
    parser.add_argument("--folder")
    a = parser.parse_intermixed_args()
    lines, fine = make_families.corpus(), True
    words = sorted({word for line in lines for word in line.split()})
    for family in a.families:
        if a.speed:
            compare_speed(a, family, lines)
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = os.path.join(a.folder or temporary, family)
            if os.path.isdir(folder):
                from sentence_transformers import SentenceTransformer
                model = SentenceTransformer(folder, device="cpu")
            else:
                model = make_families.make(family, folder, MEDIUM, lines, "nmt_nfkc", 120)
            chance = random.Random(a.seed)
            texts = [random_text(chance, words) for _ in range(a.texts)]
            fine &= compare_ids(a, family, folder, model, texts, "random")
            if a.characters:
                fine &= compare_ids(a, family, folder, model, list(characters()), "every character")
            fine &= compare_vectors(a, family, folder, model, texts[:300])
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
