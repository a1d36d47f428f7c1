# SPDX-License-Identifier: Apache-2.0
"""Filters many images: each image is an item of the job, and each pixel is a work-item."""
import numpy as np

import cleave

SIDE, IMAGES, TAPS = 96, 40, 5

convolve = cleave.Kernel("""
__kernel void convolve(__global const float *images, __global const float *taps,
                       __global float *out)
{
    const int x = get_global_id(0), y = get_global_id(1);
    const size_t first = get_global_id(2) * SIDE * SIDE;
    float sum = 0.0f;
    for (int j = 0; j < TAPS; ++j)
        for (int i = 0; i < TAPS; ++i) {
            const int row = clamp(y + j - TAPS / 2, 0, SIDE - 1);
            const int column = clamp(x + i - TAPS / 2, 0, SIDE - 1);
            sum += taps[j * TAPS + i] * images[first + row * SIDE + column];
        }
    out[first + y * SIDE + x] = sum;
}""", "convolve", {"SIDE": SIDE, "TAPS": TAPS})


def plain(images, taps, out):
    half = TAPS // 2
    wide = np.pad(images, ((0, 0), (half, half), (half, half)), mode="edge")
    out[:] = sum(taps[j, i] * wide[:, j:j + SIDE, i:i + SIDE]
                 for j in range(TAPS) for i in range(TAPS))


line = np.float32([1, 4, 6, 4, 1]) / 16
gaussian = np.outer(line, line)
images = [np.random.default_rng(k).random((SIDE, SIDE), np.float32) for k in range(IMAGES)]
filtered = convolve(images, cleave.Shared(gaussian), cleave.Out(np.float32, (SIDE, SIDE)),
                    grid=(SIDE, SIDE), reference=plain)
want = np.empty((1, SIDE, SIDE), np.float32)
plain(images[7][None], gaussian, want)
assert np.abs(filtered[7] - want[0]).max() < 1e-5
print(f"{IMAGES} images, standard deviation {np.std(images):.3f} before, {filtered.std():.3f} after")
