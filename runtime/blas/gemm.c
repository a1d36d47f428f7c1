/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the kernel forms that a device has for products, and passes each product on to its provider. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/cpu.h"
#include "cl/common/shared.clh"
#include "probe/judge/matrix.h"
#include "runtime/device/device.h"

#include <math.h>

_Static_assert((int)CLV_ACTIVATION_NONE == CLV_ACT_NONE &&
                   (int)CLV_ACTIVATION_GELU == CLV_ACT_GELU &&
                   (int)CLV_ACTIVATION_GELU_TANH == CLV_ACT_GELU_TANH &&
                   (int)CLV_ACTIVATION_SILU == CLV_ACT_SILU &&
                   (int)CLV_ACTIVATION_TANH == CLV_ACT_TANH &&
                   (int)CLV_ACTIVATION_RELU == CLV_ACT_RELU,
               "kernels count activations as cleave/blas.h does");

/* A tile of 8 x 48 elements needs 32 registers of 16 lanes; a tile of 6 x 16 needs only 16 registers of 8 lanes. */
#define WIDE_ROWS                                                                      \
    {                                                                                  \
        CLV_GEMM_ROWS, "rows8x48", .lanes = 16, .rows = 8, .vectors = 3, .block = 384, \
                                   .fetch = true                                       \
    }
#define NARROW_ROWS                                                                  \
    {                                                                                \
        CLV_GEMM_ROWS, "rows6x16", .lanes = 8, .rows = 6, .vectors = 2, .block = 384 \
    }
#define WIDE_DIRECT                                           \
    {                                                         \
        CLV_GEMM_DIRECT, "direct8x32", .lanes = 16, .rows = 8 \
    }
#define NARROW_DIRECT                                        \
    {                                                        \
        CLV_GEMM_DIRECT, "direct6x16", .lanes = 8, .rows = 6 \
    }

/* The first form of a provider is used where no form may be timed. */
static const clv_gemm_form for_cores[] = { WIDE_ROWS, NARROW_ROWS, WIDE_DIRECT, NARROW_DIRECT };
static const clv_gemm_form for_narrow_cores[] = { NARROW_ROWS, WIDE_ROWS, NARROW_DIRECT,
                                                  WIDE_DIRECT };
#define TILE64                                                                \
    {                                                                         \
        CLV_GEMM_TILE, "tile64", .tx = 8, .ty = 16, .rm = 4, .rn = 8, .kt = 8 \
    }
#define TILE32                                                               \
    {                                                                        \
        CLV_GEMM_TILE, "tile32", .tx = 8, .ty = 8, .rm = 4, .rn = 4, .kt = 8 \
    }
static const clv_gemm_form for_gpus[] = {
    TILE64,
    { CLV_GEMM_TILE, "tile128", .tx = 16, .ty = 16, .rm = 8, .rn = 8, .kt = 8 },
    TILE32,
};
static const clv_gemm_form for_few_registers[] = {
    TILE64,
    { CLV_GEMM_TILE, "tile128x64", .tx = 16, .ty = 16, .rm = 8, .rn = 4, .kt = 8 },
    TILE32,
};
/* Tiles of halves. Their second form needs as many registers as tile128 and tile128x64. */
static const clv_gemm_form halves_for_gpus[] = {
    { CLV_GEMM_TILE, "tile64-fp16", .halves = true, .tx = 8, .ty = 16, .rm = 4, .rn = 8, .kt = 8 },
    { CLV_GEMM_TILE, "tile128-fp16", .halves = true, .tx = 16, .ty = 16, .rm = 8, .rn = 8,
      .kt = 8 },
};
static const clv_gemm_form halves_for_few_registers[] = {
    { CLV_GEMM_TILE, "tile64-fp16", .halves = true, .tx = 8, .ty = 16, .rm = 4, .rn = 8, .kt = 8 },
    { CLV_GEMM_TILE, "tile128x64-fp16", .halves = true, .tx = 16, .ty = 16, .rm = 8, .rn = 4,
      .kt = 8 },
};
/* Tiles of 128 x 64 and 64 x 64 for sub-groups of 8 and of 16. The tiles of halves compute other products. */
#define MATRIX(text, lanes, rows, columns)                                                   \
    {                                                                                        \
        CLV_GEMM_MATRIX, text, .halves = true, .tx = 8, .ty = 16, .rm = 4, .rn = 8, .kt = 8, \
                               .sub_group = lanes, .down = rows, .across = columns           \
    }
