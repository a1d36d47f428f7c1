#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a small Llama with random weights, and the scores and tokens that PyTorch computes with it.

usage: make_decoder.py FOLDER     writes config.json, model.safetensors and expected.safetensors:
       prompt [P], scores [P, V] after every token of the prompt, tokens [N]: the greedy tokens that follow
Made with torch 2.15.0 and transformers 5.23.0.
"""
import os
import sys

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

folder = sys.argv[1]
torch.manual_seed(11)
config = LlamaConfig(vocab_size=48, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, intermediate_size=56, max_position_embeddings=64,
                     rms_norm_eps=1e-5, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2,
                     initializer_range=0.3)
model = LlamaForCausalLM(config).eval()
with torch.no_grad():
    for name, weight in model.named_parameters():
        if "norm" in name:
            weight.copy_(1 + 0.1 * torch.randn_like(weight))
    prompt = torch.tensor([[1, 17, 5, 40, 8, 33, 2, 19, 19]])
    scores = model.double()(prompt).logits[0].float()
    tokens, ids = [], prompt
    for _ in range(24):
        ids = torch.cat([ids, model(ids).logits[:, -1].argmax(-1, keepdim=True)], 1)
        tokens.append(int(ids[0, -1]))
model.float().save_pretrained(folder)
save_file({"prompt": prompt[0].int(), "scores": scores.contiguous(),
           "tokens": torch.tensor(tokens, dtype=torch.int32)},
          os.path.join(folder, "expected.safetensors"))
for name in os.listdir(folder):
    if name not in ("config.json", "model.safetensors", "expected.safetensors", "README.md",
                    os.path.basename(__file__)):
        os.remove(os.path.join(folder, name))
print(tokens)
