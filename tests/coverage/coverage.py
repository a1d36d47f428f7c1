#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports which lines and branches of the sources ran in tests, per room (folder) of the map in ARCHITECTURE.md.

usage: coverage.py BUILD [--worst N] [--missing PATH] [--no-bars]
       coverage.py --self-test

BUILD is a folder of the preset `coverage` in which tests have run. Exit code 1: fewer than 92 % of all lines or 82 % of
all branches ran, or fewer than 85 % or 75 % of a room. --worst N: prints the N files with the most branches that did
not run. --missing PATH: prints the lines of a file that did not run or that have a branch that did not run.

A line or branch counts as run if it ran in at least one of the programs that contain it. All lines and branches of the
C sources of the library and the command count, even those that run only if memory is exhausted; the sources are
compiled without optimization and without assertions. Kernels do not count, because PoCL compiles them. The counts of a
process that a signal ended are lost. A source that is written for instructions that this processor lacks cannot run;
it is named below the table and does not count.
"""
import concurrent.futures
import contextlib
import io
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOMS = ("base", "probe", "runtime/record", "runtime/device", "runtime/program", "runtime/job/balance", "runtime/job",
         "runtime/offload", "runtime/blas", "runtime/context", "host/array", "host/patch", "host/blob", "host/track",
         "host/stage", "host/spectra", "host/model", "host/tokenizer", "host/chat", "host/transformer", "host/search",
         "host/io", "host/synthetic", "host/cli", "host/selftest", "host/demo", "bench/command")
NEEDS = {"runtime/blas/gemm_avx2.c": "avx2", "runtime/blas/gemm_avx512.c": "avx512vl"}  # flags of /proc/cpuinfo
ALL, ROOM = (92, 82), (85, 75)  # the bars: percent of lines, percent of branches


def room_of(path):
    fitting = [room for room in ROOMS if path.startswith(room + "/")]
    return max(fitting, key=len) if fitting else None


def read(path):
    """Returns gcov's reports on one file of counters (.gcda)."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", path], check=False,
                          capture_output=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]


def add(files, report):
    """Merges a report of gcov into {path: {line: [count, [count of each branch]]}}."""
    for file in report["files"]:
        path = os.path.relpath(os.path.join(report["current_working_directory"], file["file"]), ROOT)
        if room_of(path) is None:
            continue
        lines = files.setdefault(path, {})
        seen = {}
        for line in file["lines"]:
            number = line["line_number"]
            here = lines.setdefault(number, [0, []])
            here[0] += line["count"]
            begin = seen.get(number, 0)  # a line may occur in several functions, each with its own branches
            for index, branch in enumerate(line["branches"], begin):
                if index == len(here[1]):
                    here[1].append(0)
                here[1][index] += branch["count"]
            seen[number] = begin + len(line["branches"])


def collect(build):
    found = [os.path.join(place, name) for place, _, names in os.walk(build) for name in names
             if name.endswith(".gcda")]
    files = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for reports in pool.map(read, found):
            for report in reports:
                add(files, report)
    return files


def flags_of(text):
    """Returns the flags that /proc/cpuinfo lists for the first processor; none if it lists none, as on ARM."""
    found = [line for line in text.splitlines() if line.split(":")[0].strip() == "flags"]
    return set(found[0].split(":")[1].split()) if found else set()


def leave_out(files, flags):
    """Takes out the files for which the processor lacks the instructions, and returns a line on each of them."""
    lines = []
    for path, flag in sorted(NEEDS.items()):
        if path in files and flag not in flags:
            lines.append("left out: %s, because this processor has no %s" % (path, flag))
            del files[path]
    return lines


def count(lines):
    """Returns [lines that ran, all lines, branches that ran, all branches]."""
    branches = [taken for _, each in lines.values() for taken in each]
    return [sum(ran > 0 for ran, _ in lines.values()), len(lines), sum(b > 0 for b in branches), len(branches)]


def share(part, whole):
    """Percent. Nothing measured is nothing that ran: a room without lines is below every bar."""
    return 100.0 * part / whole if whole else 0.0


def judge(name, counts, bars):
    """Returns a row of the table, and whether its shares reach the bars."""
    shares = share(counts[0], counts[1]), share(counts[2], counts[3])
    good = shares[0] >= bars[0] and shares[1] >= bars[1]
    row = "%-22s %6d %6.1f %%   %6d %6.1f %%" % (name, counts[1], shares[0], counts[3], shares[1])
    return row + ("" if good else "   below %d / %d" % bars), good


