# SPDX-License-Identifier: Apache-2.0
"""Measures what `cleave paco` promises to an observer, and prints a table: the promise, the measured value, and whether
the promise is kept.

usage: paco_table.py [--seed N] [PART...]     parts: names in PARTS below; without a name, all parts except `large`

The package is found as for the tests: PYTHONPATH=python, $CLEAVE_LIBRARY and $CLEAVE_COMMAND. Parts that need the
images of beta Pictoris read them from $CLEAVE_REFERENCE_DIR and are left out without it. Planets are hidden with a
Fourier shift in NumPy, so that the library does not judge itself. Exit code 1 means that a promise was not kept."""
import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
from test_paco_acceptance import (KINDS, PSF, RADIUS, angles_of, annuli, damage_figures, noise, noise_figures, planets,
                                  tail)

import cleave

ROWS = []


def say(part, what, measured, kept=None):
    """Prints one row; `kept` None: a figure without a promise."""
    ROWS.append((part, what, measured, kept))
    print(f"| {part} | {what} | {measured} | {'' if kept is None else 'yes' if kept else 'NO'} |", flush=True)


def search(*arguments):
    subprocess.run([os.environ.get("CLEAVE_COMMAND", "cleave"), "paco", "-q", *arguments], check=True)


def between(low, value, high):
    return bool(low <= value <= high)


# ---- the sequence of beta Pictoris ----

