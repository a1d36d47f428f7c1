/* cl/probe/bench.cl -- measures a device's peak rates: arithmetic without memory, memory without
 * arithmetic, and an empty kernel.
 *
 * Launch   1-D. CPU devices: local (1), a few work-items per core. GPUs: local (at most 256).
 * Defines  PEAK, DOT8, READ, NOTHING  one of them selects what is compiled.
 *          REAL    float, double, half or char; LANES lanes make a VEC.
 *          LANES   1, 2, 4, 8, 16.
 *          CHAINS  12 or 6: independent accumulators, more than the cycles that an addition takes.
 *          FUSED   use fma(); else mad(), which is faster on a device without fma; INT8: neither.
 *          FP64, FP16  if REAL is double or half.
 * A work-item does at most 65,535 loop turns: the host keeps `turns` below that. */
#ifdef FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef FP16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
#ifdef DOT8
#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if LANES == 1
#define VEC REAL
#define SUM(v) (v)
#else
#define VEC JOIN(REAL, LANES)
#define SUM(v) JOIN(sum, LANES)(v)
#endif
#define sum2(v) ((v).s0 + (v).s1)
#define sum4(v) (sum2((v).lo) + sum2((v).hi))
#define sum8(v) (sum4((v).lo) + sum4((v).hi))
#define sum16(v) (sum8((v).lo) + sum8((v).hi))

#ifdef INT8
#define STEP(x) x = x * a + b
#elif defined(FUSED)
#define STEP(x) x = fma(x, a, b)
#else
#define STEP(x) x = mad(x, a, b)
#endif

#ifdef PEAK
/* 2 * LANES * CHAINS * 4 operations per turn. */
__kernel void clv_bench_peak(__global REAL *restrict out, REAL factor, REAL term, uint turns)
{
    const VEC a = (VEC)(factor), b = (VEC)(term);
    VEC x0 = (VEC)((REAL)(get_global_id(0) % 7));
    VEC x1 = x0 + b, x2 = x1 + b, x3 = x2 + b, x4 = x3 + b, x5 = x4 + b;
#if CHAINS == 12
    VEC x6 = x5 + b, x7 = x6 + b, x8 = x7 + b, x9 = x8 + b, x10 = x9 + b, x11 = x10 + b;
#define ALL STEP(x0); STEP(x1); STEP(x2); STEP(x3); STEP(x4); STEP(x5); \
            STEP(x6); STEP(x7); STEP(x8); STEP(x9); STEP(x10); STEP(x11)
#else
#define ALL STEP(x0); STEP(x1); STEP(x2); STEP(x3); STEP(x4); STEP(x5)
#endif
    for (uint t = 0; t < turns; ++t) {
        ALL; ALL; ALL; ALL;
    }
    VEC all = x0 + x1 + x2 + x3 + x4 + x5;
#if CHAINS == 12
    all += x6 + x7 + x8 + x9 + x10 + x11;
#endif
    out[get_global_id(0)] = SUM(all);
}
#endif

#ifdef DOT8
/* 8 operations per dot product, 6 chains, 4 times per turn. */
__kernel void clv_bench_dot8(__global int *restrict out, uint factor, uint turns)
{
    int x0 = get_global_id(0), x1 = 1, x2 = 2, x3 = 3, x4 = 4, x5 = 5;
#define DOT(x) x += dot_4x8packed_ss_int(as_uint(x), factor)
#define DOTS DOT(x0); DOT(x1); DOT(x2); DOT(x3); DOT(x4); DOT(x5)
    for (uint t = 0; t < turns; ++t) {
        DOTS; DOTS; DOTS; DOTS;
    }
    out[get_global_id(0)] = x0 + x1 + x2 + x3 + x4 + x5;
}
#endif

#ifdef READ
/* Each work-item sums `turns` * 4 vectors. Its successive vectors are `step` vectors apart, and neighbouring
 * work-items begin `skip` apart: 1 and a block on CPUs, the number of work-items and 1 on GPUs. */
__kernel void clv_bench_read(__global const VEC *restrict in, __global REAL *restrict out,
                             uint turns, uint step, uint skip)
{
    __global const VEC *at = in + (size_t)get_global_id(0) * skip;
    VEC x0 = (VEC)((REAL)0), x1 = x0, x2 = x0, x3 = x0;
    for (uint t = 0; t < turns; ++t) {
        x0 += at[0];
        x1 += at[(size_t)step];
        x2 += at[(size_t)step * 2];
        x3 += at[(size_t)step * 3];
        at += (size_t)step * 4;
    }
    out[get_global_id(0)] = SUM((x0 + x1) + (x2 + x3));
}

/* Writes the elements that clv_bench_read reads, so that the work-item that will read a page touches it first. */
__kernel void clv_bench_fill(__global VEC *restrict in, __global REAL *restrict out, uint turns,
                             uint step, uint skip)
{
    __global VEC *at = in + (size_t)get_global_id(0) * skip;
    for (uint t = 0; t < turns; ++t) {
        at[0] = at[(size_t)step] = (VEC)((REAL)1);
        at[(size_t)step * 2] = at[(size_t)step * 3] = (VEC)((REAL)2);
        at += (size_t)step * 4;
    }
    out[get_global_id(0)] = (REAL)0;
}
#endif

#ifdef NOTHING
__kernel void clv_bench_nothing(__global uint *restrict out)
{
    if (get_global_id(0) == 0x7FFFFFFF) out[0] = 0;
}
#endif
