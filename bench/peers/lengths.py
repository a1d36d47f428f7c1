# SPDX-License-Identifier: Apache-2.0
"""Makes lengths of texts as they occur in practice, for the measurements of encoders."""
import math


def mixed(tokens):
    """Returns log-normal lengths with mean 25 and the sum `tokens`, as in bench/command/transformer.c."""
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
