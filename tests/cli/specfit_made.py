# SPDX-License-Identifier: Apache-2.0
"""Makes a star, and a library whose templates fit it exactly, in plain Python: ln flux is a sum of lines whose depths
are linear in log10 teff, logg, feh and alpha, so that a regular grid of templates between nodes is no approximation."""
import json
import math
import os
import random
import struct

LIGHT = 299792.458
AXES = [[math.log10(4000.0), math.log10(7000.0)], [2.0, 5.0], [-2.0, 0.5], [0.0, 0.4]]
MIDDLE = [0.5 * (a[0] + a[1]) for a in AXES]


def save(path, code, shape, numbers):
    """Writes a .npy file of little-endian numbers."""
    head = "{'descr': '<%s', 'fortran_order': False, 'shape': (%s), }" % (
        {"d": "f8", "f": "f4", "i": "i4"}[code], "".join(f"{n}, " for n in shape))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode("ascii"))
        file.write(struct.pack(f"<{len(numbers)}{code}", *numbers))


class Lines:
    """The lines of an arm: position and width in Angstrom, depth in the middle of the axes, slopes along the axes."""

    def __init__(self, first, last, count, seed, width=2.0):
        dice = random.Random(seed)
        self.lines = [(dice.uniform(first, last), width * dice.uniform(0.8, 1.5), dice.uniform(0.1, 0.6),
                       [dice.uniform(-1, 1) * s for s in (2.0, 0.15, 0.3, 0.8)]) for _ in range(count)]
        self.lines.sort()

    def log_flux(self, wave, q):
        out, first = [0.0] * len(wave), 0
        for place, width, depth, slopes in self.lines:
            now = depth * (1 + sum(s * (x - m) for s, x, m in zip(slopes, q, MIDDLE)))
            while first < len(wave) and wave[first] < place - 40 * width:
                first += 1
            k = first
            while k < len(wave) and wave[k] < place + 8 * width:
                x = (wave[k] - place) / width
                if x > -8:
                    out[k] -= now * math.exp(-0.5 * x * x)
                k += 1
        return out


def grid(first, last, points):
    step = math.log(last / first) / (points - 1)
    return [first * math.exp(step * i) for i in range(points)]


def write_library(folder, arms):
    """Writes a library; arms: {name: (first, last, points, Lines)}."""
    described, starts = {}, []
    for t in (4500.0, 5500.0, 6500.0):
        for g in (2.5, 4.5):
            for f in (-1.5, 0.0):
                starts.append([t, g, f, 0.2])
    for name, (first, last, points, lines) in arms.items():
        os.makedirs(os.path.join(folder, name))
        at = lambda file: os.path.join(folder, name, file + ".npy")
        wave, flux = grid(first, last, points), []
        for n in range(16):
            flux += lines.log_flux(wave, [AXES[k][n >> (3 - k) & 1] for k in range(4)])
        for k in range(4):
            save(at(f"axis_{k}"), "d", (2,), AXES[k])
        save(at("grid"), "i", (2, 2, 2, 2), list(range(16)))
        save(at("log_flux"), "f", (16, points), flux)
        coarse, ccf = grid(first, last, 4096), []
        for t, g, f, a in starts:
            ccf += [math.exp(v) for v in lines.log_flux(coarse, [math.log10(t), g, f, a])]
        save(at("ccf_models"), "f", (len(starts), 4096), ccf)
        described[name] = {"npix": points, "lam0": first, "lam1": last, "nodes": [2, 2, 2, 2],
                           "ccf": {"npoints": 4096, "logl0": math.log(first), "logl1": math.log(last),
                                   "splinestep": 3000.0}}
    save(os.path.join(folder, "ccf_params.npy"), "d", (len(starts), 4), [x for s in starts for x in s])
    with open(os.path.join(folder, "lib.json"), "w", encoding="ascii") as file:
        json.dump({"arms": described, "activation": "SiLU"}, file)


def star(wave, lines, velocity, q, signal, seed):
    """Returns flux and error of the star q (log10 teff, logg, ...) at a velocity, with a slope and Gaussian noise of 1
    / signal."""
    stretch = math.sqrt((1 + velocity / LIGHT) / (1 - velocity / LIGHT))
    dice, out = random.Random(seed), []
    middle = wave[len(wave) // 2]
    for w, v in zip(wave, lines.log_flux([w / stretch for w in wave], q)):
        out.append((1 + 0.3 * (w / middle - 1)) * math.exp(v) + dice.gauss(0, 1 / signal))
    return out, [1 / signal] * len(wave)
