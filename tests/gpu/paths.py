# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions that a loop executes in nearly all iterations.

A loop can have blocks that are skipped in nearly all iterations, but count as much as the others in a listing: in a
search for maxima, all that is done for a maximum. Such blocks are recognised by what they do. A basic block is seldom
executed if iterations can do without it, and if it, or a block that is only reached through it, writes to global
memory. In a loop that writes its results in every iteration, the writing blocks cannot be skipped, and so none is left
out.
"""
import collections
import re

import loops


def edges(lines, parts, starts, nvidia):
    """Returns the successors and the predecessors of each basic block, by its index in `starts`."""
    labels = {text: i for i, (_, what, text) in enumerate(parts) if what == "label"}
    block = {start: b for b, start in enumerate(starts)}
    after, before = collections.defaultdict(set), collections.defaultdict(set)
    for b in range(len(starts)):
        at, what, text = parts[ends_before(starts, b, parts) - 1]
        goes_on = b + 1 < len(starts)
        if what == "branch":
            if text in labels:
                after[b].add(block[labels[text]])
            goes_on &= bool(re.search(r"\*/\s+@|BRA\s+!?U?P", lines[at])) if nvidia else "s_cbranch" in lines[at]
        elif what == "do" and re.match(r"EXIT|RET|s_endpgm", text):
            goes_on &= bool(re.search(r"\*/\s+@", lines[at]))
        if goes_on:
            after[b].add(b + 1)
    for b, found in after.items():
        for other in found:
            before[other].add(b)
    return after, before


def ends_before(starts, b, parts):
    return starts[b + 1] if b + 1 < len(starts) else len(parts)


def reached(neighbours, start, without=None):
    """Returns the blocks that are reached from `start` by ways that avoid the block `without`."""
    seen, waiting = set(), [start]
    while waiting:
        b = waiting.pop()
        if b not in seen and b != without:
            seen.add(b)
            waiting += neighbours[b]
    return seen


def usual(lines, nvidia):
    """Returns the mix of the instructions, as loops.count does, of those blocks that nearly all iterations of the loop
    around the block with the most multiply-adds execute."""
    kinds = loops.NVIDIA_KINDS if nvidia else loops.AMD_KINDS
    patterns = [(kind, re.compile(text)) for kind, text in kinds]
    parts = list((loops.nvidia_instructions if nvidia else loops.amd_instructions)(lines))
    after_branch = {i + 1 for i, (_, what, _) in enumerate(parts) if what == "branch"} - {len(parts)}
    starts = sorted({0} | after_branch | {i for i, (_, what, _) in enumerate(parts) if what == "label"})
    mixes = [loops.count(parts[start:ends_before(starts, b, parts)], patterns, nvidia)
             for b, start in enumerate(starts)]
    after, before = edges(lines, parts, starts, nvidia)
    hot = max(range(len(starts)), key=lambda b: mixes[b]["fma"])
    loop = reached(after, hot) & reached(before, hot)
    seldom = set()
    for b in loop - {hot}:
        if any(hot in reached(after, first, b) for first in after[hot]):
            only = loop - reached(after, hot, b)  # `b`, and what is only reached through it
            if any(mixes[x]["store"] for x in only):
                seldom |= only
    total = collections.Counter()
    for b in loop - seldom:
        total.update(mixes[b])
    return total
