/* cl/spectra/taps_group.cl -- computes the taps of template.clh by work-groups, for GPUs: 64 work-items share the taps
 * of a point.
 *
 * clv_spectra_taps_group: does the same as clv_spectra_taps, with the spline's prefilter (x: 64 work-items for each
 *                         item, y: vsini and vsini + step).
 * Launch   local (64, 1, 1).
 * Order    Each sum has the order that it has with one work-item for each point, so results have the same bits. */
#include "spectra/taps.clh"

#define WG 64

/* taps [item][room][8], as clv_spectra_taps writes them. */
__attribute__((reqd_work_group_size(WG, 1, 1))) __kernel void
clv_spectra_taps_group(__global const float *restrict state, __global const int *restrict list,
                       __global float *restrict taps, float dln)
{
    __local float w[CLV_SPECTRA_TAPS];
    const int at = (int)get_group_id(0), me = (int)get_local_id(0), which = (int)get_global_id(1);
    if (at >= list[0]) return; /* all of the group */
    const int item = list[1 + at];
    __global const float *s = state + (size_t)item * CLV_SPECTRA_STATE;
    __global float *out = taps + (size_t)item * CLV_SPECTRA_TAPS * 8;
    const float vsini = s[CLV_S_TRY + 1] + (which ? s[CLV_S_STEP + 1] : 0.0f);
    const float radius = rotation_radius(vsini, dln);
    const int wide = taps_of_rotation(radius), reach = wide + PREFILTER;
    for (int k = me; k < CLV_SPECTRA_TAPS; k += WG)
        w[k] = k > wide ? 0.0f : wide ? part_of_tap((float)k, radius, 0) + part_of_tap((float)k, radius, 1) : 1.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int k = 0; k <= wide; ++k)
        sum += k ? 2.0f * w[k] : w[k];
    for (int j = me; j < CLV_SPECTRA_TAPS - 1; j += WG) { /* those beyond the reach are 0: the neighbour's may go on */
        float tap = 0.0f, decay[PREFILTER + 1];
#pragma unroll
        for (int k = 0; k <= PREFILTER; ++k)
            decay[k] = k ? decay[k - 1] * POLE : GAIN;
#pragma unroll
        for (int d = -PREFILTER; d <= PREFILTER; ++d)
            if (abs(j + d) <= wide) tap = fma(w[abs(j + d)], decay[d < 0 ? -d : d], tap);
        tap = j > reach ? 0.0f : tap / sum;
        if (which) {
            out[(1 + j) * 8 + 1] = tap;
            continue;
        }
        out[(1 + j) * 8] = tap;
#pragma unroll
        for (int lane = 2; lane < 8; ++lane)
            out[(1 + j) * 8 + lane] = lane < 6 ? tap : 0.0f;
    }
    if (me == 0) out[which] = (float)reach;
}
