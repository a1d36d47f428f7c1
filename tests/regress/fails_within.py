#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests commands in which the k-th OpenCL call or the k-th malloc fails: either the result is correct, or there is an
error and no output file. Long sweeps (CLEAVE_TEST_SWEEP) also make the mallocs of the program fail on PoCL.

No such run may end by a signal, fail without a message, leave a partial or temporary file, or write wrong numbers with
exit code 0. OpenCL calls fail on PoCL, under the layer of tests/faults. Mallocs of the whole process fail only in plain
C, because drivers do not survive a failed malloc.

A driver that crashes when the library asks for compiled binaries, to keep them for later runs, affects no result.

usage: fails_within.py CLEAVE CLI_TESTS DATA FAULT_LAYER MALLOC_FAILS
DATA: the folder tests/data. With the variable CLEAVE_TEST_SWEEP=N there are N values of k per command line and kind
instead of a few, and the command lines of wide.py as well"""
import array
import os
import re
import shutil
import struct
import sys

import kit
import kernels_kit

sys.path.insert(0, sys.argv[2])
import parquet  # noqa: E402
import text_embed  # noqa: E402
import wide  # noqa: E402

DATA, LAYER, MALLOC = (os.path.abspath(path) for path in sys.argv[3:6])
RUNS = int(os.environ.get("CLEAVE_TEST_SWEEP", "0"))
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf")
DONE = {"runs": 0, "right": 0, "errors": 0}


def prepare():
    lines_of = kit.small_commands(text_embed.make_model, 8, 48)
    lines_of.update(kit.more_commands(DATA))
    if RUNS:
        lines_of.update(wide.commands(DATA))
    return lines_of


def on_host(line, name):
    """Whether the command line computes without OpenCL, and has no use for --mode."""
    return name.split()[0] in kit.HOST_ONLY or "--info" in line


def clean():
    shutil.rmtree("out", ignore_errors=True)
    os.mkdir("out")


def bring_back_notes():
    """Brings back the notes of the run without a fault: what a run with a fault noted of the driver is removed."""
    shutil.rmtree("kept", ignore_errors=True)
    shutil.copytree("good", "kept")


def numbers_near(got, want):
    most = max([abs(x) for x in want if x == x and abs(x) != float("inf")], default=0)
    return len(got) == len(want) and all(
        a == b or (a != a and b != b) or abs(a - b) <= 2e-3 * abs(b) + 2e-4 * most for a, b in zip(got, want))


def floats_of(data, kinds):
    """Returns the head and the numbers of .safetensors files and of .npy files of these types, and None for other
    files."""
    if data[:6] == b"\x93NUMPY":
        start = 10 + int.from_bytes(data[8:10], "little")
        kind = kinds.get(re.search(rb"'descr': '([^']*)'", data[:start])[1])
        if not kind:
            return None
    elif data[8:9] == b"{" and b"F32" in data[:4096]:
        start, kind = 8 + int.from_bytes(data[:8], "little"), "f"
    else:
        return None
    values = array.array(kind)
    values.frombytes(data[start:start + (len(data) - start) // values.itemsize * values.itemsize])
    return data[:start], values


def same_floats(got, want):
    return bool(got) and got[0] == want[0] and numbers_near(got[1], want[1])


def same_text(got, want):
    """Compares texts whose numbers may differ in the last digits."""
    texts = [data.decode(errors="replace") for data in (got, want)]
    return NUMBER.sub("#", texts[0]) == NUMBER.sub("#", texts[1]) and \
        numbers_near(*[[float(x) for x in NUMBER.findall(text)] for text in texts])


def same_parquet(got, want):
    try:
        tables = [parquet.rows_of(data) for data in (got, want)]
    except (AssertionError, LookupError, struct.error):
        return False
    values = [[value for row in table for value in row.values()] for table in tables]
    return [list(row) for row in tables[0]] == [list(row) for row in tables[1]] and numbers_near(*values)


def same_file(name, got, want, near):
    """Compares two files. The host's numbers may differ from a device's in the last digit; pictures and reports are not
    compared. near: numbers in files of further kinds may differ, too."""
    if got == want or name.endswith((".png", "report.json")):
        return True
    if got is None or want is None:
        return False
    kinds = {b"<f4": "f", b"<f8": "d"} if near else {b"<f4": "f"}
    if floats_of(want, kinds):
        return same_floats(floats_of(got, kinds), floats_of(want, kinds))
    if name.endswith((".csv", ".tsv", ".json", ".xml") if near else ".csv"):
        return same_text(got, want)
    if near and name.endswith(".parquet"):
        return same_parquet(got, want)
    return name.endswith(".fits") and len(got) == len(want)


def same_output(got, want, near):
    """Compares what was printed, without the times in JSON."""
    got, want = (re.sub(rb'"timings":\{[^}]*\}', b"", text) for text in (got, want))
    return got == want or near and same_text(got, want)


def result():
    return {os.path.relpath(name, "out"): data for name, data in kit.listing("out").items()}


def judge(told, done, out, want, near):
    DONE["runs"] += 1
    said = done.stderr.decode(errors="replace").strip()
    halves = [name for name in out if name.endswith(".cleave-part")]
    if done.returncode not in (0, 1, 2, 3):
        kit.wrong("%s: exit code %d: %s" % (told, done.returncode, said))
    elif halves:
        kit.wrong("%s: temporaries stay: %r" % (told, halves))
    elif done.returncode != 0:
        DONE["errors"] += 1
        if not said:
            kit.wrong("%s: an error without a word" % told)
        for name, data in out.items():  # the files that exist are complete
            if name in want[0] and not same_file(name, data, want[0][name], near):
                kit.wrong("%s: failed, and %s is another" % (told, name))
    else:
        DONE["right"] += 1
        if sorted(out) != sorted(want[0]):
            kit.wrong("%s: files %r, expected %r: %s" % (told, sorted(out), sorted(want[0]), said))
        for name in want[0]:
            if name in out and not same_file(name, out[name], want[0][name], near):
                kit.wrong("%s: exit code 0, and %s is another: %s" % (told, name, said))
        if not same_output(done.stdout, want[1], near):
            kit.wrong("%s: exit code 0, and printed %r, expected %r" % (told, done.stdout, want[1]))


def spread(count, runs):
    """Returns values from 1 to count, dense at both ends, where a run opens and closes things."""
    if count <= runs:
        return range(1, count + 1)
    half = runs // 2
    low = {max(1, round(count ** (i / max(half, 1)))) for i in range(half)}
    return sorted(low | {count - k for k in low if k < count} | {count})


def sweep(kind, name, line, environment, fault, runs):
    """Runs a command without a fault, which shows how many calls there are, and then with a fault in each selected
    call."""
    counted = os.path.abspath("count")
    for _ in range(2 if kind == "call" else 1):  # the first run compiles
        clean()
        whole = kit.run(*line, environment=dict(environment, **{"CLEAVE_COUNT_MALLOCS": counted,
                                                                "CLEAVE_FAULTS_COUNT": counted}), timeout=600)
    want = result(), whole.stdout
    shutil.rmtree("good", ignore_errors=True)
    if kind == "own malloc":
        shutil.copytree("kept", "good")
    if whole.returncode != 0:
        kit.wrong("%s, %s: exit code %d without a fault: %r" % (kind, name, whole.returncode, whole.stderr))
        return
    with open(counted, encoding="ascii") as file:
        count = int(file.read())
    kit.same("%s, %s: something is counted" % (kind, name), count > 20, True)
    # The library's description is written last: once Jansson lost the quote after a key, and reported success. While
    # tables were written, names of columns and fields were lost.
    more = {"templates": range(count - 24, count + 1), "tracks": range(40, count), "link": range(40, count)}
    for k in sorted({*spread(count, runs), *(more.get(name, ()) if kind == "malloc" else ())}):
        clean()
        if os.path.isdir("good"):
            bring_back_notes()
        done = kit.run(*line, environment=dict(environment, **fault(k)), timeout=120)
        judge("%s %d of %d, %s" % (kind, k, count, name), done, result(), want, kind != "malloc" and " " in name)


def saved_last(name, line, environment):
    """Tests that the process ends by SIGABRT when binaries are requested, and that all outputs are written before."""
    clean()
    done = kit.run(*line, environment=dict(environment, CLEAVE_FAULTS="save=1"), timeout=120)
    got = result()
    clean()
    whole = kit.run(*line, environment=environment, timeout=120)
    want = result()
    kit.same("%s: binaries are asked for, exit code" % name, done.returncode, -6)
    kit.same("%s, whose driver crashes at its end, printed" % name, done.stdout, whole.stdout)
    kit.same("%s, whose driver crashes at its end: files" % name, sorted(got), sorted(want))
    for file in want:
        if file in got and not same_file(file, got[file], want[file], False):
            kit.wrong("%s, whose driver crashes at its end: %s is another" % (name, file))


lines = prepare()
for name, line in lines.items():
    plain = line if on_host(line, name) else line + ["--mode", "reference"]
    sweep("malloc", name, plain, dict(kit.PLAIN, LD_PRELOAD=MALLOC), lambda k: {"CLEAVE_FAIL_MALLOC": str(k)},
          RUNS or 7)
pocl = kernels_kit.pocl_alone()
if pocl:
    if "POCL_CACHE_DIR" in os.environ:  # starts with the kernels that other tests compiled
        pocl["POCL_CACHE_DIR"] = os.environ["POCL_CACHE_DIR"]
    for name, line in lines.items():
        if not on_host(line, name):
            sweep("call", name, line + ["--mode", "cpu"], dict(pocl, OPENCL_LAYERS=LAYER, CLEAVE_TUNE="0"),
                  lambda k: {"CLEAVE_FAULTS": "call=%d" % k}, RUNS or 4)
if pocl and RUNS:  # mallocs of the program itself, which the driver survives
    for name, line in lines.items():
        if not on_host(line, name) and name != "specfit text":  # its spectrum is no star's, and its best fit undecided
            sweep("own malloc", name, line + ["--mode", "cpu"], dict(pocl, LD_PRELOAD=MALLOC, CLEAVE_TUNE="0",
                                                                     CLEAVE_FAIL_MALLOC_OWN="0"),
                  lambda k: {"CLEAVE_FAIL_MALLOC_OWN": str(k)}, RUNS)
mesa = kernels_kit.alone("rusticl", "rusticl")  # PoCL keeps its kernels itself, so no binaries are requested from it
if mesa:
    if "MESA_SHADER_CACHE_DIR" in os.environ:
        mesa["MESA_SHADER_CACHE_DIR"] = os.environ["MESA_SHADER_CACHE_DIR"]
    for name in "embed", "blobs", "generate":
        saved_last(name, lines[name] + ["--mode", "cpu"],
                   dict(mesa, OPENCL_LAYERS=LAYER, RUSTICL_ENABLE="llvmpipe", CLEAVE_TUNE="0"))
words = {name.split()[0] for name in lines}
kit.swept("k-th malloc", words)
kit.swept("k-th OpenCL call", words - set(kit.HOST_ONLY))
print("%(runs)d runs: %(right)d with the right result, %(errors)d with an error and no file" % DONE)
kit.same("both happened", DONE["right"] > 0 and DONE["errors"] > 0, True)
kit.finish()
