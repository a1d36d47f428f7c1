#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the tests notice wrong code: damages lines of every kernel and key lines of the host code, one at a time,
and expects the named test to fail each time. damages.py lists the lines and the tests.

usage: damage.py SOURCES BUILD [ROW...]    ROW: parts of file names, or their beginnings ("patch/"); without ROW, all
                                          rows
       damage.py --lines SOURCES           only checks that every line still exists
Kernels are read from a damaged copy (CLEAVE_TEST_CL_DIR), so nothing is compiled again. Host lines
are compiled in a copy of the sources, which takes some minutes more.
CTest runs this only with `ctest -C damage -L damage`.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

from damages import HOST, KERNELS

TEST = "{build}/bin/test_paco_{name}"
# test_NAME, not test_paco_NAME
OTHERS = ("blob", "array", "gemm", "transformer", "encoder", "spectra", "training", "optimisers",
          "attention_back", "trainer", "families", "generate", "few", "language_few", "volume", "templates",
          "search", "search_codes", "row_teams")
OCLGRIND = "{sources}/tests/kernels/under_oclgrind.sh"



def replaced(path, line, damage):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if line not in text:
        sys.exit(f"{path} has no line \"{line}\": the table of damages is out of date")
    return text, text.replace(line, damage)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def passes(command, tell=False, **variables):
    """Returns whether a test passes; None if it was skipped. `tell` prints the output of a failing test."""
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **variables)
    environment["CLEAVE_TEST_PLATFORMS"] = ""
    environment["CLEAVE_OCLGRIND_UNINITIALIZED"] = "0"  # the damage is to memory accesses
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    if result.returncode == 77:
        return None
    if result.returncode and tell:
        print(result.stdout.decode(errors="replace")[-3000:], flush=True)
    return result.returncode == 0


class Judge:
    """Runs tests. Every test must first pass without damage, since otherwise its failures would prove nothing."""

    def __init__(self):
        self.sound = {}
        self.unnoticed = self.noticed = self.skipped = 0

    def is_sound(self, test, command, **variables):
        if test not in self.sound:
            self.sound[test] = passes(command, tell=True, **variables)
            if self.sound[test] is False:
                print(f"FAILS WITHOUT DAMAGE: {test}", flush=True)
                self.unnoticed += 1
        return self.sound[test]

    def say(self, file, line, test, passed, started):
        verdict = "SKIPPED" if passed is None else "UNNOTICED" if passed else "noticed"
        self.skipped += passed is None
        self.unnoticed += passed is True
        self.noticed += passed is False
        print(f"{verdict}  {time.monotonic() - started:5.1f} s  {file}: "
              f"{line.splitlines()[0].strip()}  by {test}", flush=True)


def kernel_command(sources, build, test):
    *under, name = test.split()
    command = [f"{build}/bin/test_{name}" if name.startswith(OTHERS)
               else TEST.format(build=build, name=name)]
    if not under:
        return command
    icd = next((p for p in ("/usr/lib/oclgrind/liboclgrind-rt-icd.so",
                            "/usr/local/lib/oclgrind/liboclgrind-rt-icd.so") if os.path.exists(p)),
               "NOTFOUND")
    return [OCLGRIND.format(sources=sources), icd, *command]


def damage_kernels(sources, build, folder, rows, judge):
    kernels = os.path.join(folder, "cl")
    shutil.copytree(os.path.join(sources, "cl"), kernels)
    for file, line, damage, test in rows:
        command = kernel_command(sources, build, test)
        if not judge.is_sound(test, command, CLEAVE_TEST_CL_DIR=kernels):
            continue
        path, started = os.path.join(kernels, file), time.monotonic()
        good, bad = replaced(path, line, damage)
        write(path, bad)
        judge.say(file, line, test, passes(command, CLEAVE_TEST_CL_DIR=kernels), started)
        write(path, good)


def host_command(tree, build, test):
    cleave, cli = os.path.join(build, "bin", "cleave"), os.path.join(tree, "tests", "cli")
    if test.startswith("goldens"):
        conv, cases = ("vip", ["syn50"]) if test.endswith("vip") else ("paper", ["syn50", "syn45x56_bad"])
        return [sys.executable, os.path.join(cli, "paco_goldens.py"), cleave, "reference", conv, *cases]
    if test == "outputs":
        return [sys.executable, os.path.join(cli, "paco_outputs.py"), cleave]
    if test == "items":
        return [os.path.join(build, "bin", "test_items")]
    return [os.path.join(build, "bin", "test_paco"), test]


def compile_host(build, file):
    built = subprocess.run(["cmake", "--build", build, "--target", "cleave_command", "test_paco",
                            "test_items", "--parallel", "2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           check=False)
    if built.returncode:
        sys.exit(f"{file} does not compile\n{built.stdout.decode()[-2000:]}")


def damage_host(sources, folder, rows, judge):
    tree, build = os.path.join(folder, "tree"), os.path.join(folder, "build")
    shutil.copytree(sources, tree, ignore=lambda d, names: [
        n for n in names if n == ".git" or (d == sources and n.startswith("build"))])
    subprocess.run(["cmake", "-S", tree, "-B", build, "-DCMAKE_BUILD_TYPE=Release"], check=True,
                   stdout=subprocess.DEVNULL)
    compile_host(build, "the copy")
    for test in sorted({row[3] for row in rows}):
        judge.is_sound(test, host_command(tree, build, test))
    for file, line, damage, test in rows:
        if not judge.sound[test]:
            continue
        path, started = os.path.join(tree, file), time.monotonic()
        good, bad = replaced(path, line, damage)
        write(path, bad)
        compile_host(build, file)
        judge.say(file, line, test, passes(host_command(tree, build, test)), started)
        write(path, good)


def look_for_lines(sources):
    for file, line, damage, *_ in [("cl/" + row[0], *row[1:]) for row in KERNELS] + HOST:
        replaced(os.path.join(sources, file), line, damage)


def main():
    if sys.argv[1] == "--lines":
        return look_for_lines(sys.argv[2])
    sources, build, *wanted = sys.argv[1:]

    def chosen(rows):
        return [r for r in rows if not wanted or any(
            r[0].startswith(w) if w.endswith("/") else w in r[0] for w in wanted)]

    judge = Judge()
    with tempfile.TemporaryDirectory() as folder:
        damage_kernels(sources, build, folder, chosen(KERNELS), judge)
        if chosen(HOST):
            damage_host(sources, folder, chosen(HOST), judge)
    print(f"{judge.noticed} noticed, {judge.unnoticed} unnoticed, {judge.skipped} skipped")
    return 1 if judge.unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
