/* cl/spectra/solve_group.cl -- solves the small dense systems of solve.clh and scan.clh by work-groups, for GPUs: 16
 * work-items share a system. Each of them holds a row in registers, and the factor lies in local memory.
 *
 * clv_spectra_total_group: does the same as clv_spectra_total (x: columns, y: items, z: spectra).
 * clv_spectra_solve_group: does the same as clv_spectra_solve (x: 16 work-items for each item, y: spectra).
 * clv_spectra_step_group:  does the same as clv_spectra_step (x: 16 work-items for each item).
 * clv_spectra_along_group: does the same as clv_spectra_along (x: 16 work-items for each velocity, y: items).
 * Launch   local (64, 1, 1): 4 systems, which are neighbours; work-item i has row i / 4 of system i % 4.
 * Defines  FP64 1 if the device has doubles, else sums are compensated float32; NPOLY, at most 15.
 * Memory   Local memory is [place][system]; the places of a system are the elements of a lower triangle, row by row.
 *          Row NPOLY is the right-hand side: the step that makes the other rows those of L turns it into L^-1 u.
 * Order    Each sum has the order that it has with one work-item for each system, so results have the same bits. */
#define FLAT _Pragma("unroll")
#include "spectra/next.clh"
#include "spectra/small.clh"

#define SYSTEMS 4
#define ROWS 16
#define GROUP __attribute__((reqd_work_group_size(SYSTEMS * ROWS, 1, 1)))
#define AT(i, j) (((i) * ((i) + 1) / 2 + (j)) * SYSTEMS)
#define PLACES AT(NPOLY, NPOLY)

GROUP __kernel void clv_spectra_total_group(__global const float *restrict partial, __global const int *restrict range,
                                            __global const int *restrict list, __global float *restrict out,
                                            int all_segments, int spectra, int columns)
{
    const int column = (int)get_global_id(0), at = (int)get_global_id(1), which = (int)get_global_id(2);
    if (at >= list[0] || column >= columns) return;
    const int item = list[1 + at], from = range[2 * which], count = range[2 * which + 1];
    __global const float *p = partial + ((size_t)item * all_segments + from) * CLV_SPECTRA_AROUND + column;
    float sum = 0.0f, lost = 0.0f;
    for (int i = 0; i < count; ++i) {
        const float term = p[(size_t)i * CLV_SPECTRA_AROUND], next = sum + term, part = next - sum;
        lost += (sum - (next - part)) + (term - part);
        sum = next;
    }
    __global float *o = out + ((size_t)item * spectra + which) * 2 * CLV_SPECTRA_AROUND + column;
    o[0] = sum, o[CLV_SPECTRA_AROUND] = lost;
}

static real sum_at(__global const float *totals, int column)
{
    return (real)totals[column] + (real)totals[CLV_SPECTRA_AROUND + column];
}

/* Turns row `row` of a matrix, r, into that of its factor, and puts it into `l`; row NPOLY becomes x = L^-1 u. The
 * logarithms of the squared pivots go to `logs`. A pivot that is not positive is replaced by a tiny one, and *bad is
 * set. All work-items of the group call this, and rows beyond NPOLY do nothing. */
