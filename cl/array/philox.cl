/* cl/array/philox.cl -- counts the random points inside a quarter of a circle.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, 2011).
 * A work-item handles TURNS * LANES counters, LANES at a time; each counter gives two points. All
 * arithmetic uses integers, so the count is the same on every device.
 *
 * Defines: LANES (1 for GPUs, 8 for CPUs), TURNS. Roofline: bound by arithmetic, about 6 vector
 * instructions per point; one uint of traffic for TURNS * LANES * 2 points. */
#if LANES == 1
typedef ulong vec;
#define iota() ((ulong)0)
#define add_lanes(x) (x)
#else
typedef ulong8 vec;
#define iota() ((ulong8)(0, 1, 2, 3, 4, 5, 6, 7))
static ulong add_lanes(ulong8 x)
{
    const ulong4 a = x.lo + x.hi;
    const ulong2 b = a.lo + a.hi;
    return b.x + b.y;
}
#endif

#define LOW ((ulong)0xFFFFFFFF)
#define LIMIT ((ulong)1 << 48)

/* Returns 1 for each point outside the circle. The point's coordinates are the lower halves of x and y; the upper
 * halves are ignored. */
static vec outside(vec x, vec y)
{
    const vec a = (x & LOW) >> 8, b = (y & LOW) >> 8;
    return ((vec)(LIMIT) - (a * a + b * b)) >> 63;
}

/* Sets counts[item] to the number of points inside the circle, of the counters from first + item * TURNS * LANES on. */
__kernel void clv_array_pi(__global uint *counts, ulong first, uint key0, uint key1, uint items)
{
    const size_t item = get_global_id(0);
    if (item >= items) return;
    const ulong start = first + item * ((ulong)TURNS * LANES); /* a range lies within 2^32 */
    const vec high = (vec)(start >> 32);
    vec sum = (vec)(0), low = (vec)(start & LOW) + iota();
    for (uint turn = 0; turn < TURNS; ++turn, low += (vec)(LANES)) {
        vec c0 = low, c1 = high, c2 = (vec)(0), c3 = (vec)(0);
        uint k0 = key0, k1 = key1;
#pragma unroll
        for (int round = 0; round < 10; ++round) {
            /* 32 x 32 -> 64 bits: one instruction if the vector unit has it */
            const vec p0 = (c0 & LOW) * (ulong)0xD2511F53u, p1 = (c2 & LOW) * (ulong)0xCD9E8D57u;
            c0 = p1 >> 32 ^ c1 ^ (vec)((ulong)k0);
            c2 = p0 >> 32 ^ c3 ^ (vec)((ulong)k1);
            c1 = p1, c3 = p0;
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }
        sum += outside(c0, c1) + outside(c2, c3);
    }
    counts[item] = 2 * TURNS * LANES - (uint)add_lanes(sum);
}
