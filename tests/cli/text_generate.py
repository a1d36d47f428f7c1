#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `cleave generate`: golden results on every device, options, and damaged files.

usage: text_generate.py CLEAVE pocl|intel|mesa|reference     reference: also choices, and files that are wrong

The goldens are greedy tokens and highest scores of small random models in float64 (tests/data/generate)."""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

import paco_kit as kit
import testdata

CLEAVE, PLATFORM = sys.argv[1:]
TINY = testdata.path_of("generate/tiny")
BRIEF = "CLEAVE_TEST_BRIEF" in os.environ
# The short form has one prompt for each kind of weights, because PoCL compiles each kind for ten seconds.
IN_SHORT = ("tiny-legacy.gguf",) if PLATFORM == "pocl" else ("tiny-float.gguf", "tiny-k.gguf", "tiny-legacy.gguf")
WRONG = []
TOLERANCE = 2e-3  # tolerance of a score, in single precision


def run(*arguments, text=None):
    return subprocess.run([CLEAVE, "generate", *arguments], input=text, capture_output=True, timeout=600)


def expect(what, wanted, got):
    if wanted != got:
        WRONG.append("%s: expected %r, got %r" % (what, wanted, got))


def answer(*arguments):
    done = run(*arguments, "--json", "-q")
    if done.returncode:
        WRONG.append("%s: exit code %d, %s" % (arguments, done.returncode, done.stderr.decode()))
        return None
    return json.loads(done.stdout)


def refuses(code, part, *arguments):
    done = run(*arguments)
    lines = done.stderr.decode().splitlines()
    if done.returncode != code or done.stdout or not any(part in line for line in lines):
        WRONG.append("%s: exit code %d, %r; expected %d and %r" % (
            arguments, done.returncode, done.stderr.decode(), code, part))


def same_tokens(case, tokens):
    """Compares tokens up to the first place where two tokens have nearly equal scores and the other one was taken."""
    for i, wanted in enumerate(case["tokens"]):
        if i >= len(tokens):
            return False
        if tokens[i] != wanted:
            return tokens[i] == case["seconds"][i] and case["leads"][i] <= 2 * TOLERANCE
    return len(tokens) == len(case["tokens"])


def check_goldens(name, cases, where):
    for case in cases:
        if "tokens" not in case:
            continue
        prompt = ["--prompt", case["prompt"]] if case.get("prompt") else \
            ["--ids", ",".join(map(str, case["prompt_tokens"]))]
        got = answer(os.path.join(TINY, name), *prompt, "--temperature", "0", "--ignore-eos",
                     "--max-tokens", str(len(case["tokens"])), "--logits-top", str(len(case["top"])),
                     *where)
        if not got:
            continue
        what = "%s %s %s" % (name, prompt[1][:20], where)
        expect(what + ": prompt", case["prompt_tokens"], got["prompt_tokens"])
        scores = dict(map(tuple, got["logits_top"]))
        lowest = min(score for _, score in case["top"])
        for token, score in case["top"]:
            if score > lowest + TOLERANCE and abs(scores.get(token, 1e9) - score) > TOLERANCE:
                WRONG.append("%s: the score of %d is %s, expected %g" % (
                    what, token, scores.get(token), score))
        if not same_tokens(case, got["tokens"]):
            WRONG.append("%s: tokens %s, expected %s" % (what, got["tokens"], case["tokens"]))


def with_keys(data, architecture, pairs):
    """Returns a GGUF file (version 3, alignment 32) with more pairs of key and value before its own."""
    keys = b""
    for key, value in pairs.items():
        name = ("%s.%s" % (architecture, key)).encode()
        keys += struct.pack("<Q", len(name)) + name
        if isinstance(value, str):
            keys += struct.pack("<IQ", 8, len(value)) + value.encode()
        else:
            keys += struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value)
    magic, version, tensors, count = struct.unpack_from("<4sIQQ", data)
    at = 24
    for i in range(count + tensors):
        at = (end_of_pair if i < count else end_of_tensor)(data, at)
    head = struct.pack("<4sIQQ", magic, version, tensors, count + len(pairs)) + keys + data[24:at]
    return head + bytes(-len(head) % 32) + data[at + -at % 32:]


def end_of_string(data, at):
    return at + 8 + struct.unpack_from("<Q", data, at)[0]


def end_of_pair(data, at):
    at = end_of_string(data, at)
    return end_of_value(data, at + 4, struct.unpack_from("<I", data, at)[0])


def end_of_value(data, at, kind):
    if kind == 8:
        return end_of_string(data, at)
    if kind == 9:
        inner, count = struct.unpack_from("<IQ", data, at)
        at += 12
        for _ in range(count):
            at = end_of_value(data, at, inner)
        return at
    return at + (1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8)[kind]


def end_of_tensor(data, at):
    at = end_of_string(data, at)
    return at + 4 + 8 * struct.unpack_from("<I", data, at)[0] + 12


def check_scaled(folder, where):
    """Tests scaled rotary positions (linear, dynamic, YaRN), given by config.json and by keys of GGUF."""
    with open(testdata.path_of("generate/scaled.json"), encoding="utf-8") as scaled:
        cases = json.load(scaled)
    for i, case in enumerate(cases):
        path, own = os.path.join(folder, "%d" % i), os.path.join(TINY, case["model"])
        if "keys" in case:
            with open(own, "rb") as old, open(path, "wb") as new:
                new.write(with_keys(old.read(), "llama", case["keys"]))
        else:
            os.mkdir(path)
            for name in os.listdir(own):
                os.symlink(os.path.join(own, name), os.path.join(path, name))
            config = os.path.join(path, "config.json")
            with open(config, encoding="utf-8") as old:
                settings = json.load(old)
            os.unlink(config)
            with open(config, "w", encoding="utf-8") as new:
                json.dump({**settings, "rope_scaling": case["rope_scaling"]}, new)
        check_goldens(path, [case], where)


def check_choices():
    model = os.path.join(TINY, "tiny-legacy.gguf")
    prompt = ["--prompt", "the cat", "-n", "24", "--ignore-eos", "--temperature", "2", "-q"]
    one, two, other = (run(model, *prompt, "--seed", seed).stdout for seed in ("1", "1", "2"))
    expect("one seed, one text", one, two)
    expect("another seed, another text", True, one != other)
    expect("in pieces or at once", one, run(model, *prompt, "--seed", "1", "--no-stream").stdout)
    expect("valid UTF-8", True, one.decode("utf-8") is not None)
    whole = answer(model, *prompt[:-1], "--seed", "1")
    stop = whole["text"][len(whole["text"]) // 2]
    cut = answer(model, *prompt[:-1], "--seed", "1", "--stop", stop)
    expect("stop", ("stop", whole["text"][:whole["text"].index(stop)]), (cut["stop"], cut["text"]))
    expect("length", "length", whole["stop"])
    piped = run(model, *prompt[2:], "--prompt", "-", "--seed", "1", text=b"the cat")
    expect("standard input", one, piped.stdout)
    info = run(model, "--info")
    expect("--info", (0, True), (info.returncode, b"llama" in info.stdout))
    expect("--info: types", True, re.search(rb"Tensors +\d+ Q\S+, .*\d+ F32", info.stdout) is not None)


def check_several():
    """Tests that several prompts give the texts of each prompt alone, and that guesses change no token."""
    model = os.path.join(TINY, "tiny-legacy.gguf")
    how = ["-n", "16", "--ignore-eos", "--temperature", "1", "--seed", "3"]
    prompts = ["the cat", "a", "the sun\\and", "one two three"]
    alone = [answer(model, "--prompt", prompt, *how)["tokens"] for prompt in prompts]
    done = run(model, "-i", "-", *how, "--json", "-q", text="\n".join(prompts).encode())
    together = [json.loads(line) for line in done.stdout.splitlines()]
    expect("--input: tokens", alone, [one["tokens"] for one in together])
    plain = run(model, "--input", "-", *how, "-q", text="\n".join(prompts).encode()).stdout.decode()
    escaped = [one["text"].replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
               for one in together]
    expect("--input: lines", escaped, plain.split("\n")[:-1])
    guessed = answer(model, "--prompt", prompts[0], *how, "--lookup", "7")
    expect("--lookup", alone[0], guessed["tokens"])
    expect("--lookup: counts", True, guessed["guessed"] >= guessed["guessed_right"] >= 0)
    refuses(2, "--lookup is 8", model, "--prompt", "x", "--lookup", "8")
    refuses(2, "--input generates several", model, "--input", "-", "--lookup", "2")


def check_drivers():
    """Tests that of several drivers for the same cores, only the best one is loaded, unless devices are chosen."""
    model = os.path.join(TINY, "tiny-qwen2.gguf")
    ask = ["--ids", "5,6", "-n", "1", "-v"]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        own = kit.environment(CLEAVE_CACHE_DIR=folder)
        devices = json.loads(subprocess.run([CLEAVE, "probe", "--json"], capture_output=True, env=own,
                                            timeout=600, check=True).stdout)["devices"]
        if not any(d["usable"] and d["duplicate_of"] is not None for d in devices):
            print("one driver has the cores: none to leave out")
            return
        first, second, chosen = (subprocess.run(
            [CLEAVE, "generate", model, *ask, *more], capture_output=True, timeout=600, check=False,
            env=own) for more in ([], [], ["--device", "all"]))
    for what, done in (("first", first), ("second", second)):
        expect("%s run with all drivers" % what, (0, True), (done.returncode, b"is not loaded" in done.stderr))
    expect("devices chosen", (0, False), (chosen.returncode, b"is not loaded" in chosen.stderr))


def check_refusals(folder):
    model, target = os.path.join(TINY, "tiny-legacy.gguf"), os.path.join(folder, "absent")
    refuses(2, "MODEL is missing", "--prompt", "x")
    refuses(2, target, target, "--prompt", "x")
    refuses(2, "--top-p", model, "--prompt", "x", "--top-p", "1.5")
    refuses(2, '--stop is "", but it must be a text that is not empty', model, "--prompt", "x", "--stop", "")
    refuses(2, "cannot be used together", model, "--prompt", "x", "--ids", "1")
    refuses(2, "--ids", model, "--ids", "1,99999999")
    refuses(2, "no prompt", model)
    bad = testdata.path_of("generate/bad")
    for name in sorted(os.listdir(bad)):
        if not name.startswith("ok"):
            done = run(os.path.join(bad, name), "--ids", "1", "-n", "1")
            expect("bad/%s" % name, (2, b"", True),
                   (done.returncode, done.stdout, name.encode() in done.stderr))
    with tempfile.TemporaryDirectory() as other, open(model, "rb") as own:
        windowed = os.path.join(other, "windowed.gguf")
        with open(windowed, "wb") as new:
            new.write(with_keys(own.read(), "llama", {"attention.sliding_window": 8.0}))
        refuses(2, "llama.attention.sliding_window is not a whole number", windowed, "--ids", "1", "-n", "1")
    refuses(1, "cannot create", model, "--prompt", "x", "--report",
            os.path.join(folder, "none", "report.json"))
    expect("files left", [], os.listdir(folder))


def check_round_trip():
    """Tests that tokenize and detokenize with a byte-level vocabulary give the same bytes back."""
    model, text = os.path.join(TINY, "tiny-float.gguf"), "héllo  the\tcat 日本 🙂\n".encode()
    ids = subprocess.run([CLEAVE, "tokenize", model, "--null", "--no-bos", "-q"], input=text + b"\0",
                         capture_output=True, timeout=300)
    back = subprocess.run([CLEAVE, "detokenize", model, "--null", "-q"], input=ids.stdout,
                          capture_output=True, timeout=300)
    expect("round trip", text + b"\0", back.stdout)


with open(testdata.path_of("generate/tiny.json"), encoding="utf-8") as file:
    GOLDENS = json.load(file)
with tempfile.TemporaryDirectory() as empty:
    cache = os.path.join(empty, "cache")
    os.mkdir(cache, 0o700)
    place = kit.options_for(CLEAVE, PLATFORM, cache)
    os.environ["CLEAVE_CACHE_DIR"] = cache
    for model_name, model_cases in GOLDENS.items():
        if not BRIEF and PLATFORM != "intel":  # Intel compiles for minutes; see kernels/language
            check_goldens(model_name, model_cases, place)
        elif model_name in IN_SHORT:
            check_goldens(model_name, model_cases[:1], place)
    if PLATFORM == "reference" or (PLATFORM == "pocl" and not BRIEF):
        check_scaled(empty, place)
    kit.keep_programs(cache)
    del os.environ["CLEAVE_CACHE_DIR"]
if PLATFORM == "pocl" and not BRIEF:
    check_drivers()
if PLATFORM == "reference":
    check_choices()
    check_several()
    check_round_trip()
    with tempfile.TemporaryDirectory() as empty:
        check_refusals(empty)
print("\n".join(WRONG) or "%d models" % len(GOLDENS))
sys.exit(1 if WRONG else 0)
