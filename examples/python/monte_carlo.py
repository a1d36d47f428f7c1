# SPDX-License-Identifier: Apache-2.0
"""Estimates pi by counting random points. Every block of samples has its own random numbers, so that
the count is the same on every device, however the work is split."""
import numpy as np

import cleave

BLOCKS, SAMPLES = 4096, 4096

count = cleave.Kernel("""
static uint mix(uint x)
{
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
__kernel void count_inside(__global uint *inside, uint first, uint count, uint samples)
{
    const uint item = get_global_id(0);
    if (item >= count) return;
    uint hits = 0;
    for (uint n = 0; n < samples; ++n) {
        const uint which = ((first + item) * samples + n) * 2;
        const ulong x = mix(which) >> 1, y = mix(which + 1) >> 1;
        hits += x * x + y * y < (1ul << 62);
    }
    inside[item] = hits;
}""", "count_inside")


def mix(x):
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7feb352d)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846ca68b)
    return x ^ (x >> np.uint32(16))


def plain(inside, first, count, samples):
    for item in range(count):
        which = (np.uint32(first + item) * samples + np.arange(samples, dtype=np.uint32)) * np.uint32(2)
        x, y = (mix(which + np.uint32(k)).astype(np.uint64) >> np.uint64(1) for k in (0, 1))
        inside[item] = (x * x + y * y < 1 << 62).sum()


hits = cleave.map(count, cleave.Out(np.uint32), cleave.FIRST, cleave.COUNT, np.uint32(SAMPLES),
                  items=BLOCKS, flops=20 * SAMPLES, reference=plain)
want = np.empty(2, np.uint32)
plain(want, 100, 2, np.uint32(SAMPLES))
assert np.array_equal(hits[100:102], want)
pi = 4 * int(hits.sum()) / (BLOCKS * SAMPLES)
print(f"pi is about {pi:.5f}, from {BLOCKS * SAMPLES} samples")
assert abs(pi - np.pi) < 2e-3

# The same as an operation of the library: a thousand million points, with an exact count.
samples = 1_000_000_000 if cleave.default_context().devices else 10_000_000
inside = cleave.monte_carlo_pi(samples)
print(f"{samples:,} points: pi is about {4 * inside / samples:.6f}")
assert abs(4 * inside / samples - np.pi) < 10 / samples**0.5
