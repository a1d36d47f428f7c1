#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cleave specfit` does with its options and with input that it cannot use.

usage: specfit_options.py CLEAVE
The first part needs nothing; the second $CLEAVE_REFERENCE_DIR/specfit. A wrong call ends with exit
code 2 and names the mistake; no output is left behind by a run that failed; a file without wanted
rows gives a table without rows; FITS and CSV, pictures and models are complete."""
import os
import subprocess
import sys
import tempfile


def run(cleave, *arguments):
    return subprocess.run([cleave, "specfit", *arguments], capture_output=True, text=True,
                          timeout=600)


def blocks(path):
    """EXTNAME and NAXISn of every HDU: the file's structure, read by its headers alone."""
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


def without_reference(cleave, folder):
    text = os.path.join(folder, "text.fits")
    with open(text, "w", encoding="ascii") as file:
        file.write("no FITS")
    out = os.path.join(folder, "out.csv")
    wrong = refuses(cleave, "--library", text, "-o", out)
    wrong += refuses(cleave, "-o FILE", text, "--library", folder)
    wrong += refuses(cleave, "--starts", text, "--library", folder, "-o", out, "--starts", "9")
    wrong += refuses(cleave, "--npoly", text, "--library", folder, "-o", out, "--npoly", "16")
    wrong += refuses(cleave, "lib.json", text, "--library", folder, "-o", out)
    wrong += refuses(cleave, "COADD", "--library", folder, "-o", out)
    if os.path.exists(out):
        wrong.append("a failed run left its output")
    return wrong


def with_reference(cleave, reference, folder):
    coadd = os.path.join(reference, "data", "coadd-synth-a.fits")
    library = os.path.join(reference, "lib")
    two = "39600000000000,39600000000001"
    mode = ["--mode", "reference", "-q", "--library", library]
    path = lambda name: os.path.join(folder, name)
    config = path("config.yaml")
    with open(config, "w", encoding="ascii") as file:
        file.write("template_lib: elsewhere/\nmax_vel: 900 # km/s\nmax_vsini: 400\n")
    wrong = refuses(cleave, "FITS", path("text.fits"), "--library", library, "-o", path("x.csv"))
    done = run(cleave, coadd, *mode, "-o", path("t.fits"), "--models", path("m.fits"), "--plot",
               path("plots"), "--targets", two, "--config", config)
    if done.returncode:
        return wrong + [done.stderr]
    table, models = blocks(path("t.fits")), blocks(path("m.fits"))
    if table[1][0] != "RVTAB" or table[1][1][1] != 2:
        wrong.append(f"table {table}")
    if [name for name, _ in models[1:]] != ["B_WAVELENGTH", "B_MODEL", "R_WAVELENGTH", "R_MODEL",
                                            "Z_WAVELENGTH", "Z_MODEL"]:
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


def main():
    cleave, reference = sys.argv[1], os.path.join(os.environ.get("CLEAVE_REFERENCE_DIR", ""),
                                                  "specfit")
    with tempfile.TemporaryDirectory() as folder:
        wrong = without_reference(cleave, folder)
        if os.path.isdir(reference):
            wrong += with_reference(cleave, reference, folder)
        else:
            print("no $CLEAVE_REFERENCE_DIR/specfit: only what needs no files was tried")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