def table(files):
    print("%-22s %6s %8s   %6s %8s" % ("room", "lines", "ran", "branches", "ran"))
    whole, good = [0] * 4, True
    for room in ROOMS:
        counts = [0] * 4
        for path, lines in files.items():
            if room_of(path) == room:
                counts = [a + b for a, b in zip(counts, count(lines))]
        whole = [a + b for a, b in zip(whole, counts)]
        row, fits = judge(room, counts, ROOM)
        good = good and fits
        print(row)
    row, fits = judge("all", whole, ALL)
    print(row)
    return good and fits


def worst(files, number):
    rows = sorted(((c[3] - c[2], c[1] - c[0], path) for path, c in ((p, count(l)) for p, l in files.items())),
                  reverse=True)
    for branches, lines, path in rows[:number]:
        print("%5d branches %5d lines did not run: %s" % (branches, lines, path))


def missing(files, path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read().splitlines()
    for number, (ran, branches) in sorted(files[path].items()):
        if not ran or 0 in branches:
            print("%5d %-9s %s" % (number, "not run" if not ran else "%d of %d" % (
                sum(b > 0 for b in branches), len(branches)), text[number - 1]))


def self_test():
    def report(*counts):
        return {"current_working_directory": ROOT, "files": [
            {"file": "base/a.c", "lines": [{"line_number": i, "count": n, "branches": [
                {"count": n}, {"count": 0}]} for i, n in enumerate(counts)]},
            {"file": "tests/b.c", "lines": []}]}
    files = {}
    add(files, report(1, 0, 0))
    add(files, report(0, 1, 0))
    assert list(files) == ["base/a.c"] and count(files["base/a.c"]) == [2, 3, 2, 6], files
    assert room_of("runtime/job/balance/x.c") == "runtime/job/balance" and room_of("runtime/job/x.c") == "runtime/job"
    assert room_of("cl/x.h") is None
    assert judge("x", [92, 100, 82, 100], ALL)[1] and not judge("x", [91, 100, 82, 100], ALL)[1]
    assert not judge("x", [92, 100, 81, 100], ALL)[1] and not judge("x", [0, 0, 0, 0], ALL)[1]
    with open(os.path.join(ROOT, "ARCHITECTURE.md"), encoding="utf-8") as file:
        text = file.read()
    for room in ROOMS:
        if room != "bench/command":
            assert "| `%s/` |" % room in text, room
    for top in ("base", "probe", "runtime", "host", "bench/command"):  # no folder of sources is left out
        for place, _, names in os.walk(os.path.join(ROOT, top)):
            folder = os.path.relpath(place, ROOT)
            assert not any(n.endswith(".c") for n in names) or room_of(folder + "/x.c"), folder
    flags = flags_of("processor\t: 0\nflags\t\t: fpu avx2 fma\n\nprocessor\t: 1\nflags\t\t: fpu\n")
    assert flags == {"fpu", "avx2", "fma"} and flags_of("Features\t: fp asimd\n") == set(), flags
    files = {path: {} for path in ("base/a.c", *NEEDS)}
    assert len(leave_out(files, flags)) == 1 and "runtime/blas/gemm_avx512.c" not in files and len(files) == 2, files
    assert len(leave_out(files, flags | {"avx512vl"})) == 0 and len(leave_out(files, set())) == 1, files
    for path, flag in NEEDS.items():  # a file that is left out asks the processor for the instructions itself
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            assert '__builtin_cpu_supports("%s")' % flag in file.read(), path
    with contextlib.redirect_stdout(io.StringIO()):
        assert table({room + "/x.c": {1: [1, [1]]} for room in ROOMS})
        assert not table({room + "/x.c": {1: [1, [1]]} for room in ROOMS[1:]})  # a room without lines


def main(arguments):
    if "--self-test" in arguments:
        self_test()
        return 0
    files = collect(arguments[0])
    if "--missing" in arguments:
        missing(files, arguments[arguments.index("--missing") + 1])
        return 0
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        left_out = leave_out(files, flags_of(file.read()))
    if "--worst" in arguments:
        worst(files, int(arguments[arguments.index("--worst") + 1]))
    good = table(files)
    print("\n".join(left_out), end="\n" if left_out else "")
    return 0 if good or "--no-bars" in arguments else 1


sys.exit(main(sys.argv[1:]))
