# SPDX-License-Identifier: Apache-2.0
"""Computes rows of the Mandelbrot set with your own kernel, split over all devices."""
import sys

import numpy as np

import cleave

WIDTH, HEIGHT, TURNS = 600, 400, 500

rows = cleave.Kernel("""
__kernel void rows(__global uchar *out, uint first, uint width, uint height, uint turns)
{
    const uint x = get_global_id(0), row = get_global_id(1);
    const float cx = 3.0f * x / width - 2.2f, cy = 2.0f * (first + row) / height - 1.0f;
    float a = 0.0f, b = 0.0f;
    uint n = 0;
    for (; n < turns && a * a + b * b < 4.0f; ++n) {
        const float t = a * a - b * b + cx;
        b = 2.0f * a * b + cy, a = t;
    }
    out[row * width + x] = n == turns ? 0 : 255 - n % 32 * 7;
}""", "rows")


def plain(out, first, width, height, turns):
    """Computes rows in NumPy; the library calls this function if no device works."""
    y, x = np.mgrid[first:first + len(out), :width].astype(np.float32)
    c = (3 * x / width - 2.2) + 1j * (2 * y / height - 1)
    z, n = np.zeros_like(c), np.zeros(c.shape, int)
    for _ in range(turns):
        inside = abs(z) < 2
        n += inside
        z[inside] = z[inside]**2 + c[inside]
    out[:] = np.where(n == turns, 0, 255 - n % 32 * 7)


report = cleave.Report()
image = cleave.map(rows, cleave.Out(np.uint8, WIDTH), cleave.FIRST, np.uint32(WIDTH),
                   np.uint32(HEIGHT), np.uint32(TURNS), items=HEIGHT, grid=(WIDTH,),
                   flops=WIDTH * TURNS * 2.5, reference=plain, report=report)
for share in report.shares:
    print(f"{share.device}: {share.units} rows")
with open(sys.argv[1] if len(sys.argv) > 1 else "mandelbrot.pgm", "wb") as file:
    file.write(b"P5 %d %d 255\n" % (WIDTH, HEIGHT) + image.tobytes())
assert image[HEIGHT // 2, int(2.2 / 3 * WIDTH)] == 0 and image[0, 0] != 0
