/* SPDX-License-Identifier: Apache-2.0 */
/* One PACO kernel by itself, in the geometry that the operation would give it. */
#include "stage.h"

#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

const stage_form stage_forms[] = {
    { "rows16", "rows16", CLV_CLASS_CPU },
    { "rows8", "rows8", CLV_CLASS_CPU },
    { "items", "items", CLV_CLASS_DISCRETE_GPU },
    { "items of a rasteriser", "items", CLV_CLASS_SOFTWARE },
    { "group", "group", CLV_CLASS_DISCRETE_GPU },
    { NULL, NULL, CLV_CLASS_CPU },
};

bool stage_is_main(const stage_form *form)
{
    return !strcmp(form->name, "rows16") || !strcmp(form->name, "group");
}

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
    if (device->tiny && s->f.lanes == 1) { /* half as many work-items that only fill up a row */
        s->f.local = 32;
        if (!s->f.in_groups) s->f.tile = 32;
        const size_t padding = s->f.pitch - s->f.width;
        s->f.width = clv_round_up(s->plan->in.width, s->f.local);
        s->f.pitch = s->f.width + padding;
    }
    s->c = clv_paco_chunk_of(s->plan, shape->first,
                             shape->rows ? shape->rows : clv_paco_units(s->plan) - shape->first);
}

void stage_close(stage *s)
{
    clv_paco_plan_free(s->plan);
    test_cube_free(&s->cube);
}

/* Every form on every device, but: a rasteriser takes work-groups of 32 at most, so it has forms of
 * its own for cards; and its compiler takes half a minute for 16 lanes. No device of its kind is
 * given lanes, which is a reason to leave them out where 8 take minutes. The brief run has the usual
 * number of lanes only: other numbers are the same source. */
static bool has_form(const test_device *device, const stage_form *form)
{
    size_t usual = 0;
    if (form->device_class != CLV_CLASS_CPU)
        return device->slow == (form->device_class == CLV_CLASS_SOFTWARE);
    if (test_brief())
        return clv_paco_usual(device->device, &usual) &&
               strcmp(form->variant, clv_paco_variants(device->device)[usual]) == 0;
    return !device->slow || strcmp(form->variant, "rows16") != 0;
}

void stage_each(const char *wanted, void (*claim)(test_device *device, const stage_form *form))
{
    for (size_t i = 0; i < test_device_count(); ++i)
        for (const stage_form *form = stage_forms; form->name; ++form) {
            test_device device;
            if (!strstr(form->name, wanted)) continue;
            test_device_open(i, NULL, &device);
            if (!test_left_out(&device, !has_form(&device, form), "%s: not a form for it",
                               form->name)) {
                const double started = clv_now();
                claim(&device, form);
                printf("%s: %s in %.1f s\n", device.name, form->name, clv_now() - started);
                fflush(stdout);
            }
            test_device_close(&device);
        }
}

void stage_each_item_form(void (*claim)(test_device *device, const stage_form *form))
{
    stage_each("rows", claim);
    stage_each("items", claim);
}

bool stage_is_too_much(const test_device *device, size_t samples)
{
    return test_left_out(device, device->tiny && samples > 2100, "a case of %zu samples", samples);
}

void stage_launch_as(const stage *s, clv_paco_kernel kernel, const size_t global[3], size_t local,
                     const clv_arg *args, size_t count)
{
    clv_launch launch = clv_paco_describe(s->plan, &s->f, kernel);
    for (size_t d = 0; d < 3; ++d)
        launch.global[d] = global[d], launch.local[d] = d ? 1 : local;
    EXPECT_OK(clv_launch_enqueue(s->device->queue, &launch, args, count, NULL));
    EXPECT_OK(clv_queue_wait(s->device->queue));
}

void stage_launch(const stage *s, clv_paco_kernel kernel, size_t x, size_t y, size_t z,
                  const clv_arg *args, size_t count)
{
    const size_t global[3] = { clv_round_up(x, s->f.local), y, z };
    stage_launch_as(s, kernel, global, s->f.local, args, count);
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
