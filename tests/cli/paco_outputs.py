#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what `cleave paco` writes, and that a failed run leaves nothing behind.

usage: paco_outputs.py CLEAVE [TEST...]
The command runs in plain C, so that no driver is involved.
"""
import csv
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import paco_kit as kit
import testdata
from paco_case import CLEAVE, PacoCase

MAPS = ("a", "b", "snr", "flux", "sigma")
OUTPUTS = {"detections.csv", "frames.csv", "frames.png", "snr.png", "report.json"}


class Together(PacoCase):
    """--wavelengths: all channels of a cube are searched together."""

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
                        cube[(l * height + y) * width + x] += (
                            400 * math.exp(-math.hypot(y - row, x - column) ** 2 / 3.5))
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
                ("2 values, but the cube has 3 channels", "--wavelengths", "0.9,1.1"),
                ("wavelength 1 is -1", "--wavelengths", "0.9,-1,1"),
                (r"wavelength 2 is 1e\+300", "--wavelengths", "0.9,1,1e300"),
                ("wavelength 1 is 1e-300", "--wavelengths", "900,1e-300,1000"),
                ("--wavelengths: .*missing", "--wavelengths", "missing"),
                ("2 fluxes, but the cube has 3", "--wavelengths", "1,2,3", "--spectrum", few),
                ("negative", "--wavelengths", "1,2,3", "--spectrum", below),
                ("a temperature such as 1500K", "--wavelengths", "1,2,3", "--spectrum", "hot"),
                ("positive", "--wavelengths", "1,2,3", "--star-temperature", "0"),
                ("needs --wavelengths", "--spectrum", "flat"),
                ("leave out --channel", "--wavelengths", "1,2,3", "--channel", "1"),
                ("leave out --no-subtract", "--wavelengths", "1,2,3", "--no-subtract")):
            with self.subTest(options=options):
                self.assertRegex(self.together("-q", *options, code=2).stderr, expected)


class Writes(PacoCase):
    """The command writes names, cards, tables and pictures on which scripts rely."""

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

    def test_files_of_an_earlier_run_are_told(self):
        inputs = self.cube, self.angles, self.psf
        for _ in range(2):
            self.assertNotIn("earlier run", self.run_paco(*inputs, "--format", "fits").stderr)
        told = self.run_paco(*inputs, "--format", "npy").stderr
        self.assertIn("do not belong to this one: a.fits, b.fits, snr.fits, flux.fits, sigma.fits (remove", told)

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

    def test_the_unit_of_fluxes(self):
        kit.fits_write(self.path("c.fits"), self.sequence.shape, self.sequence.cube, cards=[("BUNIT", "adu/s")])
        for norm, unit in (("aperture", "adu/s"), ("none", None)):
            self.run_paco(self.path("c.fits"), self.angles, self.psf, "--format", "fits", "--psf-norm", norm)
            for name in MAPS:
                header, _ = kit.fits_read(self.path(f"out/{name}.fits"))
                self.assertEqual(header.get("BUNIT"), unit if name in ("flux", "sigma") else None, (norm, name))

    def test_the_width_and_scale_of_the_psf(self):
        def flux_and_width(*options):
            self.run_paco(self.cube, self.angles, self.psf, "--format", "fits", *options)
            header, flux = kit.fits_read(self.path("out/flux.fits"))
            return max(v for v in flux.values if v == v), float(header["FWHM"])
        sigma2 = 1.75  # flux of the sequence's PSF, which has a peak of 1
        plain, width = flux_and_width()
        self.assertAlmostEqual(width, math.sqrt(8 * math.log(2) * sigma2), delta=1e-4)
        for norm, divisor, error in (("peak", 1, 1e-6), ("sum", sum(self.sequence.psf), 1e-6),
                                     ("aperture", math.pi * sigma2, 0.03)):  # half of a Gaussian
            self.assertAlmostEqual(flux_and_width("--psf-norm", norm)[0] / (plain * divisor), 1,
                                   delta=error)
        half = flux_and_width("--psf-norm", "aperture", "--fwhm", "100")[0]  # the whole Gaussian
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
    """The command prepares sequences: star, frames, pixels, and measured companions. The tests in Python check the
    numbers."""

    def companions(self, *options, frames=50, side=50, **more):
        """Writes the first frames of a sequence, or only a square around the star, with one bad frame and one bad
        pixel."""
        case = testdata.path_of("paco/syn50")
        cube, angles = (kit.npy_read(os.path.join(case, f"{n}.npy")) for n in ("cube", "angles"))
        edge, area = (50 - side) // 2, side * side
        values = [cube.at(l, y, x) for l in range(frames) for y in range(edge, edge + side)
                  for x in range(edge, edge + side)]
        for i in range(7 * area, 8 * area):
            values[i] *= 30
        values[3 * area + area // 2] = math.nan
        self.result = self.run_paco(self.npy("spoilt.npy", (frames, side, side), values),
                                    self.npy("turning.npy", [frames], angles.values[:frames], "<f8"),
                                    os.path.join(case, "psf.npy"), *options, as_it_is=False, **more)
        with open(self.path("out/detections.csv"), encoding="ascii") as file:
            return list(csv.DictReader(file))

    def test_bad_frames_and_pixels_are_told(self):
        rows = self.companions("--pixel-scale", "10", "--star-flux", "1000", "--true-north", "5", "--at", "10,30",
                               "--threshold", "3.5", "--psf-mode", "shift")
        self.assertGreater(len(rows), 1)
        self.assertIn("1 of 50 frames have a reduced weight; the lowest is that of frame 7 (", self.result.stderr)
        self.assertIn("1 pixels were NaN", self.result.stderr)
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
        self.assertEqual([f["frame"] for f in frames if float(f["weight"]) != 1], ["7"])
        self.assertAlmostEqual(float(frames[7]["weight"]) * float(frames[7]["scale"]) ** 2, 4, delta=1e-4)
        self.assertEqual([f["used"] for f in frames], 50 * ["1"])
        with open(self.path("out/at.csv"), encoding="ascii") as file:
            at = list(csv.DictReader(file))
        self.assertEqual([(row["x"], row["y"], row["x_err"]) for row in at], [("10", "30", "0")])
        raw, snr = (kit.npy_read(self.path(f"out/{n}.npy")) for n in ("snr_raw", "snr"))
        self.assertNotEqual(raw.values, snr.values)
        with open(self.path("out/report.json"), encoding="utf-8") as file:
            operation = json.load(file)["operation"]
        self.assertEqual((operation["frames"], operation["frames_rejected"], operation["pixels_mended"]), (50, 0, 1))
        self.assertEqual((operation["frame_weights"], operation["frames_lowered"]), ("robust", 1))

    def test_contrast_is_written(self):
        self.companions("--contrast", "--contrast-radii", "12", "--contrast-injections", "6", "--psf-mode", "shift",
                        "--pixel-scale", "20", "--star-flux", "1000", "--threshold", "4", frames=30, side=40)
        with open(self.path("out/contrast.csv"), encoding="ascii") as file:
            rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
        self.assertEqual([row["distance"] for row in rows], [12])
        for row in rows: # vip-hci's columns, and further ones
            self.assertAlmostEqual(row["distance_arcsec"], 0.02 * row["distance"])
            self.assertAlmostEqual(row["sensitivity_student"], row["flux"] / 1000, delta=1e-8)
            self.assertAlmostEqual(row["delta_mag"], -2.5 * math.log10(row["flux"] / 1000), delta=1e-6)
            self.assertTrue(0 < row["sensitivity_gaussian"] < row["sensitivity_student"])
            self.assertTrue(0 < row["throughput"] < 1 and row["noise"] > 0 and row["sigma corr"] > 4)
            self.assertTrue(0 < row["flux_16"] <= row["flux"] <= row["flux_84"])
            self.assertTrue(1 <= row["injections"] <= 6)
        made = kit.npy_read(self.path("out/contrast.npy"))
        self.assertEqual(made.shape, (40, 40))
        self.assertGreater(sum(value > 0 for value in made.values), 500)
        with open(self.path("out/report.json"), encoding="utf-8") as file:
            self.assertLessEqual({"contrast.npy", "contrast.csv", "contrast.png"}, set(json.load(file)["sha256"]))
        for options in (("--contrast-radii", "9"), ("--contrast", "--conv", "vip"),
                        ("--contrast", "--contrast-radii", "0"), ("--contrast", "--contrast-radii", "9,"),
                        ("--contrast", "--threshold", "-1")):
            result = self.run_paco(self.cube, self.angles, self.psf, "--psf-mode", "shift", *options, code=2)
            self.assertIn(options[-2], result.stderr)

    def test_frames_may_count_alike_or_by_their_noise(self):
        self.companions("--frame-weights", "none", "--no-subtract")
        self.assertIn("1 of 50 frames are left out, frame 7 first", self.result.stderr)
        with open(self.path("out/frames.csv"), encoding="ascii") as file:
            frames = list(csv.DictReader(file))
        self.assertEqual([(f["frame"], f["weight"]) for f in frames if f["used"] == "0"], [("7", "0")])
        self.assertEqual([f["weight"] for f in frames if f["used"] == "1"], 49 * ["1"])
        self.companions("--frame-weights", "variance", "--no-subtract")
        with open(self.path("out/frames.csv"), encoding="ascii") as file:
            for row in csv.DictReader(file):
                self.assertAlmostEqual(float(row["weight"]) * float(row["scale"]) ** 2, 1, delta=1e-4)

    def test_places_outside_the_frames_are_told(self):
        for place in ("-3,5", "3,-5", "50,10", "10,49.5", "1e9,1"):
            result = self.run_paco(self.cube, self.angles, self.psf, f"--at={place}", code=2)
            self.assertIn(f'--at is "{place}", which is outside the frames of', result.stderr)

    def test_frames_are_chosen_by_hand(self):
        self.companions("--reject-frames", "0,3-5", "--no-subtract")
        with open(self.path("out/frames.csv"), encoding="ascii") as file:
            frames = list(csv.DictReader(file))
        self.assertEqual([f["frame"] for f in frames if f["used"] == "0"], ["0", "3", "4", "5"])
        for wrong in ("3-", "50", "5-3", "a", "-18446744073709551613"):
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
        # without drivers, whose compilers install handlers that run before the command's
        environment = kit.environment(OCL_ICD_VENDORS=self.path("no-drivers"))
        with subprocess.Popen([CLEAVE, "paco", *files, "-o", self.path("out"), "--mode",
                               "reference", "--radius", "6"], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            until = time.monotonic() + 240
            while time.monotonic() < until and process.poll() is None and kit.processor_seconds(process) < 1.5:
                time.sleep(0.01)
            self.assertTrue(kit.catches_interrupts(process))  # the command is at work, which takes minutes
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130)
        left = sorted(os.listdir(self.folder))
        self.assertIn(left, (before, sorted([*before, "out"])))
        if "out" in left:
            self.assertEqual(os.listdir(self.path("out")), [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
