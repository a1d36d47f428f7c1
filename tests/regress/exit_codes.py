#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that each exit code has the same meaning in every command.

Formerly an output that could not be made gave 1 in most commands and 2 in `finetune`; a text file that could not be
read to its end gave 1, as if writing had failed; and a journal that could not be written gave 2. The rule (in the pages
of the command and in host/cli/cli.h) is:

    0    done
    1    failed while running: an output cannot be made or written, no memory, a driver fails
    2    wrong usage or bad input: options, variables, names, files that are missing, cannot be read or are not what
         they should be
    3    a device or a mode that was asked for is missing
    4    a driver crashed or hung (probe --strict)
    5    wrong results (selftest, demo, probe --check)
    130  interrupted

The test causes every fault that can occur in each command.

usage: exit_codes.py CLEAVE CLI_TESTS    CLI_TESTS: the folder tests/cli, whose small model is used"""
import os
import shutil
import signal
import subprocess
import sys
import time

import kit

sys.path.insert(0, sys.argv[2])
import text_embed  # noqa: E402

NOBODY = 65534


def prepare():
    kit.make_inputs("made")
    text_embed.make_model("model")
    kit.write("texts.txt", "the cats\nunaffable running\n")
    kit.write("data.txt", "the cats\tanimal\n12 and 12\tnumber\ncats run\tanimal\n1 2 3\tnumber\n")
    kit.write("spots.csv", kit.SPOTS)
    kit.track_table()
    shutil.copy(os.path.join(sys.argv[2], "../data/generate/tiny/tiny-legacy.gguf"), "tiny.gguf")
    kit.write("ids.json", "[[5, 6, 7], [8]]\n")
    kit.write("pairs.txt", "the cats\t12 and 12\n")
    done = kit.run("finetune", "model", "--data", "data.txt", "-o", "classes", "--epochs", "1", "-q")
    kit.same("finetune", done.returncode, 0)
    kit.model_spectra()
    kit.movie()
    kit.write_npy("vectors.npy", (3, 4), [1.0] * 12)
    kit.write_npy("queries.npy", (1, 4), [1.0] * 4)
    for name in "a-folder", "outputs":
        os.mkdir(name)
    done = kit.run("search", "vectors.npy", "--queries", "queries.npy", "-o", "outputs/merged.csv", "--shard", "1/1",
                   "--record", "record")
    kit.same("shard", done.returncode, 0)
    kit.write("empty", b"")
    kit.write("garbage", bytes(range(256)) * 16)


PACO = ["made/paco-cube.npy", "made/paco-angles.npy", "made/paco-psf.npy"]
TARGET = "--max-vel=1000"
LONG = "x" * 300


class Command:
    """A command. arguments: its arguments, with %s in place of each input. inputs: (file, kinds of fault that are not
    faults for this file). outputs: (option, ending, whether it can be a device)."""

    def __init__(self, name, arguments, inputs, outputs, devices=True, folder=None):
        self.name, self.arguments, self.inputs = name, arguments, inputs
        self.outputs, self.devices, self.folder = outputs, devices, folder

    def line(self, inputs=None, without=()):
        names = iter(inputs or [name for name, _ in self.inputs])
        words = [next(names) if word == "%s" else word for word in self.arguments]
        for option in without:
            at = words.index(option)
            del words[at:at + 2]
        return [self.name, *words]


REPORTS = [("--report", ".json", True), ("--trace", ".json", True)]
COMMANDS = [
    Command("paco", ["%s", "%s", "%s", "-o", "outputs/maps"], [(name, ()) for name in PACO],
            REPORTS, folder="-o"),
    Command("blobs", ["%s", "--link", "2", "-o", "outputs/spots.csv"], [("movie.npy", ())],
            [("-o", ".csv", True), ("-o", ".npy", True), ("-T", ".csv", True),
             ("--overlay", ".png", True), *REPORTS]),
    Command("link", ["%s", "--search", "2", "-o", "outputs/tracks.csv"], [("spots.csv", ())],
            [("-o", ".csv", True)], devices=False),
    Command("tracks", ["%s", "-o", "outputs/found.csv"], [("tracks.csv", ())],
            [("-o", ".csv", True), ("--msd", ".csv", True), ("--plot", ".png", True)], devices=False),
    Command("specfit", ["%s", "--library", "%s", TARGET, "-o", "outputs/stars.csv"],
            [("made/specfit-coadd.fits", ()), ("made/specfit-library", ("folder",))],
            [("-o", ".csv", True), ("-o", ".fits", True), ("--models", ".fits", False), *REPORTS]),
    Command("templates", ["%s", kit.ARM, "-o", "outputs/library"], [("models.csv", ())],
            REPORTS, folder="-o"),
    Command("embed", ["%s", "-i", "%s", "-o", "outputs/vectors.npy"],
            [("model", ("folder",)), ("texts.txt", ("empty", "garbage"))],
            [("-o", ".csv", True), ("--tokens-out", ".json", True), *REPORTS]),
    Command("search", ["%s", "--queries", "%s", "-o", "outputs/found.csv"],
            [("vectors.npy", ()), ("queries.npy", ())],
            [("-o", ".csv", True), ("-o", ".json", True), *REPORTS]),
    Command("classify", ["%s", "-i", "%s", "-o", "outputs/classes.csv"],
            [("classes", ("folder",)), ("texts.txt", ("empty", "garbage"))],
            [("-o", ".csv", True), ("-o", ".tsv", True), *REPORTS]),
    Command("rank", ["%s", "--pairs", "-i", "%s", "-o", "outputs/scores.csv"],
            [("classes", ("folder",)), ("pairs.txt", ("empty",))],
            [("-o", ".csv", True), ("-o", ".json", True), *REPORTS]),
    Command("tokenize", ["%s", "-i", "%s", "-o", "outputs/ids.json"],
            [("model", ("folder",)), ("texts.txt", ("empty", "garbage"))],
            [("-o", ".json", True)], devices=False),
    Command("detokenize", ["%s", "-i", "%s", "-o", "outputs/texts.txt"],
            [("tiny.gguf", ()), ("ids.json", ("empty",))], [("-o", ".txt", True)], devices=False),
    Command("generate", ["%s", "--prompt-file", "%s", "--max-tokens", "2", "--temperature", "0"],
            [("tiny.gguf", ()), ("texts.txt", ("empty", "garbage"))], REPORTS),
    Command("finetune", ["%s", "--data", "%s", "--epochs", "1", "-o", "outputs/learnt"],
            [("model", ("folder",)), ("data.txt", ())], REPORTS, folder="-o"),
    Command("merge", ["%s"], [("record", ())], [], devices=False),
    Command("demo", ["-o", "outputs/demo"], [], REPORTS, folder="-o"),
    Command("probe", [], [], [("--save", ".json", False)]),
    Command("selftest", [], [], [("--json", ".json", False)]),
    Command("bench", ["runtime"], [], [("--json", ".json", False), ("--html", ".html", False),
                                       ("--markdown", ".md", False)]),
]
SLOW = "demo", "bench"  # other tests run these commands successfully


def expect(code, *arguments, part=None, **options):
    before = kit.listing("outputs")
    kit.expect(code, part, *arguments, **options)
    if code and kit.listing("outputs") != before:
        kit.wrong("%s: files stayed: %s" % (" ".join(arguments), set(kit.listing("outputs")) - set(before)))


def usage(command):
    line = command.line()
    expect(2, *line, "--no-such-option")
    expect(2, *line, "-Z")
    expect(2, *line, "one", "two", "three", "four")
    if command.inputs:
        expect(2, command.name)
    for option in ("-o", "--search", "--library", "--data"):
        if option in command.arguments and command.name not in ("demo", "search", "classify", "rank", "tokenize",
                                                                "detokenize", "tracks"):
            expect(2, *command.line(without=[option]))
    if command.devices and command.name not in ("probe", "selftest", "bench"):
        for option in ("--mode=fast", "--sched=best", "--batch=0", "--mem-limit=-1", "--sub-devices=65",
                       "--mode", "--report="):
            expect(2, *line, option)
    elif command.devices and command.name != "selftest":
        expect(2, *line, "--mode%s=fast" % ("s" if command.name == "bench" else ""))
    if command.devices:
        expect(2, *line, "--device", "no;such;grammar")


def inputs(command):
    for place in range(len(command.inputs)):
        for kind, name in (("missing", "nowhere/input"), ("folder", "a-folder"), ("empty", "empty"),
                           ("garbage", "garbage"), ("long", LONG)):
            if kind in command.inputs[place][1] and kind != "folder":
                continue
            names = [name for name, _ in command.inputs]
            names[place] = name
            expect(2, *command.line(names))


def unreadable(command):
    if os.geteuid() != 0:
        return
    for place, (name, _) in enumerate(command.inputs):
        names = [name for name, _ in command.inputs]
        shutil.rmtree("closed", ignore_errors=True)
        os.mkdir("closed")
        os.chmod("closed", 0o755)
        names[place] = os.path.join("closed", os.path.basename(name))
        (shutil.copytree if os.path.isdir(name) else shutil.copy)(name, names[place])
        os.chmod(names[place], 0)
        expect(2, *command.line(names), user=NOBODY, environment=kit.without_drivers(CLEAVE_CACHE="0"))


def outputs(command):
    for option, ending, device in command.outputs:
        line = command.line(without=[option] if option in command.arguments else ())
        expect(1, *line, option, "nowhere/at/all" + ending)
        expect(1, *line, option, LONG + ending)
        expect(2, *line, option, "outputs/new.xlsx")
        expect(2, *line, option, "")
        os.mkdir("outputs/folder" + ending)
        expect(1, *line, option, "outputs/folder" + ending)
        os.rmdir("outputs/folder" + ending)
        if os.geteuid() == 0:
            expect(1, *line, option, "a-folder/new" + ending, user=NOBODY,
                   environment=kit.without_drivers(CLEAVE_CACHE="0"))
        if device and command.name not in SLOW:
            full(line, option)
    if command.folder:
        line = command.line(without=[command.folder])
        expect(1, *line, command.folder, "texts.txt")
        expect(1, *line, command.folder, "texts.txt/below")
        expect(1, *line, command.folder, LONG)
        expect(2, *line, command.folder, "outputs/new.csv")
        if os.geteuid() == 0:
            expect(1, *line, command.folder, "a-folder/new", user=NOBODY,
                   environment=kit.without_drivers(CLEAVE_CACHE="0"))


def full(line, option):
    """Tests a full disk: it is reported at the end, and no other output is incomplete."""
    done = kit.run(*line, option, "/dev/full")
    if done.returncode != 1 or b"No space left" not in done.stderr:
        kit.wrong("%s %s /dev/full: exit code %d, %r" % (line, option, done.returncode, done.stderr))
    empty_outputs()


def empty_outputs():
    shutil.rmtree("outputs")
    os.mkdir("outputs")
    os.chmod("outputs", 0o777)


def not_there(command):
    if not command.devices:
        return
    line = command.line()
    expect(3, *line, "--device", "99")
    expect(3, *line, "--device", "gpu")
    mode = {"selftest": None, "bench": "--modes"}.get(command.name, "--mode")
    if mode:
        for name in "gpu", "cpu", "hybrid":
            expect(3, *line, mode, name)
    expect(3, *line, environment=kit.without_drivers(CLEAVE_DEVICE="99"))


def good(command):
    if command.name in SLOW:
        return
    done = kit.run(*command.line())
    if done.returncode != 0:
        kit.wrong("%s: exit code %d: %r" % (command.line(), done.returncode, done.stderr))
    with open("/dev/full", "wb") as out:  # what the command prints, and what it writes to "-"
        for line in [command.line()] + [command.line(without=["-o"]) + ["-o", "-"]
                                        for option, *_ in command.outputs[:1] if option == "-o"]:
            done = subprocess.run([kit.CLEAVE, *line], env=kit.PLAIN, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.PIPE, check=False, timeout=120)
            if b"-o" in line[-2:] or command.name in ("paco", "blobs", "link", "tracks", "specfit", "probe", "selftest",
                                                    "generate"):
                if done.returncode != 1 or b"No space left" not in done.stderr:
                    kit.wrong("%s > /dev/full: exit code %d, %r" % (line, done.returncode, done.stderr))
    empty_outputs()


def interrupted():
    """Tests an interrupt while texts come from a pipe that sends nothing more. Before the work begins, the signal
    itself ends the command; in that case the test tries again with a later signal."""
    for name, folder in ("embed", "model"), ("tokenize", "model"), ("classify", "classes"):
        line = [kit.CLEAVE, name, folder, "-o", "outputs/new." + ("npy" if name == "embed" else "json"
                                                                  if name == "tokenize" else "csv")]
        for patience in 1, 5, 20:
            code, said = interrupt(line, patience)
            kit.same(name + " interrupted", kit.listing("outputs"), {})
            if code != -signal.SIGINT:
                break
        if code != 130:
            kit.wrong("%s interrupted: exit code %s, %r" % (name, code, said))


def interrupt(line, patience):
    with subprocess.Popen(line, env=kit.PLAIN, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as process:
        process.stdin.write(b"the cats\n")
        process.stdin.flush()
        time.sleep(patience)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return process.returncode, process.stderr.read()


def others():
    """Tests inputs and outputs that only one command has."""
    for option in "--config", "--targets-file", "--redshifts":
        for name in "nowhere", "a-folder", LONG:
            expect(2, *specfit().line(), option, name)
    os.mkdir("outputs/stars.csv.journal")
    expect(1, *specfit().line(), "--resume")
    os.rmdir("outputs/stars.csv.journal")
    kit.write("outputs/stars.csv.journal", "no journal at all")
    expect(2, *specfit().line(), "--resume")
    os.remove("outputs/stars.csv.journal")
    expect(1, *specfit().line(), "--plot", "texts.txt")
    expect(2, *specfit().line(), "--plot", "outputs/new.png")
    expect(2, *specfit().line(), "--targets", "none")

    finetune = ["finetune", "model", "--data", "data.txt", "-o", "outputs/learnt"]
    for name in "nowhere", "a-folder", "empty", "garbage":
        expect(2, *finetune, "--val", name)
    expect(2, *finetune, "--resume")
    expect(2, "finetune", "model", "--data", "data.txt", "-o", "model")

    conversation = ["generate", "tiny.gguf", "--chat", "--template", "chatml", "--max-tokens", "2"]
    for option in "--report", "--trace":
        with open("texts.txt", "rb") as talk:
            kit.expect(0, None, *conversation, option, "outputs/new.json", stdin=talk)
        kit.same("a conversation's " + option, list(kit.listing("outputs")), ["outputs/new.json"])
        empty_outputs()

    for name in "nowhere", "a-folder", "empty", "garbage":
        expect(2, "probe", "--simulate", name)
        expect(2, "--icd", name, "probe", "--list")
    expect(2, "probe", "--scenario", "old")
    expect(2, "probe", "--timeout=-1")
    expect(2, "probe", "--json", "--list")
    expect(2, "probe", "--simulate", "garbage", "--check")
    expect(2, "bench", "specfit", "--coadd", "nowhere", "--library", "made/specfit-library")
    expect(2, "bench", "specfit", "--library", "nowhere", "--coadd", "made/specfit-coadd.fits")
    expect(2, "bench", "paco", "--only", "no such case")
    expect(2, "bench", "paco", "--sizes", "1x1")
    expect(2, "bench", "no such workload")
    expect(2, "bench", "paco", "--peers=nowhere")
    expect(2, "cache", "empty")
    expect(2, "cache", "stat", "more")
    expect(1, "cache", environment=kit.without_drivers(CLEAVE_CACHE="0"))
    if os.geteuid() == 0:  # a cache that this user may not read is not an empty one
        os.makedirs("kept-by-root/programs")
        os.chmod("kept-by-root", 0o700)
        for action in "stat", "clear":
            expect(1, "cache", action, user=NOBODY, environment=kit.without_drivers(
                CLEAVE_CACHE_DIR=os.path.join(kit.FOLDER, "kept-by-root")))
    expect(2, "no-such-command")
    kit.same("no arguments", kit.run().returncode, 2)
    expect(2, "selftest", "--timeout=0")
    expect(2, "probe", "--bench=slow")


def specfit():
    return next(command for command in COMMANDS if command.name == "specfit")


# only `cache` reads and writes no files of the user's; others() tests it
kit.swept("exit codes", [each.name for each in COMMANDS] + ["cache"])
prepare()
os.chmod(kit.FOLDER, 0o755)
os.chmod("outputs", 0o777)
for each in COMMANDS:
    good(each)
    usage(each)
    inputs(each)
    unreadable(each)
    outputs(each)
    not_there(each)
    kit.same(each.name + ": outputs", kit.listing("outputs"), {})
others()
interrupted()
kit.finish()
