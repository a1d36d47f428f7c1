/* transformer/elements.cl -- operations on single numbers or rows: gates, rotary positions, the loss
 * of a classifier.
 *
 * Launch   transformer/team.clh. TEAM 1: 1-D, global (rows rounded up to LOCAL), local (LOCAL). TEAM > 1: 2-D, global
 *          (rows * LOCAL, parts of a row; 1 for the loss), local (LOCAL, 1).
 * Defines  LANES, LOCAL, TEAM.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/rope.clh"

/* Computes y = act(gate) * up: the gate of row r begins at r * row, and its up `width` columns further. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_gate(__global const float *restrict x, ulong row, __global float *restrict y, uint rows,
         uint width, uint act)
{
    const size_t r = OWN_ROW;
    if (r >= rows) return;
    __global const float *from = x + r * row;
    FOR_COLUMNS(c, width)
        put_columns(activate(columns(from, c, width), act) * columns(from + width, c, width),
                    y + r * width, c, width);
}

/* Rotates the heads of row r by the angles of position first + r, in place: turns [position][pairs]. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_rope(__global float *x, ulong offset, ulong row, __global const float2 *restrict turns,
         uint first, uint rows, uint heads, uint pairs)
{
    const size_t r = OWN_ROW;
    if (r >= rows) return;
    turn_heads(x + offset + r * row, turns + (first + r) * pairs, heads, pairs, 1.0f);
}

/* TURN classes per turn of a loop: single ones for teams, whose members take neighbours. */
#if TEAM > 1
#define TURN 1
#define FOR_TURNS(c, whole) FOR_COLUMNS(c, whole)
typedef float tvec;

static float turn_max(float x)
{
    return x;
}

static float turn_sum(float x)
{
    return x;
}
#else
#define TURN 8
#define FOR_TURNS(c, whole) for (uint c = 0; c < (whole); c += TURN)
typedef float8 tvec;

static float turn_max(float8 x)
{
    const float4 a = fmax(x.lo, x.hi);
    return fmax(fmax(a.x, a.z), fmax(a.y, a.w));
}

static float turn_sum(float8 x)
{
    const float4 a = x.lo + x.hi;
    return (a.x + a.z) + (a.y + a.w);
}
#endif

static tvec turn_load(__global const float *x)
{
#if TEAM > 1
    return *x;
#else
    return vload8(0, x);
#endif
}

static void turn_store(tvec x, __global float *to)
{
#if TEAM > 1
    *to = x;
#else
    vstore8(x, 0, to);
#endif
}

/* loss[r] = log(sum of exp(x)) - x[label], and its gradient times `scale`; rows with the label
 * `ignored` give 0 and 0. The gradient may overwrite x. Outside of teams, loops take eight classes per turn, as some
 * devices end loops of many turns: up to 170,000 classes are correct there. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_cross_entropy(__global const float *x, __global const int *restrict labels, int ignored,
                  __global float *restrict loss, __global float *gradient, uint has_gradient,
                  float scale, uint rows, uint classes)
{
    TEAM_ROOM;
    const size_t r = OWN_ROW;
    if (r >= rows) return;
    const int label = labels[r];
    const bool counts = label != ignored;
    __global const float *row = x + r * classes;
    /* members read only the columns that they also write, as the gradient may overwrite x */
    const bool mine = counts ? label % TEAM == MEMBER : MEMBER == 0;
    const float own = counts && mine ? row[label] : 0.0f;
    tvec tops = (tvec)(-INFINITY), sums = (tvec)(0.0f);
    const uint whole = classes / TURN * TURN;
    FOR_TURNS(c, whole)
        tops = fmax(tops, turn_load(row + c));
    float top = turn_max(tops), sum = 0.0f;
    for (uint c = whole; c < classes; ++c)
        top = fmax(top, row[c]);
    top = team_max(top, room);
    FOR_TURNS(c, whole)
        sums += exp(turn_load(row + c) - top);
    for (uint c = whole; c < classes; ++c)
        sum += exp(row[c] - top);
    sum = team_sum(sum + turn_sum(sums), room);
    if (mine) loss[r] = counts ? log(sum) + (top - own) : 0.0f;
    if (!has_gradient) return;
    __global float *to = gradient + r * classes;
    FOR_TURNS(c, whole)
        turn_store(counts ? exp(turn_load(row + c) - top) / sum * scale : (tvec)(0.0f), to + c);
    for (uint c = whole; c < classes; ++c)
        to[c] = counts ? exp(row[c] - top) / sum * scale : 0.0f;
    if (counts && mine) to[label] = (exp(own - top) / sum - 1.0f) * scale;
}
