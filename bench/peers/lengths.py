# SPDX-License-Identifier: Apache-2.0
"""Lengths of texts as they come in practice, for what measures encoders."""
import math


def mixed(tokens):
    """Log-normal lengths, mean 25, of `tokens` in all: those of bench/command/transformer.c."""
    lengths, state = [], 1
    while tokens:
        normal = -6.0
        for _ in range(12):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            normal += (state >> 8) * 2.0**-24
        own = int(min(max(math.exp(3.05 + 0.7 * normal), 3), 256))
        lengths.append(min(own, tokens))
        tokens -= lengths[-1]
    return lengths
