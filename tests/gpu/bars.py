# SPDX-License-Identifier: Apache-2.0
"""Computes how far the hot kernels are from the peak of a card, from counts of instructions and bytes, and checks the
bars: the largest distances that are allowed.

The estimated time of a kernel is the longer of two times: that of its issue slots (one instruction of a wave per slot;
the instructions of each loop of the machine code times the number of its iterations), and that of its memory accesses
(the bytes that miss the caches). The roofline is the longer of the same two times for only the arithmetic that the
result requires and with each byte read and written once. The counts include neither waits for memory nor bank
conflicts, so a real card is slower.
"""
import collections
import math
import re

# Multiply-adds and bytes per second: GeForce RTX 3060, Radeon RX 6700 XT, Radeon VII
CARDS = {"sm_86": (6.37e12, 360e9), "gfx1030": (6.6e12, 384e9), "gfx906": (6.7e12, 1024e9)}
# (kernel, targets, least share of multiply-adds in the hot loop in %, name of what the kernel computes)
SHARES = (
    ("clv_gemm_tile", ("sm_86", "gfx1030"), 60, "products"),
    ("clv_attention_tile", ("sm_86", "gfx1030"), 50, "attention"),
    ("clv_attention_back_kv_tile", ("sm_86", "gfx1030"), 50, "gradients of keys and values"),
    ("clv_attention_back_q_tile", ("sm_86", "gfx1030"), 50, "gradients of queries"),
)
Cost = collections.namedtuple("Cost", "slots needed bytes compulsory")  # per unit of work


def define(row, name):
    match = re.search(r"\b%s=(-?\d+)" % name, row.variant)
    return int(match[1]) if match else None


def loops_with(row, fma, more=lambda mix: True):
    return [l for l in row.inner[1:] if l[2].get("fma", 0) == fma and more(l[2])]


def paco_project(row):
    """Returns the Cost of one patch of radius 4 in one of 100 frames, with the PSF at sub-pixel positions, or None."""
    p, q, ma, mb, block = (define(row, name) for name in ("P", "Q", "MA", "MB", "FRAME_BLOCK"))
    if (p, q, define(row, "SHIFTED")) != (49, 10, 1):
        return None
    frames, pair = 100, loops_with(row, 2 * q * block)
    rest = [l for l in row.inner[1:] if l not in pair]
    if not pair or not rest:
        return None
    place = max(rest, key=lambda l: l[2].get("fma", 0))  # evaluates the polynomials of the position in a frame
    around = [l for l in rest if l is not place and l[2].get("fma", 0) >= q * block]  # an odd last pixel
    slots = (pair[0][1] * (p // 2) + sum(l[1] for l in around)) / block + place[1]
    each = 4 * (p * q + ma) / frames + 4 + 16  # W and A, read once for all frames; a pixel; two pairs of sums
    return Cost(slots, p * q + mb * q + 2 * (ma + mb), each, each)


def spectra_gram(row):
    """Returns the Cost of a segment of 64 pixels of a star with 10 terms, or None. The terms are the same for all stars
    and therefore stay in a cache."""
    terms = define(row, "NPOLY")
    hot = [l for l in row.inner[1:] if l[2].get("fma", 0) >= 16]
    if terms != 10 or not hot:
        return None
    pairs = (terms + 2) // 2  # pairs of rows; a work-item multiplies two pairs
    parts = 64 // (pairs * (pairs + 1) // 2)  # work-items that share the pixels of a product
    turns = 16 * math.ceil(16 / parts) / hot[0][2]["fma"]  # iterations: 16 products per 4 pixels
    slots = 64 * (turns * hot[0][1] + row.inner[0][1])
    out = 4 * 16 * terms
    return Cost(slots, 64 * (terms * (terms + 1) / 2 + 2 * terms), 64 * (32 + 8) + out, 64 * (4 + 8) + out)


def blob_sweep(row):
    """Returns the Cost of a row of one level of a LoG in EACH columns, for a level that uses all 2 RADIUS + 1 taps, or
    None. A level that uses fewer skips them four at a time. A pixel of a strip's rim counts as read from memory."""
    each, radius, columns, levels = (define(row, name) for name in ("EACH", "RADIUS", "COLS", "LEVELS"))
    if define(row, "DOG") != 0 or row.usual.get("fma", 0) < each * (6 * radius + 1):
        return None
    # per column: sums of pairs of pixels and two results along the row, and their share in 2 RADIUS + 1 sums
    needed = each * (3 * radius + 2 + 2 * (2 * radius + 1))
    pixel = (1, 2, 2, 4)[define(row, "PIXEL")] * each / levels
    return Cost(row.usual["slots"], needed, pixel * (columns + 2 * radius) / (columns - 2), pixel)


# Kernels that are counted by the blocks which nearly all iterations execute (paths.py).
USUAL = ("clv_blob_sweep",)
# (kernel, function that returns the Cost, largest multiple of the roofline's time, name of what the kernel computes)
DISTANCES = (
    ("clv_paco_project_group", paco_project, 2.0, "PACO's projection"),
    ("clv_spectra_gram_group", spectra_gram, 3.0, "normal equations of spectra"),
    ("clv_blob_sweep", blob_sweep, 2.0, "spots"),
)
# Kernels that miss their bar of DISTANCES, with the larger bar that holds until then: (kernel, target): multiple.
HELD = {}


def distance(cost, card):
    rate, band = CARDS[card]
    return max(cost.slots / rate, cost.bytes / band) / max(cost.needed / rate, cost.compulsory / band)


def share(row):
    return 100 * row.mix.get("fma", 0) / row.slots if row.slots else 0


def measured(rows):
    """Returns [(what, kernel, target, text, good, held)]: a result for every bar on every target in `rows`."""
    found, compiled = [], {r.target for r in rows}
    for kernel, targets, least, what in SHARES:
        for target in (t for t in targets if t in compiled):
            best = max((share(r) for r in rows if (r.kernel, r.target) == (kernel, target)), default=None)
            good = best is not None and best >= least
            text = "no such kernel" if best is None else "%.0f %% of the peak, at least %d %%" % (best, least)
            found.append((what, kernel, target, text, good, good))
    for kernel, count, most, what in DISTANCES:
        for target in (t for t in CARDS if t in compiled):
            mine = [r for r in rows if (r.kernel, r.target) == (kernel, target)]
            costs = [c for c in map(count, mine) if c]
            if not mine:
                found.append((what, kernel, target, "no such kernel", False, False))
            elif not costs:
                found.append((what, kernel, target, "the loops to count were not found", False, False))
            else:
                best = min(distance(c, target) for c in costs)
                text = "%.1f times the roofline, at most %.0f" % (best, most)
                held = best <= HELD.get((kernel, target), most)
                found.append((what, kernel, target, text, best <= most, held))
    return found


def missed(rows):
    return ["%s (%s) on %s: %s" % (what, kernel, target, text)
            for what, kernel, target, text, _, held in measured(rows) if not held]


def table(rows):
    lines = ["| work | kernel | target | by counts |", "| --- | --- | --- | --- |"]
    for what, kernel, target, text, good, _ in measured(rows):
        lines.append("| %s | %s | %s | %s%s |" % (what, kernel.removeprefix("clv_"), target, text,
                                                  "" if good else ": missed"))
    return lines