def fits_image(raw):
    cards, at = {}, 0
    while not raw[at:at + 8].startswith(b"END"):
        card = raw[at:at + 80].decode("ascii")
        if card[8:10] == "= ":
            cards[card[:8].strip()] = card[10:].split("/")[0].strip()
        at += 80
    at = (at // 2880 + 1) * 2880
    shape = [int(cards[f"NAXIS{i}"]) for i in range(int(cards["NAXIS"]), 0, -1)]
    kind = {"-32": ">f4", "-64": ">f8", "16": ">i2", "32": ">i4"}[cards["BITPIX"]]
    return np.frombuffer(raw, kind, int(np.prod(shape)), at).reshape(shape)


class Sequence:
    """The published frames without beta Pictoris b, which a search with the command removes."""

    def __init__(self, context):
        self.folder = os.path.join(os.environ.get("CLEAVE_REFERENCE_DIR", ""), "paco", "betapic_full")
        if not os.path.exists(self.folder):
            raise FileNotFoundError("third-party data (images of beta Pictoris) are not here")
        self.context, self.radius, self.wide = context, 4, 5
        self.cube = self.read("naco_betapic_cube").astype(np.float32)
        self.angles = self.read("naco_betapic_pa").ravel().astype(float)
        psf, _ = cleave.psf_recentre(self.read("naco_betapic_psf").astype(np.float32))
        self.fwhm = cleave.psf_fwhm(psf)
        self.psf = cleave.psf_normalize(psf, "aperture", self.fwhm)
        self.centre = cleave.star_position(self.cube, self.fwhm)
        self.weights = cleave.frame_weights(cleave.frame_quality(self.cube))
        found = cleave.companions(self.cube, self.angles, self.psf, measure_radius=self.wide, **self.options())
        self.found, self.rest = found.companions, found.rest
        raw = cleave.paco(self.rest, self.angles, self.psf, threshold=None, **self.options())
        self.sigma = raw.sigma

    def read(self, name):
        with open(os.path.join(self.folder, name + ".fits"), "rb") as file:
            return fits_image(file.read())

    def options(self):
        return {"radius": self.radius, "center": self.centre, "weights": self.weights, "context": self.context}

    def at(self, radius, angle):
        return self.centre[0] + radius * np.cos(angle), self.centre[1] + radius * np.sin(angle)

    def moved(self, down, right):
        """Returns the PSF, moved by a Fourier shift."""
        size = self.psf.shape[0]
        side = size + 9
        padded = np.zeros((side, side))
        padded[:size, :size] = self.psf
        k = np.fft.fftfreq(side)
        shift = np.exp(-2j * np.pi * (k[:, None] * down + k * right))
        return np.fft.ifft2(np.fft.fft2(padded) * shift).real

    def with_planet(self, x, y, flux, cube=None):
        """Adds a planet to all frames, by default to those without beta Pictoris b."""
        cube, size = (self.rest if cube is None else cube).copy(), self.psf.shape[0]
        dy, dx = y - self.centre[1], x - self.centre[0]
        for frame, t in zip(cube, np.radians(self.angles)):
            row = self.centre[1] + dy * np.cos(t) - dx * np.sin(t)
            column = self.centre[0] + dx * np.cos(t) + dy * np.sin(t)
            ky, kx = round(row), round(column)
            moved = self.moved(row - ky, column - kx)
            top, left = ky - size // 2, kx - size // 2
            inner = [slice(max(0, -v), min(size, frame.shape[0] - v)) for v in (top, left)]
            frame[top + inner[0].start:top + inner[0].stop, left + inner[1].start:left + inner[1].stop] += \
                flux * moved[inner[0], inner[1]]
        return cube

    def snr_at(self, cube, x, y):
        """Returns the highest calibrated S/N near the place, with the noise elsewhere as the unit."""
        raw = cleave.paco(cube, self.angles, self.psf, threshold=None, **self.options()).snr
        snr = cleave.calibrate_snr(raw, self.centre, self.fwhm, [(x, y)])
        rows, columns = np.indices(snr.shape)
        return np.nanmax(np.where(np.hypot(rows - y, columns - x) <= self.fwhm / 2, snr, np.nan))


def published(sequence, _rng):
    """Searches the three published files with the command."""
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(sequence.folder, f"naco_betapic_{name}.fits") for name in ("cube", "pa", "psf")]
        search(*files, "--psf-norm", "aperture", "-o", folder)
        with open(os.path.join(folder, "detections.csv"), encoding="utf-8") as file:
            rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
        with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
            star = json.load(file)["operation"]
    b, cx, cy = rows[0], star["centre_x"], star["centre_y"]
    say("beta Pictoris b", "detections: 1", len(rows), len(rows) == 1)
    say("beta Pictoris b", "star at (51, 51) +- 0.1", f"({cx:.2f}, {cy:.2f})", np.hypot(cx - 51, cy - 51) < 0.1)
    say("beta Pictoris b", "flux 673 +- 30", f"{b['flux']:.0f} +- {b['flux_err']:.0f}", abs(b["flux"] - 673) < 30)
    far = b["separation_px"]
    say("beta Pictoris b", "separation 16.58 +- 0.1", f"{far:.2f}", abs(far - 16.58) < 0.1)
    dx, dy = b["x"] - cx, b["y"] - cy
    say("beta Pictoris b", "11.78 right, 11.67 above, +- 0.1", f"{dx:.2f}, {dy:.2f}",
        abs(dx - 11.78) < 0.1 and abs(dy - 11.67) < 0.1)


def clear_places(sequence, rng):
    """Returns 12 places 10 to 20 pixels from the star and 12 at 20 to 35, at least 2 FWHM from
    beta Pictoris b, because a rest of unknown flux is left where it was subtracted."""
    places = []
    for low, high in ((10, 20), (20, 35)):
        for i, r in enumerate(rng.permutation(np.linspace(low, high, 12))):
            while True:
                x, y = sequence.at(r, 2 * np.pi * (i + rng.random()) / 12)
                if all(np.hypot(x - c["x"], y - c["y"]) > 2 * sequence.fwhm for c in sequence.found):
                    break
                i = rng.integers(12)
            places.append((x, y))
    return places


