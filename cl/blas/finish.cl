/* blas/finish.cl -- finishes a product C that a library has computed: C = act(C + bias) + beta * R.
 *
 * Launch   3-D: global (columns rounded up to LOCAL, rows, batch), local (LOCAL, 1, 1).
 * Defines  LANES 1, LOCAL.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_gemm_finish(__global float *C, ulong c_offset, ulong c_row, ulong c_batch,
                __global const float *bias, ulong bias_offset, uint has_bias,
                __global const float *R, ulong r_offset, ulong r_row, ulong r_batch, uint n,
                float beta, uint act)
{
    const size_t c = get_global_id(0), r = get_global_id(1), b = get_global_id(2);
    if (c >= n) return;
    __global float *to = C + c_offset + b * c_batch + r * c_row + c;
    float x = *to;
    if (has_bias) x += bias[bias_offset + c];
    x = activate(x, act);
    if (beta != 0.0f) x = fma(beta, R[r_offset + b * r_batch + r * r_row + c], x);
    *to = x;
}
