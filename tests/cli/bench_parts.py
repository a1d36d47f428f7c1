#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the parts of `cleave bench` that bench_report.py leaves out, on small inputs: movies, links, fits of stars, the
runtime, and times with empty caches. Each figure is there and is a time; wrong uses are refused.

usage: bench_parts.py CLEAVE
"""
import json
import os
import subprocess
import sys
import tempfile


def check(condition, why):
    if not condition:
        sys.exit("bench: " + why)


def bench(*arguments, code=0):
    done = subprocess.run([sys.argv[1], "bench", *arguments, "-q"], capture_output=True, text=True, check=False,
                          timeout=300)
    check(done.returncode == code, "%s: exit code %d: %s" % (" ".join(arguments), done.returncode, done.stderr))
    return done


def figures(part, *arguments):
    """Returns the report on a part, and what was printed."""
    done = bench(part, "--device", "0", "--repeats", "1", "--turns", "1", *arguments, "--json", part + ".json")
    with open(part + ".json", encoding="utf-8") as file:
        report = json.load(file)
    check(report["schema"] == "cleave.bench/1" and report["complete"], "%s: no whole report" % part)
    return report, done.stdout


def parties(case):
    """Returns (the figures of the device, those of plain C)."""
    by = {result["party"]: result for result in case["results"]}
    plain = by.pop("plain C", None)
    check(len(by) == 1, "%s: figures of %s" % (case["name"], sorted(by)))
    return list(by.values())[0], plain


def has(case, result, *metrics):
    for metric in metrics:
        found = result.get(metric) or {}
        check(0 < found.get("minimum", 0) <= found["median"] <= found["maximum"] < 300,
              "%s: %s is %r" % (case["name"], metric, result.get(metric)))


def movies():
    report, told = figures("blobs", "--sizes", "512x32x2", "--patience", "20")
    check(len(report["cases"]) == 1 and "recall" in told, "movies: %s" % told)
    device, plain = parties(report["cases"][0])
    has(report["cases"][0], device, "kernel", "compute", "files", "files_cold")
    has(report["cases"][0], plain, "compute", "files")
    check(device["files_cold"]["minimum"] > device["files"]["minimum"], "empty caches cost nothing: %r" % device)
    check("recall" in device["note"], "nothing on spots: " + device["note"])


def links():
    report, _ = figures("link", "--patience", "5", "--no-cold")
    for case in report["cases"]:
        device, _ = parties(case)
        has(case, device, "compute", "files")


def stars():
    report, told = figures("specfit", "--library", "made/specfit-library", "--coadd", "made/specfit-coadd.fits",
                           "--no-cold", "--patience", "20", "--markdown", "stars.md", "--html", "stars.html")
    names = [case["name"] for case in report["cases"]]
    check(names[0].startswith("3 stars, ") and len(names) == 8, "cases of stars: %s" % names)
    for case in report["cases"]:
        device, plain = parties(case)
        if case["name"] == names[0]:
            has(case, device, "compute", "files")
            has(case, plain, "compute", "files")
        elif not case["name"].startswith("preparation"):
            has(case, device, "compute")
            check(device["gflops"] > 0 and device["gb_s"] > 0, "%s: no rates" % case["name"])
        check(case["name"] in told, "%s is not printed" % case["name"])
    for name in ("stars.md", "stars.html"):
        with open(name, encoding="utf-8") as file:
            text = file.read()
        check(all(case in text for case in names), name + " lacks cases")


def larger():
    """What takes minutes, in long sweeps only: models of MiniLM's size, empty caches, several modes, offloading."""
    report, told = figures("transformer", "--full", "--no-files", "--patience", "60", "--only",
                           "attention, 8 heads, 128|matmul 512|fine-tuning|encoder, mixed", "--html", "models.html")
    check(len(report["cases"]) == 4 and "left out: it would take" in told, "models: " + told)
    for case in report["cases"]:
        device, _ = parties(case)
        has(case, device, "compute")
    report, told = figures("paco", "--sizes", "100x100x50,24x24x12", "--patience", "20", "--html", "maps.html",
                           "--markdown", "maps.md")
    has(report["cases"][0], parties(report["cases"][0])[0], "compute", "files", "files_cold")
    for kind in "json", "html", "markdown":
        bench("link", "--device", "0", "--repeats", "1", "--patience", "1", "--no-files", "--" + kind,
              "nowhere/link." + {"markdown": "md"}.get(kind, kind), code=1)
    bench("blobs", "specfit", "--library", "made/specfit-library", "--coadd", "made/specfit-coadd.fits", "--modes",
          "cpu", "--sizes", "32x32x4", "--repeats", "1", "--patience", "5", "--html", "modes.html")
    os.environ["CLEAVE_MODE"] = "cpu"
    bench("link", "--only", "1000 frames", "--repeats", "1", "--patience", "1", "--no-cold")
    del os.environ["CLEAVE_MODE"]
    bench("offload", "--device", "0", "--patience", "0.2", "--budget", "60")


def runtime():
    report, told = figures("runtime", "--patience", "1")
    rows = report["runtime"]
    check(len(rows) == 7, "rows of the runtime: %s" % [row["name"] for row in rows])
    for row in rows:
        check(row["name"] in told and row["unit"] in ("us", "GB/s"), "row %r" % row)
        check(all(result["value"]["median"] > 0 for result in row["results"]), "row %r" % row)


def wrong_uses():
    for part, arguments in (
            ("--library is given without --coadd", ["specfit", "--library", "made/specfit-library"]),
            ("--coadd is given without --library", ["specfit", "--coadd", "made/specfit-coadd.fits"]),
            ("expected a FITS file", ["specfit", "--library", "made/specfit-library", "--coadd",
                                      "made/paco-psf.npy"]),
            ("nowhere", ["specfit", "--library", "nowhere", "--coadd", "made/specfit-coadd.fits"]),
            ("HEIGHTxWIDTHxFRAMES", ["blobs", "--sizes", "8x8"]),
            ("at least 9", ["paco", "--sizes", "4x40x40"]),
            ("no such case", ["link", "--only", "no such case"]),
            ("part of the full sizes; add --full", ["transformer", "--only", "5000"])):
        done = bench(*arguments, code=2)
        check(part in done.stderr and done.stderr.count("\n") == 1 and not done.stdout,
              "%s: said %r and %r" % (arguments, done.stderr, done.stdout))


def main():
    sys.argv[1] = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([os.environ["CLEAVE_TEST_MAKER"], "made"], check=True)
        wrong_uses()
        movies()
        links()
        stars()
        runtime()
        if os.environ.get("CLEAVE_TEST_SWEEP"):
            larger()
        os.chdir("/")
    print("bench: movies, links, stars and the runtime have their figures")


if __name__ == "__main__":
    main()
