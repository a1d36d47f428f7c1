/* SPDX-License-Identifier: Apache-2.0 */
/* cl/patch/lag_covariance.cl against float64: V[lag][u] = weight * sum_t D[t,u] D[t,u+lag]. */
#include "stage.h"
#include "test.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { PAD = 16 };

/* Any numbers inside the width, zeros around, as the kernel before leaves them. */
static float *make_data(const stage *s, uint64_t seed)
{
    const size_t pitch = s->f.pitch, count = s->c.band_rows * s->plan->in.frames * pitch;
    float *data = clv_zalloc(count, sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < count; ++i) {
        const size_t column = i % pitch;
        if (column >= PAD && column < PAD + s->plan->in.width)
            data[i] = (float)test_uniform(&seed, -2, 2);
    }
    return data;
}

/* Numbers of lag `k` at band row `row`: a rounding for each product and sum, one for the weight. */
static void expect_row(const stage *s, const float *data, size_t row, size_t k, double weight,
                       double *want, double *allowed)
{
    const size_t pitch = s->f.pitch, frames = s->plan->in.frames;
    const clv_offset lag = s->plan->lag[k];
    memset(want, 0, pitch * sizeof *want);
    memset(allowed, 0, pitch * sizeof *allowed);
    for (size_t p = PAD; p < pitch - PAD; ++p) {
        double sum = 0, sizes = 0;
        for (size_t l = 0; l < frames; ++l) {
            const float *here = data + (row * frames + l) * pitch + p;
            const double product = (double)here[0] * here[stage_step(s, lag)];
            sum += product;
            sizes += fabs(product);
        }
        want[p] = sum * weight;
        allowed[p] = 0x1p-24 * (double)(frames + 2) * sizes * weight;
    }
}

static void check(const stage *s, const float *data, const float *V, double weight)
{
    const size_t pitch = s->f.pitch;
    double *want = clv_alloc(2 * pitch, sizeof *want);
    assert_non_null(want);
    for (size_t row = 0; row < s->c.band_rows; ++row)
        for (size_t k = 0; k < s->plan->lags; ++k) {
            if (row + (size_t)s->plan->lag[k].dy >= s->c.band_rows) continue; /* in no patch */
            expect_row(s, data, row, k, weight, want, want + pitch);
            test_expect_within("V", want, V + (row * s->f.lags_padded + k) * pitch, want + pitch,
                               pitch);
        }
    clv_free(want);
}

static void launch(const stage *s, const test_array *D, const test_array *V, float weight,
                   size_t from, size_t to)
{
    int32_t *shift = clv_alloc(s->f.lags_padded, sizeof *shift);
    uint8_t *row = clv_alloc(s->f.lags_padded, 1);
    assert_true(shift && row);
    for (size_t k = 0; k < s->f.lags_padded; ++k) {
        const clv_offset lag = s->plan->lag[CLV_MIN(k, s->plan->lags - 1)];
        shift[k] = stage_step(s, lag), row[k] = (uint8_t)lag.dy;
    }
    test_array shifts = test_array_from(s->device, shift, s->f.lags_padded * sizeof *shift);
    test_array rows = test_array_from(s->device, row, s->f.lags_padded);
    const clv_arg args[] = {
        clv_arg_buffer(D->buffer),
        clv_arg_buffer(V->buffer),
        clv_arg_buffer(shifts.buffer),
        clv_arg_buffer(rows.buffer),
        stage_u32(s->c.band_rows),
        stage_u32(s->plan->in.frames),
        stage_u32(s->f.pitch),
        clv_arg_f32(weight),
        stage_u32(from),
        stage_u32(to),
    };
    stage_launch(s, CLV_PACO_LAG_COVARIANCE, s->f.pitch / s->f.lanes, s->c.band_rows, 0, args,
                 CLV_LEN(args));
    test_array_free(&shifts), test_array_free(&rows);
    clv_free(shift), clv_free(row);
}

static const struct {
    unsigned radius;
    size_t frames, height, width, first, rows;
    bool vip;
} cases[] = {
    { 2, 2, 5, 5, 0, 0, false },    /* one patch */
    { 2, 9, 12, 17, 3, 2, true },   /* a band inside the frame; half the covariance */
    { 4, 7, 10, 63, 0, 0, false },  /* one less than a work-group */
    { 4, 16, 10, 65, 1, 1, false }, /* one more */
    { 6, 5, 14, 16, 0, 0, false },  /* the largest distances */
};

static void check_form(test_device *device, const stage_form *form)
{
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        if (test_left_out(device, device->slow && cases[i].radius > 2,
                          "radius %u: compiles for minutes", cases[i].radius))
            continue;
        if (stage_is_too_much(device, cases[i].frames * cases[i].height * cases[i].width)) continue;
        const stage_shape shape = {
            .cube = { .seed = 1, cases[i].frames, cases[i].height, cases[i].width },
            .options = { .size = sizeof(clv_paco_options),
                         .radius = cases[i].radius,
                         .psf_mode = CLV_PSF_FIXED,
                         .convention = cases[i].vip ? CLV_PACO_VIP : CLV_PACO_PAPER },
            .first = cases[i].first,
            .rows = cases[i].rows,
        };
        stage s;
        stage_open(&s, device, form, &shape);
        const float weight = (s.plan->vip ? 0.5f : 1.0f) / (float)s.plan->in.frames;
        const size_t floats = s.c.band_rows * s.f.lags_padded * s.f.pitch;
        float *data = make_data(&s, 100 + i);
        test_array D = test_array_from(
            device, data, s.c.band_rows * s.plan->in.frames * s.f.pitch * sizeof(float));
        test_array V = test_array_new(device, floats * sizeof(float));
        launch(&s, &D, &V, weight, 0, s.f.lags_padded);
        test_array_read(&V);
        check(&s, data, (const float *)(void *)V.host, weight);

        /* in pieces, for devices that count loop turns: the same bits */
        if (!test_left_out(device, device->tiny && i, "pieces of case %zu", i)) {
            test_array pieces = test_array_new(device, floats * sizeof(float));
            for (size_t lag = 0; lag < s.f.lags_padded; lag += s.f.lag_block)
                launch(&s, &D, &pieces, weight, lag, lag + s.f.lag_block);
            test_array_read(&pieces);
            assert_memory_equal(V.host, pieces.host, V.bytes);
            test_array_free(&pieces);
        }
        test_array_free(&D), test_array_free(&V);
        clv_free(data);
        stage_close(&s);
    }
}

static void sums_products_at_every_distance(void **state)
{
    (void)state;
    stage_each_item_form(check_form);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sums_products_at_every_distance) };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("paco_lag_covariance", tests, NULL, NULL);
}
