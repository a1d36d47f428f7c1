/* cl/patch/centre.cl -- computes D = ((cube - cube[0]) * scale - mean) * gain of the frame, with the mean weighted by
 * the frames' weights, and decides which pixels can be used.
 *
 * Subtracting frame 0 first preserves the digits of float32, which a large constant level would consume.
 * D is 0 for a pixel that is not finite in some frame, and for one that never changes.
 *
 * Launch   2-D: global (pitch / LANES, band rows); CPU local (1, 1).
 * Defines  LANES.
 * Memory   The cube is read twice and D is written once, both coalesced along x. Offsets and strides count elements. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/paco.clh"

/* Computes D and the state of every pixel: 0 good, 1 not finite in some frame, 2 constant. */
__kernel void clv_paco_centre(__global const float *restrict cube, ulong cube_offset,
                              ulong frame_stride, ulong row_stride, __global float *restrict D,
                              __global uchar *restrict state, uint band_rows,
                              uint frames, uint width, uint pitch, float scale,
                              __global const rotation *restrict turn)
{
    const uint tile = get_global_id(0) * LANES, row = get_global_id(1);
    if (tile >= pitch || row >= band_rows) return;

    __global float *out = D + (size_t)row * frames * pitch + tile;
    const ivec x = (int)tile - CLV_PACO_PAD + lanes_iota();
    const ivec inside = (x >= 0) && (x < (int)width);
    if (!lanes_any(inside)) {
        for (uint t = 0; t < frames; ++t) lanes_store((fvec)0.0f, out + (size_t)t * pitch);
        lanes_store((bvec)0, state + (size_t)row * pitch + tile);
        return;
    }

    __global const float *pixel =
        cube + cube_offset + (size_t)row * row_stride + ((int)tile - CLV_PACO_PAD);
    /* the last vector of a row may extend beyond the array, so it is read lane by lane */
    const bool whole = (int)tile >= CLV_PACO_PAD && tile - CLV_PACO_PAD + LANES <= width;
    fvec first = 0.0f, sum = 0.0f;
    float weights = 0.0f;
    ivec finite = -1;
    for (uint t = 0; t < frames; ++t) {
        fvec value = 0.0f;
        if (whole) {
            value = lanes_load(pixel + (size_t)t * frame_stride);
        } else {
#if LANES > 1
            float lane[LANES];
            for (int i = 0; i < LANES; ++i) {
                const int at = (int)tile - CLV_PACO_PAD + i;
                lane[i] = at >= 0 && at < (int)width ? pixel[(size_t)t * frame_stride + i] : 0.0f;
            }
            value = lanes_load(lane);
#endif
        }
        finite = finite && isfinite(value);
        if (t == 0) first = value;
        const fvec change = (value - first) * scale;
        sum += change * turn[t].weight, weights += turn[t].weight;
        lanes_store(change, out + (size_t)t * pitch);
    }
    const fvec mean = sum * (1.0f / weights);
    const ivec good = inside && finite;
    fvec largest = 0.0f;
    for (uint t = 0; t < frames; ++t) {
        const fvec centred = (lanes_load(out + (size_t)t * pitch) - mean) * turn[t].gain;
        const fvec kept = pick(good, centred, (fvec)0.0f);
        largest = fmax(largest, fabs(kept));
        lanes_store(kept, out + (size_t)t * pitch);
    }
    const ivec still = largest == 0.0f;
    lanes_store(to_bvec(pick(inside && !finite, (ivec)1, pick(inside && still, (ivec)2, (ivec)0))),
                state + (size_t)row * pitch + tile);
}
