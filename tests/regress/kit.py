# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of this folder: a private folder, small inputs, runs of the command, checks.

A check that fails is recorded, and the test continues; `finish` prints all failed checks and ends the test."""
import atexit
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile

CLEAVE = os.path.abspath(sys.argv[1])
WRONG = []

FOLDER = tempfile.mkdtemp(prefix="cleave-regress-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
os.chdir(FOLDER)
# the user's settings must not affect the tests
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not (name.startswith("CLEAVE_") or name == "XDG_CACHE_HOME")}
ENVIRONMENT["CLEAVE_CACHE_DIR"] = os.path.join(FOLDER, "kept")
PLAIN = dict(ENVIRONMENT, OCL_ICD_VENDORS=os.path.join(FOLDER, "no-drivers"))


def run(*arguments, environment=None, stdin=subprocess.DEVNULL, timeout=300, **options):
    """Runs the command without OpenCL drivers, unless you pass an environment."""
    return subprocess.run([CLEAVE, *arguments], env=PLAIN if environment is None else environment,
                          stdin=stdin, capture_output=True, timeout=timeout, check=False, **options)


def commands():
    """Returns all commands that `cleave --help` lists."""
    text = run("--help").stdout.decode()
    rows = text.split("\nCommands:\n")[1].split("\n\n")[0].splitlines()
    return [row.split()[0] for row in rows]


def swept(sweep, names):
    """Checks that a sweep ran the commands in the table of docs/reliability.md, each of which the table names by a
    word."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/reliability.md")
    with open(path, encoding="utf-8") as file:
        text = file.read().split("## Commands and sweeps\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    column = rows[0].index(sweep)
    same(sweep + ": commands of the table in docs/reliability.md", sorted(row[0].strip("`") for row in rows[2:]),
         sorted(commands()))
    same(sweep + ": commands that the table says are in it",
         sorted(row[0].strip("`") for row in rows[2:] if row[column] == "yes"), sorted(set(names)))


def track_table(name="tracks.csv", frames=12):
    """Returns a table of two particles that move."""
    return write(name, "frame,y,x,particle\n" + "".join(
        "%d,%.2f,%.2f,%d\n" % (t, 5 + 9 * p + 0.5 * t + (t * 7 + p) % 3 / 4, 5 + (t * 5 + p) % 4 / 3, p)
        for t in range(frames) for p in range(2)))


def model_spectra(points=901):
    """Writes four spectra with a line on a grid of temperature and gravity, and the table models.csv, which lists
    them."""
    rows = ["FILE,TEFF,LOGG,FEH,ALPHA"]
    for teff in 5000, 6000:
        for logg in 4, 5:
            rows.append("model-%d-%d.txt,%d,%d,0,0" % (teff, logg, teff, logg))
            write("model-%d-%d.txt" % (teff, logg), "# wavelength flux\n" + "".join(
                "%.2f %.6f\n" % (wave, teff / 5000 * (1 - 0.3 * math.exp(-(wave - 5100) ** 2 / logg)))
                for wave in (4980 + 225 / (points - 1) * i for i in range(points))))
    return write("models.csv", "\n".join(rows) + "\n")


ARM = "--arm=green=5050:5150:0.5:1"  # the library that is made from models.csv


def small_commands(make_model, frames, size):
    """Returns {name: arguments} of five commands that write into the folder "out", and makes their inputs. `make_model`
    is that of tests/cli/text_embed.py; frames and size are those of the movie."""
    make_inputs("made")
    movie(frames=frames, size=size)
    make_model("model")
    write("texts.txt", "the cats run\n12 and 12\n")
    write("train.tsv", "the cats run\ta\n12 and 12\tb\nrunning cats\ta\nthe 12\tb\n")
    inputs = ["made/paco-%s.npy" % name for name in ("cube", "angles", "psf")]
    return {"paco": ["paco", *inputs, "-q", "--radius", "3", "-o", "out"],
            "blobs": ["blobs", "movie.npy", "-q", "-o", "out/spots.csv"],
            "specfit": ["specfit", "made/specfit-coadd.fits", "--library", "made/specfit-library", "-q",
                        "-o", "out/stars.csv"],
            "embed": ["embed", "model", "-i", "texts.txt", "-q", "-o", "out/v.npy"],
            "finetune": ["finetune", "model", "--data", "train.tsv", "--epochs", "2", "-q", "-o", "out"]}


def more_commands(data):
    """Returns the other commands that write results, in the form of small_commands, which must be called first. `data`
    is tests/data."""
    rows = ["frame,y,x"] + ["%d,%d,%d" % (t, 9 * (i // 5) + t % 3, 9 * (i % 5)) for t in range(9) for i in range(25)]
    write("many.csv", "\n".join(rows) + "\n")
    track_table()
    model_spectra(301)
    shutil.copy(os.path.join(data, "generate/tiny/tiny-legacy.gguf"), "tiny.gguf")
    write("ids.json", "[[5, 6, 7], [8]]\n")
    done = run("finetune", "model", "--data", "train.tsv", "--epochs", "1", "-q", "-o", "classes", "--mode",
               "reference")
    same("a model with classes", done.returncode, 0)
    done = run("embed", "model", "-i", "texts.txt", "-q", "-o", "vectors.npy", "--mode", "reference")
    same("vectors to search", done.returncode, 0)
    return {"search": ["search", "vectors.npy", "--model", "model", "-i", "texts.txt", "--passages", "texts.txt", "-q",
                       "-o", "out/found.csv"],
            "link": ["link", "many.csv", "-q", "--search", "4", "-o", "out/tracks.csv"],
            "tracks": ["tracks", "tracks.csv", "-q", "-o", "out/found.csv", "--msd", "out/msd.csv", "--plot",
                       "out/msd.png"],
            "templates": ["templates", "models.csv", ARM, "-q", "-o", "out/library"],
            "rank": ["rank", "classes", "--pairs", "-i", write("pairs.tsv", "the cats\t12 and\nrun\tthe cats run\n"),
                     "-q", "-o", "out/scores.csv"],
            "classify": ["classify", "classes", "-i", "texts.txt", "-q", "-o", "out/classes.csv"],
            "tokenize": ["tokenize", "model", "-i", "texts.txt", "-q", "-o", "out/ids.json"],
            "detokenize": ["detokenize", "tiny.gguf", "-i", "ids.json", "-q", "-o", "out/texts.txt"],
            "generate": ["generate", "tiny.gguf", "--prompt", "the", "-n", "4", "--temperature", "0", "-q"]}


HOST_ONLY = "link", "tracks", "tokenize", "detokenize"  # these commands have no --mode


def without_drivers(**variables):
    return dict(PLAIN, **variables)


def wrong(text):
    WRONG.append(text)


def expect(code, part, *arguments, **options):
    """Checks the exit code, and that standard error contains a text ("": it must be empty). An error is one line, and
    nothing is on standard output then."""
    done = run(*arguments, **options)
    said = done.stderr.decode(errors="replace")
    told = " ".join(arguments)
    if done.returncode != code:
        wrong("%s: exit code %d, expected %d: %s" % (told, done.returncode, code, said))
    elif part is not None and (part not in said or (part == "" and said)):
        wrong("%s: said %r, expected %r" % (told, said, part))
    elif code == 2 and (said.count("\n") != 1 or done.stdout):
        wrong("%s: expected one line on standard error, got %r and %r" % (told, said, done.stdout))
    return done


def same(what, got, want):
    if got != want:
        wrong("%s: %r, expected %r" % (what, got, want))


def report(name):
    with open(name, encoding="utf-8") as file:
        return json.load(file)


def write(name, data):
    with open(name, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return name


def write_npy(name, shape, values, kind="<f4"):
    """Writes an array of numbers, or of bytes that are its data."""
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }" % (
        kind, ", ".join(map(str, shape)))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    code = {"<f4": "f", "<f8": "d", "<u2": "H"}[kind]
    data = values if isinstance(values, bytes) else struct.pack("<%d%s" % (len(values), code), *values)
    return write(name, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def movie(name="movie.npy", frames=4, size=32):
    """Writes a movie of a spot that moves by one pixel per frame. Six pixels away, the spot adds less than 1."""
    def near(centre):
        return range(max(centre - 5, 0), min(centre + 6, size))

    ground = [20 + (y * 7 + x * 3) % 3 for y in range(size) for x in range(size)]
    packed = []
    for t in range(frames):
        values = ground[:]
        for y in near(12):
            for x in near(10 + t):
                values[y * size + x] += int(200 * 2.0 ** (-((y - 12) ** 2 + (x - 10 - t) ** 2) / 4.0))
        packed.append(struct.pack("<%dH" % (size * size), *values))
    return write_npy(name, (frames, size, size), b"".join(packed), "<u2")


def make_inputs(folder):
    """Makes small inputs for paco, blobs and specfit, under the names that `cleave demo` uses."""
    subprocess.run([os.environ["CLEAVE_TEST_MAKER"], folder], check=True)


SPOTS = "frame,y,x\n0,1,1\n1,1,1.5\n2,1,2\n"


def listing(folder="."):
    """Returns everything below the folder except the caches, with the bytes of the files."""
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "kept"]
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                found[path] = file.read()
        for name in folders:
            found[os.path.join(place, name)] = None
    return found


def finish():
    for line in WRONG:
        print(line)
    sys.exit(1 if WRONG else 0)