static const clv_gemm_form for_matrix_units[][2] = {
    { MATRIX("matrix128", 8, 8, 4), MATRIX("matrix64", 8, 4, 4) },
    { MATRIX("matrix128", 16, 8, 2), MATRIX("matrix64", 16, 4, 2) },
};

static const clv_gemm_form for_rasterisers[] = {
    /* 8 work-items form a vector; software rasterisers take work-groups of 32 */
    { CLV_GEMM_ITEMS, "items4x8", .tx = 8, .ty = 4, .rm = 4, .rn = 8, .kt = 1 },
};

typedef struct forms {
    const clv_gemm_form *forms;
    size_t count;
} forms;

static forms forms_of(const clv_probe_device *facts)
{
    switch (facts->device_class) {
    case CLV_CLASS_CPU:
        return clv_cpu_has_avx2_alone() ? (forms){ for_narrow_cores, CLV_LEN(for_narrow_cores) }
                                        : (forms){ for_cores, CLV_LEN(for_cores) };
    case CLV_CLASS_SOFTWARE:
        return (forms){ for_rasterisers, CLV_LEN(for_rasterisers) };
    default: /* a device that takes no groups of 256 has only the last form */
        if (facts->max_work_group < 256) return (forms){ for_gpus + 2, 1 };
        return facts->flags.few_registers ? (forms){ for_few_registers, CLV_LEN(for_few_registers) }
                                          : (forms){ for_gpus, CLV_LEN(for_gpus) };
    }
}

/* The form of CLBlast, which follows our own forms if CLBlast is installed and the device is a GPU. */
static const clv_gemm_form clblast = { CLV_GEMM_CLBLAST, "clblast", .tx = 8, .ty = 16,
                                       .rm = 4,          .rn = 8,   .kt = 8 };

/* Returns whether a device is a GPU that takes work-groups of 256. */
static bool takes_tiles(const clv_probe_device *facts)
{
    return facts->device_class != CLV_CLASS_CPU && facts->device_class != CLV_CLASS_SOFTWARE &&
           facts->max_work_group >= 256;
}

static bool takes_clblast(const clv_probe_device *facts)
{
    return takes_tiles(facts) && clv_gemm_clblast_is_here();
}

size_t clv_gemm_form_count(const clv_device *device)
{
    const clv_probe_device *facts = clv_device_facts(device);
    return forms_of(facts).count + takes_clblast(facts);
}

/* Returns the multiply-adds that a card surely does in a short launch: a compute unit of a GPU has 64 lanes or more, of
 * which a slow kernel keeps a quarter busy. */
static double short_work(const clv_probe_device *facts)
{
    const double clock = facts->clock_mhz > 0 ? 1e6 * facts->clock_mhz : 1e9;
    return CLV_SHORT_LAUNCH_S * clock * CLV_MAX(facts->compute_units, 1u) * 64 / 4;
}

/* Fills in what a form depends on its device for. */
static clv_gemm_form on_device(const clv_device *device, clv_gemm_form form)
{
    const clv_probe_device *facts = clv_device_facts(device);
    form.units = CLV_MAX(facts->compute_units, 1u);
    form.most_terms = SIZE_MAX;
    form.most_work = facts->flags.short_launches ? short_work(facts) : INFINITY;
    /* a term is an unrolled loop turn plus its share of the loads: stay well below the limit */
    if (device->loop_limit != CLV_UNKNOWN && form.kt)
        form.most_terms = CLV_MAX((size_t)device->loop_limit / 16 / form.kt, (size_t)1) * form.kt;
    return form;
}

clv_gemm_form clv_gemm_form_of(const clv_device *device, size_t nth)
{
    const forms own = forms_of(clv_device_facts(device));
    return on_device(device, nth < own.count ? own.forms[nth] : clblast);
}

size_t clv_gemm_halves_forms(const clv_device *device, clv_gemm_form out[CLV_GEMM_MOST_HALVES])
{
    const clv_probe_device *facts = clv_device_facts(device);
    const bool is_gpu = takes_tiles(facts);
    const size_t own = clv_gemm_form_count(device), lanes = is_gpu ? clv_matrix_lanes(facts) : 0;
    const clv_gemm_form *const tiles =
        facts->flags.few_registers ? halves_for_few_registers : halves_for_gpus;
    size_t count = 0;
    for (size_t i = 0; i < 2 && lanes; ++i)
        out[count++] = on_device(device, for_matrix_units[lanes == 16][i]);
    for (size_t i = 0; i < 2 && is_gpu && facts->fp16; ++i)
        out[count++] = on_device(device, tiles[i]);
    for (size_t i = 0; i < own && count && count < CLV_GEMM_MOST_HALVES; ++i) {
        out[count] = clv_gemm_form_of(device, i);
        count += out[count].provider == CLV_GEMM_TILE;
    }
    return count;
}

