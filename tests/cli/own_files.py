#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that no command overwrites its inputs, and that no two outputs have the same file: there is one error before
anything is written, by whatever name the file is given. Outputs that cannot be written are reported before the work
begins.

usage: own_files.py CLEAVE"""
import os
import subprocess
import sys
import tempfile

CLEAVE = sys.argv[1]
WRONG = []
TEXT = b"frame,y,x\n0,1,1\n1,1,1\n"


def snapshot():
    found = {}
    for folder, _, names in os.walk("."):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[path] = (os.lstat(path).st_ino, file.read())
    return found


def refuses(part, *arguments, stdin=None):
    before = snapshot()
    with open(stdin or os.devnull, "rb") as file:
        done = subprocess.run([CLEAVE, *arguments], stdin=file, capture_output=True, timeout=60)
    said = done.stderr.decode()
    if done.returncode != 2 or part not in said or said.count("\n") != 1 or done.stdout:
        WRONG.append("%s: exit code %d, %r, expected 2 and %r" % (
            " ".join(arguments), done.returncode, said, part))
    if snapshot() != before:
        WRONG.append("%s: files have changed" % " ".join(arguments))


def cannot_write(part, *arguments):
    """Tests that unwritable outputs are reported before the inputs are read, which would take longer; here the inputs
    cannot be read."""
    before = snapshot()
    done = subprocess.run([CLEAVE, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60)
    said = done.stderr.decode()
    if done.returncode != 1 or part not in said or said.count("\n") != 1 or snapshot() != before:
        WRONG.append("%s: exit code %d, %r, expected 1 and %r" % (
            " ".join(arguments), done.returncode, said, part))


def check_places():
    blobs, paco = ["blobs", "in.txt", "--link", "2"], ["paco", "in.txt", "in.txt", "in.txt"]
    spectra = ["specfit", "in.txt", "--library", "folder"]
    for option in "-o", "--tracks", "--overlay":
        rest = [] if option == "-o" else ["-o", "new.csv"]
        name = "nowhere/x.png" if option == "--overlay" else "nowhere/x.csv"
        cannot_write(option + ": %s: cannot create" % name, *blobs, option, name, *rest)
        cannot_write(option + ": folder is a directory", *blobs, option, "folder", *rest)
    for name in "in.txt", "in.txt/deep/folder":
        cannot_write("-o: in.txt", *paco, "-o", name)
        cannot_write("--plot: in.txt", *spectra, "-o", "new.csv", "--plot", name)
    cannot_write("-o: nowhere/x.fits: cannot create", *spectra, "-o", "nowhere/x.fits")
    cannot_write("--models: nowhere/x", *spectra, "-o", "new.csv", "--models", "nowhere/x")
    cannot_write("-o: nowhere/x.csv: cannot create", "link", "none.csv", "--search", "2", "-o", "nowhere/x.csv")
    goes_on(*paco, "-o", "nowhere/deep/folder")
    os.makedirs("taken/config.json")
    tuned = ["finetune", "model", "--data", "in.txt"]
    cannot_write("-o: taken/config.json is a directory", *tuned, "-o", "taken")
    cannot_write("-o: in.txt", *tuned, "-o", "in.txt/deep")
    os.mkdir("out/probe")
    goes_on(*paco, "-o", "out")


def goes_on(*arguments):
    """Tests that the command goes on, to another error or to none."""
    done = subprocess.run([CLEAVE, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60)
    if any(part in done.stderr for part in (b"expected another file", b"-o: ")):
        WRONG.append("%s: %r" % (" ".join(arguments), done.stderr))


def check_names():
    """Tests one file with many names."""
    os.symlink("in.txt", "link.txt")
    os.symlink("in.txt", "chain.txt")
    os.link("in.txt", "hard.txt")
    os.symlink("folder", "same")
    for name in "in.txt", "./in.txt", "folder/../in.txt", os.path.abspath("in.txt"), "link.txt", \
            "chain.txt", "hard.txt":
        refuses("-o: %s is a file that -i reads" % name, "tokenize", "model", "-i", "in.txt", "-o", name)
        refuses("-o: %s is a file that -i reads" % name, "embed", "model", "-i", "in.txt", "-o", name)
        refuses("-o: %s is a file that -i reads" % name, "classify", "model", "-i", "in.txt", "-o", name)
    refuses("is a file that -i reads", "embed", "model", "-o", "in.txt", stdin="in.txt")
    refuses("--tokens-out: new.json is a file that -o writes", "embed", "model", "-i", "in.txt", "-o",
            "./new.json", "--tokens-out", "new.json")
    refuses("--report: same/new.npy is a file that -o writes", "embed", "model", "-i", "in.txt", "-o",
            "folder/new.npy", "--report", "same/new.npy")
    for arguments in (["-i", "in.txt", "-o", "other.json"], ["-i", "no.json", "-o", "no.json"],
                      ["-i", "/dev/null", "-o", "/dev/null"]):
        goes_on("tokenize", "no-model", *arguments)


def check_model():
    os.mkdir("model/1_Pooling"), os.mkdir("model/2_Dense"), os.mkdir("model/3")
    named = ("model.safetensors.index.json", "config_sentence_transformers.json", "1_Pooling/config.json",
             "2_Dense/model.safetensors")
    others = "model-00001-of-00002.safetensors", "3/config.json"
    for name in named + others:
        with open("model/" + name, "wb") as file:
            file.write(TEXT)
    for name in others:
        refuses("-o: ./model/%s already exists and may belong to the input of MODEL_DIR" % name, "embed", "model",
                "-i", "in.txt", "-o", "./model/" + name)
    os.chdir("model")
    refuses("may belong to the input of MODEL_DIR", "embed", ".", "-i", "../in.txt", "-o", others[0])
    os.chdir("..")
    for name in ("model.safetensors", "tokenizer.json", "config.json", "vocab.txt") + named:
        refuses("is a file that MODEL_DIR reads", "embed", "model", "-i", "in.txt", "-o", "model/" + name)
    refuses("is a file that MODEL reads", "tokenize", "model", "-i", "in.txt", "-o", "model/vocab.txt")
    goes_on("tokenize", "no-model", "-i", "in.txt", "-o", "model/new.json")


def check_finetune():
    data = ["finetune", "model", "--data", "in.txt"]
    refuses("--report: in.txt is a file that --data reads", *data, "-o", "out", "--report", "in.txt")
    refuses("--trace: val.txt is a file that --val reads", *data, "--val", "val.txt", "-o", "out",
            "--trace", "val.txt")
    refuses("--report: ./folder/config.json is a file that -o writes", *data, "-o", "folder", "--report",
            "./folder/config.json")
    refuses("is a file that --data reads", "finetune", "model", "--data", "folder/vocab.txt", "-o",
            "folder")
    refuses("is the folder of the model", *data, "-o", "model/../model")
    os.mkdir("linked")
    os.symlink("../model/model.safetensors", "linked/model.safetensors")
    refuses("-o: linked/model.safetensors is a file that MODEL_DIR reads", *data, "-o", "linked")


def check_others():
    refuses("-o: in.txt is a file that SPOTS.csv reads", "link", "in.txt", "-o", "in.txt", "--search", "2")
    for option in "-o", "--tracks", "--overlay", "--report", "--trace":
        refuses("is a file that MOVIE reads", "blobs", "in.txt", "--link", "2", option, "in.txt",
                *([] if option == "-o" else ["-o", "new.csv"]))
    refuses("--tracks: new.csv is a file that -o writes", "blobs", "in.txt", "--link", "2", "-o",
            "new.csv", "--tracks", "new.csv")
    for place in range(3):
        inputs = ["in.txt"] * 3
        inputs[place] = "folder/snr.fits"
        refuses("is a file that %s reads" % ("CUBE", "ANGLES", "PSF")[place], "paco", *inputs, "-o",
                "folder")
    for report in "nowhere/report.json", "./nowhere//report.json":
        refuses("--report: %s is a file that -o writes" % report, "paco", "in.txt", "in.txt", "in.txt", "-o",
                "nowhere", "--report", report)
    goes_on("paco", "in.txt", "in.txt", "in.txt", "-o", "nowhere", "--report", "nowhere/others.json")
    spectra = ["specfit", "in.txt", "--library", "folder"]
    refuses("-o: in.txt is a file that SPECTRA reads", *spectra, "-o", "in.txt")
    refuses("--models: in.txt is a file that SPECTRA reads", *spectra, "-o", "new.csv", "--models", "in.txt")
    for option in "--targets-file", "--redshifts":
        refuses("-o: val.txt is a file that %s reads" % option, *spectra, option, "val.txt", "-o",
                "val.txt")
    refuses("is a file that --library reads", *spectra, "-o", "folder/lib.json")
    for name in "folder/array.npy", "new.FITS":
        refuses("but this output cannot be a %s file: use a name that ends in .csv or .fits" %
                os.path.splitext(name)[1], *spectra, "-o", name)
    for option in "-o", "--tracks":
        refuses('%s is "new.csv.gz", but Cleave does not write compressed files' % option, "blobs", "in.txt",
                "--link", "2", option, "new.csv.gz", *([] if option == "-o" else ["-o", "new.csv"]))
    refuses('-o is "new.npy.gz", but Cleave does not write', "embed", "model", "-i", "in.txt", "-o", "new.npy.gz")
    refuses('-o is "new.zip", but', "tokenize", "model", "-i", "in.txt", "-o", "new.zip")
    refuses('-o is "new.zip", but', "link", "in.txt", "-o", "new.zip", "--search", "2")
    refuses('--models is "-", but standard output is not possible', *spectra, "-o", "new.csv", "--models", "-")
    refuses("-o: redrock-s.fits is a file that --zbest_include reads", "specfit", "coadd-s.fits", "--library",
            "folder", "--zbest_include", "-o", "redrock-s.fits")
    refuses("--save: in.txt is a file that --simulate reads", "probe", "--simulate", "in.txt", "--save",
            "in.txt")
    refuses("--html: new.txt is a file that --json writes", "bench", "runtime", "--json", "new.txt",
            "--html", "new.txt")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("model"), os.mkdir("folder"), os.mkdir("out")
        for name in ("in.txt", "val.txt", "folder/snr.fits", "folder/vocab.txt", "folder/lib.json",
                     "folder/array.npy", "coadd-s.fits", "redrock-s.fits",
                     "model/model.safetensors", "model/tokenizer.json", "model/config.json",
                     "model/vocab.txt"):
            with open(name, "wb") as file:
                file.write(TEXT)
        check_names()
        check_model()
        check_finetune()
        check_others()
        check_places()
        os.chdir("/")
    for line in WRONG:
        print(line)
    return 1 if WRONG else 0


sys.exit(main())
