#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time for which a user waits, from texts to vectors, tokenizers included. Compares `cleave.Encoder.embed`
with `SentenceTransformer.encode`; each runs in its own process, and only one computes at a time.

usage: CLEAVE_MINILM_DIR=MODEL_DIR PYTHONPATH=python text_vectors.py [--peer PYTHON] [--turns N] [--json FILE]
       PYTHON: the interpreter that has sentence-transformers [this one]; N turns of each, medians count [7]

Texts are of words that are one token each, so that lengths are exact; [CLS] and [SEP] count.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from lengths import mixed

TOKENS = 16384
MEAN = 25  # tokens of the mix
CASES = [16, MEAN, 64, 128, 256, "mix"]


def texts_of(case, folder):
    """Returns (texts, number of tokens); the texts are in random order of length."""
    with open(os.path.join(folder, "vocab.txt"), encoding="utf-8") as file:
        words = [word for word in file.read().split("\n") if word.isascii() and word.isalpha()]
    lengths = mixed(TOKENS) if case == "mix" else [case] * (TOKENS // case)
    chosen = random.Random(1)
    return [" ".join(chosen.choices(words, k=max(length - 2, 1))) for length in lengths], sum(lengths)


def ours(folder):
    import cleave
    encoder = cleave.Encoder(folder)
    return encoder.embed, f"cleave {cleave.__version__}"


def theirs(folder):
    import sentence_transformers
    import torch
    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    return (lambda texts: model.encode(texts, batch_size=32, show_progress_bar=False),
            f"sentence-transformers {sentence_transformers.__version__}, PyTorch {torch.__version__}, "
            f"{torch.get_num_threads()} threads")


def serve(which, folder, room):
    """Answers lines: CASE -> seconds. The vectors then lie in ROOM."""
    import numpy as np
    embed, name = {"ours": ours, "theirs": theirs}[which](folder)
    print(json.dumps(name), flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        texts, _ = texts_of(case, folder)
        start = time.perf_counter()
        vectors = embed(texts)
        seconds = time.perf_counter() - start
        np.save(os.path.join(room, f"{which}-{case}.npy"), np.asarray(vectors, np.float32))
        print(json.dumps(seconds), flush=True)


class Party:
    def __init__(self, which, python, folder, room):
        self.process = subprocess.Popen(
            [python, os.path.abspath(__file__), "--serve", which, folder, room],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.name = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a party ended before its answer; its message stands above")
        return json.loads(line)

    def seconds(self, case):
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        return self.read()


def cosine(room, case):
    import numpy as np
    a, b = (np.load(os.path.join(room, f"{which}-{case}.npy")).astype(np.float64)
            for which in ("ours", "theirs"))
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return float(np.min(np.sum(a * b, axis=1) / norms))


def measure(parties, turns, folder, room):
    """Returns the rows of all cases. Each turn runs all cases, because the speed of a machine changes from second to
    second."""
    for party in parties:  # drivers compile again in the second and third call
        for case in CASES * 3:
            party.seconds(case)
    seconds = {case: [[], []] for case in CASES}
    for turn in range(turns):
        for case in CASES:
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                seconds[case][which].append(parties[which].seconds(case))
    return [row_of(case, *texts_of(case, folder), seconds[case], room) for case in CASES]


def row_of(case, texts, tokens, seconds, room):
    rates = [tokens / statistics.median(own) for own in seconds]
    return {"case": case, "texts": len(texts), "tokens": tokens, "seconds": seconds,
            "tokens_per_second": rates, "ratio": rates[0] / rates[1], "least_cosine": cosine(room, case)}


def mix_beside_fixed(rows):
    """Returns for each party its rate on the mix, divided by its rate on texts that all have the mean length of the
    mix."""
    at = {row["case"]: row["seconds"] for row in rows}
    tokens = {row["case"]: row["tokens"] for row in rows}
    return [statistics.median(fixed / tokens[MEAN] * tokens["mix"] / mix
                              for fixed, mix in zip(at[MEAN][which], at["mix"][which]))
            for which in (0, 1)]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("--peer", default=sys.executable)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--json")
    given = parser.parse_args()
    folder = os.environ.get("CLEAVE_MINILM_DIR")
    if not folder:
        raise SystemExit("CLEAVE_MINILM_DIR names no folder of all-MiniLM-L6-v2")
    with tempfile.TemporaryDirectory() as room:
        parties = [Party("ours", sys.executable, folder, room), Party("theirs", given.peer, folder, room)]
        print(f"{parties[0].name} beside {parties[1].name}; medians of {given.turns} in turns")
        rows = measure(parties, given.turns, folder, room)
        for row in rows:
            rates = row["tokens_per_second"]
            print(f"{row['case']!s:>5} {rates[0]:8.0f} {rates[1]:8.0f} tokens/s  x{row['ratio']:.2f}  "
                  f"least cosine 1 - {max(1 - row['least_cosine'], 0):.1e}")
        fixed = mix_beside_fixed(rows)
        print(f"the mix beside {MEAN} tokens each: {fixed[0]:.3f} of the rate, {fixed[1]:.3f}")
        for party in parties:
            party.process.stdin.close()
            party.process.wait()
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump({"parties": [party.name for party in parties], "rows": rows, "mix_to_fixed": fixed},
                      file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:5])
    else:
        main()
