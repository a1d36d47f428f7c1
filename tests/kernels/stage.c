/* SPDX-License-Identifier: Apache-2.0 */
/* One PACO kernel by itself, in the geometry that the operation would give it. */
#include "stage.h"

#include "test.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

const stage_form stage_forms[] = {
    { "rows16", "rows16", CLV_CLASS_CPU },
    { "rows8", "rows8", CLV_CLASS_CPU },
    { "items", "items", CLV_CLASS_DISCRETE_GPU },
    { "items of a rasteriser", "items", CLV_CLASS_SOFTWARE },
    { "group", "group", CLV_CLASS_DISCRETE_GPU },
    { "group of a rasteriser", "group", CLV_CLASS_SOFTWARE },
    { NULL, NULL, CLV_CLASS_CPU },
};

static size_t variant_of(const clv_device *device, const char *name)
{
    const char *const *names = clv_paco_variants(device);
    size_t i = 0;
    while (names[i] && strcmp(names[i], name) != 0)
        ++i;
    assert_non_null(names[i]);
    return i;
}

void stage_open(stage *s, test_device *device, const stage_form *form, const stage_shape *shape)
{
    *s = (stage){ .device = device, .form = form, .cube = test_cube_make(&shape->cube) };
    test_device_disguise(device, form->device_class);
    EXPECT_OK(clv_paco_plan_create(&s->cube.in, &shape->options, &s->plan));
    s->f = clv_paco_family_of(s->plan, device->device, variant_of(device->device, form->variant));
    s->c = clv_paco_chunk_of(s->plan, shape->first,
                             shape->rows ? shape->rows : clv_paco_units(s->plan) - shape->first);
}

void stage_close(stage *s)
{
    clv_paco_plan_free(s->plan);
    test_cube_free(&s->cube);
}

void stage_each(const char *wanted, void (*claim)(test_device *device, const stage_form *form))
{
    for (size_t i = 0; i < test_device_count(); ++i)
        for (const stage_form *form = stage_forms; form->name; ++form) {
            test_device device;
            if (!strstr(form->name, wanted)) continue;
            test_device_open(i, NULL, &device);
            /* a rasteriser takes work-groups of 32 at most, less than a card's forms have */
            if (!device.slow || form->device_class != CLV_CLASS_DISCRETE_GPU) claim(&device, form);
            test_device_close(&device);
        }
}

void stage_launch_as(const stage *s, const clv_cl_source *source, const char *kernel,
                     const size_t global[3], size_t local, const clv_arg *args, size_t count)
{
    const clv_paco_plan *plan = s->plan;
    const clv_paco_family *f = &s->f;
    const clv_launch launch = {
        .source = source,
        .kernel = kernel,
        .defines = { { "LANES", (long)f->lanes },
                     { "TILE", (long)f->tile },
                     { "P", (long)plan->pixels },
                     { "Q", (long)plan->basis.vectors },
                     { "MA", (long)plan->basis.terms_a },
                     { "MB", (long)plan->basis.terms_b },
                     { "SHIFTED", plan->shifted },
                     { "VIP", plan->vip },
                     { "LAGS", (long)f->lags_padded },
                     { "LAG_BLOCK", (long)f->lag_block },
                     { "FRAME_BLOCK", (long)f->frame_block },
                     { "MAP_ROWS", (long)f->map_rows },
                     { "TEAM", (long)f->team },
                     { "TEAMS", (long)f->teams } },
        .global = { global[0], global[1], global[2] },
        .local = { local, 1, 1 },
    };
    EXPECT_OK(clv_launch_enqueue(s->device->queue, &launch, args, count, NULL));
    EXPECT_OK(clv_queue_wait(s->device->queue));
}

void stage_launch(const stage *s, const clv_cl_source *source, const char *kernel, size_t x,
                  size_t y, size_t z, const clv_arg *args, size_t count)
{
    const size_t global[3] = { clv_round_up(x, s->f.local), y, z };
    stage_launch_as(s, source, kernel, global, s->f.local, args, count);
}

int32_t stage_step(const stage *s, clv_offset offset)
{
    return offset.dy * (int32_t)(s->plan->in.frames * s->f.pitch) + offset.dx;
}

int32_t *stage_entries(const stage *s)
{
    const clv_paco_plan *plan = s->plan;
    int32_t *entry = clv_alloc(plan->pixels * (plan->pixels + 1) / 2, sizeof *entry), *at = entry;
    assert_non_null(entry);
    for (size_t i = 0; i < plan->pixels; ++i)
        for (size_t j = 0; j <= i; ++j) {
            const clv_offset a = plan->offset[i], b = plan->offset[j];
            size_t lag = 0;
            while (plan->lag[lag].dy != a.dy - b.dy || plan->lag[lag].dx != a.dx - b.dx)
                assert_true(++lag < plan->lags);
            const size_t row = (size_t)(b.dy + (int)plan->radius);
            *at++ = (int32_t)((row * s->f.lags_padded + lag) * s->f.pitch) + b.dx;
        }
    return entry;
}

size_t stage_kept(const stage *s, size_t row, size_t x, size_t e, size_t count)
{
    const size_t tile = s->f.tile, tiles = s->f.width / tile;
    return ((row * tiles + x / tile) * count + e) * tile + x % tile;
}

clv_arg stage_u32(size_t value)
{
    return clv_arg_u32((uint32_t)value);
}
