#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the model of random weights in this folder (BertForSequenceClassification of transformers), and steps.safetensors:
what PyTorch gets from six steps of SGD and of AdamW. Needs torch and transformers.

usage: make_goldens.py FOLDER"""
import json
import os
import sys

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForSequenceClassification

TEXTS = [[1, 5, 7, 2], [1, 9, 9, 9, 30, 2], [1, 2], [1, 14, 3, 2], [1, 39, 3, 11, 2], [1, 6, 2],
         [1, 20, 8, 17, 2], [1, 12, 2]]
LABELS = [0, 2, 1, 1, 1, 0, 2, 0]
STEPS = 6


def fresh():
    torch.manual_seed(7)
    config = BertConfig(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=32, max_position_embeddings=16, type_vocab_size=2,
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=3,
                        initializer_range=0.3, attn_implementation="eager")
    config.id2label = {0: "low", 1: "middle", 2: "high"}
    config.label2id = {"low": 0, "middle": 1, "high": 2}
    model = BertForSequenceClassification(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.add_(torch.randn_like(weight) * 0.1)
    return model


def scores(model, texts):
    longest = max(map(len, texts))
    ids = torch.tensor([text + [0] * (longest - len(text)) for text in texts])
    mask = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in texts])
    return model(input_ids=ids, attention_mask=mask).logits


def steps(model, optimizer):
    losses = []
    for step in range(STEPS):
        half = slice(0, 4) if step % 2 == 0 else slice(4, 8)
        loss = torch.nn.functional.cross_entropy(scores(model, TEXTS[half]), torch.tensor(LABELS[half]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def main():
    folder = sys.argv[1]
    model = fresh()
    model.save_pretrained(folder)
    golden = {"ids": torch.tensor([i for text in TEXTS for i in text], dtype=torch.int32),
              "lengths": torch.tensor([len(text) for text in TEXTS], dtype=torch.int32),
              "labels": torch.tensor(LABELS, dtype=torch.int32)}
    with torch.no_grad():
        golden["scores"] = scores(model, TEXTS).contiguous()
    for name, make in (("sgd", lambda p: torch.optim.SGD(p, lr=0.05)),
                       ("adamw", lambda p: torch.optim.AdamW(p, lr=3e-3, weight_decay=0.0))):
        model = fresh()
        golden[name + ".losses"] = steps(model, make(model.parameters()))
        with torch.no_grad():
            golden[name + ".scores"] = scores(model, TEXTS).contiguous()
        for part in ("classifier.weight", "classifier.bias", "bert.pooler.dense.weight",
                     "bert.pooler.dense.bias"):
            golden[name + "." + part] = dict(model.named_parameters())[part].detach().clone()
    save_file(golden, os.path.join(folder, "steps.safetensors"))
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        print(json.dumps(json.load(file)))


if __name__ == "__main__":
    main()
