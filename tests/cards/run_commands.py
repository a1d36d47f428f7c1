#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command on simulated graphics cards (PoCL, which answers as a card would), with small inputs, and compares
the results with those of plain C. Each command must report that the card computed everything, and the layer must have
seen its kernels, so that a command that falls back to the host fails the test.

usage: run_commands.py COMMAND LAYER CARD...

The cards are ids of cards.json. $CLEAVE_TEST_ICDS names the folder with pocl.icd, $CLEAVE_TEST_MAKER the program
make_inputs, and $CLEAVE_LIBRARY the library for Python; without NumPy the operations on arrays are left out.
run_card.py runs `cleave probe`, `selftest` and `demo`.
"""
import array
import csv
import importlib.util
import json
import math
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
import cluster_kit  # noqa: E402
import paco_kit  # noqa: E402
import testdata  # noqa: E402
import text_embed  # noqa: E402
from card_kit import CARDS, environment, need_layer  # noqa: E402

COMMAND, LAYER = sys.argv[1:3]
SIDE, FRAMES = 22, 6  # of the sequence of images, whose patches have the radius of the self-test's
PACO = ["paco", "--radius", "4", "--center", "middle", "-o", "OUT"]
LANGUAGE_MODEL = testdata.path_of("generate/tiny/hf-llama")
ARRAYS = """
import os
import numpy
import cleave
side = "auto" if os.environ["CLEAVE_MODE"] == "reference" else "device"
x = numpy.linspace(-2, 3, 150 * 37, dtype=numpy.float32).reshape(150, 37)
with cleave.offload(side):
    y = cleave.array(x)
    for name, run in (("expression", lambda: cleave.compute("where(x > w, 2 * x + w, sqrt(abs(x)))", x=x, w=x[0])),
                      ("product", lambda: cleave.product(x, x, transpose_b=True)),
                      ("sums", lambda: cleave.reduce(x, "sum", axis=0)),
                      ("filter", lambda: cleave.convolve_2d(x, x[:5, :3].copy())),
                      ("eigenvalues", lambda: cleave.eigvalsh(x.reshape(-1)[:20 * 144].reshape(20, 12, 12).copy())),
                      ("array", lambda: cleave.compute("y * y + 1", y=y))):
        made = numpy.asarray(run(), dtype=numpy.float64).ravel()
        print(name, *made[::7])
        if side == "device" and cleave.last_plan().side != side:
            raise SystemExit(name + " was computed on the host: %s" % cleave.last_plan())
"""


def wrong(what, text):
    raise SystemExit("%s: %s" % (what, text))


# ---- comparing ----

def near(what, want, got, relative, absolute):
    """Compares numbers; two of them that are not finite have to be the same."""
    if len(want) != len(got):
        wrong(what, "%d numbers, plain C has %d" % (len(got), len(want)))
    for i, (w, g) in enumerate(zip(want, got)):
        if not (w == g or (math.isnan(w) and math.isnan(g)) or abs(w - g) <= relative * abs(w) + absolute):
            wrong(what, "number %d is %.9g, plain C has %.9g" % (i, g, w))


def columns_of(path, names):
    """Returns the numbers of some columns of a table, row by row; all columns for None."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t" if path.endswith(".tsv") else ","))
    if not rows:
        wrong(path, "no row")
    return [float(row[name] or "nan") for row in rows for name in names or rows[0]]


def table(path, names, relative=0.0, absolute=0.0):
    def compare(what, want, got):
        near("%s, %s" % (what, path), *(columns_of(os.path.join(f, path), names) for f in (want, got)), relative,
             absolute)
    return compare


def image(path, relative, absolute):
    def compare(what, want, got):
        near("%s, %s" % (what, path), *(paco_kit.fits_read(os.path.join(f, path))[1].values for f in (want, got)),
             relative, absolute)
    return compare


def vectors(path, relative, absolute):
    def compare(what, want, got):
        numbers = []
        for folder in want, got:
            with open(os.path.join(folder, path), "rb") as file:
                numbers.append([x for row in text_embed.read_npy(file.read()) for x in row])
        near("%s, %s" % (what, path), *numbers, relative, absolute)
    return compare


