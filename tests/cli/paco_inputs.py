#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cleave paco` accepts, what it refuses and how, and what it leaves behind.

usage: paco_inputs.py CLEAVE
Runs on the reference, so that no driver has a say.
"""
import csv
import gzip
import json
import math
import os
import re
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import paco_kit as kit
import testdata

CLEAVE = sys.argv[1]
MAPS = ("a", "b", "snr", "flux", "sigma")
OUTPUTS = {"detections.csv", "frames.csv", "frames.png", "snr.png", "report.json"}


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


class Refuses(PacoCase):
    """One line on stderr that names what is wrong, exit code 2, nothing written."""

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
        flat = self.npy("flat.npy", [13, 13], [1.0] * 169)
        self.refuse("--fwhm", self.cube, self.angles, flat)
        dark = self.npy("dark.npy", [13, 13], [-v for v in self.sequence.psf])
        self.refuse("positive", self.cube, self.angles, dark, "--fwhm", "4", "--psf-norm", "sum")

    def test_options_that_contradict(self):
        for expected, *options in (
                ("--radius 3 and --patch-area 49 disagree", "--radius", "3", "--patch-area", "49"),
                ("13, 29, 49, 81 or 113", "--patch-area", "50"),
                ("expected 2 to 6", "--radius", "7"), ("expected 2 to 6", "--radius", "1"),
                ("outside", "--center", "24,3"), ("outside", "--center", "3,-1"),
                ("two numbers|X,Y", "--center", "3;4"),
                ("channels 0 to 0", "--channel", "1"), ("positive", "--fwhm", "0"),
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


class Warns(PacoCase):
    """It goes on, and says what is suspicious."""

    def warn(self, expected, *arguments, **more):
        self.assertRegex(self.run_paco(*arguments, **more).stderr, expected)

    def test_angles_in_radians(self):
        radians = [math.radians(a) for a in self.sequence.angles]
        self.warn("look like radians", self.cube, self.npy("r.npy", [8], radians, "<f8"), self.psf)

    def test_a_field_that_hardly_turns(self):
        still = self.npy("s.npy", [8], [100 + 0.1 * i for i in range(8)], "<f8")
        self.warn(r"rotates by 0\.7 degrees.* from 255 px on", self.cube, still, self.psf)
        self.warn(r"inside \d+\.\d px", self.cube, self.angles, self.psf)

    def test_nothing_left_of_the_map(self):
        masked = [math.nan if i % 5 == 0 else v for i, v in enumerate(self.sequence.cube)]
        self.warn("no position.*[1-9][0-9]* patches with NaN",
                  self.npy("m.npy", self.sequence.shape, masked), self.angles, self.psf, code=1)
        same = self.sequence.cube[:504] * 8
        self.warn("no position.*never change", self.npy("c.npy", self.sequence.shape, same),
                  self.angles, self.psf, code=1)
        around = self.npy("around.npy", [8], [40.0 * i for i in range(8)], "<f8")
        self.warn("no position.*leave the frame", self.cube, around, self.psf, "--center", "0,0", code=1)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_psfs_that_look_wrong(self):
        shifted = self.sequence.psf[-3:] + self.sequence.psf[:-3]
        self.warn("peaks at", self.cube, self.angles, self.npy("p.npy", [13, 13], shifted))
        sky = [v + 0.2 for v in self.sequence.psf]
        self.warn("background", self.cube, self.angles, self.npy("q.npy", [13, 13], sky))


class Reads(PacoCase):
    """The same numbers give the same maps, whatever holds them."""

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
                         [v + 1 for v in psf] + psf + [v - 1 for v in psf])  # median: the second
        self.assertEqual(self.maps(self.cube, self.angles, three), want)
        kit.fits_write(self.path("p.fits"), [13, 13], psf)
        self.assertEqual(self.maps(self.cube, self.angles, self.path("p.fits")), want)

    def test_units_do_not_change_the_signal_to_noise(self):
        self.run_paco(self.cube, self.angles, self.psf)
        want = kit.npy_read(self.path("out/snr.npy")).values
        for unit in (2.0 ** -56, 2.0 ** 33):  # 1e-17, 1e10: exact, so the same bits
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
        self.assertIn("leave one out", both.stderr)

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
        with open(self.path("all/detections.csv"), encoding="ascii") as file:
            self.assertTrue(file.readline().startswith("channel,x,y,"))


class Together(PacoCase):
    """--wavelengths: the channels of a cube as one."""

    def setUp(self):
        super().setUp()
        cubes = [kit.Sequence(seed=seed).cube for seed in (3, 9, 10)]
        height, width = self.sequence.height, self.sequence.width
        for l, angle in enumerate(self.sequence.angles):  # a planet 5 pixels to the right of the star
            t = math.radians(angle)
            row, column = height // 2 - 5 * math.sin(t), width // 2 + 5 * math.cos(t)
            for cube in cubes:
                for y in range(height):
                    for x in range(width):
                        cube[(l * height + y) * width + x] += 400 * math.exp(-math.hypot(y - row, x - column) ** 2 / 3.5)
        self.both = self.npy("both.npy", (3, *self.sequence.shape), sum(cubes, []))

    def together(self, *options, code=0):
        return self.run_paco(self.both, self.angles, self.psf, "--center", "middle", "--reject-frames", "none",
                             "--radius", "4", *options, as_it_is=False, code=code)

    def table(self, name):
        with open(self.path(f"out/{name}"), encoding="ascii") as file:
            return list(csv.DictReader(file))

    def test_maps_and_spectra(self):
        bright = self.text("bright.txt", "1\n2\n3\n")
        result = self.together("--wavelengths", "950,1250,1600", "--spectrum", "flat", "--spectrum", "1500K",
                               "--spectrum", bright, "--star-temperature", "6000", "--threshold", "1.5", "--star-flux",
                               "1e4")
        self.assertIn("nanometres", result.stderr)
        self.assertRegex(result.stdout, "3 channels; .*searched together")
        self.assertEqual(kit.npy_read(self.path("out/snr.npy")).shape, (21, 24))
        self.assertEqual(kit.npy_read(self.path("out/snr_raw.npy")).shape, (21, 24))
        self.assertEqual(kit.npy_read(self.path("out/a.npy")).shape, (3, 21, 24))
        found, spectra = self.table("detections.csv"), self.table("spectra.csv")
        self.assertGreater(len(found), 0)
        self.assertNotIn("channel", found[0])
        self.assertLessEqual({row["spectrum"] for row in found}, {"flat", "1500K", bright})
        self.assertEqual(len(spectra), 3 * len(found))
        for i, row in enumerate(spectra):
            self.assertEqual((int(row["companion"]), int(row["channel"])), divmod(i, 3))
            self.assertAlmostEqual(float(row["wavelength_um"]), (0.95, 1.25, 1.6)[i % 3])
            self.assertAlmostEqual(float(row["snr"]), float(row["flux"]) / float(row["flux_err"]), places=4)
        with open(self.path("out/report.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertLessEqual({"spectra.csv", "spectra.png"}, set(report["sha256"]))
        self.assertEqual(report["operation"]["channels_searched"], "together")

    def test_places_are_measured_in_every_channel(self):
        self.together("--wavelengths", "0.95,1.25,1.6", "--at", "15,10", "--threshold", "99")
        self.assertEqual([row["channel"] for row in self.table("at.csv")], ["0", "1", "2"])
        self.assertEqual(self.table("detections.csv"), [])

    def test_what_does_not_fit_is_refused(self):
        few = self.text("few.txt", "1\n2\n")
        below = self.text("below.txt", "1\n-2\n1\n")
        for expected, *options in (
                ("2 given, the cube has 3 channels", "--wavelengths", "0.9,1.1"),
                ("wavelength 1 is -1", "--wavelengths", "0.9,-1,1"),
                ("--wavelengths: .*missing", "--wavelengths", "missing"),
                ("2 fluxes given, the cube has 3", "--wavelengths", "1,2,3", "--spectrum", few),
                ("negative", "--wavelengths", "1,2,3", "--spectrum", below),
                ("a temperature such as 1500K", "--wavelengths", "1,2,3", "--spectrum", "hot"),
                ("positive", "--wavelengths", "1,2,3", "--star-temperature", "0"),
                ("needs --wavelengths", "--spectrum", "flat"),
                ("leave out --channel", "--wavelengths", "1,2,3", "--channel", "1"),
                ("leave out --no-subtract", "--wavelengths", "1,2,3", "--no-subtract")):
            with self.subTest(options=options):
                self.assertRegex(self.together("-q", *options, code=2).stderr, expected)


class Writes(PacoCase):
    """Names, cards, tables and pictures that scripts rely on."""

    def golden(self, *options, out="out"):
        case = testdata.path_of("paco/syn50")
        files = [os.path.join(case, f"{n}.npy") for n in ("cube", "angles", "psf")]
        return self.run_paco(*files, *options, out=out)

    def test_detections_agree_with_the_maps(self):
        self.golden("--threshold", "4")
        self.assertEqual(set(os.listdir(self.path("out"))), OUTPUTS | {f"{m}.npy" for m in MAPS})
        maps = {m: kit.npy_read(self.path(f"out/{m}.npy")) for m in MAPS}
        with open(self.path("out/detections.csv"), encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        self.assertGreater(len(rows), 1)
        self.assertEqual(list(rows[0]), ["x", "y", "separation_px", "position_angle_deg", "snr",
                                         "flux", "sigma"])
        heights = [float(row["snr"]) for row in rows]
        self.assertEqual(heights, sorted(heights, reverse=True))
        for row in rows:
            x, y = int(row["x"]), int(row["y"])
            for name in ("snr", "flux", "sigma"):
                self.assertAlmostEqual(float(row[name]) / maps[name].at(y, x), 1, delta=1e-6)
            dx, dy = x - 25, y - 25
            self.assertAlmostEqual(float(row["separation_px"]), math.hypot(dx, dy), delta=1e-6)
            self.assertAlmostEqual(float(row["position_angle_deg"]),
                                   math.degrees(math.atan2(-dx, dy)) % 360, delta=1e-6)
            near = [maps["snr"].at(v, u) for v in range(max(y - 1, 0), min(y + 2, 50))
                    for u in range(max(x - 1, 0), min(x + 2, 50))]
            self.assertEqual(max(v for v in near if v == v), maps["snr"].at(y, x))

    def test_the_picture_shows_them(self):
        pictures = []
        for threshold in ("4", "1000"):
            self.golden("--threshold", threshold, out=threshold)
            with open(self.path(f"{threshold}/snr.png"), "rb") as file:
                pictures.append(file.read())
            self.assertTrue(pictures[-1].startswith(b"\x89PNG\r\n\x1a\n"))
            self.assertIn(b"IEND", pictures[-1][-12:])
        self.assertNotEqual(*pictures)

    def test_header_cards(self):
        cards = [("OBJECT", "HD 1"), ("CRVAL1", 5.5), ("CTYPE1", "RA---TAN"), ("EXPTIME", 2.5)]
        kit.fits_write(self.path("c.fits"), self.sequence.shape, self.sequence.cube, cards=cards)
        self.run_paco(self.path("c.fits"), self.angles, self.psf, "--format", "fits", "--center",
                      "11.25,10", "--conv", "vip")
        for name in MAPS:
            header, grid = kit.fits_read(self.path(f"out/{name}.fits"))
            self.assertEqual(header["BITPIX"], "-64" if name in "ab" else "-32")
            self.assertEqual(grid.shape, (21, 24))
            for key, value in (("PACO_RAD", "4"), ("PACO_P", "49"), ("NFRAMES", "8"),
                               ("PSFMODE", "fixed"), ("CONV", "vip"), ("OBJECT", "HD 1"),
                               ("CTYPE1", "RA---TAN")):
                self.assertEqual(header.get(key), value, key)
            self.assertEqual(float(header["CENX"]), 12.25)
            self.assertEqual(float(header["CENY"]), 11)
            self.assertEqual(float(header["CRVAL1"]), 5.5)
            self.assertGreater(float(header["FWHM"]), 1)

    def test_the_width_and_scale_of_the_psf(self):
        def flux_and_width(*options):
            self.run_paco(self.cube, self.angles, self.psf, "--format", "fits", *options)
            header, flux = kit.fits_read(self.path("out/flux.fits"))
            return max(v for v in flux.values if v == v), float(header["FWHM"])
        sigma2 = 1.75  # of the sequence's PSF, which has a peak of 1
        plain, width = flux_and_width()
        self.assertAlmostEqual(width, math.sqrt(8 * math.log(2) * sigma2), delta=1e-4)
        for norm, divisor, error in (("peak", 1, 1e-6), ("sum", sum(self.sequence.psf), 1e-6),
                                     ("aperture", math.pi * sigma2, 0.03)):  # half of a Gaussian
            self.assertAlmostEqual(flux_and_width("--psf-norm", norm)[0] / (plain * divisor), 1,
                                   delta=error)
        half = flux_and_width("--psf-norm", "aperture", "--fwhm", "100")[0]  # all of it
        self.assertAlmostEqual(half / (plain * sum(self.sequence.psf)), 1, delta=1e-6)

    def test_fits_and_npy_hold_the_same(self):
        self.run_paco(self.cube, self.angles, self.psf)
        self.run_paco(self.cube, self.angles, self.psf, "--format", "fits", out="fits")
        for name in MAPS:
            _, fits = kit.fits_read(self.path(f"fits/{name}.fits"))
            npy = kit.npy_read(self.path(f"out/{name}.npy"))
            self.assertEqual([v for v in fits.values if v == v], [v for v in npy.values if v == v])

    def test_report(self):
        self.golden()
        with open(self.path("out/report.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["schema"], "cleave.report/1")
        more = [self.path("new/deep/" + name) for name in ("mine.json", "trace.json")]
        self.run_paco(self.cube, self.angles, self.psf, "--report", more[0], "--trace", more[1],
                      out="new/deep")
        for name in more:
            with open(name, encoding="utf-8") as file:
                json.load(file)
        operation = report["operation"]
        reasons = ("valid", "nan_outside", "nan_not_finite", "nan_constant", "nan_degenerate")
        self.assertEqual(sum(operation[r] for r in reasons), 2500)
        self.assertEqual(operation["frames"], 50)
        self.assertEqual(operation["psf_mode"], "fixed")
        self.assertGreater(operation["command_s"], 0)
        snr = kit.npy_read(self.path("out/snr.npy")).values
        self.assertEqual(operation["valid"], sum(v == v for v in snr))

    def test_every_nan_has_its_reason(self):
        cube = self.sequence.cube[:]
        cube[3 * 504 + 10 * 24 + 10] = math.nan
        for frame in range(8):
            cube[frame * 504 + 11 * 24 + 12] = 7  # a dead pixel, after the NaN in every patch
        still = self.npy("still.npy", [8], [0.0] * 8, "<f8")
        self.run_paco(self.npy("spoilt.npy", self.sequence.shape, cube), still, self.psf)
        disc = [(y, x) for y in range(-4, 5) for x in range(-4, 5) if y * y + x * x <= 16]
        places = {(y, x) for y in range(4, 17) for x in range(4, 20)}
        masked = {(10 + y, 10 + x) for y, x in disc} & places
        dead = ({(11 + y, 12 + x) for y, x in disc} & places) - masked
        with open(self.path("out/report.json"), encoding="utf-8") as file:
            operation = json.load(file)["operation"]
        self.assertEqual([operation[k] for k in ("nan_outside", "nan_not_finite", "nan_constant",
                                                 "nan_degenerate", "valid")],
                         [504 - len(places), len(masked), len(dead), 0,
                          len(places) - len(masked) - len(dead)])

    def test_old_results_are_replaced(self):
        os.mkdir(self.path("out"))
        for name in ("a.npy", "report.json", "mine.txt"):
            self.text(f"out/{name}", "old")
        self.run_paco(self.cube, self.angles, self.psf)
        self.assertEqual(kit.npy_read(self.path("out/a.npy")).shape, (21, 24))
        with open(self.path("out/mine.txt"), encoding="ascii") as file:
            self.assertEqual(file.read(), "old")

    def test_a_place_that_cannot_be_written(self):
        blocked = self.text("file", "in the way")
        result = self.run_paco(self.cube, self.angles, self.psf, "-q", "-o", blocked, code=1)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        with open(blocked, encoding="ascii") as file:
            self.assertEqual(file.read(), "in the way")


class Prepares(PacoCase):
    """The star, frames and pixels; companions measured. What the numbers are is tested in Python."""

    def companions(self, *options, **more):
        case = testdata.path_of("paco/syn50")
        cube = kit.npy_read(os.path.join(case, "cube.npy"))
        values = list(cube.values)
        for i in range(7 * 2500, 8 * 2500):
            values[i] *= 30
        values[3 * 2500 + 1250] = math.nan
        spoilt = self.npy("spoilt.npy", cube.shape, values)
        self.result = self.run_paco(spoilt, *(os.path.join(case, f"{n}.npy") for n in ("angles", "psf")),
                                    *options, as_it_is=False, **more)
        with open(self.path("out/detections.csv"), encoding="ascii") as file:
            return list(csv.DictReader(file))

    def test_bad_frames_and_pixels_are_told(self):
        rows = self.companions("--pixel-scale", "10", "--star-flux", "1000", "--true-north", "5", "--at", "10,30",
                               "--threshold", "3.5", "--psf-mode", "shift")
        self.assertGreater(len(rows), 1)
        self.assertIn("1 of 50 frames left out, the first is frame 7", self.result.stderr)
        self.assertIn("1 pixels that were NaN", self.result.stderr)
        self.assertIn("patch radius 4", self.result.stderr)
        self.assertEqual(list(rows[0]), ["x", "y", "x_err", "y_err", "separation_px", "position_angle_deg", "snr",
                                         "flux", "flux_err", "false_alarm", "separation_mas", "separation_mas_err",
                                         "delta_mag", "delta_mag_err"])
        for row in rows:
            row = {key: float(value) for key, value in row.items()}
            dx, dy = row["x"] - 25, row["y"] - 25
            self.assertAlmostEqual(row["separation_mas"], 10 * math.hypot(dx, dy), delta=1e-5)
            self.assertAlmostEqual(row["position_angle_deg"], (math.degrees(math.atan2(-dx, dy)) + 5) % 360, delta=1e-5)
            self.assertAlmostEqual(row["delta_mag"], -2.5 * math.log10(row["flux"] / 1000), delta=1e-6)
            self.assertAlmostEqual(row["delta_mag_err"], 1.0857 * row["flux_err"] / row["flux"], delta=1e-4)
            self.assertLess(row["false_alarm"], 0.1)
        with open(self.path("out/frames.csv"), encoding="ascii") as file:
            frames = list(csv.DictReader(file))
        self.assertEqual([f["frame"] for f in frames if f["used"] == "0"], ["7"])
        self.assertEqual(len(frames), 50)
        with open(self.path("out/at.csv"), encoding="ascii") as file:
            at = list(csv.DictReader(file))
        self.assertEqual([(row["x"], row["y"], row["x_err"]) for row in at], [("10", "30", "0")])
        raw, snr = (kit.npy_read(self.path(f"out/{n}.npy")) for n in ("snr_raw", "snr"))
        self.assertNotEqual(raw.values, snr.values)
        with open(self.path("out/report.json"), encoding="utf-8") as file:
            operation = json.load(file)["operation"]
        self.assertEqual((operation["frames"], operation["frames_rejected"], operation["pixels_mended"]), (49, 1, 1))

    def test_contrast_is_written(self):
        self.companions("--contrast", "--contrast-radii", "12", "--contrast-injections", "6", "--psf-mode", "shift",
                        "--pixel-scale", "20", "--star-flux", "1000", "--threshold", "4")
        with open(self.path("out/contrast.csv"), encoding="ascii") as file:
            rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
        self.assertEqual([row["distance"] for row in rows], [12])
        for row in rows: # vip-hci's columns, and more
            self.assertAlmostEqual(row["distance_arcsec"], 0.02 * row["distance"])
            self.assertAlmostEqual(row["sensitivity_student"], row["flux"] / 1000, delta=1e-8)
            self.assertAlmostEqual(row["delta_mag"], -2.5 * math.log10(row["flux"] / 1000), delta=1e-6)
            self.assertTrue(0 < row["sensitivity_gaussian"] < row["sensitivity_student"])
            self.assertTrue(0 < row["throughput"] < 1 and row["noise"] > 0 and row["sigma corr"] > 4)
            self.assertTrue(0 < row["flux_16"] <= row["flux"] <= row["flux_84"])
            self.assertTrue(1 <= row["injections"] <= 6)
        made = kit.npy_read(self.path("out/contrast.npy"))
        self.assertEqual(made.shape, (50, 50))
        self.assertGreater(sum(value > 0 for value in made.values), 500)
        with open(self.path("out/report.json"), encoding="utf-8") as file:
            self.assertLessEqual({"contrast.npy", "contrast.csv", "contrast.png"}, set(json.load(file)["sha256"]))
        for options in (("--contrast-radii", "9"), ("--contrast", "--conv", "vip"), ("--contrast", "--contrast-radii", "0"),
                        ("--contrast", "--contrast-radii", "9,"), ("--contrast", "--threshold", "-1")):
            result = self.run_paco(self.cube, self.angles, self.psf, "--psf-mode", "shift", *options, code=2)
            self.assertIn("--contrast", result.stderr)

    def test_frames_are_chosen_by_hand(self):
        self.companions("--reject-frames", "0,3-5", "--no-subtract")
        with open(self.path("out/frames.csv"), encoding="ascii") as file:
            frames = list(csv.DictReader(file))
        self.assertEqual([f["frame"] for f in frames if f["used"] == "0"], ["0", "3", "4", "5"])
        for wrong in ("3-", "50", "5-3", "a"):
            result = self.run_paco(self.cube, self.angles, self.psf, "--reject-frames", wrong, as_it_is=False, code=2)
            self.assertIn("--reject-frames", result.stderr)

    def test_the_star_is_told(self):
        case = testdata.path_of("paco/syn50")
        shape = (20, 50, 50)
        halo = [100 * math.exp(-math.hypot(y - 27, x - 22) / 6) + random.Random(l * 2500 + y * 50 + x).gauss(0, 1)
                for l in range(20) for y in range(50) for x in range(50)]
        angles = self.npy("turning.npy", [20], [2.0 * l for l in range(20)], "<f8")
        result = self.run_paco(self.npy("off.npy", shape, halo), angles, os.path.join(case, "psf.npy"),
                               "--no-subtract", as_it_is=False)
        self.assertRegex(result.stderr, r"the star is at \((21\.9|22\.0)\d*, (26\.9|27\.0)\d*\), not at \(25, 25\)")
        for option in ("--at=3", "--pixel-scale=0", "--star-flux=-1", "--star-ratio=0"):
            self.assertIn(option.split("=", maxsplit=1)[0],
                          self.run_paco(self.cube, self.angles, self.psf, option, code=2).stderr)


class Stops(PacoCase):
    def test_an_interrupt_leaves_nothing(self):
        long = kit.Sequence(frames=30, height=80, width=80, turn=90)
        files = long.write(self.folder)
        before = sorted(os.listdir(self.folder))
        # without drivers, whose compilers have handlers of their own that come before the command's
        environment = kit.environment(OCL_ICD_VENDORS=self.path("no-drivers"))
        with subprocess.Popen([CLEAVE, "paco", *files, "-o", self.path("out"), "--mode",
                               "reference", "--radius", "6"], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            until = time.monotonic() + 240
            while time.monotonic() < until and process.poll() is None and \
                    not kit.catches_interrupts(process):
                time.sleep(0.01)
            time.sleep(0.5)  # minutes are needed
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130)
        left = sorted(os.listdir(self.folder))
        self.assertIn(left, (before, sorted([*before, "out"])))
        if "out" in left:
            self.assertEqual(os.listdir(self.path("out")), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