def position_limit(sequence, x, y, flux):
    """Returns the Cramer-Rao bound for the position error of a planet of unknown flux `flux`, rms of x and y in pixels.
    The frames count as independent, and the covariances that PACO estimates as exact."""
    grid = np.arange(-sequence.wide, sequence.wide + 1)
    offsets = np.array([(v, u) for v in grid for u in grid if v * v + u * u <= sequence.wide ** 2])
    information, frames = np.zeros((3, 3)), len(sequence.rest)
    for t in np.radians(sequence.angles):
        dy, dx = y - sequence.centre[1], x - sequence.centre[0]
        row = sequence.centre[1] + dy * np.cos(t) - dx * np.sin(t)
        column = sequence.centre[0] + dx * np.cos(t) + dy * np.sin(t)
        rows, columns = (offsets + (round(row), round(column))).T
        patch = sequence.rest[:, rows, columns].astype(float)
        patch -= patch.mean(0)
        sample = patch.T @ patch / frames
        squares, trace = (sample ** 2).sum(), np.trace(sample)
        diagonal = (np.diag(sample) ** 2).sum()
        rho = np.clip((squares - 2 * diagonal + trace ** 2) / ((frames + 1) * (squares - diagonal)), 0, 1)
        whole = (1 - rho) * sample + rho * np.diag(np.diag(sample))
        shape = [sequence.moved(row - round(row) + v, column - round(column) + u)
                 for v, u in ((0, 0), (0.05, 0), (-0.05, 0), (0, 0.05), (0, -0.05))]
        middle = sequence.psf.shape[0] // 2
        shape = [image[middle + offsets[:, 0], middle + offsets[:, 1]] for image in shape]
        down, right = (shape[1] - shape[2]) * 10 * flux, (shape[3] - shape[4]) * 10 * flux
        slopes = np.array([shape[0], right * np.cos(t) - down * np.sin(t), right * np.sin(t) + down * np.cos(t)])
        information += slopes @ np.linalg.solve(whole, slopes.T)
    return np.sqrt(np.diag(np.linalg.inv(information))[1:].mean())


def injections(sequence, rng):
    """Injects planets at clear_places, with several fluxes; the fit starts in the middle of a pixel. The scatter of 24
    pulls of a normal distribution is uncertain by 1 / sqrt(48)."""
    places, per_level = clear_places(sequence, rng), []
    least = np.sqrt(np.mean([position_limit(sequence, x, y, sequence.sigma[round(y), round(x)]) ** 2
                             for x, y in places]))
    for level in (20, 40, 80):
        ratio, error, pulls, place_pulls = [], [], [], []
        for x, y in places:
            flux = level * sequence.sigma[round(y), round(x)]
            one = cleave.characterize(sequence.with_planet(x, y, flux), sequence.angles, sequence.psf,
                                      [(round(x), round(y))], **{**sequence.options(), "radius": sequence.wide})[0]
            ratio.append(one["flux"] / flux)
            pulls.append((one["flux"] - flux) / one["flux_err"])
            error.append((one["x"] - x, one["y"] - y))
            place_pulls += [(one["x"] - x) / one["x_err"], (one["y"] - y) / one["y_err"]]
        name, mean = f"24 injections, {level} sigma.fits", [np.mean(ratio[:12]) - 1, np.mean(ratio[12:]) - 1]
        chance = [np.std(part, ddof=1) / np.sqrt(12) for part in (ratio[:12], ratio[12:])]
        rms = np.sqrt(np.mean(np.square(error)))
        say(name, "mean flux outside 20 px within 3 %", f"{mean[1]:+.1%} +- {chance[1]:.1%}", abs(mean[1]) < 0.03)
        say(name, "mean flux inside 20 px within 6 %", f"{mean[0]:+.1%} +- {chance[0]:.1%}", abs(mean[0]) < 0.06)
        per_level.append(rms * level)
        say(name, "positions within 0.1 px rms", f"{rms:.3f}", rms < 0.1)
        say(name, "Cramer-Rao bound for positions", f"{least / level:.3f} px")
        say(name, "pulls of fluxes 0.8 to 1.2", f"{np.std(pulls):.2f}", between(0.8, np.std(pulls), 1.2))
        say(name, "pulls of positions 0.8 to 1.2", f"{np.std(place_pulls):.2f}", between(0.8, np.std(place_pulls), 1.2))
    say("24 injections", "flux for positions within 0.1 px rms", f"{np.mean(per_level) / 0.1:.0f} sigma.fits")


