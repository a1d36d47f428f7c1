/* SPDX-License-Identifier: Apache-2.0 */
/* Tests cl/patch/accumulate.cl: it sums integers, so every bit of the result is known. */
#include "stage.h"
#include "test.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* The kernel's arithmetic: a multiple of 2^-10 and a multiple of 2^-62. */
static void add_exactly(float value, int64_t *high, int64_t *low)
{
    const float coarse = rintf(value * 0x1p10f);
    *high += (int64_t)coarse;
    *low += (int64_t)rintf(fmaf(coarse, -0x1p-10f, value) * 0x1p62f);
}

typedef struct maps {
    int64_t *sums;   /* [4][map rows][map pitch] */
    uint32_t *count; /* [map rows][map pitch] */
    size_t positions;
} maps;

static maps make_maps(const stage *s)
{
    maps m = { .positions = s->c.map_rows * s->f.width };
    m.sums = clv_zalloc(4 * m.positions, sizeof *m.sums);
    m.count = clv_zalloc(m.positions, sizeof *m.count);
    assert_true(m.sums && m.count);
    return m;
}

static size_t slots_of(const stage *s)
{
    return s->plan->shifted ? 2 : 1;
}

/* Computes the sums from the forward rotation alone, position by position. */
static maps expect(const stage *s, const float *hits)
{
    const clv_paco_plan *plan = s->plan;
    const int64_t row0 = (int64_t)s->c.centre0, row1 = row0 + (int64_t)s->c.centre_rows;
    const int64_t margin = (int64_t)plan->margin, right = (int64_t)plan->in.width - margin;
    maps m = make_maps(s);
    for (size_t at = 0; at < m.positions; ++at)
        for (size_t l = 0; l < plan->in.frames; ++l) {
            const int64_t y = (int64_t)(s->c.map0 + at / s->f.width),
                          x = (int64_t)(at % s->f.width);
            const clv_rotation *r = &plan->turn[l];
            const int64_t row = (y * r->c - x * r->s + r->row0) >> 32;
            const int64_t col = (x * r->c + y * r->s + r->col0) >> 32;
            if (row < row0 || row >= row1 || col < margin || col >= right) continue;
            const size_t slot = plan->shifted ? (size_t)((y + x) & 1) : 0;
            const float *hit =
                hits +
                ((((size_t)(row - row0) * plan->in.frames + l) * slots_of(s) + slot) * s->f.width +
                 (size_t)col) *
                    2;
            if (!isfinite(hit[0])) continue;
            add_exactly(hit[0] * r->weight, &m.sums[at], &m.sums[m.positions + at]);
            add_exactly(hit[1] * r->gain, &m.sums[2 * m.positions + at],
                        &m.sums[3 * m.positions + at]);
            ++m.count[at];
        }
    return m;
}

/* Values of all sizes that the sums can hold; some patches are unusable. */
static float *make_hits(const stage *s, size_t *floats, uint64_t seed)
{
    *floats = s->c.centre_rows * s->plan->in.frames * slots_of(s) * s->f.width * 2;
    float *hits = clv_alloc(*floats, sizeof *hits);
    assert_non_null(hits);
    for (size_t i = 0; i < *floats; i += 2) {
        const double size = exp2(test_uniform(&seed, -40, 38));
        hits[i] = (float)(size * test_uniform(&seed, 0.5, 1));
        hits[i + 1] = (float)(size * test_uniform(&seed, -1, 1));
        if (test_random(&seed) % 50 == 0) hits[i] = hits[i + 1] = NAN;
    }
    return hits;
}