def velocities(what, want, got):
    """The fits agree to a tenth of their errors, as in the self-test."""
    for w, e, g in zip(*(columns_of(os.path.join(f, "stars.csv"), [name]) for f, name in
                         ((want, "VRAD"), (want, "VRAD_ERR"), (got, "VRAD")))):
        near(what, [w], [g], 0, 0.1 * e)


def printed(start, relative, absolute):
    """Compares the numbers in the lines of standard output that begin with `start`."""
    def compare(what, want, got):
        numbers = []
        for folder in want, got:
            with open(os.path.join(folder, "stdout"), encoding="utf-8") as file:
                lines = [line for line in file if line.startswith(start)]
            if not lines:
                wrong(what, "no line begins with " + start)
            numbers.append([float(word) for line in lines for word in line.replace("/", " ").split()
                            if word.lstrip("-")[:1].isdigit()])
        near(what, *numbers, relative, absolute)
    return compare


def tokens(what, want, got):
    answers = []
    for folder in want, got:
        with open(os.path.join(folder, "stdout"), encoding="utf-8") as file:
            answers.append(json.load(file))
    if answers[0]["tokens"] != answers[1]["tokens"]:
        wrong(what, "tokens %s, plain C has %s" % (answers[1]["tokens"], answers[0]["tokens"]))
    near(what, *([score for _, score in a["logits_top"]] for a in answers), 0, 2e-3)


def same_bytes(what, want, got):
    texts = []
    for folder in want, got:
        with open(os.path.join(folder, "stdout"), "rb") as file:
            texts.append(file.read())
    if texts[0] != texts[1] or not texts[0]:
        wrong(what, "printed %r, plain C %r" % (texts[1], texts[0]))


# ---- the commands ----

class Case:
    """A command line, in which OUT is the folder of its outputs; comparisons with plain C; parts of the names of the
    kernels that the card has to compute. `plain`: whether plain C can do it."""

    def __init__(self, line, compares=(), kernels=(), report=True, plain=True):
        self.line, self.compares, self.kernels, self.plain = line, compares, kernels, plain
        writes_one = line[0] == "paco"  # unasked
        self.line = [*line, "--report", "OUT/report.json"] if report and not writes_one else line
        self.report = report


def measured(what, _, got):
    """Checks that the benchmark measured the card."""
    with open(os.path.join(got, "bench.json"), encoding="utf-8") as file:
        text = file.read()
    if "sum of 1 million elements" not in text:
        wrong(what, text[:3000])


def merged(what, want, _):
    """Compares what the commands before and `cleave merge` wrote."""
    found = os.path.join(want, "..", "search", "found.csv")
    near(what, columns_of(found, None), columns_of("merged.csv", None), 1e-6, 0)
    os.remove("merged.csv")
    os.remove("record")


