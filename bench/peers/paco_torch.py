#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures PACO in batched PyTorch and float32, as a good Python programmer would write it: covariances by bmm, batched
Cholesky, and two triangular solves. The formulas are ours, with the PSF fixed to the pixel grid (sub-pixel PSFs would
need many more solves). The size of a batch is the fastest of several sizes that are tried on the data. Uses the GPU if
torch has one.

usage: paco_torch.py FOLDER OUT fixed"""
import os
import sys
import time

import numpy as np
import torch

SAME_FORMULAS = True
RADIUS = 4
BATCHES = (128, 512, 2048, 8192)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def name():
    where = "GPU" if DEVICE == "cuda" else f"{torch.get_num_threads()} threads"
    return f"PyTorch {torch.__version__.split('+')[0]}, {where}"


def can(case):
    return case["variant"] == 1


def load(folder):
    names = ("cube", "angles", "psf")
    cube, angles, psf = (np.load(os.path.join(folder, f"{n}.npy")) for n in names)
    return {"cube": torch.from_numpy(cube).float().to(DEVICE), "angles": angles.ravel(),
            "psf": torch.from_numpy(psf).float().to(DEVICE)}


def disc():
    span = range(-RADIUS, RADIUS + 1)
    return [(y, x) for y in span for x in span if y * y + x * x <= RADIUS * RADIUS]


def solve(pixels, centres, steps, h):
    """Returns alpha [n] and beta [n, T] of the patches at `centres`; pixels is [H * W, T]."""
    patches = pixels[centres[:, None] + steps[None, :]]  # [n, P, T]
    frames = patches.shape[2]
    covariance = torch.bmm(patches, patches.transpose(1, 2)) / frames
    diagonal = torch.diagonal(covariance, dim1=1, dim2=2)
    total, squares = (covariance * covariance).sum((1, 2)), (diagonal * diagonal).sum(1)
    trace = diagonal.sum(1)
    rho = ((total + trace * trace - 2 * squares) / ((frames + 1) * (total - squares))).clamp(0, 1)
    shrunk = covariance * (1 - rho)[:, None, None]
    shrunk.diagonal(dim1=1, dim2=2).copy_(diagonal)
    factor, _ = torch.linalg.cholesky_ex(shrunk)
    weights = torch.cholesky_solve(h[None, :, None].expand(len(centres), -1, 1), factor)
    alpha = (weights[:, :, 0] * h).sum(1)
    beta = torch.bmm(weights.transpose(1, 2), patches)[:, 0]
    dead = ~(diagonal > 0).all(1)
    alpha[dead] = float("nan")
    return alpha, beta


def in_batches(pixels, centres, steps, h, batch):
    parts = [solve(pixels, part, steps, h) for part in torch.split(centres, batch)]
    return torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])


def problem_of(data):
    """Returns the pixels over time, the patch centres, the distances inside a patch, and the PSF on a patch."""
    cube, psf = data["cube"], data["psf"]
    frames, height, width = cube.shape
    moved = cube - cube[0]
    pixels = (moved - moved.mean(0)).reshape(frames, -1).T.contiguous()
    offsets, middle = disc(), psf.shape[0] // 2
    h = torch.stack([psf[middle + y, middle + x] for y, x in offsets])
    steps = torch.tensor([y * width + x for y, x in offsets], device=DEVICE)
    rows = torch.arange(RADIUS, height - RADIUS, device=DEVICE)
    columns = torch.arange(RADIUS, width - RADIUS, device=DEVICE)
    return pixels, (rows[:, None] * width + columns[None, :]).reshape(-1), steps, h


def warm(data):
    """Finds the fastest batch size on a part of the problem. This time is not counted."""
    pixels, centres, steps, h = problem_of(data)
    took = {}
    for batch in BATCHES:
        part = centres[:max(2048, batch)]
        in_batches(pixels, part[:batch], steps, h, batch)
        started = time.perf_counter()
        in_batches(pixels, part, steps, h, batch)
        took[batch] = (time.perf_counter() - started) / len(part)
    data["batch"] = min(took, key=took.get)


def compute(data, shifted):
    assert not shifted
    frames, height, width = data["cube"].shape
    rows, columns = height - 2 * RADIUS, width - 2 * RADIUS
    alpha, beta = in_batches(*problem_of(data), data.get("batch", 512))

    # the patch through which a planet at each position passes in each frame
    turn = torch.from_numpy(np.deg2rad(data["angles"])).to(DEVICE)[:, None]
    y, x = torch.meshgrid(torch.arange(height, device=DEVICE, dtype=torch.float64),
                          torch.arange(width, device=DEVICE, dtype=torch.float64), indexing="ij")
    dy, dx = (y - height // 2).reshape(1, -1), (x - width // 2).reshape(1, -1)
    row = torch.floor(height // 2 + dy * turn.cos() - dx * turn.sin() + 0.5).long() - RADIUS
    column = torch.floor(width // 2 + dx * turn.cos() + dy * turn.sin() + 0.5).long() - RADIUS
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    at = torch.where(inside, row * columns + column, 0)  # [T, H * W]
    good = inside.all(0)
    a = torch.where(good, alpha.double()[at].sum(0), float("nan"))
    b = torch.where(good, beta.T.gather(1, at).double().sum(0), float("nan"))
    return tuple(m.reshape(height, width).cpu().numpy() for m in (a, b))


def main():
    folder, out, variant = sys.argv[1:]
    a, b = compute(load(folder), variant == "shift")
    for what, values in (("a", a), ("b", b), ("snr", b / np.sqrt(a))):
        np.save(os.path.join(out, f"{what}.npy"), values)


if __name__ == "__main__":
    main()
