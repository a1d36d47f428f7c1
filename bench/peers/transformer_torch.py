#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures matrix products, attention, feed-forward blocks and a BERT encoder of MiniLM's size in PyTorch, in float32,
as its users call them: torch.mm, scaled_dot_product_attention, F.linear, and transformers' BertModel in batches of 32
texts, without the tokenizer; and a step of fine-tuning that encoder by PyTorch's fused AdamW. The inputs are random
numbers, since only times are compared. Uses the GPU if torch has one, and copies the results to the host."""
import torch
import torch.nn.functional as F

SAME_FORMULAS = False
FROM_FILES = False
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MATMUL, ATTENTION, FFN, INFERENCE, TRAINING, HEADS, CLASSES = 0, 1, 2, 3, 4, 8, 4
CHOSEN = {}


def name():
    where = "GPU" if DEVICE == "cuda" else f"{torch.get_num_threads()} threads"
    return f"PyTorch {torch.__version__.split('+')[0]}, {where}"


def can(case):
    return case["workload"] == "transformer" and case["variant"] <= TRAINING


def choose(case):
    CHOSEN.update(case)


def encoder():
    from transformers import BertConfig, BertModel
    torch.manual_seed(1)
    config = BertConfig(vocab_size=30522, hidden_size=384, num_hidden_layers=6,
                        num_attention_heads=12, intermediate_size=1536, hidden_dropout_prob=0,
                        attention_probs_dropout_prob=0)
    return BertModel(config, add_pooling_layer=False).eval().to(DEVICE)


class Learner:
    """The encoder with a layer that predicts the class, as in `cleave finetune`, without dropout."""

    def __init__(self, ids):
        self.model, self.head = encoder(), torch.nn.Linear(384, CLASSES).to(DEVICE)
        self.ids = ids.to(DEVICE)
        self.labels = torch.arange(len(ids), device=DEVICE) % CLASSES
        weights = [*self.model.parameters(), *self.head.parameters()]
        self.optimizer = torch.optim.AdamW(weights, lr=1e-5, fused=True)

    def step(self):
        x = self.model(self.ids, attention_mask=torch.ones_like(self.ids)).last_hidden_state
        loss = F.cross_entropy(self.head(x.mean(1)), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return torch.tensor([loss.item()])


def load(_folder):
    a, b, k = CHOSEN["size"][:3]
    torch.manual_seed(1)
    kind = CHOSEN["variant"]
    if kind == MATMUL:
        return torch.randn(a, k), torch.randn(k, b)
    if kind == ATTENTION:
        return torch.randn(1, HEADS, a, b), torch.randn(1, HEADS, a, b)
    if kind == FFN:
        return torch.randn(a, b), torch.randn(k, b), torch.randn(b, k)
    if kind == TRAINING:
        return (Learner(torch.randint(30522, (a, b))),)
    return encoder(), torch.randint(30522, (a, b))


def embed(model, ids):
    rows = []
    for batch in ids.split(32):
        mask = torch.ones_like(batch)
        x = model(batch.to(DEVICE), attention_mask=mask.to(DEVICE)).last_hidden_state
        rows.append(F.normalize(x.mean(1)).cpu())
    return torch.cat(rows)


def compute(data, _shifted):
    if CHOSEN["variant"] == TRAINING:
        return [data[0].step()]
    return infer(data)


@torch.inference_mode()
def infer(data):
    kind = CHOSEN["variant"]
    if kind == INFERENCE:
        return [embed(*data)]
    x, w, *more = (t.to(DEVICE) for t in data)
    if kind == MATMUL:
        return [(x @ w).cpu()]
    if kind == ATTENTION:
        return [F.scaled_dot_product_attention(x, w, w).cpu()]
    return [F.linear(F.gelu(F.linear(x, w)), more[0]).cpu()]


def warm(data):
    compute(data, False)
