#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time for which a user waits, from texts to vectors, tokenizers included. Compares `cleave.Encoder.embed`
with `SentenceTransformer.encode`; each runs in its own process, and only one computes at a time. With --train, compares
a step of `cleave.Trainer` with one of transformers' BERT and PyTorch's fused AdamW.

usage: CLEAVE_MINILM_DIR=MODEL_DIR PYTHONPATH=python text_vectors.py [--peer PYTHON] [--turns N] [--tokens N]
                                                                [--device SEL] [--train] [--json FILE]
       PYTHON: the interpreter that has sentence-transformers [this one]; N turns of each, of which the best counts [7];
       --tokens: tokens per row [16384]; --train measures steps of fine-tuning of texts of 128 tokens [2048 per row]

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

MEAN = 25  # tokens of the mix
CASES = [16, MEAN, 64, 128, 256, "mix"]


def texts_of(case, folder, tokens):
    """Returns (texts, number of tokens); the texts are in random order of length."""
    with open(os.path.join(folder, "vocab.txt"), encoding="utf-8") as file:
        words = [word for word in file.read().split("\n") if word.isascii() and word.isalpha()]
    lengths = mixed(tokens) if case == "mix" else [case] * (tokens // case)
    chosen = random.Random(1)
    return [" ".join(chosen.choices(words, k=max(length - 2, 1))) for length in lengths], sum(lengths)


def ours(folder, device):
    import cleave
    context = cleave.Context(devices=device) if device else None
    return cleave.Encoder(folder, context=context).embed, f"cleave {cleave.__version__}"


def our_step(folder, device):
    import cleave
    context = cleave.Context(devices=device) if device else None
    trainer = cleave.Trainer(folder, classes=4, decay=0.01, context=context)

    def step(texts):
        trainer.step(texts, [i % 4 for i in range(len(texts))], rate=1e-5)
        return []
    return step, f"cleave {cleave.__version__}, {trainer.device}"


def theirs(folder, _device):
    import sentence_transformers
    import torch
    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    return (lambda texts: model.encode(texts, batch_size=32, show_progress_bar=False),
            f"sentence-transformers {sentence_transformers.__version__}, PyTorch {torch.__version__}, "
            f"{torch.get_num_threads()} threads")


def their_step(folder, _device):
    import torch
    import transformers
    model = transformers.AutoModel.from_pretrained(folder, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    tokenizer, head = transformers.AutoTokenizer.from_pretrained(folder), torch.nn.Linear(model.config.hidden_size, 4)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-5, fused=True)
    model.train()

    def step(texts):
        rows = tokenizer(texts, return_tensors="pt", padding=True, truncation=True, max_length=256)
        x = model(**rows).last_hidden_state
        loss = torch.nn.functional.cross_entropy(head(x.mean(1)), torch.arange(len(texts)) % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        return []
    return step, f"transformers {transformers.__version__}, PyTorch {torch.__version__}, fused AdamW"


def serve(which, folder, room, tokens, device):
    """Answers lines: CASE -> seconds. The vectors then lie in ROOM."""
    import numpy as np
    parties = {"ours": ours, "theirs": theirs, "our step": our_step, "their step": their_step}
    embed, name = parties[which](folder, device)
    print(json.dumps(name), flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        texts, _ = texts_of(case, folder, int(tokens))
        start = time.perf_counter()
        vectors = embed(texts)
        seconds = time.perf_counter() - start
        np.save(os.path.join(room, f"{which}-{case}.npy"), np.asarray(vectors, np.float32))
        print(json.dumps(seconds), flush=True)


class Party:
    def __init__(self, which, python, folder, room, tokens, device):
        self.process = subprocess.Popen(
            [python, os.path.abspath(__file__), "--serve", which, folder, room, str(tokens), device],
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


def measure(parties, cases, turns, warm):
    """Returns the seconds of all cases. Each turn runs all cases, because the speed of a machine changes from second
    to second."""
    for party in parties:  # drivers compile again in the second and third call
        for case in cases * warm:
            party.seconds(case)
    seconds = {case: [[], []] for case in cases}
    for turn in range(turns):
        for case in cases:
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                seconds[case][which].append(parties[which].seconds(case))
    return seconds


def row_of(case, texts, tokens, seconds):
    rates = [tokens / min(own) for own in seconds]
    return {"case": case, "texts": len(texts), "tokens": tokens, "seconds": seconds,
            "tokens_per_second": rates, "ratio": rates[0] / rates[1],
            "ratio_of_medians": statistics.median(seconds[1]) / statistics.median(seconds[0])}


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
    parser.add_argument("--warm", type=int, default=3)
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--device", default="")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--json")
    given = parser.parse_args()
    folder = os.environ.get("CLEAVE_MINILM_DIR")
    if not folder:
        raise SystemExit("CLEAVE_MINILM_DIR names no folder of all-MiniLM-L6-v2")
    tokens, cases = given.tokens or (2048 if given.train else 16384), [128] if given.train else CASES
    names = ("our step", "their step") if given.train else ("ours", "theirs")
    with tempfile.TemporaryDirectory() as room:
        parties = [Party(name, python, folder, room, tokens, given.device)
                   for name, python in zip(names, (sys.executable, given.peer))]
        print(f"{parties[0].name} beside {parties[1].name}; the best of {given.turns} in turns")
        seconds = measure(parties, cases, given.turns, given.warm)
        rows = [row_of(case, *texts_of(case, folder, tokens), seconds[case]) for case in cases]
        for row in rows:
            rates, apart = row["tokens_per_second"], ""
            if not given.train:
                row["least_cosine"] = cosine(room, row["case"])
                apart = f"  least cosine 1 - {max(1 - row['least_cosine'], 0):.1e}"
            print(f"{row['case']!s:>5} {rates[0]:8.0f} {rates[1]:8.0f} tokens/s  x{row['ratio']:.2f} "
                  f"(medians x{row['ratio_of_medians']:.2f}){apart}")
        fixed = None if given.train else mix_beside_fixed(rows)
        if fixed:
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
        serve(*sys.argv[2:7])
    else:
        main()
