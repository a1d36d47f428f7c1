# SPDX-License-Identifier: Apache-2.0
"""Tests the promises of `cleave paco` about its maps, with figures: noise that is normal at every separation, frames
and pixels that are missing, bright companions, planets that come back, several wavelengths.

This is a short form on made-up sequences. paco_table.py measures more and larger ones, and the sequence of beta
Pictoris."""
import numpy as np
import pytest

import cleave

SIGMA, RADIUS = 1.7, 3
FWHM = 2.3548 * SIGMA
KINDS = ("white", "coloured", "non-stationary", "correlated")


def spot(height, width, row, column, sigma=SIGMA):
    y, x = np.indices((height, width))
    return np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * sigma ** 2))


PSF = spot(13, 13, 6, 6).astype(np.float32)


def smooth(field):
    """Returns noise that neighbouring pixels share, smoothed by a Gaussian of 0.8 pixels by Fourier transform."""
    ky, kx = np.fft.fftfreq(field.shape[-2])[:, None], np.fft.fftfreq(field.shape[-1])
    return np.fft.ifft2(np.fft.fft2(field) * np.exp(-2 * (np.pi * 0.8) ** 2 * (ky ** 2 + kx ** 2))).real


def noise(kind, rng, frames, side):
    made = rng.normal(size=(frames, side, side))
    if kind == "white":
        return made
    made = smooth(made)
    y, x = np.indices((side, side)) - side // 2
    if kind == "non-stationary":
        made *= 0.2 + 5 * np.exp(-np.hypot(y, x) / (side / 6))
    if kind == "correlated":
        for t in range(1, frames):
            made[t] = 0.9 * made[t - 1] + np.sqrt(1 - 0.9 ** 2) * made[t]
    return made


def angles_of(frames):
    return np.linspace(-30, 60, frames)


def planets(shape, angles, *which):
    """Returns [x, y, flux] of each planet."""
    frames, side = shape[0], shape[1]
    made, middle = np.zeros(shape), side // 2
    for x, y, flux in which:
        for image, t in zip(made, np.radians(angles)):
            dy, dx = y - middle, x - middle
            image += flux * spot(side, side, middle + dy * np.cos(t) - dx * np.sin(t),
                                 middle + dx * np.cos(t) + dy * np.sin(t))
    return made


def calibrated(cube, context, psf=PSF, fwhm=FWHM, radius=RADIUS, angles=None):
    angles = angles_of(len(cube)) if angles is None else angles
    raw = cleave.paco(cube.astype(np.float32), angles, psf, radius=radius, threshold=None, context=context).snr
    middle = cube.shape[1] // 2
    return cleave.calibrate_snr(raw, (middle, middle), fwhm)


def annuli(maps, width, centre=None):
    """Returns (inner radius, values of all maps) of the annuli around the star that hold a whole circle. Without
    `centre` (x, y), the star is on the middle pixel."""
    side = maps[0].shape[0]
    at_x, at_y = centre or (side // 2, side // 2)
    y, x = np.indices(maps[0].shape)
    radius = np.hypot(y - at_y, x - at_x)
    for low in np.arange(0, side / 2, width):
        at = (radius >= low) & (radius < low + width)
        values = np.concatenate([m[at & np.isfinite(m)] for m in maps])
        if len(values) >= 8 * len(maps):
            yield low, values


def tail(maps, z):
    """Returns P(> z) divided by that of a normal distribution, for z = 3 and 4: 1.35e-3 and 3.17e-5."""
    values = np.concatenate([m[np.isfinite(m)] for m in maps])
    return (values > z).mean() / {3: 1.34990e-3, 4: 3.16712e-5}[z]


def noise_figures(kind, rng, count, frames, side, context):
    maps = [calibrated(noise(kind, rng, frames, side), context) for _ in range(count)]
    scatter = {low: values.std() for low, values in annuli(maps, 6)}
    print(f"noise, {kind}: std " + " ".join(f"{v:.3f}" for v in scatter.values()) +
          f", P(>3) {tail(maps, 3):.2f} P(>4) {tail(maps, 4):.2f} times normal")
    return scatter, tail(maps, 3), tail(maps, 4)


def prepared(cube, context):
    """Does what the command does before its search: unusual frames get less weight, and missing pixels are filled
    in."""
    weights = cleave.frame_weights(cleave.frame_quality(cube))
    whole = cleave.mend(cube, FWHM)
    return cleave.paco(whole, angles_of(len(cube)), PSF, radius=RADIUS, threshold=None, weights=weights,
                       context=context).snr


def damage_figures(rng, count, frames, side, context):
    """Returns the S/N of a planet with one frame times 30, with 1 % NaN, and with 20 NaN per frame, divided by its S/N
    without damage; the mean of `count` planets."""
    made = {"frame x 30": [], "1 % NaN": [], "20 NaN a frame": []}
    for i in range(count):
        place = side // 2 + 0.3 * side * np.array([np.cos(i + 0.4), np.sin(i + 0.4)])
        cube = noise("coloured", rng, frames, side)
        cube = (cube + planets(cube.shape, angles_of(frames), (*place, 3.0)) + 100).astype(np.float32)
        x, y = np.round(place).astype(int)
        want = prepared(cube, context)[y, x]
        for name, values in made.items():
            broken = cube.copy()
            if name == "frame x 30":
                broken[rng.integers(frames)] *= 30
            elif name == "1 % NaN":
                broken[rng.random(cube.shape) < 0.01] = np.nan
            else:
                for frame in broken:
                    frame.flat[rng.choice(frame.size, 20, replace=False)] = np.nan
            values.append(prepared(broken, context)[y, x] / want)
    for name, values in made.items():
        print(f"{name}: S/N {np.mean(values):.3f} of what it was (least {min(values):.3f})")
    return {name: np.mean(values) for name, values in made.items()}


@pytest.mark.parametrize("kind", KINDS[1:3])
def test_noise_is_normal_at_every_separation(context, kind):
    scatter, three, _ = noise_figures(kind, np.random.default_rng(2801), 3, 24, 61, context)
    assert all(abs(v - 1) < (0.1 if low == 0 else 0.05) for low, v in scatter.items()), scatter
    assert three < 2


def test_bad_frames_and_pixels_cost_little(context):
    made = damage_figures(np.random.default_rng(2802), 2, 40, 45, context)
    assert made["frame x 30"] > 0.95 and made["1 % NaN"] > 0.97 and made["20 NaN a frame"] > 0.9