CASES = {
    "contrast": Case([*PACO, "cube.npy", "angles.npy", "psf.npy", "--contrast", "--contrast-radii", "6",
                      "--contrast-injections", "4", "--at", "15,11"],
                     [table("contrast.csv", ["sensitivity_gaussian", "noise", "sigma corr"], 1e-3),
                      image("snr.fits", 0, 2e-3), image("a.fits", 1e-3, 0)],
                     ("clv_paco_", "clv_trial_")),
    "asdi": Case([*PACO, "two.npy", "angles.npy", "psf.npy", "--wavelengths", "1.0,1.1"],
                 [image("snr.fits", 0, 2e-3)], ("clv_paco_",)),
    "blobs": Case(["blobs", "made/blobs-movie.npy", "--link", "4", "--threshold", "60", "-o", "OUT/spots.csv"],
                  [table("spots.csv", ["frame", "particle"]), table("spots.csv", ["y", "x"], 0, 1e-3),
                   table("spots.csv", ["response"], 1e-5)],
                  ("clv_blob_",)),
    "volumes": Case(["blobs", "stacks.npy", "--axes", "TZYX", "--threshold", "60", "-o", "OUT/spots.csv"],
                    [table("spots.csv", ["frame"]), table("spots.csv", ["z", "y", "x"], 0, 1e-3),
                     table("spots.csv", ["response"], 1e-5)],
                    ("clv_volume_",)),
    "specfit": Case(["specfit", "made/specfit-coadd.fits", "--library", "made/specfit-library",
                     "-o", "OUT/stars.csv"], [velocities], ("clv_spectra_",)),
    "templates": Case(["templates", "models.csv", "--arm", "green=5010:5030:0.2", "-o", "OUT/library"],
                      [vectors("library/green/log_flux.npy", 0, 1e-5)], ("clv_spectra_smooth",)),
    "embed": Case(["embed", "model", "-i", "texts.txt", "--normalize", "-o", "OUT/vectors.npy"],
                  [vectors("vectors.npy", 0, 2e-6)], ("clv_embed", "clv_attention_", "gemm")),
    "search": Case(["search", "rows.npy", "--queries", "queries.npy", "--top", "5", "-o", "OUT/found.csv"],
                   [table("found.csv", None, 1e-6)], ("clv_search_",)),
    "rank": Case(["rank", "one", "--pairs", "-i", "pairs.txt", "-o", "OUT/scores.tsv"],
                 [table("scores.tsv", None, 0, 2e-6)], ("clv_embed",)),
    "finetune": Case(["finetune", "model", "--data", "classes.tsv", "--epochs", "2", "--batch-size", "2", "--lr",
                      "1e-3", "-o", "OUT/tuned"], [printed("step ", 0, 1e-4)], ("clv_adamw", "clv_norm_back")),
    "classify": Case(["classify", "finetune/tuned", "-i", "texts.txt", "--all", "-o", "OUT/classes.csv"],
                     [table("classes.csv", ["animal", "number"], 0, 2e-6)], ("clv_embed",)),
    "generate": Case(["generate", LANGUAGE_MODEL, "--prompt", "the cat", "-n", "4", "--temperature", "0",
                      "--ignore-eos", "--json", "--logits-top", "5"], [tokens], ("clv_items_",)),
    # the following commands have nothing for a card to do, except for the search, or report it in another way
    "link": Case(["link", "blobs/spots.csv", "--replace", "--search", "4", "-o", "OUT/tracks.csv"],
                 [table("tracks.csv", None)], report=False),
    "tracks": Case(["tracks", "link/tracks.csv", "-o", "OUT/motion.csv"], [table("motion.csv", None)], report=False),
    "tokenize": Case(["tokenize", "model", "-i", "texts.txt"], [same_bytes], report=False),
    "detokenize": Case(["detokenize", "model", "-i", "tokenize/stdout"], [same_bytes], report=False),
    "shard": Case(["search", "rows.npy", "--queries", "queries.npy", "--top", "5", "-o", "merged.csv", "--shard",
                   "1/1", "--record", "record"], (), ("clv_search_",), report=False),
    "merge": Case(["merge", "record"], [merged], report=False),
    "cache": Case(["cache"], report=False),
    "bench": Case(["bench", "arrays", "--only", "sum of 1 million", "--no-files", "--no-cold", "--repeats", "1",
                   "--json", "OUT/bench.json"], [measured], report=False, plain=False),
}


# ---- inputs ----

