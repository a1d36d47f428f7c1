/* cl/probe/check.cl -- checks that a device computes correctly, by small programs whose results are known bit by bit.
 *
 * Launch   1-D, local (WG); the GEMM with tiles 2-D, local (TILE, TILE).
 * Defines  WG    work-group width, a power of two.
 *          TILE  tile edge; TILE * TILE work-items fit in a group. Without it, there is no tiled GEMM.
 *          FP64, FP16  if the device reports them.
 * Memory   The programs need a few KiB. */
#pragma OPENCL FP_CONTRACT OFF
#ifdef FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef FP16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

/* out[i] = i * 2654435761 + seed */
__kernel void clv_check_ids(__global uint *restrict out, uint seed)
{
    const uint i = get_global_id(0);
    out[i] = i * 2654435761u + seed;
}

/* Every group reverses its part twice through local memory, shifted by one in between. */
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
clv_check_local(__global const uint *restrict in, __global uint *restrict out)
{
    __local uint tile[WG];
    const uint i = get_global_id(0), k = get_local_id(0);
    tile[WG - 1 - k] = in[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint shifted = tile[(k + 1) % WG];
    barrier(CLK_LOCAL_MEM_FENCE);
    tile[WG - 1 - k] = shifted;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = tile[k];
}

/* Sums the numbers of a group by a tree, with barriers in a loop. */
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
clv_check_tree(__global const uint *restrict in, __global uint *restrict out)
{
    __local uint part[WG];
    const uint k = get_local_id(0);
    part[k] = in[get_global_id(0)];
    for (uint half_width = WG / 2; half_width > 0; half_width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k < half_width) part[k] += part[k + half_width];
    }
    if (k == 0) out[get_group_id(0)] = part[0];
}

/* Does `turns` steps of a xorshift generator; the result tells how many steps were really done. */
__kernel void clv_check_loop(__global uint *restrict state, uint turns)
{
    uint x = state[get_global_id(0)];
    for (uint t = 0; t < turns; ++t) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
    state[get_global_id(0)] = x;
}

/* C[m,n] = sum over k of A[m,k] * B[k,n], in the order of k, each step fused. */
__kernel void clv_check_gemm(__global const float *restrict A, __global const float *restrict B,
                             __global float *restrict C, uint M, uint N, uint K)
{
    const uint i = get_global_id(0), m = i / N, n = i % N;
    if (i >= M * N) return;
    float sum = 0.0f;
    for (uint k = 0; k < K; ++k) sum = fma(A[m * K + k], B[k * N + n], sum);
    C[i] = sum;
}

#ifdef TILE
/* Computes the product of clv_check_gemm with tiles in local memory; edges are padded with zeros. */
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void
clv_check_gemm_tiled(__global const float *restrict A, __global const float *restrict B,
                     __global float *restrict C, uint M, uint N, uint K)
{
    __local float a[TILE][TILE], b[TILE][TILE];
    const uint x = get_local_id(0), y = get_local_id(1);
    const uint n = get_global_id(0), m = get_global_id(1);
    float sum = 0.0f;
    for (uint k = 0; k < K; k += TILE) {
        a[y][x] = m < M && k + x < K ? A[m * K + k + x] : 0.0f;
        b[y][x] = k + y < K && n < N ? B[(k + y) * N + n] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < TILE; ++j) sum = fma(a[y][j], b[j][x], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (m < M && n < N) C[m * N + n] = sum;
}
#endif

#ifdef FP64
/* Computes the square of 1 + 2^-40, which only binary64 represents exactly. */
__kernel void clv_check_fp64(__global double *restrict out, double tiny)
{
    const double x = 1.0 + tiny * (double)(get_global_id(0) + 1);
    out[get_global_id(0)] = fma(x, x, -1.0);
}
#endif

#ifdef FP16
/* Small whole numbers are exact in binary16. */
__kernel void clv_check_fp16(__global float *restrict out)
{
    const half x = (half)(float)(get_global_id(0) % 32);
    out[get_global_id(0)] = (float)(x * x + (half)1.0f);
}
#endif