const char *clv_gemm_halves_say(const clv_gemm_form *form)
{
    return form->provider == CLV_GEMM_MATRIX ? "fp16 x fp16 by matrix units"
           : form->halves                    ? "fp16 x fp16"
                                             : "fp32 x fp16";
}

size_t clv_gemm_scratch(const clv_gemm_form *form, const clv_gemm *gemm)
{
    const size_t floats = clv_gemm_is_few(form, gemm)         ? clv_gemm_few_scratch(form, gemm)
                          : form->provider == CLV_GEMM_ROWS   ? clv_gemm_rows_scratch(form, gemm)
                          : form->provider == CLV_GEMM_DIRECT ? 0
                                                              : clv_gemm_tile_scratch(gemm, form);
    return CLV_MAX(floats, (size_t)1);
}

/* Returns how many rows one launch computes: all, unless that may take too long. */
static size_t rows_at_once(const clv_gemm_form *form, const clv_gemm *gemm)
{
    enum { BLOCK = 128 };
    const double row = (double)gemm->n * (double)gemm->k * (double)CLV_MAX(gemm->batch, (size_t)1);
    if ((double)gemm->m * row <= form->most_work || gemm->a_packed) return gemm->m;
    return CLV_MAX((size_t)(form->most_work / row) / BLOCK, (size_t)1) * BLOCK;
}

static clv_gemm rows_of(const clv_gemm *gemm, size_t first, size_t count)
{
    clv_gemm part = *gemm;
    part.m = count;
    part.a.offset += first * part.a.row;
    part.c.offset += first * part.c.row;
    part.add.offset += first * part.add.row;
    return part;
}

static clv_status enqueue(clv_queue *queue, const clv_gemm_form *form, const clv_gemm *gemm,
                          clv_buffer *scratch, clv_event **done)
{
    if (form->provider == CLV_GEMM_ROWS)
        return clv_gemm_rows_enqueue(queue, form, gemm, scratch, done);
    if (form->provider == CLV_GEMM_DIRECT) return clv_gemm_direct_enqueue(queue, form, gemm, done);
    if (form->provider == CLV_GEMM_CLBLAST && !gemm->b_half && clv_gemm_clblast_can(gemm))
        return clv_gemm_clblast_enqueue(queue, gemm, done);
    return clv_gemm_tile_enqueue(queue, form, gemm, scratch, done);
}

clv_status clv_gemm_enqueue(clv_queue *queue, const clv_gemm_form *form, const clv_gemm *gemm,
                            clv_buffer *scratch, clv_event **done)
{
    if (done) *done = NULL;
    if (gemm->m > UINT32_MAX || gemm->n > UINT32_MAX || gemm->k > UINT32_MAX)
        return clv_fail(CLV_E_SHAPE,
                        "gemm: the extents are %zu x %zu x %zu, but each must be below 2^32",
                        gemm->m, gemm->n, gemm->k);
    if (gemm->c.col != 1)
        return clv_fail(CLV_E_SHAPE,
                        "gemm: the columns of C are %zu apart, but they must be 1 apart",
                        gemm->c.col);
    if ((gemm->a_packed || gemm->b_packed || gemm->b_blocks) && form->provider != CLV_GEMM_ROWS)
        return clv_fail(CLV_E_ARGUMENT, "gemm: %s does not support packed matrices", form->name);
    if (!gemm->m || !gemm->n) return CLV_OK;
    if (clv_gemm_is_few(form, gemm)) return clv_gemm_few_enqueue(queue, form, gemm, scratch, done);
    const size_t rows = rows_at_once(form, gemm);
    for (size_t row = 0; row < gemm->m; row += rows) {
        const clv_gemm part = rows_of(gemm, row, CLV_MIN(rows, gemm->m - row));
        CLV_TRY(enqueue(queue, form, &part, scratch, row + rows < gemm->m ? NULL : done));
    }
    return CLV_OK;
}
