#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what `cleave paco` accepts, what it refuses, and with which messages.

usage: paco_inputs.py CLEAVE [TEST...]
The command runs in plain C, so that no driver is involved.
"""
import gzip
import math
import os
import re
import subprocess
import sys
import unittest

import paco_kit as kit
from paco_case import CLEAVE, PacoCase


class Refuses(PacoCase):
    """The command refuses the input: one line on stderr names what is wrong, the exit code is 2, and nothing is
    written."""

    def refuse(self, expected, *arguments):
        before = sorted(os.listdir(self.folder))
        result = self.run_paco(*arguments, "-q", code=2)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertRegex(lines[0], expected)
        self.assertEqual(result.stdout, "")
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_angles_that_do_not_fit(self):
        few = self.npy("few.npy", [5], [0.0] * 5, "<f8")
        self.refuse(r"5 angles.*8 frames", self.cube, few, self.psf)
        table = self.npy("table.npy", [4, 2], [0.0] * 8, "<f8")
        self.refuse(r"\[4,2\]", self.cube, table, self.psf)
        wrong = self.npy("nan.npy", [8], [0.0] * 7 + [math.nan], "<f8")
        self.refuse("angle 7 is not finite", self.cube, wrong, self.psf)
        self.refuse("line 2.*hello", self.cube, self.text("a.txt", "1\nhello\n" + "2\n" * 6),
                    self.psf)
        self.refuse("empty|no number|0 angles", self.cube, self.text("b.txt", ""), self.psf)

    def test_cubes_that_hold_no_sequence(self):
        flat = self.npy("flat.npy", [21, 24], [1.0] * 504)
        self.refuse(r"\[21,24\].*\[T,H,W\]", flat, self.angles, self.psf)
        deep = self.npy("deep.npy", [1, 1, 2, 3, 3], [1.0] * 18)
        self.refuse("4 axes", deep, self.angles, self.psf)
        single = self.npy("single.npy", [1, 21, 24], self.sequence.cube[:504])
        self.refuse("1 frame.*at least 2", single, self.npy("1.npy", [1], [3.0], "<f8"), self.psf)
        small = self.npy("small.npy", [8, 7, 24], [float(i % 91) for i in range(8 * 7 * 24)])
        self.refuse(r"24x7.*9x9", small, self.angles, self.psf)
        none = self.npy("none.npy", [0, 21, 24], [])
        self.refuse("nothing|empty|0", none, self.angles, self.psf)

    def test_files_that_are_not_what_they_seem(self):
        self.refuse("missing.fits", self.path("missing.fits"), self.angles, self.psf)
        picture = self.text("cube.jpg", "x" * 99)
        self.refuse("not supported|expected", picture, self.angles, self.psf)
        self.refuse("FITS", self.text("cube.fits", "x" * 5760), self.angles, self.psf)
        whole = kit.fits_bytes(self.sequence.shape, self.sequence.cube)
        with open(self.path("cut.fits"), "wb") as file:
            file.write(whole[:len(whole) // 2])
        self.refuse("truncated", self.path("cut.fits"), self.angles, self.psf)
        with open(self.cube, "rb") as file, open(self.path("cut.npy"), "wb") as cut:
            cut.write(file.read()[:1000])
        self.refuse("bytes of data", self.path("cut.npy"), self.angles, self.psf)
        self.refuse("nothing|empty|begins", self.text("empty.npy", ""), self.angles, self.psf)
        self.refuse("directory|cannot", self.folder, self.angles, self.psf)

    def test_psfs_that_cannot_serve(self):
        small = self.npy("small.npy", [7, 7], [1.0] * 49)
        self.refuse("7x7.*9x9.*radius 4", self.cube, self.angles, small)
        oblong = self.npy("oblong.npy", [13, 11], [1.0] * 143)
        self.refuse(r"\[13,11\].*square", self.cube, self.angles, oblong)
        zero = self.npy("zero.npy", [13, 13], [0.0] * 169)
        self.refuse("zero", self.cube, self.angles, zero, "--fwhm", "4")
        holed = self.npy("holed.npy", [13, 13], [math.nan] + [1.0] * 168)
        self.refuse("not finite", self.cube, self.angles, holed, "--fwhm", "4")
        # the median of several images: a NaN is neither below nor above other values
        several = self.npy("several.npy", [3, 13, 13], self.sequence.psf * 2 + [math.nan] + self.sequence.psf[1:])
        self.refuse("not finite", self.cube, self.angles, several, "--fwhm", "4")
        flat = self.npy("flat.npy", [13, 13], [1.0] * 169)
        self.refuse("--fwhm", self.cube, self.angles, flat)
        dark = self.npy("dark.npy", [13, 13], [-v for v in self.sequence.psf])
        self.refuse("positive", self.cube, self.angles, dark, "--fwhm", "4", "--psf-norm", "sum")

    def test_options_that_contradict(self):
        for expected, *options in (
                ("--radius 3 and --patch-area 49 disagree", "--radius", "3", "--patch-area", "49"),
                ("13, 29, 49, 81 or 113", "--patch-area", "50"),
                ("must be 2 to 6", "--radius", "7"), ("must be 2 to 6", "--radius", "1"),
                ("outside", "--center", "24,3"), ("outside", "--center", "3,-1"),
                ("two numbers|X,Y", "--center", "3;4"),
                ("channels 0 to 0", "--channel", "1"), ("positive", "--fwhm", "0"),
                ("0.1 to 10000", "--fwhm", "1e300"), ("0.1 to 10000", "--fwhm", "1e-300"),
                ("-360 to 360 degrees", "--true-north=-1000"),
                ("--threshold", "--threshold", "high"), ("--conv", "--conv", "other"),
                ("--angle-sign", "--angle-sign", "0"), ("--batch", "--batch", "0"),
                ("--mem-limit", "--mem-limit", "lots"), ("--format", "--format", "jpg"),
                ("--frobnicate", "--frobnicate")):
            with self.subTest(options=options):
                self.refuse(expected, self.cube, self.angles, self.psf, *options)

    def test_too_few_files_and_no_output(self):
        for arguments in ([self.cube, self.angles, "-o", self.path("out")],
                          [self.cube, self.angles, self.psf]):
            result = subprocess.run([CLEAVE, "paco", *arguments], env=kit.environment(),
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 2)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_cubes_that_never_change(self):
        same = self.sequence.cube[:504] * 8
        fixed = self.npy("fixed.npy", self.sequence.shape, same)
        self.refuse(r"fixed\.npy: every pixel has the same value in all 8 frames", fixed, self.angles, self.psf)
        kit.fits_write(self.path("scale.fits"), self.sequence.shape, [0] * len(same), bitpix=16, cards=[("BSCALE", 1)])
        with open(self.path("scale.fits"), "r+b") as file:
            head = file.read(2880)
            file.seek(0)
            file.write(head.replace(b"BSCALE  =                    1", b"BSCALE  =                    0"))
        self.refuse("scale.fits: every pixel .*BSCALE", self.path("scale.fits"), self.angles, self.psf)


class Warns(PacoCase):
    """The command continues, and reports what is suspicious."""

    def warn(self, expected, *arguments, **more):
        self.assertRegex(self.run_paco(*arguments, **more).stderr, expected)

    def test_angles_in_radians(self):
        radians = [math.radians(a) for a in self.sequence.angles]
        self.warn("look like radians", self.cube, self.npy("r.npy", [8], radians, "<f8"), self.psf)

    def test_the_rotation_is_an_arc(self):
        wrapped = self.npy("w.npy", [8], [(350 + 4.0 * i) % 360 for i in range(8)], "<f8")
        self.warn(r"rotation 28\.00 degrees", self.cube, wrapped, self.psf)
        still = self.npy("z.npy", [8], [0.0] * 8, "<f8")
        result = self.run_paco(self.cube, still, self.psf)
        self.assertIn("all angles are the same", result.stderr)
        self.assertNotIn("radians", result.stderr)

    def test_a_field_that_hardly_turns(self):
        still = self.npy("s.npy", [8], [100 + 0.1 * i for i in range(8)], "<f8")
        self.warn(r"rotates by only 0\.7 degrees.* at least 255 px from", self.cube, still, self.psf)
        self.warn(r"closer than \d+\.\d px", self.cube, self.angles, self.psf)

    def test_nothing_left_of_the_map(self):
        masked = [math.nan if i % 5 == 0 else v for i, v in enumerate(self.sequence.cube)]
        self.warn("no position.*[1-9][0-9]* have patches with NaN",
                  self.npy("m.npy", self.sequence.shape, masked), self.angles, self.psf, code=1)
        same = self.sequence.cube[:504] * 8
        same[0] += 1  # a cube that is constant in parts is computed
        self.warn(r"c\.npy: no position.*never change", self.npy("c.npy", self.sequence.shape, same),
                  self.angles, self.psf, code=2)
        around = self.npy("around.npy", [8], [40.0 * i for i in range(8)], "<f8")
        self.warn("no position.*leave the frame", self.cube, around, self.psf, "--center", "0,0", code=1)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_psfs_that_look_wrong(self):
        shifted = self.sequence.psf[-3:] + self.sequence.psf[:-3]
        self.warn("peaks at", self.cube, self.angles, self.npy("p.npy", [13, 13], shifted))
        sky = [v + 0.2 for v in self.sequence.psf]
        self.warn("background", self.cube, self.angles, self.npy("q.npy", [13, 13], sky))


class Reads(PacoCase):
    """The same numbers give the same maps in every file format."""

    def test_cubes(self):
        shape, cube = self.sequence.shape, self.sequence.cube
        want = self.maps(self.cube, self.angles, self.psf)
        forms = {
            "f32": {"bitpix": -32}, "f64": {"bitpix": -64}, "i16": {"bitpix": 16},
            "i32": {"bitpix": 32},
            "u16": {"bitpix": 16, "cards": [("BZERO", 32768), ("BSCALE", 1)]},
            "scaled": {"bitpix": 16, "cards": [("BZERO", 100), ("BSCALE", 0.5)]},
        }
        for name, form in forms.items():
            with self.subTest(form=name):
                kit.fits_write(self.path(f"{name}.fits"), shape, cube, **form)
                self.assertEqual(self.maps(self.path(f"{name}.fits"), self.angles, self.psf), want)
        with gzip.open(self.path("packed.fits.gz"), "wb") as file:
            file.write(kit.fits_bytes(shape, cube))
        self.assertEqual(self.maps(self.path("packed.fits.gz"), self.angles, self.psf), want)
        for dtype in (">f4", "<f8", ">f8", "<i2", ">i2", "<i4"):
            with self.subTest(dtype=dtype):
                numbers = self.npy("n.npy", shape, cube, dtype)
                self.assertEqual(self.maps(numbers, self.angles, self.psf), want)

    def test_angles(self):
        angles = self.sequence.angles
        want = self.maps(self.cube, self.angles, self.psf)
        kit.fits_write(self.path("column.fits"), [8, 1], angles, bitpix=-64)
        kit.fits_write(self.path("row.fits"), [8], angles, bitpix=-64)
        text = "# angles\n" + "".join(f"{a!r}\n" for a in angles)
        for path in (self.path("column.fits"), self.path("row.fits"), self.text("a.txt", text),
                     self.npy("column.npy", [8, 1], angles, "<f8"),
                     self.npy("row.npy", [1, 8], angles, "<f8")):
            with self.subTest(path=os.path.basename(path)):
                self.assertEqual(self.maps(self.cube, path, self.psf), want)
        table = "frame,time,parang\n" + "".join(f"{i},2013-02-01T03:04:05,{a!r}\n" for i, a in enumerate(angles))
        self.assertEqual(self.maps(self.cube, self.text("t.csv", table), self.psf), want)
        self.run_paco(self.cube, self.text("u.csv", table.replace("parang", "q")), self.psf, "--angle-column", "q")
        with open(self.path("out/a.npy"), "rb") as file:
            self.assertEqual(file.read(), want[0])
        def bad(expected, *arguments):
            self.assertRegex(self.run_paco(*arguments, "-q", code=2, out="bad").stderr, expected)
        bad(r"columns \(frame, time, q\)", self.cube, self.path("u.csv"), self.psf)
        bad("no column \"z\"", self.cube, self.path("t.csv"), self.psf, "--angle-column", "z")
        swapped = self.npy("swapped.npy", (8, 2, 21, 24), self.sequence.cube * 2)
        bad(r"there are 8 angles, .*\[T,C,H,W\]", swapped, self.angles, self.psf)
        for names, unit, per_degree, wanted in (
                (("FRAME", "PARANG_DEG"), "deg", 1, want), (("FRAME", "PARANG"), "rad", math.pi / 180, None),
                (("FRAME", "Q"), "deg", 1, None)):
            with open(self.path("t.fits"), "wb") as file:
                file.write(kit.fits_table(names, (range(8), [a * per_degree for a in angles]), ("", unit)))
            if names[1] == "Q":
                bad("several columns of numbers", self.cube, self.path("t.fits"), self.psf)
            elif wanted:
                self.assertEqual(self.maps(self.cube, self.path("t.fits"), self.psf), wanted)
            else:  # a difference of a few ulp in the angles does not matter
                said = self.run_paco(self.cube, self.path("t.fits"), self.psf).stderr
                self.assertNotIn("radians", said)
                self.assertIn(re.search("rotation [0-9.]* degrees", self.run_paco(
                    self.cube, self.angles, self.psf).stderr).group(0), said)
        turned = re.search("rotation [0-9.]* degrees", self.run_paco(self.cube, self.angles, self.psf).stderr).group(0)
        for unit, per_degree in (("arcmin", 60), ("ArcSec", 3600), ("mas", 3600000), ("radian", math.pi / 180)):
            with open(self.path("unit.fits"), "wb") as file:
                file.write(kit.fits_table(("PA",), ([a * per_degree for a in angles],), (unit,)))
            kit.fits_write(self.path("image.fits"), [8], [a * per_degree for a in angles], bitpix=-64,
                           cards=[("BUNIT", unit)])
            for name in ("unit.fits", "image.fits"):
                self.assertIn(turned, self.run_paco(self.cube, self.path(name), self.psf).stderr)
        with open(self.path("unit.fits"), "wb") as file:
            file.write(kit.fits_table(("PA",), (angles,), ("hour",)))
        bad('unit.fits: the unit of its angles is "hour"; expected deg', self.cube, self.path("unit.fits"), self.psf)
        bad(r"no HDU \[SCI\]", self.cube, self.path("row.fits[SCI]"), self.psf)
        self.assertEqual(self.maps(self.cube, self.path("row.fits[0]"), self.psf), want)
        back = self.npy("back.npy", [8], [-a for a in angles], "<f8")
        self.run_paco(self.cube, back, self.psf, "--angle-sign", "-", out="reversed")
        with open(self.path("reversed/a.npy"), "rb") as file:
            self.assertEqual(file.read(), want[0])

    def test_psfs(self):
        want = self.maps(self.cube, self.angles, self.psf)
        psf = self.sequence.psf
        three = self.npy("3.npy", [3, 13, 13],
                         [v + 1 for v in psf] + psf + [v - 1 for v in psf])  # the median is the second one
        self.assertEqual(self.maps(self.cube, self.angles, three), want)
        self.assertIn("3 images of the PSF", self.run_paco(self.cube, self.angles, three).stderr)
        kit.fits_write(self.path("p.fits"), [13, 13], psf)
        self.assertEqual(self.maps(self.cube, self.angles, self.path("p.fits")), want)

    def test_units_do_not_change_the_signal_to_noise(self):
        self.run_paco(self.cube, self.angles, self.psf)
        want = kit.npy_read(self.path("out/snr.npy")).values
        for unit in (2.0 ** -56, 2.0 ** 33):  # 1e-17 and 1e10 scale exactly, so the bits are the same
            scaled = self.npy("u.npy", self.sequence.shape, [v * unit for v in self.sequence.cube])
            self.run_paco(scaled, self.angles, self.psf)
            got = kit.npy_read(self.path("out/snr.npy")).values
            self.assertEqual([v for v in got if v == v], [v for v in want if v == v])

    def test_the_psf_tells_how_bright_the_star_is(self):
        for norm, unit in (("none", 1), ("sum", sum(self.sequence.psf)), ("peak", max(self.sequence.psf))):
            result = self.run_paco(self.cube, self.angles, self.psf, "--psf-norm", norm, "--star-ratio", "2.5",
                                   "--threshold", "9", "--radius", "4", "--reject-frames", "none", as_it_is=False)
            flux = float(re.search("the star's flux is (.*) in units", result.stderr).group(1))
            self.assertAlmostEqual(flux / (2.5 * unit), 1, delta=1e-4)
            with open(self.path("out/detections.csv"), encoding="ascii") as file:
                self.assertIn("delta_mag", file.readline())
        both = self.run_paco(self.cube, self.angles, self.psf, "--star-ratio", "2", "--star-flux", "3", code=2)
        self.assertIn("leave one of them out", both.stderr)

    def test_patch_area_is_a_radius(self):
        def with_options(*options):
            self.run_paco(self.cube, self.angles, self.psf, *options)
            with open(self.path("out/a.npy"), "rb") as file:
                return file.read()
        self.assertEqual(with_options("--patch-area", "29"), with_options("--radius", "3"))
        self.assertEqual(with_options("--patch-area", "49"), with_options())
        self.assertEqual(with_options("--patch-area", "49", "--radius", "4"), with_options())
        self.assertNotEqual(with_options("--radius", "3"), with_options())

    def test_channels(self):
        shape, cube = self.sequence.shape, self.sequence.cube
        second = cube[::-1]
        both = self.npy("both.npy", (2, *shape), cube + second)
        alone = [self.maps(self.npy("one.npy", shape, c), self.angles, self.psf)
                 for c in (cube, second)]
        self.run_paco(both, self.angles, self.psf, "--channel", "all", out="all")
        a = kit.npy_read(self.path("all/a.npy"))
        self.assertEqual(a.shape, (2, 21, 24))
        with open(self.path("all/a.npy"), "rb") as file:
            planes = file.read()[-2 * 504 * 8:]
        for k in range(2):
            self.run_paco(both, self.angles, self.psf, "--channel", str(k), out=f"only{k}")
            with open(self.path(f"only{k}/a.npy"), "rb") as file:
                self.assertEqual(file.read(), alone[k][0])
            self.assertEqual(planes[k * 504 * 8:(k + 1) * 504 * 8], alone[k][0][-504 * 8:])
        self.assertRegex(self.run_paco(both, self.angles, self.psf, "--threshold", "1").stdout, "  channel [01]  x ")
        with open(self.path("all/detections.csv"), encoding="ascii") as file:
            self.assertTrue(file.readline().startswith("channel,x,y,"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
