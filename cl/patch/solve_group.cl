/* cl/patch/solve_group.cl -- the same as solve_rows.cl for GPUs: a team of work-items for each
 * patch, the factor in local memory, TEAMS neighbouring patches to a work-group.
 *
 *   S_ij = V[lag(i,j)][k + o_j]              C = (1 - rho) S + rho diag(S) = L L'
 *   Y = L^-1 B,  G = Y' Y,  W = L^-T Y       A[m] = sum_n F[m][n] G_n, the polynomial a(f)
 *
 * Launch   2-D: global (width / TEAMS * WG, rows), local (WG, 1), WG = TEAM * TEAMS.
 * Defines  LANES 1; P, Q, MA, TILE as in solve_rows.cl; TEAM, TEAMS.
 * Needs    barriers; `memory`, TEAMS * (P (P + 1) / 2 + P Q + P + Q (Q + 1) / 2 + TEAM) floats of
 *          local memory: an argument, since PoCL lets work-groups that run at the same time share
 *          arrays that a kernel declares and hands to a function.
 * Memory   V once, neighbours together; W and A once. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/paco.clh"

#define WG (TEAM * TEAMS)
#define PAIRS (P * (P + 1) / 2)
#define PRODUCTS (Q * (Q + 1) / 2)
#define AT(i, j) ((i) * ((i) + 1) / 2 + (j))

/* Sum over a team in a fixed order; every member gets it. */
static float team_sum(__local float *part, float value, uint lane)
{
    part[lane] = value;
    for (uint distance = TEAM / 2; distance; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < distance) part[lane] += part[lane + distance];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float sum = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

/* rho from the entries in L; NAN when a pixel of the patch does not vary. */
static float shrinkage(__local const float *L, __local float *part, float frames, uint vip, uint lane)
{
    float off = 0.0f, trace = 0.0f, squares = 0.0f, dead = 0.0f;
    for (uint i = lane; i < P; i += TEAM) {
        for (uint j = 0; j < i; ++j) off = fma(L[AT(i, j)], L[AT(i, j)], off);
        const float s = L[AT(i, i)];
        trace += s;
        squares = fma(s, s, squares);
        if (!(s > 0.0f)) dead = 1.0f;
    }
    off = 2.0f * team_sum(part, off, lane);
    trace = team_sum(part, trace, lane);
    squares = team_sum(part, squares, lane);
    dead = team_sum(part, dead, lane);
    const float top = vip ? trace * trace - (off + squares) : off - squares + trace * trace;
    const float bottom = (frames + 1.0f) * off;
    if (dead > 0.0f) return NAN;
    return bottom > 0.0f ? fmin(fmax(top / bottom, 0.0f), 1.0f) : 1.0f;
}

/* In place, column by column; a member owns the rows i = lane (mod TEAM). inverse[i] = 1 / L_ii. */
static void factor(__local float *L, __local float *inverse, float shrink, uint lane)
{
    for (uint i = lane; i < P; i += TEAM)
        for (uint j = 0; j < i; ++j) L[AT(i, j)] *= shrink;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint j = 0; j < P; ++j) {
        const uint begin = j <= lane ? lane : lane + (j - lane + TEAM - 1) / TEAM * TEAM;
        for (uint i = begin; i < P; i += TEAM) {
            float sum = L[AT(i, j)];
            for (uint k = 0; k < j; ++k) sum = fma(-L[AT(i, k)], L[AT(j, k)], sum);
            L[AT(i, j)] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const float scale = 1.0f / sqrt(L[AT(j, j)]);
        if (lane == 0) inverse[j] = scale;
        for (uint i = begin; i < P; i += TEAM)
            if (i > j) L[AT(i, j)] *= scale;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Y = L^-1 B: what row k is done with leaves the rows below. */
static void forward(__local float *Y, __local const float *L, __local const float *inverse, __global const float *B,
                    uint lane)
{
    for (uint e = lane; e < P * Q; e += TEAM) Y[e] = B[e];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < P; ++k) {
        for (uint e = (k + 1) * Q + lane; e < P * Q; e += TEAM)
            Y[e] = fma(-L[AT(e / Q, k)], Y[k * Q + e % Q] * inverse[k], Y[e]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint e = lane; e < P * Q; e += TEAM) Y[e] *= inverse[e / Q];
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Y = L^-T Y */
static void backward(__local float *Y, __local const float *L, __local const float *inverse, uint lane)
{
    for (uint k = P - 1; k > 0; --k) {
        for (uint e = lane; e < k * Q; e += TEAM)
            Y[e] = fma(-L[AT(k, e / Q)], Y[k * Q + e % Q] * inverse[k], Y[e]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint e = lane; e < P * Q; e += TEAM) Y[e] *= inverse[e / Q];
    barrier(CLK_LOCAL_MEM_FENCE);
}

static void quadratic(__global float *A, __local float *G, __local const float *Y, __global const float *F,
                      float rho, uint lane)
{
    for (uint n = lane; n < PRODUCTS; n += TEAM) {
        uint p = 0, q = n;
        while (q >= Q - p) q -= Q - p, ++p;
        q += p;
        float g = 0.0f;
        for (uint i = 0; i < P; ++i) g = fma(Y[i * Q + p], Y[i * Q + q], g);
        G[n] = g;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint m = lane; m < MA; m += TEAM) {
        float sum = 0.0f;
        for (uint n = 0; n < PRODUCTS; ++n) sum = fma(F[n * MA + m], G[n], sum);
        A[m * TILE] = m == 0 && isnan(rho) ? NAN : sum;
    }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
clv_paco_solve_group(__global const float *restrict V, __global float *restrict W, __global float *restrict A,
                     __global float *restrict rho_out, __global const int *restrict entry,
                     __global const float *restrict B, __global const float *restrict F, uint first_band_row,
                     uint pitch, uint lags, float frames, uint vip, __local float *restrict memory)
{
    __local float *triangle = memory, *solution = triangle + TEAMS * PAIRS;
    __local float *inverses = solution + TEAMS * P * Q, *products = inverses + TEAMS * P;
    __local float *part = products + TEAMS * PRODUCTS;
    const uint item = get_local_id(0), team = item / TEAM, lane = item % TEAM, row = get_global_id(1);
    const uint x0 = get_group_id(0) * TEAMS, x = x0 + team, width = pitch - 2 * CLV_PACO_PAD;

    /* neighbours in the work-group fetch neighbours in memory */
    __global const float *v = V + (size_t)(first_band_row + row) * lags * pitch + CLV_PACO_PAD + x0;
    for (uint e = item; e < TEAMS * PAIRS; e += WG) triangle[e % TEAMS * PAIRS + e / TEAMS] = v[entry[e / TEAMS] + e % TEAMS];
    barrier(CLK_LOCAL_MEM_FENCE);

    __local float *L = triangle + team * PAIRS, *Y = solution + team * P * Q, *inverse = inverses + team * P;
    const float rho = shrinkage(L, part + team * TEAM, frames, vip, lane);
    if (lane == 0) rho_out[(size_t)row * width + x] = rho;
    factor(L, inverse, 1.0f - rho, lane);
    forward(Y, L, inverse, B, lane);
    quadratic(A + (size_t)row * MA * width + KEPT(x, 0, MA), products + team * PRODUCTS, Y, F, rho, lane);
    backward(Y, L, inverse, lane);
    __global float *w = W + (size_t)row * P * Q * width;
    for (uint e = item; e < TEAMS * P * Q; e += WG)
        w[KEPT(x0 + e % TEAMS, e / TEAMS, P * Q)] = solution[e % TEAMS * P * Q + e / TEAMS];
}
