#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the commands that a new user runs first (demo, selftest, cache), and the errors for devices and modes that do
not exist.

usage: first_look.py CLEAVE KERNELS    KERNELS: the folder cl/ of the sources
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CLEAVE, KERNELS = sys.argv[1:3]
PNG = b"\x89PNG\r\n\x1a\n"


class FirstLook(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def run_cleave(self, *arguments, code=0, **variables):
        environment = dict(os.environ, **variables)
        environment.pop("CLEAVE_SMOLLM2", None)  # plain C takes half a minute for this workload
        result = subprocess.run([CLEAVE, *arguments], capture_output=True, text=True, check=False,
                                cwd=self.folder, env=environment)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_demo_finds_what_it_hid(self):
        result = self.run_cleave("demo", "-o", "out", "--device", "0", "--report", "all.json")
        with open(os.path.join(self.folder, "all.json"), encoding="utf-8") as file:
            jobs = {job["name"] for job in json.load(file)["jobs"]}
        self.assertLessEqual({"paco", "blobs", "specfit", "encode"}, jobs)
        self.assertRegex(result.stdout, r"paco .* 3 of 3 planets +ok")
        self.assertRegex(result.stdout, r"regression .* 64 slopes to 0\.\d+ +ok")
        self.assertRegex(result.stdout, r"filter .* star at 37[678], 6(09|10|11): \d+\.\d sigma +ok")
        self.assertRegex(result.stdout, r"matrices .* rows 123 and 854 are alike +ok")
        self.assertRegex(result.stdout, r"transformer .* (\d+) of \1 neighbours +ok")
        for name in ("paco-frame.png", "paco-snr.png"):
            with open(os.path.join(self.folder, "out", name), "rb") as file:
                self.assertEqual(file.read(8), PNG)

        self.run_cleave("specfit", "out/specfit-coadd.fits", "--library", "out/specfit-library", "-o",
                        "out/stars.csv", "--plot", "out/stars", "--device", "0")
        with open(os.path.join(self.folder, "out", "stars.csv"), encoding="ascii") as file:
            self.assertEqual(len(file.readlines()), 65)
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "out", "stars"))), 65)

    def test_selftest_notices_a_wrong_kernel(self):
        good = self.run_cleave("selftest", "--device", "0")
        self.assertIn("passed", good.stdout)
        wrong = os.path.join(self.folder, "cl")
        shutil.copytree(KERNELS, wrong)
        for name, good, bad in (("patch/centre.cl", "- mean", "- 1.5f * mean"),
                                ("transformer/elements_back.cl", "/ divisor, to", "* NAN, to")):
            path = os.path.join(wrong, name)
            with open(path, encoding="ascii") as file:
                text = file.read()
            damaged = text.replace(good, bad)
            self.assertNotEqual(text, damaged, "nothing to damage in " + name)
            with open(path, "w", encoding="ascii") as file:
                file.write(damaged)
        result = self.run_cleave("selftest", "--device", "0", code=5, CLEAVE_CL_DIR=wrong)
        for check in "paco fixed: a", "fine-tuning, pairs":
            self.assertRegex(result.stdout, check + r" .*FAILED")

    def test_cache_is_shown_and_forgotten(self):
        place = os.path.join(self.folder, "kept")
        os.mkdir(place, 0o700)
        subprocess.run([os.environ["CLEAVE_TEST_MAKER"], os.path.join(self.folder, "made")], check=True)
        shown = self.run_cleave("cache", "path", CLEAVE_CACHE_DIR=place).stdout.strip()
        self.assertEqual(shown, place)
        self.run_cleave("blobs", "made/blobs-movie.npy", "-q", "-o", "spots.csv", "--device", "0",
                        CLEAVE_CACHE_DIR=place)
        self.assertRegex(self.run_cleave("cache", "stat", CLEAVE_CACHE_DIR=place).stdout, r"\d")
        self.assertTrue(os.listdir(os.path.join(place, "programs")))
        self.run_cleave("cache", "clear", CLEAVE_CACHE_DIR=place)
        programs = os.path.join(place, "programs")
        self.assertFalse(os.path.isdir(programs) and os.listdir(programs))

    def test_orders_that_cannot_be_met(self):
        cases = [
            (2, ["demo", "--sched", "fair"], "fair"),
            (2, ["demo", "--batch", "-1"], "-1"),
            (2, ["fly"], "fly"),
            (2, ["bench", "fly"], '"fly" is not a benchmark; expected paco'),
            (2, ["bench", "paco", "paco"], '"paco" is given twice'),
            (1, ["bench", "--html", "no folder/page.html"], "no folder/page.html"),
            (1, ["selftest", "--json", "."], "--json: . is a directory"),
            (1, ["demo", "--report", "no folder/report.json"], "no folder/report.json"),
            (3, ["demo", "--device", "name~no such device"], "no such device"),
            (3, ["demo", "--mode", "gpu"], "gpu"),
        ]
        for code, arguments, named in cases:
            result = self.run_cleave(*arguments, code=code)
            self.assertIn(named, result.stderr.lower())
            self.assertEqual(len(re.findall(r"^cleave", result.stderr, re.MULTILINE)), 1,
                             result.stderr)
            self.assertEqual(os.listdir(self.folder), [], arguments)

    def test_help_names_every_command(self):
        text = self.run_cleave("--help").stdout
        for name in re.findall(r"^  ([a-z]+)  ", text, re.MULTILINE):
            self.assertIn("Usage: cleave " + name, self.run_cleave(name, "--help").stdout)
        self.assertRegex(self.run_cleave("--version").stdout, r"^cleave \d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