static __attribute__((always_inline)) void
factor_row(real *r, int row, __local real *l, __local real *logs, __local int *bad)
{
#pragma unroll
    for (int j = 0; j < NPOLY; ++j) {
        real v = r[j];
        if (row >= j && row <= NPOLY) {
#pragma unroll
            for (int k = 0; k < j; ++k)
                v -= r[k] * l[AT(j, k)];
        }
        if (row == j) {
            const real least = r[j] * (FP64 ? (real)1e-13 : (real)1e-6f);
            if (!(v > least)) v = least > 0 ? least : 1, *bad = 1;
            v = sqrt(v);
            l[AT(j, j)] = v;
            logs[j * SYSTEMS] = 2 * log(v);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (row > j && row <= NPOLY) {
            r[j] = v / l[AT(j, j)];
            l[AT(row, j)] = r[j];
        } else if (row == j) {
            r[j] = v;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

static real log_det_of(__local const real *logs)
{
    real sum = 0;
#pragma unroll
    for (int i = 0; i < NPOLY; ++i)
        sum += logs[i * SYSTEMS];
    return sum;
}

GROUP __kernel void clv_spectra_solve_group(__global const float *restrict totals, __global const int *restrict list,
                                            __global float *restrict solved, int spectra)
{
    __local real tile[PLACES], logs[NPOLY * SYSTEMS];
    __local int bad[SYSTEMS];
    const int system = (int)get_local_id(0) % SYSTEMS, row = (int)get_local_id(0) / SYSTEMS;
    const int at = (int)get_group_id(0) * SYSTEMS + system, which = (int)get_global_id(1);
    const bool there = at < list[0];
    const int item = there ? list[1 + at] : 0;
    __global const float *g = totals + ((size_t)item * spectra + which) * 2 * CLV_SPECTRA_AROUND;
    __global float *out = solved + ((size_t)item * spectra + which) * CLV_SPECTRA_SOLVED;
    __local real *l = tile + system;
    real r[NPOLY];
#pragma unroll
    for (int j = 0; j < NPOLY; ++j)
        r[j] = there && j <= row && row <= NPOLY ? sum_at(g, row < NPOLY ? row * 16 + j : j * 16 + NPOLY) : 0;
    const bool empty = !there || !(sum_at(g, 0) > 0);
    if (row == 0) bad[system] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    factor_row(r, row, l, logs + system, bad + system);
    if (!there) return;
    /* column c = row of L^-1; a = sum over rows i of (L^-1 u)_i * row i of L^-1 */
    real x[NPOLY], a = 0;
#pragma unroll
    for (int i = 0; i < NPOLY; ++i) {
        real v = i == row;
#pragma unroll
        for (int k = 0; k < i; ++k)
            v = k < row ? v : v - l[AT(i, k)] * x[k];
        x[i] = v / l[AT(i, i)];
        if (i >= row) a += x[i] * l[AT(NPOLY, i)];
    }
    const bool none = empty || row >= NPOLY;
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
        out[CLV_V_INVERSE + row * 16 + i] = none || i < row || i >= NPOLY ? 0.0f : (float)x[i < NPOLY ? i : 0];
    out[CLV_V_A + row] = none ? 0.0f : (float)a;
    if (row > 0) return;
    out[CLV_V_LOGDET] = empty ? 0.0f : (float)log_det_of(logs + system);
    out[CLV_V_BAD] = !empty && bad[system];
}

/* Adds one spectrum to sums that a system's work-items share: row i first computes row i of the residual and of the
 * slopes that the continuum does not absorb, y [7][NPOLY]; then each takes two of the sums over these rows. The last
 * row adds chi2. */
static void judge_row(judged *all, float *sum, int row, __local real *y, __global const float *sums,
                      __global const float *solved, float *chi_good)
{
    real rest = 0, part[CLV_S_UNKNOWNS];
#pragma unroll
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a)
        part[a] = 0;
#pragma unroll 1
    for (int k = 0; k <= row && row < NPOLY; ++k) {
        const real inverse = (real)solved[CLV_V_INVERSE + k * 16 + row];
        rest += inverse * sum_at(sums, CLV_A_REST + k);
#pragma unroll
        for (int a = 0; a < CLV_S_UNKNOWNS; ++a)
            part[a] += inverse * sum_at(sums, CLV_A_CROSS + k * 8 + lane_of(a));
    }
    if (row < NPOLY) {
#pragma unroll
        for (int a = 0; a < CLV_S_UNKNOWNS; ++a)
            y[(a * NPOLY + row) * SYSTEMS] = part[a];
        y[(CLV_S_UNKNOWNS * NPOLY + row) * SYSTEMS] = rest;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int turn = 0; turn < 2; ++turn) {
        const int e = row + turn * ROWS; /* a pair of unknowns, or an unknown and the residual */
        const int a = e < PAIRS ? (e > 0) + (e > 2) + (e > 5) + (e > 9) + (e > 14) : min(e - PAIRS, 5);
        const int b = e < PAIRS ? e - a * (a + 1) / 2 : CLV_S_UNKNOWNS;
        real v = sum_at(sums, e < PAIRS ? CLV_A_NORMAL + lane_of(a) * 8 + lane_of(b) : CLV_A_SLOPE + lane_of(a));
#pragma unroll 1
        for (int i = 0; i < NPOLY; ++i)
            v -= y[(a * NPOLY + i) * SYSTEMS] * y[(b * NPOLY + i) * SYSTEMS];
        if (turn) sum[1] += (float)v; else sum[0] += (float)v;
    }
    sum[2] += (float)sum_at(sums, CLV_A_DET + lane_of(min(row, 5)));
    if (row == ROWS - 1) {
        *chi_good = (float)sum_at(sums, CLV_A_CHI_GOOD);
        total_add(&all->chi, sums[CLV_A_CHI]);
        total_add(&all->chi, sums[CLV_SPECTRA_AROUND + CLV_A_CHI]);
#pragma unroll 1
        for (int i = 0; i < NPOLY; ++i) {
            const real r = y[(CLV_S_UNKNOWNS * NPOLY + i) * SYSTEMS];
            total_add(&all->chi, (float)(-r * r));
        }
        total_add(&all->chi, solved[CLV_V_LOGDET]);
        all->log_det += solved[CLV_V_LOGDET];
        all->bad += solved[CLV_V_BAD];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

GROUP __kernel void clv_spectra_step_group(__global const float *restrict totals, __global const float *restrict solved,
                                           __global const float *restrict box, __global const int *restrict list,
                                           __global float *restrict state, int spectra, int last)
{
    enum { DET = PAIRS + CLV_S_UNKNOWNS, SUMS = DET + CLV_S_UNKNOWNS };
    __local real tile[(CLV_S_UNKNOWNS + 1) * NPOLY * SYSTEMS];
    __local float sums[SUMS * SYSTEMS];
    const int system = (int)get_local_id(0) % SYSTEMS, row = (int)get_local_id(0) / SYSTEMS;
    const int at = (int)get_group_id(0) * SYSTEMS + system, count = list[0];
    if ((int)get_group_id(0) * SYSTEMS >= count) return; /* all of the group */
    const int item = list[1 + min(at, count - 1)]; /* surplus systems repeat the last item */
    __global float *s = state + (size_t)item * CLV_SPECTRA_STATE;
    judged now;
    judge_nothing(&now);
    float sum[3];
    sum[0] = sum[1] = sum[2] = 0.0f;
    for (int i = 0; i < spectra; ++i) {
        float good;
        judge_row(&now, sum, row, tile + system, totals + ((size_t)item * spectra + i) * 2 * CLV_SPECTRA_AROUND,
                  solved + ((size_t)item * spectra + i) * CLV_SPECTRA_SOLVED, &good);
        if (row == ROWS - 1 && at < count) s[CLV_S_CHI_OF + i] = good;
    }
    sums[row * SYSTEMS + system] = sum[0];
    if (row + ROWS < DET) sums[(row + ROWS) * SYSTEMS + system] = sum[1];
    if (row < CLV_S_UNKNOWNS) sums[(DET + row) * SYSTEMS + system] = sum[2];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row < ROWS - 1 || at >= count) return;
#pragma unroll
    for (int e = 0; e < PAIRS; ++e)
        now.normal[e] = sums[e * SYSTEMS + system];
#pragma unroll
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a) {
        now.slope[a] = sums[(PAIRS + a) * SYSTEMS + system];
        now.det_slope[a] = sums[(DET + a) * SYSTEMS + system];
    }
    settle(s, box, &now, spectra, last);
}

/* solution [item][NPOLY][velocities]; values [item][2][...]. */
GROUP __kernel void clv_spectra_along_group(__global const float *restrict sums, __global const int *restrict list,
                                            __global float *restrict solution, __global float *restrict values,
                                            int velocities, int columns, int base)
{
    __local real tile[PLACES], logs[NPOLY * SYSTEMS];
    __local int bad[SYSTEMS];
    const int system = (int)get_local_id(0) % SYSTEMS, row = (int)get_local_id(0) / SYSTEMS;
    const int v = (int)get_group_id(0) * SYSTEMS + system, at = base + (int)get_global_id(1);
    if (at >= list[0]) return; /* all of the group */
    const bool there = v < velocities;
    const size_t down = (size_t)columns * velocities;
    __global const float *g = sums + (size_t)get_global_id(1) * 2 * down + (there ? v : 0);
    __local real *l = tile + system;
    real r[NPOLY];
#pragma unroll
    for (int j = 0; j < NPOLY; ++j) {
        const size_t e = (size_t)(row < NPOLY ? row * (row + 1) / 2 + j : columns - NPOLY - 1 + j) * velocities;
        r[j] = j <= row && row <= NPOLY ? (real)g[e] + (real)g[e + down] : 0;
    }
    const bool empty = !((real)g[0] + (real)g[down] > 0);
    factor_row(r, row, l, logs + system, bad + system);
    if (row > 0 || !there) return;
    __global float *a = solution + (size_t)get_global_id(1) * NPOLY * velocities + v;
    __global float *value = values + (size_t)list[1 + at] * 2 * velocities + v;
    real x[NPOLY];
#pragma unroll
    for (int i = NPOLY - 1; i >= 0; --i) {
        real y = l[AT(NPOLY, i)];
#pragma unroll
        for (int k = i + 1; k < NPOLY; ++k)
            y -= l[AT(k, i)] * x[k];
        x[i] = y / l[AT(i, i)];
        a[(size_t)i * velocities] = empty ? 0.0f : (float)x[i];
    }
    if (empty) return;
    const real log_det = log_det_of(logs + system);
    total sum = { value[0], value[velocities] };
    total_add(&sum, (float)log_det);
    total_add(&sum, (float)(log_det - (real)(float)log_det));
    value[0] = (float)sum.value;
    value[velocities] = (float)(sum.value - (real)value[0] + sum.lost);
}
