#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes two small cross-encoders of random weights, with one score and with three, and the scores
that CrossEncoder of sentence-transformers computes for some pairs of texts. Needs torch, transformers and
sentence-transformers.

usage: make_goldens.py FOLDER TOKENIZER.json"""
import json
import os
import shutil
import sys
import tempfile

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

PAIRS = [["the cats", "unaffable cats run"], ["unaffable cats run", "the cats"], ["", "12 and 12"], ["the cat", ""],
         ["", ""], ["the cat " * 9, "run"], ["run", "the cat " * 9], ["cats run 12 " * 8, "the cat was here " * 8],
         ["the cat was here " * 8, "cats run 12 " * 8], ["a b c d e f g", "1 2 3 4 5 6 7"],
         ["1 2 3 4 5 6", "1 2 3 4 5 6 7"], ["1 2 3 4 5 6 7", "1 2 3 4 5 6"], ["1 2 3 4 5 6 7 8", "a b c d e"],
         ["a b c d e", "1 2 3 4 5 6 7 8 9"], ["caf\u00e9 running", "?"], ["the cats", "unaffable [SEP] cats"]]


def make(folder, tokenizer, labels, activation, seed):
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=1674, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=12, max_position_embeddings=16, type_vocab_size=2, num_labels=labels,
                        initializer_range=0.4)
    if activation:
        config.sentence_transformers = {"activation_fn": activation}
    model = BertForSequenceClassification(config).eval()
    model.save_pretrained(folder)
    names = ["input_ids", "token_type_ids", "attention_mask"]
    fast = PreTrainedTokenizerFast(tokenizer_file=tokenizer, model_max_length=16, model_input_names=names,
                                   cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]", unk_token="[UNK]",
                                   mask_token="[MASK]")
    with tempfile.TemporaryDirectory() as whole:
        for name in "config.json", "model.safetensors":
            shutil.copy(os.path.join(folder, name), whole)
        fast.save_pretrained(whole)
        encoder = CrossEncoder(whole, device="cpu")
        scores = encoder.predict(PAIRS)
        raw = encoder.predict(PAIRS, activation_fn=torch.nn.Identity())
        ranks = encoder.rank("the cats", [b for _, b in PAIRS]) if labels == 1 else None
    return {"scores": np.asarray(scores, float).tolist(), "raw": np.asarray(raw, float).tolist(),
            "ranks": ranks and [[one["corpus_id"], float(one["score"])] for one in ranks]}


def main():
    target, tokenizer = sys.argv[1:]
    golden = {"pairs": PAIRS}
    for name, labels, activation, seed in (("one", 1, None, 1), ("three", 3, "torch.nn.modules.activation.Sigmoid", 2)):
        golden[name] = make(os.path.join(target, name), tokenizer, labels, activation, seed)
    with open(os.path.join(target, "scores.json"), "w", encoding="utf-8") as file:
        json.dump(golden, file, indent=1)


if __name__ == "__main__":
    main()
