/* array/take.cl -- copies slices by their indices: out[o,j,i] = in[o,places[j],i] with TAKE 1, or out[o,places[j],i] =
 * in[o,j,i] with TAKE 0.
 *
 * Launch: one work-item per element [o,j,i]. With TAKE 0, a slice with the index -1 is skipped: a later slice has the
 *         same place in `out`.
 * Defines: BYTES of an element; TAKE, 1 or 0. */
#if BYTES == 1
#define T uchar
#elif BYTES == 2
#define T ushort
#elif BYTES == 4
#define T uint
#elif BYTES == 8
#define T uint2
#else
#define T uint4
#endif

__kernel void clv_take(__global const T *in, ulong from, __global const long *places, __global T *out, ulong to,
                       uint outer, uint count, uint inner, uint len)
{
    const size_t at = get_global_id(0);
    const size_t row = (size_t)count * inner;
    if (at >= outer * row) return;
    const size_t o = at / row, rest = at % row;
    const long place = places[rest / inner];
    const size_t far = (o * len + (size_t)place) * inner + rest % inner;
#if TAKE
    out[to + at] = in[from + far];
#else
    if (place >= 0) out[to + far] = in[from + at];
#endif
}
