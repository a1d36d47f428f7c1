#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the maps that `cleave paco --format npy` writes with golden maps in float64.

usage: paco_goldens.py CLEAVE PLATFORM CONV CASE...
PLATFORM: pocl, intel, mesa, or reference. CONV: paper or vip. CASE: a folder of tests/data/paco, or
betapic60, which is third-party data.

Rules, with the golden values a0 and snr0. A tie is a position within 2e-4 pixels of a rounding boundary in some frame,
where another patch is equally correct.

    NaN        in the same places, except at ties
    fixed      |a/a0 - 1| <= 5e-5 and |snr - snr0| <= 1e-3 + 2e-4 |snr0|; convention vip: 4 times these bounds,
               because its covariance is worse conditioned
    shift      |a/a0 - 1| <= 1e-3 and |snr - snr0| <= 2e-3 + 1e-3 |snr0|
    medians    of the differences: at most 1/20 (shift: 1/2) of these bounds
    ties       99 % of them within 0.5
    snr.npy    equals b / sqrt(a)
    a planet   keeps at least 0.9 of its S/N
"""
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

import paco_kit as kit
import testdata

LIMITS = {"fixed": (5e-5, 1e-3, 2e-4, 20), "shift": (1e-3, 2e-3, 1e-3, 2)}


def snr_of(a, b):
    return b / math.sqrt(a) if a > 0 else math.nan


def planets_lost(info, snr, golden, width, height):
    for row, column, _ in info.get("planets", []):
        near = [y * width + x for y in range(round(row) - 2, round(row) + 3)
                for x in range(round(column) - 2, round(column) + 3)
                if 0 <= y < height and 0 <= x < width and math.isfinite(golden[y * width + x])]
        best = max((golden[i] for i in near), default=0)
        if best > 4 and not max(snr[i] for i in near if math.isfinite(snr[i])) > 0.9 * best:
            yield f"planet at ({row}, {column}) lost"


def compare(case, mode, conv, out):
    """Returns what is wrong with the maps in `out`."""
    with open(os.path.join(case, "case.json"), encoding="ascii") as file:
        info = json.load(file)
    a0, b0 = (kit.npy_read(os.path.join(case, f"{conv}_{mode}_{k}.npy")) for k in "ab")
    a, b, written = (kit.npy_read(os.path.join(out, f"{k}.npy")) for k in ("a", "b", "snr"))
    ties = kit.npy_read(os.path.join(case, f"tie_{'trunc' if conv == 'vip' else 'nearest'}.npy"))
    if a.shape != a0.shape or b.shape != a0.shape or written.shape != a0.shape:
        return [f"shapes {a.shape}, {b.shape}, {written.shape}; expected {a0.shape}"]
    height, width = a0.shape
    limit_a, limit_snr, relative, tighter = LIMITS[mode]
    if mode == "fixed" and conv == "vip":
        limit_a, limit_snr, relative = 4 * limit_a, 4 * limit_snr, 4 * relative
    snr, golden = [snr_of(*p) for p in zip(a.values, b.values)], [
        snr_of(*p) for p in zip(a0.values, b0.values)]
    wrong, of_a, of_snr, of_ties, finite = [], [], [], [], 0
    for i in range(height * width):
        wanted, here = math.isfinite(a0.values[i]), math.isfinite(a.values[i])
        if here != math.isfinite(b.values[i]) or here != math.isfinite(written.values[i]):
            wrong.append(f"({i // width}, {i % width}): a, b and snr are not NaN together")
        if here and abs(written.values[i] - snr[i]) > 1e-4 * (1 + abs(snr[i])):
            wrong.append(f"({i // width}, {i % width}): snr is not b / sqrt(a)")
        if wanted != here and not ties.values[i]:
            wrong.append(f"({i // width}, {i % width}): a is {a.values[i]}, golden {a0.values[i]}")
        finite += wanted and not ties.values[i]
        if not (wanted and here):
            continue
        off = abs(snr[i] - golden[i])
        if ties.values[i]:
            of_ties.append(off)
        else:
            of_a.append(abs(a.values[i] / a0.values[i] - 1))
            of_snr.append(off / (limit_snr + relative * abs(golden[i])))
    if not of_a or len(of_a) < 0.9 * finite:
        return wrong + ["too few positions to compare"]
    print(f"    {len(of_a)} positions, a off by {max(of_a):.1e} (limit {limit_a:g}), S/N by "
          f"{max(of_snr):.2g} of its limit")
    if max(of_a) > limit_a or max(of_snr) > 1:
        wrong.append("values beyond the limits")
    if statistics.median(of_a) > limit_a / tighter or statistics.median(of_snr) > 1 / tighter:
        wrong.append("medians beyond the limits")
    if len(of_ties) >= 100 and sum(t <= 0.5 for t in of_ties) < 0.99 * len(of_ties):
        wrong.append("ties further off than another patch explains")
    wrong += planets_lost(info, snr, golden, width, height)
    return wrong


def check_beta_pictoris(out):
    """Checks the planet of the real sequence."""
    snr = kit.npy_read(os.path.join(out, "snr.npy"))
    best = max((v, i) for i, v in enumerate(snr.values) if math.isfinite(v))
    at = divmod(best[1], snr.shape[1])
    print(f"    highest S/N {best[0]:.2f} at {at}")
    return [] if at == (43, 42) and abs(best[0] - 8.6) < 0.05 else ["the planet is not where it is"]


def run_case(command, selection, case, mode, conv, cache):
    with open(os.path.join(case, "case.json"), encoding="ascii") as file:
        radius = json.load(file)["radius"]
    with tempfile.TemporaryDirectory() as out:
        files = [os.path.join(case, f"{name}.npy") for name in ("cube", "angles", "psf")]
        result = subprocess.run(
            [command, "paco", *files, "-o", out, "--format", "npy", "--psf-mode", mode, "--conv",
             conv, "--radius", str(radius), "-q", *kit.AS_IT_IS, *selection],
            env=kit.environment(CLEAVE_CACHE_DIR=cache), capture_output=True, text=True,
            check=False)
        if result.returncode:
            return [f"exit code {result.returncode}: {result.stderr.strip()}"]
        wrong = compare(case, mode, conv, out)
        if (os.path.basename(case), mode, conv) == ("betapic60", "fixed", "paper"):
            wrong += check_beta_pictoris(out)
    return wrong


def main():
    command, platform, conv, *names = sys.argv[1:]
    cases = [testdata.path_of(f"paco/{name}") for name in names]
    failed = 0
    with tempfile.TemporaryDirectory() as cache:
        selection = kit.options_for(command, platform, cache)
        for name, case in zip(names, cases):
            for mode in ("fixed", "shift"):
                print(f"{name} {mode} {conv} on {platform}", flush=True)
                for wrong in run_case(command, selection, case, mode, conv, cache)[:5]:
                    print("    WRONG:", wrong)
                    failed = 1
        kit.keep_programs(cache)
    return failed


if __name__ == "__main__":
    sys.exit(main())
