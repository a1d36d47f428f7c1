#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the fits that `cleave specfit` makes of synthetic coadds with the best known optima.

usage: specfit_goldens.py CLEAVE PLATFORM
PLATFORM: pocl, intel, mesa, or reference. File a is fitted without, file b with resolution matrices. -2 log
L is at most 0.5 above the best known value for 19 of 20 stars, and 0.1 in the median. Velocities are within 0.35
sigma or 0.4 km/s, their errors within 30 %, and chi2 within 0.2 %. Batches of 3 stars give the same bytes."""
import csv
import os
import statistics
import subprocess
import sys
import tempfile

import paco_kit as kit
import testdata


def rows_of(path):
    with open(path, encoding="ascii", newline="") as file:
        return {row["TARGETID"]: row for row in csv.DictReader(file)}


def run(cleave, tag, device, out, *more):
    command = [cleave, "specfit", testdata.path_of(f"specfit/data/coadd-synth-{tag}.fits.gz"),
               "--library", testdata.path_of("specfit/lib"), "-o", out, "-q", "--no-progress",
               "--resolution", "on" if tag == "b" else "off", *device, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    if "plain C path" in done.stderr:
        sys.exit(f"the device did not do it: {done.stderr}")


def judge(best, ours):
    wrong = []
    if set(best) - set(ours):
        return [f"{len(set(best) - set(ours))} stars are missing"]
    value = lambda key, of: {t: float(of[t][key]) for t in best}
    lower = value("NEG2LOGL_BEST", best)
    above = [float(ours[t]["NEG2LOGL"]) - lower[t] for t in best]
    allowed = max(1, len(best) // 20)
    print(f"    {len(best)} stars, -2 log L {max(above):+.3f} at most above the best known")
    if sum(not v <= 0.5 for v in above) > allowed:
        wrong.append(f"{sum(not v <= 0.5 for v in above)} stars above the best known")
    if not abs(statistics.median(above)) <= 0.1:
        wrong.append(f"median difference {statistics.median(above)}")

    def many(name, bad, most):
        if bad > most:
            wrong.append(f"{name}: {bad} of {len(best)} are off")
    error = value("VRAD_ERR", best)
    many("VRAD", sum(not abs(float(ours[t]["VRAD"]) - float(best[t]["VRAD"])) <=
                     max(0.35 * error[t], 0.4) for t in best), allowed)
    many("VRAD_ERR", sum(not abs(float(ours[t]["VRAD_ERR"]) / max(error[t], 0.05) - 1) <= 0.3
                         for t in best), allowed)
    many("CHISQ_TOT", sum(not float(ours[t]["CHISQ_TOT"]) <= 3 + 1.002 * float(best[t]["CHISQ_TOT"])
                          for t in best), allowed)
    many("NPIX_TOT", sum(float(ours[t]["NPIX_TOT"]) != float(best[t]["NPIX_TOT"]) for t in best), 0)
    return wrong


def main():
    cleave, platform = sys.argv[1:3]
    failed, slow = [], platform == "mesa"
    with tempfile.TemporaryDirectory() as folder:
        device = kit.options_for(cleave, platform, folder)
        for tag in "b" if slow else "ab":
            out = os.path.join(folder, f"{tag}.csv")
            best = rows_of(testdata.path_of(f"specfit/fits/best_known_{tag}.csv"))
            if slow:
                best = dict(list(best.items())[:2])
            more = ["--targets", ",".join(best)] if slow else []
            run(cleave, tag, device, out, *more)
            failed += [f"file {tag}: {what}" for what in judge(best, rows_of(out))]
            if platform == "pocl":
                again = os.path.join(folder, "again.csv")
                run(cleave, tag, device, again, "--batch", "3")
                with open(out, "rb") as one, open(again, "rb") as two:
                    if one.read() != two.read():
                        failed.append(f"file {tag}: batches of 3 give other bytes")
    print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