def cropped(cube, count):
    """Returns the middle of every frame, for `count` frames with equal gaps."""
    frames, height, width = cube.shape
    top, left = (height - SIDE) // 2, (width - SIDE) // 2
    return [cube.at(k * frames // count, y, x) for k in range(count) for y in range(top, top + SIDE)
            for x in range(left, left + SIDE)]


def make_texts(dice):
    words = "the cats run running unaffable 12 and".split()
    lines = [" ".join(dice.choice(words) for _ in range(dice.randint(1, 12))) for _ in range(12)]
    for name, rows in (("texts.txt", lines[:5]), ("pairs.txt", ["%s\t%s" % p for p in zip(lines[:4], lines[6:])]),
                       ("classes.tsv", ["%s\t%s" % p for p in zip(lines, ["animal", "number"] * 2)])):
        with open(name, "w", encoding="ascii") as file:
            file.write("".join(row + "\n" for row in rows))
    size = {"width": 64, "ffn": 128}  # those of the self-test's encoder
    text_embed.make_model("model", **size)
    cluster_kit.make_classes("model", "one", 1, size["width"])


def make_models(dice):
    """Makes the spectra of four models for `cleave templates`."""
    lines = [(dice.uniform(4990, 5050), dice.uniform(0.1, 0.5)) for _ in range(20)]
    with open("models.csv", "w", encoding="ascii") as listing:
        listing.write("FILE,TEFF,LOGG,FEH,ALPHA\n")
        for i, (temperature, alpha) in enumerate((t, a) for t in (5000, 5500) for a in (0.0, 0.4)):
            listing.write("model-%d.txt,%d,4.5,0,%g\n" % (i, temperature, alpha))
            with open("model-%d.txt" % i, "w", encoding="ascii") as file:
                file.write("wave flux\n")
                for wave in (4980 + 0.05 * k for k in range(1601)):
                    depth = sum(d * math.exp(-((wave - w) / 0.3) ** 2) for w, d in lines)
                    file.write("%.3f %.7f\n" % (wave, temperature / 5000 * math.exp(-depth * (1 + alpha))))


def make_inputs():
    """Makes all inputs in the current folder."""
    subprocess.run([os.environ["CLEAVE_TEST_MAKER"], "made"], check=True)
    cube, angles, psf = (paco_kit.npy_read("made/paco-%s.npy" % name) for name in ("cube", "angles", "psf"))
    frames = cropped(cube, FRAMES)
    paco_kit.npy_write("cube.npy", (FRAMES, SIDE, SIDE), frames)
    paco_kit.npy_write("two.npy", (2, FRAMES, SIDE, SIDE), frames + [1.1 * v + 0.3 * w for v, w in zip(
        frames, frames[1:] + frames[:1])])
    paco_kit.npy_write("angles.npy", (FRAMES,), [angles.at(k * len(angles) // FRAMES) for k in range(FRAMES)], "<f8")
    paco_kit.npy_write("psf.npy", psf.shape, psf.values)
    dice = random.Random(5)
    planes = [int(100 + dice.gauss(0, 3) + 900 * math.exp(-((z - 5.3) ** 2 + (y - 9.2 - t) ** 2 + (x - 14.7) ** 2) / 4))
              for t in range(2) for z in range(11) for y in range(24) for x in range(28)]
    cluster_kit.write_npy("stacks.npy", "<u2", (2, 11, 24, 28), array.array("H", planes).tobytes())
    for name, rows in ("rows", 6000), ("queries", 3):
        paco_kit.npy_write(name + ".npy", (rows, 48), [dice.gauss(0, 1) for _ in range(rows * 48)])
    make_texts(dice)
    make_models(dice)


# ---- running ----

def run(what, line, env, folder):
    """Runs a command; its standard output goes to a file. Returns its process number."""
    os.makedirs(folder)
    with open(os.path.join(folder, "stdout"), "wb") as out:
        words = [sys.executable, "-c", line] if line is ARRAYS else [COMMAND, *(w.replace("OUT", folder) for w in line)]
        process = subprocess.Popen(words, env=env, stdout=out, stderr=subprocess.PIPE)
        said = process.communicate(timeout=600)[1].decode(errors="replace")
    if process.returncode:
        wrong(what, "exit code %d\n%s" % (process.returncode, said[-3000:]))
    if "generated." in said:
        wrong(what, "the compiler's warnings are on standard error: " + said)
    return process.pid


def check_report(what, path, name, label):
    """Checks that the card, and no other device, computed every job. Returns the card's label; reports of commands with
    a device of their own lack it, so that they have to name that of the commands before."""
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    for device in (report["machine"] or {}).get("devices", []):
        if device["name"] != name:
            wrong(what, "the report names %s" % device)
        label = device["label"]
    shares = [share for job in report.get("jobs", []) for share in job["shares"]]
    if any(share["failed"] or not share["units"] or share["device"] != label for share in shares):
        wrong(what, "the jobs were computed by %s" % shares)
    if not shares and report["operation"].get("device") != label:
        wrong(what, "no job, and the operation is %s" % report["operation"])
    return label


def check_launches(what, path, pid, kernels):
    """Checks that the layer saw the kernels of this process; its helpers launch some, too, to compile them."""
    seen = set()
    if os.path.exists(path):
        with open(path, encoding="ascii") as file:
            seen = {kernel for number, kernel in map(str.split, file) if int(number) == pid}
    for part in kernels:
        if not any(part.lower() in kernel.lower() for kernel in seen):
            wrong(what, "the card computed no kernel %s, only %s" % (part, sorted(seen)))


def expect_all_commands():
    """Checks that every command that `cleave --help` lists is run here or by run_card.py."""
    listed = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    listed = listed.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    missing = {line.split()[0] for line in listed} - {c.line[0] for c in CASES.values()} - {"probe", "selftest", "demo"}
    if missing:
        wrong("no card runs", sorted(missing))


def look_at(card):
    """Skips the test if the loader ignores layers."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder, LAYER, card)
        subprocess.run([COMMAND, "probe", "--json"], env=env, capture_output=True, check=True)
        need_layer(env)


def compile_anew(card):
    """Runs a command whose kernels Clang would warn of, with empty caches, because a kept kernel is not warned of."""
    with tempfile.TemporaryDirectory() as folder:
        kernels = os.path.join(folder, "kernels")
        os.mkdir(kernels)
        run(card + ", search, compiled anew", CASES["search"].line,
            environment(folder, LAYER, card, CLEAVE_TUNE="0", CLEAVE_MODE="gpu", POCL_CACHE_DIR=kernels),
            os.path.join(folder, "out"))


def run_card(card, name, plain):
    label = None
    with tempfile.TemporaryDirectory() as folder:
        # the usual kernels of a card, not those that PoCL happens to compute fastest
        env = environment(folder, LAYER, card, CLEAVE_TUNE="0", CLEAVE_MODE="gpu")
        for case, c in CASES.items():
            what, out = "%s, %s" % (name, case), os.path.join(folder, "out", case)
            pid = run(what, c.line, env, out)
            if c.report:
                label = check_report(what, os.path.join(out, "report.json"), name, label)
            check_launches(what, env["CLEAVE_CARD_LAUNCHES"], pid, c.kernels)
            for compare in c.compares:
                compare(what, os.path.join(plain, case), out)
    print("%s: %d commands agree with plain C" % (name, len(CASES)), flush=True)


def main():
    cards = sys.argv[3:]
    expect_all_commands()
    with open(CARDS, encoding="utf-8") as file:
        names = {d["id"]: d["name"] for d in json.load(file)["devices"]}
    if not importlib.util.find_spec("numpy") or not os.environ.get("CLEAVE_LIBRARY"):
        print("SKIPPED: operations on arrays need NumPy and the shared library", flush=True)
    else:
        CASES["arrays"] = Case(ARRAYS, [printed("", 1e-5, 1e-4)], ("clv_map", "clv_reduce", "clv_array_jacobi"),
                               report=False)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_inputs()
        env = paco_kit.environment(CLEAVE_MODE="reference", CLEAVE_CACHE_DIR="",
                                   CLEAVE_LIBRARY=os.environ.get("CLEAVE_LIBRARY", ""))
        for case, c in CASES.items():
            if c.plain:
                run("plain C, " + case, c.line, env, os.path.join(folder, case))
            if case == "merge":
                merged(case, os.path.join(folder, case), None)
        look_at(cards[0])
        compile_anew(cards[0])
        for card in cards:
            run_card(card, names[card], folder)


if __name__ == "__main__":
    main()