def limits(sequence, rng):
    radii, known = np.array([8, 12, 16.6, 20, 24, 28, 32, 36.0]), [(c["x"], c["y"]) for c in sequence.found]
    arguments = (sequence.rest, sequence.angles, sequence.psf, radii)
    cleave.contrast(*arguments[:3], radii[:1], injections=2, known=known, **sequence.options())  # compiles
    started = time.perf_counter()
    curve = cleave.contrast(*arguments, injections=24, known=known, **sequence.options()).curve
    took = time.perf_counter() - started
    say("contrast", "8 radii x 24 injections in 20 s", f"{took:.1f} s", took < 20)
    seen = []
    for point in curve:
        for angle in 2 * np.pi * (np.arange(25) + rng.random()) / 25:
            x, y = sequence.at(point["separation_px"], angle)
            seen.append(sequence.snr_at(sequence.with_planet(x, y, point["flux"]), x, y) > 5)
    say("contrast", "50 +- 7 % of 200 planets at the limit exceed 5", f"{np.mean(seen):.1%}",
        abs(np.mean(seen) - 0.5) <= 0.07)


def bright(sequence, _rng):
    for what, second, want in (("8000 at 30 px: 1 detection", None, 1),
                               ("a planet of 800 2 FWHM beside it is found, too", 2 * sequence.fwhm, 2)):
        x, y = sequence.at(30, 3.9)
        cube = sequence.with_planet(x, y, 8000)
        if second:
            cube = sequence.with_planet(*sequence.at(30, 3.9 + second / 30), 800, cube)
        found = cleave.companions(cube, sequence.angles, sequence.psf, measure_radius=sequence.wide,
                                  **sequence.options()).companions
        text = "; ".join(f"flux {c['flux']:.0f} at {c['x']:.1f}, {c['y']:.1f}" for c in found)
        say("bright", what, f"{len(found)}: {text}", len(found) == want)


def speed(sequence, rng):
    places = [sequence.at(r, rng.uniform(0, 2 * np.pi)) for r in np.linspace(10, 35, 10)]
    cube = sequence.rest
    for x, y in places:
        cube = sequence.with_planet(x, y, 500.0, cube)
    wide = {**sequence.options(), "radius": sequence.wide}
    times = []
    for _ in range(4):
        started = time.perf_counter()
        cleave.characterize(cube, sequence.angles, sequence.psf, places, **wide)
        times.append(time.perf_counter() - started)
    say("speed", "characterize 10 candidates in 1 s", f"{min(times[1:]):.2f} s", min(times[1:]) < 1)


def real_noise(sequence, _rng):
    raw = cleave.paco(sequence.rest, sequence.angles, sequence.psf, threshold=None, **sequence.options()).snr
    snr = cleave.calibrate_snr(raw, sequence.centre, sequence.fwhm)
    scatter = [v.std() for _, v in annuli([snr], 6, sequence.centre)]
    show_noise("noise, beta Pictoris without b", scatter, tail([snr], 4))


# ---- made-up sequences ----

def show_noise(name, scatter, four):
    say(name, "std 1 +- 0.05 in every annulus", " ".join(f"{v:.3f}" for v in scatter),
        all(abs(v - 1) <= 0.05 for v in scatter))
    say(name, "P(> 4) at most 2 times a Gaussian's", f"{four:.2f}", four < 2)


def made_noise(context, rng):
    for kind in KINDS:
        scatter, _, four = noise_figures(kind, rng, 12, 40, 101, context)
        show_noise(f"noise, {kind}", scatter.values(), four)


def damage(context, rng):
    made = damage_figures(rng, 12, 60, 101, context)
    for name, least in (("frame x 30", 0.95), ("1 % NaN", 0.97), ("20 NaN a frame", 0.9)):
        say("damage", f"{name}: at least {least:.0%} of the S/N", f"{made[name]:.1%}", made[name] > least)


