/* array/fold.cl -- one level of a reduction: in [outer,len,inner] becomes out [outer,chunks,inner],
 * out[o,c,i] = in[o,c,i] op in[o,c+chunks,i] op in[o,c+2*chunks,i] ...
 *
 * Launch: one work-item per element of the result. Neighbouring work-items read neighbouring elements, within a row of
 * `inner` and within a block of `chunks` rows. Work-items share nothing; the kernel is bound by memory.
 * Defines: TYPE, a clv_dtype; OP, a clv_fold; FP64, whether the type needs double. */
#if FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF
#include "array/shared.clh"

#if TYPE == CLV_FOLD_F32
#define T float
#elif TYPE == CLV_FOLD_I8
#define T char
#elif TYPE == CLV_FOLD_I16
#define T short
#elif TYPE == CLV_FOLD_I32
#define T int
#elif TYPE == CLV_FOLD_I64
#define T long
#elif TYPE == CLV_FOLD_U16
#define T ushort
#elif TYPE == CLV_FOLD_U32
#define T uint
#elif TYPE == CLV_FOLD_U64
#define T ulong
#elif TYPE == CLV_FOLD_F64
#define T double
#elif TYPE == CLV_FOLD_C64
#define T float2
#elif TYPE == CLV_FOLD_C128
#define T double2
#else /* uint8 and bool */
#define T uchar
#endif

#define COMPLEX (TYPE == CLV_FOLD_C64 || TYPE == CLV_FOLD_C128)

static T join(T x, T y)
{
#if OP == CLV_FOLD_OP_SUM
    return x + y;
#elif OP == CLV_FOLD_OP_PROD && COMPLEX
    return (T)(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
#elif OP == CLV_FOLD_OP_PROD
    return x * y;
#elif OP == CLV_FOLD_OP_MIN
    return x != x || x < y ? x : y;
#elif OP == CLV_FOLD_OP_MAX
    return x != x || x > y ? x : y;
#elif OP == CLV_FOLD_OP_ANY
    return x || y;
#else
    return x && y;
#endif
}

__kernel void clv_fold(__global const T *in, ulong from, __global T *out, ulong to, uint outer,
                       uint len, uint inner, uint chunks)
{
    const size_t at = get_global_id(0);
    const size_t row = (size_t)chunks * inner;
    if (at >= outer * row) return;
    const size_t o = at / row;
    const size_t first = from + o * len * inner + at % row;
    const uint c = (uint)(at % row / inner);
    T all = in[first];
    size_t next = first + row;
    for (uint l = c + chunks; l < len; l += chunks, next += row)
        all = join(all, in[next]);
    out[to + at] = all;
}