static void launch(const stage *s, const test_array *hits, const test_array *sums,
                   const test_array *count, size_t from, size_t to)
{
    const clv_paco_plan *plan = s->plan;
    test_array turn = test_array_from(s->device, plan->turn, plan->in.frames * sizeof *plan->turn);
    const clv_arg args[] = {
        clv_arg_buffer(hits->buffer),
        clv_arg_buffer(sums->buffer),
        clv_arg_buffer(count->buffer),
        clv_arg_buffer(turn.buffer),
        stage_u32(s->c.centre_rows),
        stage_u32(s->c.centre0),
        stage_u32(plan->in.frames),
        stage_u32(from),
        stage_u32(to),
        stage_u32(plan->in.width),
        stage_u32(s->f.pitch),
        stage_u32(plan->margin),
        stage_u32(s->c.map0),
        stage_u32(s->c.map_rows),
        stage_u32(s->f.width),
        stage_u32(from > 0),
    };
    stage_launch(s, CLV_PACO_ACCUMULATE, s->f.width / s->f.lanes,
                 (s->c.map_rows + s->f.map_rows - 1) / s->f.map_rows, 0, args, CLV_LEN(args));
    test_array_free(&turn);
}

static void run_and_check(const stage *s, uint64_t seed, size_t step)
{
    size_t floats;
    float *values = make_hits(s, &floats, seed);
    maps want = expect(s, values);
    test_array hits = test_array_from(s->device, values, floats * sizeof *values);
    test_array sums = test_array_new(s->device, 4 * want.positions * sizeof *want.sums);
    test_array count = test_array_new(s->device, want.positions * sizeof *want.count);
    for (size_t l = 0; l < s->plan->in.frames; l += step)
        launch(s, &hits, &sums, &count, l, CLV_MIN(l + step, s->plan->in.frames));
    test_array_read(&sums);
    test_array_read(&count);
    assert_memory_equal(want.count, count.host, count.bytes);
    assert_memory_equal(want.sums, sums.host, sums.bytes);
    test_array_free(&hits), test_array_free(&sums), test_array_free(&count);
    clv_free(want.sums), clv_free(want.count), clv_free(values);
}

static const struct {
    size_t frames, height, width, first, rows;
    clv_psf_mode mode;
    clv_rounding rounding;
    double turn, first_angle, cx, cy;
} cases[] = {
    { 2, 5, 5, 0, 0, CLV_PSF_SHIFT, CLV_ROUND_NEAREST, 90, 0, 2, 2 },
    { 7, 20, 17, 3, 5, CLV_PSF_SHIFT, CLV_ROUND_NEAREST, 300, -17, 7.3, 9.8 },
    { 3, 9, 17, 0, 0, CLV_PSF_FIXED, CLV_ROUND_NEAREST, 75, 45, 8, 4 },
    { 7, 20, 65, 0, 0, CLV_PSF_FIXED, CLV_ROUND_NEAREST, 75, 45, 31.5, 10 },
    { 9, 33, 30, 11, 7, CLV_PSF_SHIFT, CLV_ROUND_TRUNC, -200, 5, 14, 17.25 },
    { 9, 21, 63, 2, 4, CLV_PSF_FIXED, CLV_ROUND_TRUNC, 40, 180, 0, 20 },
};

static void check_form(test_device *device, const stage_form *form)
{
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        if (stage_is_too_much(device, cases[i].frames * cases[i].height * cases[i].width)) continue;
        const stage_shape shape = {
            .cube = { .seed = 1,
                      .frames = cases[i].frames,
                      .height = cases[i].height,
                      .width = cases[i].width,
                      .turn = cases[i].turn,
                      .first_angle = cases[i].first_angle },
            .options = { .size = sizeof(clv_paco_options),
                         .radius = 2,
                         .psf_mode = cases[i].mode,
                         .rounding = cases[i].rounding,
                         .centre_given = true,
                         .centre_x = cases[i].cx,
                         .centre_y = cases[i].cy },
            .first = cases[i].first,
            .rows = cases[i].rows,
        };
        stage s;
        stage_open(&s, device, form, &shape);
        run_and_check(&s, 200 + i, cases[i].frames);
        run_and_check(&s, 300 + i, 2); /* in pieces, for devices that count loop turns */
        stage_close(&s);
    }
}

static void sums_are_exact(void **state)
{
    (void)state;
    stage_each_item_form(check_form);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sums_are_exact) };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("paco_accumulate", tests, NULL, NULL);
}