def channels(context, rng):
    """Compares the S/N of all channels with that of one channel, and counts false alarms if channels share 0, 60 and 95
    % of their noise."""
    frames, side = 30, 61
    angles = angles_of(frames)
    for count in (4, 16, 39):
        ratios = []
        for i in range(4):
            x, y = side // 2 + 16 * np.cos(1.1 + i), side // 2 + 16 * np.sin(1.1 + i)
            image = planets((frames, side, side), angles, (x, y, 4.0))
            cube = np.array([noise("coloured", rng, frames, side) + image for _ in range(count)], np.float32)
            result = cleave.asdi(cube, angles, PSF, radius=RADIUS, context=context)
            around = np.s_[round(y) - 1:round(y) + 2, round(x) - 1:round(x) + 2]
            single = (result.b / np.sqrt(result.a))[:, *around].mean()
            ratios.append(result.snr_raw[around].mean() / single / np.sqrt(count))
        say("ASDI", f"{count} channels: S/N at least 0.95 sqrt(channels)", f"{np.mean(ratios):.2f}",
            np.mean(ratios) > 0.95)
    for alike in (0.0, 0.6, 0.95):
        maps, found = [], 0
        for _ in range(6):
            shared = noise("coloured", rng, frames, side)
            cube = np.array([np.sqrt(alike) * shared + np.sqrt(1 - alike) * noise("coloured", rng, frames, side)
                             for _ in range(8)], np.float32)
            result = cleave.asdi(cube, angles, PSF, radius=RADIUS, context=context)
            maps.append(result.snr)
            found += len(result.companions)
        scatter = [v.std() for _, v in annuli(maps, 6)]
        say("ASDI", f"channels share {alike:.0%}: no false alarm in 6 maps", found, found == 0)
        show_noise(f"ASDI, channels share {alike:.0%}", scatter, tail(maps, 4))


def fixed(context, rng):
    """Times 100x100x100 with the PSF on the pixel grid; `cleave bench paco` compares this case with PyTorch."""
    frames, side = 100, 100
    cube = noise("coloured", rng, frames, side).astype(np.float32)
    times = []
    for _ in range(30):
        started = time.perf_counter()
        cleave.paco(cube, angles_of(frames), PSF, radius=4, psf_mode="fixed", threshold=None, context=context)
        times.append(time.perf_counter() - started)
    say("speed", "100x100x100 fixed in 8 ms", f"{1000 * min(times):.1f} ms", min(times) < 0.008)


def large(_context, rng):
    """Times 1024x1024x100 through the command with its defaults, in a second run, whose kernels are compiled
    already."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name + ".npy") for name in ("cube", "angles", "psf")]
        y, x = np.indices((1024, 1024)) - 512
        cube = np.empty((100, 1024, 1024), np.float32)
        for frame in cube:
            frame[:] = rng.standard_normal(frame.shape, np.float32)
            frame += 0.5 * np.roll(frame, 1, 1) + 200 * np.exp(-np.hypot(y, x) / 40)
        for path, what in zip(paths, (cube, angles_of(100), PSF)):
            np.save(path, what)
        del cube
        for _ in range(2):
            before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            search(*paths, "-o", os.path.join(folder, "out"))
        took, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cores = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    say("speed", "1024x1024x100 in 3 s", f"{took:.1f} s ({cores:.1f} s of processor time)", took < 3)
    say("memory", "1024x1024x100 in 1 GB", f"{after.ru_maxrss * 1024 / 1e9:.2f} GB", after.ru_maxrss * 1024 < 1e9)


PARTS = {"published": published, "injections": injections, "limits": limits, "bright": bright, "speed": speed,
         "real_noise": real_noise, "made_noise": made_noise, "damage": damage, "channels": channels, "fixed": fixed,
         "large": large}
WITH_FILES = ("published", "injections", "limits", "bright", "speed", "real_noise")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART")
    wanted = parser.parse_args()
    context, sequence = cleave.Context(), None
    print(f"seed {wanted.seed}; {context.devices[0].label if context.devices else 'plain C'}")
    print("| what | promise | measured | kept |\n| --- | --- | --- | --- |")
    for part in wanted.parts or [name for name in PARTS if name != "large"]:
        rng = np.random.default_rng([wanted.seed, list(PARTS).index(part)])
        if part in WITH_FILES and sequence is None:
            try:
                sequence = Sequence(context)
            except FileNotFoundError as error:
                print(f"SKIPPED {part}: {error}")
                continue
        PARTS[part](sequence if part in WITH_FILES else context, rng)
    sys.exit(any(kept is False for *_, kept in ROWS))


if __name__ == "__main__":
    main()
