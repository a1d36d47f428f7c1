#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the options of `cleave specfit`, and its errors for wrong calls and unusable inputs.

usage: specfit_options.py CLEAVE
A wrong call ends with exit code 2 and a message that names the mistake. A run that fails leaves no output. A file
without selected rows gives a table without rows. FITS, CSV, pictures and models are complete."""
import csv
import os
import signal
import subprocess
import sys
import tempfile
import time

import testdata


def run(cleave, *arguments):
    return subprocess.run([cleave, "specfit", *arguments], capture_output=True, text=True,
                          timeout=600)


def blocks(path):
    """Returns EXTNAME and NAXISn of every HDU, read from the headers alone."""
    with open(path, "rb") as file:
        data = file.read()
    at, found = 0, []
    assert len(data) % 2880 == 0, "not made of whole blocks"
    while at < len(data):
        cards = {}
        while "END" not in cards:
            for i in range(0, 2880, 80):
                card = data[at + i:at + i + 80].decode("ascii")
                cards[card[:8].strip()] = card[10:].split("/")[0].strip().strip("'").strip()
            at += 2880
        axes = [int(cards[f"NAXIS{i + 1}"]) for i in range(int(cards["NAXIS"]))]
        size = abs(int(cards["BITPIX"])) // 8
        for axis in axes:
            size *= axis
        at += (size + 2879) // 2880 * 2880 if axes else 0
        found.append((cards.get("EXTNAME"), axes))
    assert at == len(data), "shorter than its headers say"
    return found


def refuses(cleave, part, *arguments):
    done = run(cleave, *arguments)
    if done.returncode != 2 or part not in done.stderr:
        return [f"{' '.join(arguments)}: exit code {done.returncode}, {done.stderr!r}"]
    return []


def without_files(cleave, folder):
    text = os.path.join(folder, "text.fits")
    with open(text, "w", encoding="ascii") as file:
        file.write("no FITS")
    out = os.path.join(folder, "out.csv")
    wrong = refuses(cleave, "--library", text, "-o", out)
    wrong += refuses(cleave, "-o FILE", text, "--library", folder)
    wrong += refuses(cleave, "--starts", text, "--library", folder, "-o", out, "--starts", "9")
    wrong += refuses(cleave, "--save-every", text, "--library", folder, "-o", out, "--save-every", "0")
    wrong += refuses(cleave, "--npoly", text, "--library", folder, "-o", out, "--npoly", "16")
    wrong += refuses(cleave, "lib.json", text, "--library", folder, "-o", out)
    wrong += refuses(cleave, "SPECTRA", "--library", folder, "-o", out)
    if os.path.exists(out):
        wrong.append("a failed run left its output")
    return wrong


def with_files(cleave, folder):
    coadd = testdata.path_of("specfit/data/coadd-synth-a.fits.gz")
    library = testdata.path_of("specfit/lib")
    two = "39600000000000,39600000000001"
    mode = ["--mode", "reference", "-q", "--library", library]
    path = lambda name: os.path.join(folder, name)
    config = path("config.yaml")
    with open(config, "w", encoding="ascii") as file:
        file.write("template_lib: elsewhere/\nmax_vel: 900 # km/s\nmin_vel: -800\nmax_vsini: 400\n"
                   "lsf_sigma0_angstrom:\n  b: 0.5\n  r: 0.55\n  z: 0.6\n")
    wrong = refuses(cleave, "FITS", path("text.fits"), "--library", library, "-o", path("x.csv"))
    done = run(cleave, coadd, *mode, "-o", path("t.fits"), "--models", path("m.fits"), "--plot",
               path("plots"), "--targets", two, "--config", config)
    if done.returncode:
        return wrong + [done.stderr]
    table, models = blocks(path("t.fits")), blocks(path("m.fits"))
    if table[1][0] != "RVTAB" or table[1][1][1] != 2:
        wrong.append(f"table {table}")
    if [name for name, _ in models[1:]] != ["B_WAVELENGTH", "B_MODEL", "R_WAVELENGTH", "R_MODEL",
                                            "Z_WAVELENGTH", "Z_MODEL", "FIBERMAP"]:
        wrong.append(f"models {models}")
    if len([p for p in os.listdir(path("plots")) if p.endswith(".png")]) != 3:
        wrong.append(f"pictures {os.listdir(path('plots'))}")
    done = run(cleave, coadd, *mode, "-o", path("none.csv"), "--targets", "1")
    with open(path("none.csv"), encoding="ascii") as file:
        if done.returncode or len(file.read().splitlines()) != 1:
            wrong.append("no wanted rows: a header alone was expected")
    done = run(cleave, coadd, "--library", library, "-o", path("gpu.csv"), "--use_gpu",
               "--gpu_batch_size", "128", "--gpu_devices", "0,1,2,3", "--targets", two)
    if done.returncode or "batch size 128" not in done.stderr:
        wrong.append(f"--use_gpu: {done.returncode} {done.stderr}")
    return wrong


def velocities(path):
    with open(path, encoding="ascii") as file:
        return [float(row["VRAD"]) for row in csv.DictReader(file)]


def settings_and_options(cleave, folder):
    """Tests that an option overrides the settings, and that the range of velocities is respected."""
    coadd = testdata.path_of("specfit/data/coadd-synth-a.fits.gz")
    base = [coadd, "--mode", "reference", "-q", "--library", testdata.path_of("specfit/lib"),
            "--targets", "39600000000001"]  # velocity of 812 km/s
    path = lambda name: os.path.join(folder, name)
    wrong = []
    with open(path("narrow.yaml"), "w", encoding="utf-8-sig") as file:  # with a byte-order mark
        file.write("max_vel: 500\n")
    run(cleave, *base, "-o", path("all.csv"))
    run(cleave, *base, "-o", path("narrow.csv"), "--config", path("narrow.yaml"))
    run(cleave, *base, "-o", path("wide.csv"), "--config", path("narrow.yaml"), "--max-vel", "950",
        "--min-vel", "100")
    everywhere, narrow = velocities(path("all.csv"))[0], velocities(path("narrow.csv"))[0]
    wide = velocities(path("wide.csv"))[0]
    if abs(everywhere - 812) > 5 or abs(narrow) > 500 or abs(wide - everywhere) > 0.05:
        wrong.append(f"velocities {everywhere}, {narrow} below 500, {wide} by option")
    run(cleave, *base[:-1], "39600000000000,39600000000004,39600000000005,39600000000006", "-o",
        path("zero.csv"), "--min-vel", "0")
    if len(velocities(path("zero.csv"))) != 4 or min(velocities(path("zero.csv"))) < 0:
        wrong.append(f"--min-vel 0: velocities {velocities(path('zero.csv'))}")
    with open(path("bad.yaml"), "w", encoding="ascii") as file:
        file.write("lsf_sigma0_angstrom:\n  b: wide\n")
    for arm, sigma in (("b", "-5"), ("r", "1e300"), ("z", "0")):
        with open(path("sigma.yaml"), "w", encoding="ascii") as file:
            file.write(f"lsf_sigma0_angstrom:\n  {arm}: {sigma}\n")
        shown = f"{float(sigma):g}"
        wrong += refuses(cleave, f"lsf_sigma0_angstrom of {arm} (of --config) is {shown}, but it must be more than 0",
                         *base, "-o", path("x.csv"), "--config", path("sigma.yaml"))
    with open(path("twice.yaml"), "w", encoding="ascii") as file:
        file.write("max_vel: 100\nmin_vel: -100\nother: 1\nother: 2\nlsf_sigma0_angstrom:\n  b: 1\nmax_vel: 500\n")
    return (wrong + refuses(cleave, "not a number", *base, "-o", path("x.csv"), "--config", path("bad.yaml")) +
            refuses(cleave, "twice.yaml: max_vel is given twice, as 100 and 500; remove one", *base, "-o",
                    path("x.csv"), "--config", path("twice.yaml"), "--max-vel", "300"))


def killed_run(cleave, folder):
    """Tests runs that are killed at once, killed later, or asked to end: the table is the old one or the complete new
    one."""
    coadd = testdata.path_of("specfit/data/coadd-synth-a.fits.gz")
    out, wrong = os.path.join(folder, "kept.csv"), []
    for signal_number, wait in ((signal.SIGKILL, 0.05), (signal.SIGKILL, 0.5), (signal.SIGTERM, 0.5)):
        with open(out, "w", encoding="ascii") as file:
            file.write("old")
        started = subprocess.Popen([cleave, "specfit", coadd, "--mode", "reference", "-q", "--starts",
                                    "4", "--library", testdata.path_of("specfit/lib"), "-o", out])
        time.sleep(wait)
        started.send_signal(signal_number)
        code = started.wait(timeout=300)
        with open(out, encoding="ascii") as file:
            text = file.read()
        if code and text != "old":
            wrong.append(f"signal {signal_number} after {wait} s: exit code {code}, a half table")
    return wrong


def main():
    cleave = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        wrong = without_files(cleave, folder)
        wrong += with_files(cleave, folder)
        wrong += settings_and_options(cleave, folder)
        wrong += killed_run(cleave, folder)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
