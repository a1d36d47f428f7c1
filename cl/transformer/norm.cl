/* transformer/norm.cl -- LayerNorm and RMSNorm of rows, and embeddings followed by LayerNorm.
 *
 *     LayerNorm  y = (x - mean) / sqrt(var + eps) * weight + bias
 *     RMSNorm    y = x / sqrt(mean(x^2) + eps) * weight
 *
 * Launch   transformer/team.clh. TEAM 1: 1-D, global (rows / `each`, rounded up to the local size), local (LOCAL); a
 *          work-item does `each` rows. TEAM > 1: 1-D, global (rows * LOCAL), local (LOCAL).
 *          CPUs: LANES 16, LOCAL 1. GPUs: LANES 1, LOCAL 64 to 256.
 * Defines  LANES, LOCAL, TEAM, RMS (1: RMSNorm).
 * Needs    OpenCL C 1.2.
 * Order    There are two passes: the first computes the mean, and the second the deviations from it, so that a
 *          row of mean 1000 and spread 0.01 keeps its digits. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/team.clh"

/* Normalises a row; y may be x, as a work-item reads no columns but those that it writes. `moments`: the row's mean and
 * 1 / sqrt(var + eps), for the backward pass. */
static void norm_row(__global const float *x, __global float *y, __global const float *weight,
                     __global const float *bias, uint width, float eps, float2 *moments, __local float *room)
{
    float mean = 0.0f;
    if (!RMS) {
        fvec sum = (fvec)(0.0f);
        FOR_COLUMNS(c, width)
            sum += columns(x, c, width);
        mean = team_sum(lanes_sum(sum), room) / (float)width;
        sum = (fvec)(0.0f); /* corrects the rounding error of the first sum */
        FOR_COLUMNS(c, width)
            sum += (columns(x, c, width) - mean) * inside(c, width);
        mean += team_sum(lanes_sum(sum), room) / (float)width;
    }
    fvec squares = (fvec)(0.0f);
    FOR_COLUMNS(c, width) {
        const fvec d = (columns(x, c, width) - mean) * inside(c, width);
        squares = fma(d, d, squares);
    }
    const float scale = 1.0f / sqrt(team_sum(lanes_sum(squares), room) / (float)width + eps);
    FOR_COLUMNS(c, width) {
        fvec v = (columns(x, c, width) - mean) * scale * columns(weight, c, width);
        if (!RMS) v += columns(bias, c, width);
        put_columns(v, y, c, width);
    }
    *moments = (float2)(mean, scale);
}

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_norm(__global const float *x, ulong x_offset, ulong x_row, __global float *y, ulong y_offset,
         ulong y_row, __global const float *parameters, ulong weight, ulong bias,
         __global float2 *moments, uint keep, uint rows, uint width, float eps, uint each)
{
    TEAM_ROOM;
    const uint last = LAST_ROW(each, rows);
    for (uint r = FIRST_ROW(each); r < last; ++r) {
        float2 found;
        norm_row(x + x_offset + r * x_row, y + y_offset + r * y_row, parameters + weight,
                 parameters + bias, width, eps, &found, room);
        if (MEMBER == 0 && keep) moments[r] = found;
    }
}

/* Where the vectors lie that an embedding adds. */
typedef struct tables {
    __global const float *word, *position, *type;
} tables;

static void embed_row(const tables *from, int2 token, __global float *row, uint width)
{
    __global const float *w = from->word + (size_t)token.x * width;
    __global const float *p = from->position + (size_t)token.y * width;
    FOR_COLUMNS(c, width)
        put_columns(columns(w, c, width) + columns(p, c, width) + columns(from->type, c, width), row, c, width);
}

/* y = word[id] + position[p] + type, where `tokens` holds id and p; with `norm`, LayerNorm follows (RMS is 0). There
 * are two loops, because PoCL 3.1 miscompiles barriers under a condition in a loop, even if all work-items agree. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_embed(__global const int2 *tokens, ulong first, __global const float *word,
          __global const float *parameters, ulong position, ulong type, ulong weight, ulong bias,
          __global float *y, uint rows, uint width, float eps, uint norm, uint each)
{
    TEAM_ROOM;
    const tables from = { word, parameters + position, parameters + type };
    const uint begin = FIRST_ROW(each), last = LAST_ROW(each, rows);
    if (!norm) {
        for (uint r = begin; r < last; ++r)
            embed_row(&from, tokens[first + r], y + (size_t)r * width, width);
        return;
    }
    for (uint r = begin; r < last; ++r) {
        __global float *row = y + (size_t)r * width;
        float2 found;
        embed_row(&from, tokens[first + r], row, width);
        norm_row(row, row, parameters + weight, parameters + bias, width, eps, &found, room);
    }
}
