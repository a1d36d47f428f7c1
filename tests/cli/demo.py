#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `cleave demo` on a machine where nothing has been compiled yet: it reports the compilation separately and only
once, no time in the table includes it, and the table in README.md is the same except for the figures.

usage: demo.py CLEAVE README
"""
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

CLEAVE, README = sys.argv[1:3]
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60}
# Noise makes a time longer in proportion to the load of the machine. A compiler makes it at least 20 times longer, and
# by half a second or more, which the kernels of a workload need.
NOISE, PAUSE = 8, 0.25
# If a compiler is asked again and finds the kernel in the driver's cache, it takes a twentieth of the first time, and a
# seventh on a busy machine.
AGAIN = 0.3


def seconds(text):
    """Returns the seconds of a text such as "3 min 4 s"."""
    words = text.split()
    return sum(float(words[i]) * UNITS[words[i + 1]] for i in range(0, len(words), 2))


def table(text):
    """Returns names and cells: {workload: {column: cell}}. The titles show where the columns are."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("workload ")), None)
    if first is None:
        raise AssertionError("no table:\n" + text)
    # cells are separated by at least two blanks in every row, so columns begin where all lines agree
    rows = []
    for line in lines[first + 2:]:
        if not line.strip():
            break
        rows.append(line)
    grid = [lines[first], *rows]
    width = max(map(len, grid))
    grid = [line.ljust(width) for line in grid]
    blank = [all(line[i] == " " for line in grid) for i in range(width)]
    cells, start = [], 0
    for gap in re.finditer(" {2,}", "".join(" " if b else "x" for b in blank) + "  "):
        cells.append((start, gap.start()))
        start = gap.end()
    titles = [grid[0][a:b].strip() for a, b in cells]
    found = [dict(zip(titles, (line[a:b].strip() for a, b in cells))) for line in grid[1:]]
    return titles, {row["workload"]: row for row in found}


