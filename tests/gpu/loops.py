# SPDX-License-Identifier: Apache-2.0
"""Finds the loops of a kernel in machine code, and counts their instructions by kind."""
import collections
import re

# (kind, pattern): an instruction counts as the first kind whose pattern matches
AMD_KINDS = (
    ("fma", r"v_(pk_)?(fma|fmac|fmamk|fmaak|mac|mad|madmk|madak)_(f32|legacy_f32)|v_dual_fma"),
    ("half", r"v_(pk_)?(fma|fmac|mad|mul|add)\w*_f16|v_fma_mix|v_dot2"),
    ("double", r"v_\w+_f64"),
    ("matrix", r"v_mfma|v_wmma"),
    ("private", r"scratch_|buffer_(load|store)"),  # HSA kernels use them only for private memory
    ("load", r"(global|flat)_load"),
    ("store", r"(global|flat)_(store|atomic)|buffer_"),
    ("local", r"ds_"),
    ("float", r"v_(pk_)?(mul|add|sub|max|min|rcp|rsq|sqrt|exp|log|cvt\w*)_f32"),
    ("integer", r"v_"),
    ("scalar", r""),
)
NVIDIA_KINDS = (
    ("fma", r"FFMA"),
    ("half", r"H(FMA2|ADD2|MUL2)"),
    ("double", r"D(FMA|ADD|MUL)"),
    ("matrix", r"[HIB]?MMA"),
    ("load", r"LDG"),
    ("store", r"STG|RED|ATOM"),
    ("local", r"LDS|STS|ATOMS"),
    ("private", r"LDL|STL"),
    ("constant", r"LDC|ULDC"),
    ("float", r"F(ADD|MUL|SETP|SEL|MNMX|CHK)|MUFU|I2F|F2I|F2F"),
    ("control", r"BRA|BSSY|BSYNC|BAR|EXIT|NOP|WARPSYNC|CALL|RET|DEPBAR"),
    ("integer", r""),
)
# first, last: indices of instructions; depth: number of enclosing loops; mix: instructions by kind, without inner loops
Loop = collections.namedtuple("Loop", "first last depth mix")


def amd_instructions(lines):
    for at, line in enumerate(lines):
        if match := re.match(r"(\.L\w+):", line):
            yield at, "label", match[1]
        elif match := re.match(r"\s+(s_c?branch\w*)\s+(\.L\w+)", line):
            yield at, "branch", match[2]
        elif match := re.match(r"\s+([a-z]\w*(?: .*)?)", line):
            text = match[1]
            if text.startswith("v_dual_"):  # two instructions that share an issue slot
                yield at, "dual", text
            else:
                yield at, "do", text


def nvidia_instructions(lines):
    for at, line in enumerate(lines):
        if match := re.match(r"(\.L_\w+):", line):
            yield at, "label", match[1]
        elif match := re.search(r"\*/\s+(?:@!?U?P\w+\s+)?(BRA)\b.*`\((\.L_\w+)\)", line):
            yield at, "branch", match[2]
        elif match := re.search(r"/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*)", line):
            moved = match[1].startswith("HFMA2") and "-RZ, RZ" in match[2]  # HFMA2 that only moves a constant
            yield at, "do", "MOV" if moved else match[1]


def kind_of(patterns, text):
    return next(kind for kind, pattern in patterns if pattern.match(text))


def count(parts, patterns, nvidia):
    """Returns the number of operations of each kind; "saved" counts operations that share the issue slot of another."""
    mix = collections.Counter()
    for _, what, text in parts:
        if what == "branch":
            mix["control" if nvidia else "scalar"] += 1
        elif what == "dual":
            for part in text.split("::"):
                fused = re.search(r"v_dual_(fma|mul|add|sub)", part)
                mix["fma" if fused and fused[1] == "fma" else "integer"] += 1
            mix["saved"] += 1
        elif what == "do":
            mix[kind_of(patterns, text)] += 1
            if text.startswith(("v_pk_fma_f32", "v_pk_mul_f32", "v_pk_add_f32")):
                mix[kind_of(patterns, text)] += 1
                mix["saved"] += 1
    return mix


def loops_of(lines, nvidia):
    """Returns the whole kernel as a Loop, followed by all its loops in the order of their beginnings."""
    kinds = NVIDIA_KINDS if nvidia else AMD_KINDS
    patterns = [(kind, re.compile(text)) for kind, text in kinds]
    parts = list((nvidia_instructions if nvidia else amd_instructions)(lines))
    labels = {text: i for i, (_, what, text) in enumerate(parts) if what == "label"}
    spans = {(labels[text], i) for i, (_, what, text) in enumerate(parts)
             if what == "branch" and labels.get(text, len(parts)) < i}
    if nvidia:  # every kernel ends with a branch to itself, which is no loop
        spans = {(a, b) for a, b in spans if b - a > 1}
    ends = {}
    for first, last in spans:  # branches back to the same instruction belong to one loop
        ends[first] = max(last, ends.get(first, 0))
    spans = [(0, len(parts) - 1)] + sorted(ends.items(), key=lambda s: (s[0], -s[1]))
    owner = [0] * len(parts)
    for index, (first, last) in enumerate(spans):
        for at in range(first, last + 1):
            owner[at] = index  # inner loops come after outer ones in `spans`
    found = []
    for index, (first, last) in enumerate(spans):
        mine = [part for at, part in enumerate(parts) if owner[at] == index]
        depth = sum(a <= first and last <= b for a, b in spans) - 1
        found.append(Loop(first, last, depth, count(mine, patterns, nvidia)))
    return found


def arithmetic(mix):
    return mix["fma"] + mix["double"] + mix["half"] + mix["matrix"]


def hottest(found, nvidia):
    """Returns the loop with the most arithmetic for its length, or with the most loads if none has arithmetic; the
    whole kernel if it has no loops."""
    return max(found[1:] or found,
               key=lambda l: (arithmetic(l.mix) ** 2 / max(slots(l.mix, nvidia), 1),
                              l.mix["load"] + l.mix["local"], sum(l.mix.values())))


def slots(mix, nvidia):
    """Returns the number of issue slots of the vector units; on AMD, scalar instructions take none of them."""
    return sum(mix.values()) - 2 * mix["saved"] - (0 if nvidia else mix["scalar"])
