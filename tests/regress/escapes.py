#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that text from files, names of folders and arguments cannot send control sequences to the terminal.

Formerly class names of a config.json, labels of training data and names of folders were printed unchanged, so that they
could set the window's title, colours, or worse. Here every command gets names and texts full of escape sequences, in
inputs that it accepts and in inputs that it refuses. Its output may contain no control character, no mark of text
direction and no byte that is not UTF-8.

usage: escapes.py CLEAVE CLI_TESTS SOURCE    CLI_TESTS: the folder tests/cli, whose small model is used"""
import glob
import json
import os
import pty
import re
import shutil
import subprocess
import sys

import kit

sys.path.insert(0, sys.argv[2])
import text_embed  # noqa: E402

EVIL = "x\x1b]0;owned\x07\x1b[31m\u009b2J\u202ecba\x7f"
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
SAID = [0]
RUN = set()


def harmless(*arguments, code=None, says=True, **options):
    RUN.add(arguments[0])
    done = kit.run(*arguments, **options)
    told = ascii(arguments)
    if code is not None and done.returncode != code:
        kit.wrong("%s: exit code %d, expected %d: %r" % (told, done.returncode, code, done.stderr))
    for name, data in (("output", done.stdout), ("error", done.stderr)):
        try:
            text = data.decode()
        except UnicodeDecodeError:
            kit.wrong("%s: standard %s is no UTF-8: %r" % (told, name, data))
            continue
        if HARMFUL.search(text):
            kit.wrong("%s: standard %s holds %r" % (told, name, HARMFUL.findall(text)))
        SAID[0] += text.count("\\x1B")
    if says and b"\\x1B" not in done.stdout + done.stderr:
        kit.wrong("%s: the name is not told: %r %r" % (told, done.stdout, done.stderr))
    return done


def check_missing():
    """Tests a name that does not exist for each operand and option of every command, and bytes that are not UTF-8."""
    kit.write_npy("v.npy", (1, 2), [1.0, 1.0])
    for name in EVIL, os.fsdecode(b"\x1b[31m\xff\xfe"):
        for arguments in (["paco", name, "a", "b", "-o", "out"], ["blobs", name, "-o", "out.csv"],
                          ["link", name, "-o", "out.csv", "--search", "2"],
                          ["tracks", name], ["tracks", "t.csv", "--columns", name],
                          ["templates", name, "-o", "out"], ["templates", "models.csv", "-o", "out", "--arm", name],
                          ["specfit", "a", "--library", name, "-o", "o.csv"], ["embed", name, "-o", "o.npy"],
                          ["search", name, "--model", "m"], ["search", "v.npy", "--model", name],
                          ["search", "v.npy", "--queries", name],
                          ["search", "v.npy", "--queries", "v.npy", "--passages", name],
                          ["classify", name], ["rank", name, "--query", "q"], ["tokenize", name], ["detokenize", name],
                          ["finetune", name, "--data", "d", "-o", "o"], ["generate", name, "-p", "hello"],
                          ["demo", name], ["bench", name], ["selftest", name], ["probe", name], ["cache", name],
                          ["help", name], [name], ["--" + name], ["paco", "--" + name],
                          ["paco", "a", "b", "c", "-o", "out", "--mode", name],
                          ["blobs", "--device=" + name, "m", "-o", "o.csv"], ["--icd", name, "selftest"],
                          ["selftest", "--device", name], ["demo", "--" + name], ["probe", "--simulate", name],
                          ["specfit", "a", "--library", "l", "-o", "o.csv", "--config", name]):
            # the part of an option's name that is quoted may hold no escape
            harmless(*arguments, says=name == EVIL and not any(a.startswith("--" + name) for a in arguments))
    for variable in "CLEAVE_MODE", "CLEAVE_DEVICE", "CLEAVE_MEM_LIMIT", "CLEAVE_TRACE", "CLEAVE_CL_DIR":
        harmless("selftest", environment=kit.without_drivers(**{variable: EVIL}), says=False)


def check_folders():
    """Tests complete runs in a folder with such a name, and files whose contents differ from what their names say."""
    os.mkdir(EVIL)
    kit.movie(EVIL + "/m.npy")
    harmless("blobs", EVIL + "/m.npy", "-o", EVIL + "/s.csv", "--mode", "reference", code=0)
    harmless("link", EVIL + "/s.csv", "-o", EVIL + "/t.csv", "--search", "3", says=False)
    kit.write("evil.csv", "frame,y,x,note\n0,1,1,%s\n1,1,1,a\n" % EVIL)
    on_terminal("link", "evil.csv", "-o", "-", "--search", "3")
    harmless("demo", "-q", "-o", EVIL + "/made", "--mode", "reference", says=False)
    kit.write(EVIL + "/bad.npy", b"\x93NUMPY\x01\x00\x10\x00{\x1b[31m'descr': 1}")
    kit.write(EVIL + "/bad.fits", b"SIMPLE\x1b[31m".ljust(2880))
    kit.write(EVIL + "/bad.tif", b"II*\x00\x1b[31m")
    kit.write(EVIL + "/bad.csv", "frame,y,x\n0,\x1b[31m,1\n")
    for name in "bad.npy", "bad.fits", "bad.tif", "bad.csv":
        harmless("blobs", EVIL + "/" + name, "-o", "o.csv", code=2)
        harmless("paco", EVIL + "/" + name, EVIL + "/" + name, EVIL + "/" + name, "-o", "out", code=2)
        harmless("link", EVIL + "/" + name, "-o", "o.csv", "--search", "3", code=2)
        harmless("tracks", EVIL + "/" + name, code=2)
        harmless("templates", EVIL + "/" + name, "-o", EVIL + "/library", code=2)
    kit.write(EVIL + "/models.csv", "FILE,TEFF,LOGG,FEH,ALPHA\n" + "".join(
        "%s%d,%d,4,0,0\n" % (EVIL, t, t) for t in (5000, 6000)))
    harmless("templates", EVIL + "/models.csv", "-o", EVIL + "/library", "--mode", "reference", code=2)
    kit.write(EVIL + "/tracks.csv", "%s,y,x,particle\n0,1,1,0\n1,1,2,0\n" % EVIL)
    harmless("tracks", EVIL + "/tracks.csv", code=2)
    harmless("tracks", EVIL + "/tracks.csv", "--columns", "frame=" + EVIL, code=0, says=False)
    harmless("cache", "path", environment=kit.without_drivers(CLEAVE_CACHE_DIR=os.path.abspath(EVIL)), code=0)
    harmless("cache", environment=kit.without_drivers(CLEAVE_CACHE_DIR=os.path.abspath(EVIL)), code=0)


def check_reports():
    """Tests simulated machines; formerly their names of devices could hold control characters of one byte, and the
    name of the file and the version of a card any."""
    report = {"schema": "cleave.probe/1", "opencl": {"platforms": [{"name": EVIL, "version": EVIL}]},
              "devices": [{"platform": 0, "name": EVIL, "vendor": EVIL, "type": ["GPU"], "driver_version": EVIL}]}
    card = {"id": EVIL, "name": EVIL, "platform_name": EVIL, "type": "GPU", "compute_capability": "\x1b.["}
    profiles = {"schema": "cleave.probe.device-profiles/1", "devices": [card],
                "scenarios": [{"id": "one", "devices": [EVIL]}]}
    for name in "report.json", EVIL + ".json":
        for more in [], ["--list"], ["--verbose"], ["--json"]:
            kit.write(name, json.dumps(report))
            harmless("probe", "--simulate", name, *more, code=0, says=False)
            kit.write(name, json.dumps(profiles))
            for scenario in "one", EVIL:
                harmless("probe", "--simulate", name, "--scenario", scenario, *more, code=0, says=False)


def check_models():
    text_embed.make_model("model")
    kit.write("texts.txt", "the cats\nunaffable running\n")
    text_embed.make_model("act", hidden_act=EVIL)
    harmless("embed", "act", "-i", "texts.txt", "-o", "o.npy", "--mode", "reference", code=2)
    text_embed.make_model("type", model_type=EVIL, architectures=[EVIL])
    harmless("embed", "type", "-i", "texts.txt", "-o", "o.npy", "--mode", "reference", says=False)
    harmless("generate", "type", "-p", "hello", says=False)
    # labels of training data become classes, whose names are printed
    label = EVIL.replace("\n", "")
    kit.write("data.txt", "the cats\t%s\n12 and 12\tnumber\ncats run\t%s\n1 2 3\tnumber\n" % (label, label))
    done = harmless("finetune", "model", "--data", "data.txt", "-o", "tuned", "--mode", "reference",
                    "--epochs", "1")
    if done.returncode == 0:
        harmless("classify", "tuned", "-i", "texts.txt", "-o", "c.csv", "--mode", "reference", says=False)
        on_terminal("classify", "tuned", "-i", "texts.txt", "--mode", "reference")
    else:
        kit.wrong("finetune: %r" % done.stderr)
    with open("model/config.json", encoding="utf-8") as file:
        config = json.load(file)
    for key in sorted(config):
        shutil.rmtree("bent", ignore_errors=True)
        shutil.copytree("model", "bent")
        with open("bent/config.json", "w", encoding="utf-8") as file:
            json.dump(dict(config, **{key: EVIL}), file, ensure_ascii=False)
        harmless("embed", "bent", "-i", "texts.txt", "-o", "o.npy", "--mode", "reference", says=False)
    kit.write("bent/config.json", "{\x1b[31m")
    harmless("embed", "bent", "-i", "texts.txt", "-o", "o.npy", "--mode", "reference", code=2, says=False)
    shutil.copy("model/config.json", "bent")
    kit.write("bent/tokenizer.json", '{"model": {"type": "%s"}}' % EVIL)
    harmless("tokenize", "bent", "-i", "texts.txt", code=2, says=False)


def on_terminal(*arguments):
    """Tests data on standard output, which are shown as text if standard output is a terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.run([kit.CLEAVE, *arguments], env=kit.PLAIN, stdin=subprocess.DEVNULL, stdout=theirs,
                          stderr=subprocess.PIPE, timeout=300, check=False)
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 65536):
            shown += data
    except OSError:  # the end of the output so far
        pass
    os.close(ours)
    text = shown.decode().replace("\r\n", "\n")
    if done.returncode or HARMFUL.search(text) or "\\x1B" not in text:
        kit.wrong("%s on a terminal: %d, %r, %r" % (ascii(arguments), done.returncode, text, done.stderr))


def check_source():
    """Tests that the command prints through one function only."""
    raw = re.compile(r"(?<![\w])(v?f?printf|puts|perror)\(")
    rooms = "host/cli", "host/demo", "host/selftest", "bench/command"
    for path in sum((glob.glob(os.path.join(sys.argv[3], room, "**/*.c"), recursive=True) for room in rooms), []):
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        if os.path.basename(path) in ("say.c", "grid.c"):
            continue
        for number, line in enumerate(lines, 1):
            if raw.search(line):
                kit.wrong("%s:%d prints without cli_say: %s" % (path, number, line.strip()))


check_missing()
check_folders()
check_reports()
check_models()
check_source()
kit.swept("escapes", RUN & set(kit.commands()))
print("%d escapes were shown as text" % SAID[0])
kit.finish()