def without_figures(cell):
    return re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "#", cell)


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.cpu = []
        cls.cold, cls.warm = cls.run_demo(), cls.run_demo()
        # the library forgets which kernels exist, but the driver has kept them
        shutil.rmtree(os.path.join(cls.folder, "CLEAVE_CACHE_DIR", "programs"))
        cls.again = cls.run_demo()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def surroundings(cls, folder):
        """Returns an environment whose caches are in a folder, empty at first, as on a fresh machine."""
        environment = dict(os.environ, HOME=folder)
        for name in ("POCL_CACHE_DIR", "CLEAVE_CACHE_DIR", "MESA_SHADER_CACHE_DIR", "XDG_CACHE_HOME"):
            place = os.path.join(folder, name)
            os.makedirs(place, mode=0o700, exist_ok=True)
            environment[name] = place
        for name in ("CLEAVE_MINILM_DIR", "CLEAVE_MODEL", "CLEAVE_SMOLLM2", "CLEAVE_COMPILERS",
                     "POCL_KERNEL_CACHE", "CLEAVE_CACHE"):
            environment.pop(name, None)
        return environment

    @classmethod
    def run_demo(cls):
        """Runs the demo on the first device."""
        environment = cls.surroundings(cls.folder)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([CLEAVE, "demo", "--device", "0"], cwd=cls.folder, env=environment,
                              capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cls.cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if done.returncode == 3:
            print("no OpenCL device")
            sys.exit(77)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        return done.stdout

    def test_kernels_are_told_apart_and_once(self):
        told = re.search(r"^Kernels +(\d+) compiled for this machine, which is needed only once: (.*)$", self.cold,
                         re.MULTILINE)
        self.assertTrue(told, self.cold)
        self.assertGreater(int(told[1]), 20)
        self.assertRegex(self.warm, r"(?m)^Kernels +already compiled and cached$")
        self.assertNotIn("Compilers took", self.warm)
        self.assertLess(self.cold.index("Kernels "), self.cold.index("workload "))
        # no kernel is left to compile at its first launch
        took = re.search(r"^Compilers took (.*) in all", self.cold, re.MULTILINE)
        self.assertTrue(took, self.cold)
        self.assertAlmostEqual(seconds(took[1]), seconds(told[2]), delta=0.02 * seconds(told[2]))

    def test_the_first_paco_compiles_on_all_cores(self):
        """Tests that helpers compile all kernels before a launch needs them. Formerly the kernels that judge companions
        were compiled one after the other, each at its first launch."""
        folder = os.path.join(self.folder, "first-paco")
        environment = self.surroundings(folder)
        files = [os.path.join("cleave-demo", "paco-%s.npy" % name) for name in ("cube", "angles", "psf")]
        done = subprocess.run([CLEAVE, "paco", *files, "-o", "planets", "--device", "0", "-v"], cwd=self.folder,
                              env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        ahead = sum(int(n) for n in re.findall(r"(\d+) kernels? of \d+ programs? compiled ahead", done.stderr))
        kept = [os.path.basename(os.path.dirname(place)) for place, _, names in os.walk(environment["POCL_CACHE_DIR"])
                for name in names if name.endswith(".so")]
        if not kept:
            self.skipTest("this driver keeps nothing of its own")
        self.assertEqual(ahead, len(kept), kept)

    def test_compilers_only_compile(self):
        """Tests that compilers only compile. A driver that compiles at the first launch gets one launch of each kernel
        with all its numbers 0. There blas/gemm_rows.cl formerly divided by 0 and ran over 2^32 empty blocks, for longer
        than all compilers together."""
        if not re.search(r"^Kernels +\d+ compiled", self.again, re.MULTILINE):
            self.skipTest("this driver keeps nothing of its own")
        cold, warm, again = self.cpu
        self.assertLess(again - warm, AGAIN * (cold - warm),
                        "seconds of CPU time cold, warm, and with the driver's cache alone: %s" % self.cpu)

    def test_no_time_has_a_compiler_in_it(self):
        (_, cold), (_, warm) = table(self.cold), table(self.warm)
        self.assertEqual(list(cold), list(warm))
        for name, row in cold.items():
            usual = seconds(warm[name]["time"])
            self.assertLess(seconds(row["time"]), max(NOISE * usual, usual + PAUSE),
                            name + " takes longer where kernels had to be compiled")

    def test_nothing_is_cut_or_wrong(self):
        _, cold = table(self.cold)
        self.assertIn("256 texts", cold["transformer"]["input"])
        self.assertEqual({row["check"] for row in cold.values()}, {"ok"})
        self.assertEqual([row["input"] for row in cold.values()],
                         [row["input"] for row in table(self.warm)[1].values()])

    def test_what_is_slower_is_not_used_or_said(self):
        for text in self.cold, self.warm:
            for name, row in table(text)[1].items():
                if seconds(row["time"]) > seconds(row["plain C"]):
                    self.assertRegex(text, name + r" +(.*\n +)*slower here than plain C")

    def test_readme_has_this_table(self):
        with open(README, encoding="utf-8") as file:
            shown = re.search(r"<!-- demo table -->\n```text\n(.*?)```", file.read(), re.DOTALL)
        self.assertTrue(shown, "README.md has no demo table")
        (titles, printed), (shown_titles, rows) = table(self.cold), table(shown[1])
        self.assertEqual(shown_titles, titles)
        self.assertEqual(list(rows), list(printed))
        for name, row in rows.items():
            for column in "input", "found", "check":
                self.assertEqual(without_figures(row[column]), without_figures(printed[name][column]),
                                 name)
            shares = "devices and shares"
            self.assertEqual("%" in row[shares], "%" in printed[name][shares], name)
            # synthetic data are the same everywhere, so the figures must be equal, too
            self.assertEqual(row["input"], printed[name]["input"])
            self.assertLessEqual(seconds(row["time"]), seconds(row["plain C"]), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
