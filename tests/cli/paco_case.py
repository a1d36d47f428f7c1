# SPDX-License-Identifier: Apache-2.0
"""A small sequence in a folder of its own and `cleave paco` on it, for tests of what the command reads and writes.

The command runs in plain C, so that no driver is involved.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import paco_kit as kit

CLEAVE = sys.argv[1]


class PacoCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.sequence = kit.Sequence()
        self.cube, self.angles, self.psf = self.sequence.write(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, name, content):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(content)
        return self.path(name)

    def npy(self, name, *args):
        kit.npy_write(self.path(name), *args)
        return self.path(name)

    def run_paco(self, cube, angles, psf, *options, code=0, out="out", as_it_is=True):
        own = list(kit.AS_IT_IS) if as_it_is else []
        if as_it_is and not {"--radius", "--patch-area"} & set(options):
            own += ["--radius", "4"]
        result = subprocess.run(
            [CLEAVE, "paco", cube, angles, psf, "-o", self.path(out), "--mode", "reference",
             "--psf-mode", "fixed", "--format", "npy", *own, *options],
            env=kit.environment(), capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def maps(self, *inputs, out="out"):
        self.run_paco(*inputs, out=out)
        with open(self.path(f"{out}/a.npy"), "rb") as a, open(self.path(f"{out}/b.npy"), "rb") as b:
            return a.read(), b.read()
