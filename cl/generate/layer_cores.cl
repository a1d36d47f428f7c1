/* generate/layer_cores.cl -- passes one token through a whole layer on CPUs, if all of the layer's matrices have the
 * same type: norm and queries, keys, values; attention; its product; norm and the gated part; the last product.
 *
 * These are five phases, each cut into tasks. A work-item takes the next free task by an atomic counter, and goes on
 * to the next phase when a second counter shows that all tasks of this phase are done. A work-item waits only for tasks
 * that another work-item has begun, so the work-items need not run at the same time: a single one does everything. The
 * driver's threads synchronise once per layer instead of five times. The arithmetic is that of cores.cl and
 * attend_cores.cl, with the same bits: no row's sum depends on the tasks.
 *
 * Launch   1-D: global (cores), local (1). `turns` [5][2][LINE], each phase's tasks taken and done, must be 0.
 * Defines  as cores.cl (LANES 16, QTYPE, INT8) and attend_cores.cl (QUERIES 1)
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"

#define QLANES LANES
#include "common/quants.clh"
#include "generate/shared.clh"

#define UNROLL _Pragma("unroll")
#include "generate/heads.clh"
#include "generate/rows.clh"

/* A product of a phase. The pointers are not `restrict`, because a work-item reads memory that other work-items write
 * during the same launch. */
typedef struct matrix {
    __global const uchar *w;
    uint groups, columns;
    product p;
} matrix;

#if defined(__SSE2__) && defined(__has_builtin) && !defined(__SPIR__) && !defined(__SPIR64__)
#if __has_builtin(__builtin_ia32_pause)
#define WAIT_A_LITTLE __builtin_ia32_pause()
#endif
#endif
#ifndef WAIT_A_LITTLE
#define WAIT_A_LITTLE
#endif

static uint take(volatile __global uint *turn)
{
    return atomic_inc(turn);
}

static void done(volatile __global uint *turn)
{
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_inc(turn + CLV_LM_LINE);
}

static void wait_for(volatile __global uint *turn, uint tasks)
{
    while (turn[CLV_LM_LINE] < tasks) WAIT_A_LITTLE;
    (void)atomic_add(turn + CLV_LM_LINE, 0u);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
}

/* Does a task of a product whose input has been prepared in `x`. */
static void do_rows(const matrix *m, uint task, uint tasks, __global const float *x,
                    __global float *out)
{
    const uint first = (uint)((ulong)m->groups * task / tasks);
    const uint end = (uint)((ulong)m->groups * (task + 1) / tasks);
    product_rows(&m->p, m->w, first, end, x, x + m->p.blocks * QBLOCK, out);
}

static void make_plain(__global const float *in, uint columns, uint padded, __global float *x)
{
    for (uint k = 0; k < padded; k += LANES)
        lanes_put(x_at(in, k, columns), x + k);
}

static void make_joined(__global const float *seen, uint parts, uint heads, uint padded,
                        __global float *x)
{
    make_parts(seen, parts, heads, DH, x);
    for (uint k = heads * DH; k < padded; ++k)
        x[k] = 0.0f;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_cores_layer(__global const uchar *w, ulong qkv_offset, ulong out_offset, ulong gate_offset,
                ulong second, ulong down_offset, uint qkv_groups, uint width, uint inner,
                ulong attn_norm, ulong ffn_norm, ulong q_norm, ulong k_norm, ulong qkv_bias,
                uint has_qkv_bias, ulong out_bias, uint has_out_bias, float eps,
                __global float *x, __global float *qkv, __global float *seen,
                __global float *gated, __global float *scratch, ulong item,
                __global const float *angles, uint first, uint kv_heads, uint parts, float scale,
                ulong k_at, ulong v_at, ulong room, __global kept *keys, __global kept *values,
                volatile __global uint *turn, ulong turn_offset)
{
    __global const float *floats = (__global const float *)w;
    __global float *mine = scratch + get_global_id(0) * item;
    const uint wide = (width + QBLOCK - 1) / QBLOCK, own = kv_heads * GROUP * DH;
    const uint across_heads = (own + QBLOCK - 1) / QBLOCK, deep = (inner + QBLOCK - 1) / QBLOCK;
    const uint most_tasks = 8 * get_global_size(0);
    const seeing s = { .qkv = qkv, .angles = angles, .weights = floats, .k_at = k_at,
                       .v_at = v_at, .q_norm = q_norm, .k_norm = k_norm, .room = room,
                       .eps = eps, .scale = scale, .first = first, .tokens = 1, .keeps = 1,
                       .parts = parts, .kv_heads = kv_heads };
    const matrix of_phase[CLV_LM_PHASES] = {
        { w + qkv_offset, qkv_groups, width,
          { wide, 0, floats + qkv_bias, has_qkv_bias, CLV_LM_PLUS } },
        { w, kv_heads * parts, 0, { 0, 0, floats, 0, 0 } },
        { w + out_offset, (width + 15) / 16, own,
          { across_heads, 0, floats + out_bias, has_out_bias, CLV_LM_ADDS } },
        { w + gate_offset, (inner + 15) / 16, width, { wide, second, floats, 0, CLV_LM_GATES } },
        { w + down_offset, (width + 15) / 16, inner, { deep, 0, floats, 0, CLV_LM_ADDS } },
    };
    turn += turn_offset;
    for (uint phase = 0; phase < CLV_LM_PHASES; ++phase, turn += 2 * CLV_LM_LINE) {
        const matrix m = of_phase[phase];
        const bool attends = phase == 1;
        const uint tasks = attends ? m.groups : min(most_tasks, m.groups);
        const uint padded = m.p.blocks * QBLOCK;
        __global float *y = phase == 0 ? qkv : phase == 3 ? gated : x;
        bool ready = false;
        for (uint task; (task = take(turn)) < tasks; done(turn)) {
            if (attends) {
                see(&s, task % kv_heads, 0, task / kv_heads, keys, values, seen);
                continue;
            }
            if (!ready) {
                if (phase == 0 || phase == 3)
                    make_norm(x, floats + (phase ? ffn_norm : attn_norm), eps, width, padded, mine);
                else if (phase == 2 && parts > 1)
                    make_joined(seen, parts, kv_heads * GROUP, padded, mine);
                else
                    make_plain(phase == 2 ? seen : gated, m.columns, padded, mine);
                make_sums(mine, padded, mine + padded);
            }
            ready = true;
            do_rows(&m, task, tasks, mine, y);
        }
        if (phase + 1 < CLV_LM_PHASES) wait_for(turn, tasks);
    }
}
