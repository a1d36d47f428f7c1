/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the kernels of blob detection by themselves, in every form: compares the list of maxima of every frame with
 * one made from float64 responses, and checks guards around every array. The sizes are small enough for a simulated
 * device. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "host/blob/blob_family.h"
#include "host/blob/blob_noise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct form {
    const char *name;
    clv_blob_form form;
    size_t band; /* rows of a work-item */
    size_t each; /* sweep: columns of a work-item */
} form;

static const form forms[] = { { "rows", CLV_BLOB_ROWS, 5 },
                              { "rows, one band", CLV_BLOB_ROWS, 99 },
                              { "items", CLV_BLOB_ITEMS, 0 },
                              { "tile", CLV_BLOB_TILE, 0 },
                              { "sweep", CLV_BLOB_SWEEP, 0, 1 },
                              { "sweep of pairs, in bands and strips", CLV_BLOB_SWEEP, 4, 2 },
                              { "cosine", CLV_BLOB_COSINE, 0 } };

enum { FRAMES = 2, HEIGHT = 11, WIDTH = 21, PADDING = 2, ROW = WIDTH + PADDING, OFFSET = 3 };
enum { CAPACITY = 64 };

/* What one run of the kernels works on. */
typedef struct bench {
    clv_blob_plan *plan;
    uint16_t pixels[OFFSET + FRAMES * HEIGHT * ROW];
    test_array on_device, taps, level, leak, pedestal, counts, peaks, map, factor, bins, scratch;
    test_array waves[2], quarters[2], filters; /* cosine */
    clv_blob_pass pass;
    clv_blob_family f;
} bench;

static void make_frames(bench *b)
{
    uint64_t state = 4;
    for (size_t i = 0; i < CLV_LEN(b->pixels); ++i)
        b->pixels[i] = (uint16_t)(100 + test_random(&state) % 40);
    b->pixels[OFFSET + 5 * ROW + 7] = 900;
    b->pixels[OFFSET + HEIGHT * ROW + 0] = 700; /* in a corner */
    for (size_t y = 0; y < HEIGHT; ++y)         /* nothing around them that would tell them apart */
        for (size_t x = 9; x < WIDTH; ++x)
            b->pixels[OFFSET + (HEIGHT + y) * ROW + x] = 120;
    b->pixels[OFFSET + HEIGHT * ROW + 6 * ROW + 16] = 800; /* two equal neighbours */
    b->pixels[OFFSET + HEIGHT * ROW + 6 * ROW + 17] = 800;
    for (size_t row = 0; row < FRAMES * HEIGHT; ++row)
        for (size_t i = 0; i < PADDING; ++i) /* to be left alone */
            b->pixels[OFFSET + row * ROW + WIDTH + i] = 65535;
}

static void open_bench(bench *b, test_device *device, const clv_blob_options *options,
                       const form *how)
{
    const clv_blob_frames shape = {
        sizeof(clv_blob_frames), CLV_BLOB_U16, FRAMES, HEIGHT, WIDTH, HEIGHT * ROW, ROW
    };
    EXPECT_OK(clv_blob_plan_create(&shape, options, &b->plan));
    make_frames(b);
    clv_blob_plan *plan = b->plan;
    plan->pixels = b->pixels + OFFSET;
    plan->frames = FRAMES, plan->capacity = CAPACITY;
    if (how->form == CLV_BLOB_COSINE) EXPECT_OK(clv_blob_waves_create(plan, &plan->waves));
    const size_t local = device->slow || device->tiny ? 32 : 64;
    b->f = how->form == CLV_BLOB_ROWS     ? clv_blob_rows_family(plan, 16, 1, UINT64_MAX, FRAMES)
           : how->form == CLV_BLOB_ITEMS  ? clv_blob_items_family(plan, local, FRAMES)
           : how->form == CLV_BLOB_COSINE ? clv_blob_cosine_family(plan, 1, FRAMES)
                                          : clv_blob_tile_family(local, FRAMES);
    if (how->form == CLV_BLOB_SWEEP) {
        const size_t items =
            how->band ? 6 * plan->levels : local; /* in bands: several strips as well */
        assert_true(clv_blob_sweep_family(plan, how->each, items, 1, FRAMES, &b->f));
        if (how->band) b->f.band = how->band, b->f.bands = (HEIGHT + how->band - 1) / how->band;
    }
    if (how->form == CLV_BLOB_ROWS) {
        const size_t each =
            b->f.scratch_floats / (b->f.bands * b->f.tiles * CLV_MIN(b->f.group, (size_t)FRAMES));
        b->f.band = CLV_MIN(how->band, (size_t)HEIGHT);
        b->f.bands = (HEIGHT + b->f.band - 1) / b->f.band;
        b->f.scratch_floats = each * b->f.bands * b->f.tiles * FRAMES;
    }
    int32_t level[2 * CLV_BLOB_MAX_LEVELS];
    float pedestal[FRAMES];
    for (size_t l = 0; l < plan->levels; ++l)
        level[2 * l] = (int32_t)plan->radius[l], level[2 * l + 1] = (int32_t)plan->first_tap[l];
    for (size_t i = 0; i < FRAMES; ++i)
        pedestal[i] = plan->pedestal[i] = clv_blob_median(plan, i, &plan->bad_pixels[i]);
    /* cells of 4x4 pixels with noises of their own */
    if (plan->by_noise) {
        clv_free(plan->map);
        plan->cell_shift = 2, plan->cells_down = (HEIGHT + 3) / 4,
        plan->cells_across = (WIDTH + 3) / 4;
        if (how->form == CLV_BLOB_ROWS ||
            how->form == CLV_BLOB_COSINE) /* a vector lies in one cell */
            plan->cell_shift = 4, plan->cells_down = 1, plan->cells_across = 2;
        plan->cells = plan->cells_down * plan->cells_across;
        plan->map = clv_alloc(FRAMES * plan->cells, sizeof *plan->map);
        assert_non_null(plan->map);
        for (size_t i = 0; i < FRAMES * plan->cells; ++i)
            plan->map[i] = (float)(6 + i % 7); /* cells above each other differ, too */
        plan->noise_step = 2;
    }
    const uint32_t zero[2 * FRAMES] = { 0 };
    const size_t bins = clv_blob_bins(plan, FRAMES);
    uint32_t *none = clv_zalloc(bins, sizeof *none);
    assert_non_null(none);
    b->on_device = test_array_from(device, b->pixels, sizeof b->pixels);
    b->taps = test_array_from(device, plan->tap_f32, plan->taps * 2 * sizeof(float));
    b->level = test_array_from(device, level, plan->levels * 2 * sizeof *level);
    b->leak = test_array_from(device, plan->leak, plan->levels * sizeof(float));
    b->pedestal = test_array_from(device, pedestal, sizeof pedestal);
    b->counts = test_array_from(device, zero, sizeof zero);
    b->map = test_array_from(device, plan->map, FRAMES * plan->cells * sizeof(float));
    b->factor = test_array_from(device, plan->factor, plan->scales * sizeof(float));
    b->bins = test_array_from(device, none, bins * sizeof *none);
    b->peaks = test_array_new(device, FRAMES * CAPACITY * sizeof(clv_blob_peak));
    b->scratch = test_array_new(device, b->f.scratch_floats * sizeof(float));
    clv_free(none);
    b->pass = (clv_blob_pass){
        .plan = plan,
        .f = &b->f,
        .queue = device->queue,
        .pixels = { b->on_device.buffer, OFFSET, { HEIGHT * ROW, ROW, 1 } },
        .table = { b->taps.buffer, b->level.buffer, b->leak.buffer, b->factor.buffer },
        .pedestal = b->pedestal.buffer,
        .counts = b->counts.buffer,
        .peaks = b->peaks.buffer,
        .map = b->map.buffer,
        .bins = b->bins.buffer,
        .scratch = b->scratch.buffer,
    };
    if (!plan->waves.used) return;
    const clv_blob_waves *w = &plan->waves;
    for (int i = 0; i < 2; ++i) {
        const size_t n = w->along[i].length;
        b->waves[i] = test_array_from(device, w->along[i].waves, n * 2 * sizeof(float));
        b->quarters[i] =
            test_array_from(device, w->along[i].quarters, (n / 2 + 1) * 2 * sizeof(float));
        b->pass.table[CLV_BLOB_WAVES_Y + i] = b->waves[i].buffer;
        b->pass.table[CLV_BLOB_QUARTERS_Y + i] = b->quarters[i].buffer;
    }
    b->filters = test_array_from(device, w->filters, w->filter_floats * sizeof(float));
    b->pass.table[CLV_BLOB_FILTERS] = b->filters.buffer;
}

static void close_bench(bench *b)
{
    test_array *const all[] = { &b->on_device, &b->taps,   &b->level,  &b->leak,
                                &b->pedestal,  &b->counts, &b->map,    &b->factor,
                                &b->bins,      &b->peaks,  &b->scratch };
    for (size_t i = 0; i < CLV_LEN(all); ++i) {
        test_array_read(all[i]); /* checks the guard */
        test_array_free(all[i]);
    }
    test_array *const more[] = { &b->waves[0], &b->waves[1], &b->quarters[0], &b->quarters[1],
                                 &b->filters };
    for (size_t i = 0; b->plan->waves.used && i < CLV_LEN(more); ++i) {
        test_array_read(more[i]);
        test_array_free(more[i]);
    }
    clv_blob_plan_free(b->plan);
}

typedef struct volume {
    double *L;
    size_t scales;
} volume;

static double at(const volume *v, int k, int y, int x)
{
    if (k < 0 || y < 0 || x < 0 || k >= (int)v->scales || y >= HEIGHT || x >= WIDTH)
        return -INFINITY;
    return v->L[((size_t)k * HEIGHT + (size_t)y) * WIDTH + (size_t)x];
}

static bool is_top(const volume *v, int k, int y, int x)
{
    for (int i = 0; i < 27; ++i) {
        const double other = at(v, k + i / 9 - 1, y + i / 3 % 3 - 1, x + i % 3 - 1);
        if (i < 13 && !((float)at(v, k, y, x) > (float)other)) return false;
        if (i > 13 && !((float)at(v, k, y, x) >= (float)other)) return false;
    }
    return true;
}

static const clv_blob_peak *listed(const clv_blob_peak *peaks, size_t count, int k, int y, int x)
{
    for (size_t i = 0; i < count; ++i)
        if ((int)peaks[i].k == k && (int)peaks[i].y == y && (int)peaks[i].x == x) return &peaks[i];
    return NULL;
}

static double floor_at(const clv_blob_plan *plan, size_t frame, size_t k, size_t y, size_t x)
{
    const size_t cell = (y >> plan->cell_shift) * plan->cells_across + (x >> plan->cell_shift);
    return (double)(plan->factor[k] * plan->map[frame * plan->cells + cell]);
}

/* Sizes of every other response of every other row, over what maxima have to be above, are counted in the
 * bin of their size, or in the next one where rounding may have done that. */
static void check_bins(const bench *b, size_t frame, const double *L, const char *what)
{
    const clv_blob_plan *plan = b->plan;
    for (size_t k = 0; k < plan->scales; ++k) {
        static int32_t left[CLV_BLOB_NOISE_BINS];
        const uint32_t *bins = (const uint32_t *)(void *)b->bins.host + clv_blob_bins(plan, frame) +
                               k * CLV_BLOB_NOISE_BINS;
        int32_t missing = 0;
        for (size_t i = 0; i < CLV_BLOB_NOISE_BINS; ++i)
            left[i] = (int32_t)bins[i];
        for (size_t y = 0; y < HEIGHT; y += 2)
            for (size_t x = 0; x < WIDTH; x += 2) {
                const double size =
                    fabs(L[(k * HEIGHT + y) * WIDTH + x]) / floor_at(plan, frame, k, y, x);
                /* powers of 2, and 16 equal steps in each */
                const double octave = floor(log2(size)), part = size / exp2(octave) - 1;
                --left[(int)fmin(fmax(16 * (octave + 16) + floor(16 * part), 0), 511)];
            }
        for (size_t i = 0; i + 1 < CLV_BLOB_NOISE_BINS; ++i) {
            left[i + 1] += left[i];
            missing += abs(left[i]);
        }
        if (left[CLV_BLOB_NOISE_BINS - 1] || missing > 2)
            fail_msg("%s: scale %zu: %d sizes are in other bins, %d are missing", what, k, missing,
                     -left[CLV_BLOB_NOISE_BINS - 1]);
    }
}

/* Every maximum of the frame is in the list, once, with its neighbourhood. */
static void check_frame(const bench *b, size_t frame, const char *what)
{
    const clv_blob_plan *plan = b->plan;
    static double pixels[HEIGHT * WIDTH], scratch[4 * HEIGHT * WIDTH];
    static double L[CLV_BLOB_MAX_SCALES * HEIGHT * WIDTH];
    const double pedestal = (double)plan->pedestal[frame];
    const uint32_t *counts = (const uint32_t *)(void *)b->counts.host + 2 * frame;
    const clv_blob_peak *peaks = (const clv_blob_peak *)(void *)b->peaks.host + frame * CAPACITY;
    for (size_t i = 0; i < HEIGHT * WIDTH; ++i)
        pixels[i] = clv_blob_pixel_at(plan, frame, i / WIDTH, i % WIDTH) - pedestal;
    clv_blob_responses(plan, pixels, pedestal, scratch, L);
    if (plan->by_noise) check_bins(b, frame, L, what);
    const volume v = { L, plan->scales };
    size_t tops = 0;
    double largest = 0;
    for (int k = 0; k < (int)plan->scales; ++k)
        for (int y = 0; y < HEIGHT; ++y)
            for (int x = 0; x < WIDTH; ++x) {
                if (!(at(&v, k, y, x) > floor_at(plan, frame, (size_t)k, (size_t)y, (size_t)x)) ||
                    !is_top(&v, k, y, x))
                    continue;
                const clv_blob_peak *p =
                    listed(peaks, CLV_MIN(counts[0], (uint32_t)CAPACITY), k, y, x);
                if (!p) fail_msg("%s: maximum k %d y %d x %d is missing", what, k, y, x);
                for (int i = 0; i < 9; ++i) {
                    const double want = at(&v, k, y + i / 3 - 1, x + i % 3 - 1);
                    if (isinf(want)
                            ? !isinf(p->around[i])
                            : !(fabs((double)p->around[i] - want) <= 1e-5 * at(&v, k, y, x)))
                        fail_msg("%s: k %d y %d x %d: neighbour %d is %g, not %g", what, k, y, x, i,
                                 (double)p->around[i], want);
                }
                const double below = at(&v, k - 1, y, x), above = at(&v, k + 1, y, x);
                assert_true(isinf(below)
                                ? isinf(p->below)
                                : fabs((double)p->below - below) < 1e-4 * fabs(below) + 1e-3);
                assert_true(isinf(above)
                                ? isinf(p->above)
                                : fabs((double)p->above - above) < 1e-4 * fabs(above) + 1e-3);
                largest = fmax(largest, at(&v, k, y, x));
                ++tops;
            }
    float got;
    memcpy(&got, &counts[1], sizeof got);
    assert_int_equal(counts[0], tops);
    assert_true(tops > 0 && fabs((double)got - largest) <= 1e-5 * largest);
}

static void check_form(test_device *device, const form *how, const clv_blob_options *options)
{
    static bench b;
    open_bench(&b, device, options, how);
    if (how->form == CLV_BLOB_TILE &&
        clv_blob_tile_floats(b.plan) * sizeof(float) > device->facts->local_bytes) {
        close_bench(&b); /* the operation takes another form here */
        return;
    }
    const bool tile = how->form == CLV_BLOB_TILE, cosine = how->form == CLV_BLOB_COSINE,
               items = how->form == CLV_BLOB_ITEMS, sweep = how->form == CLV_BLOB_SWEEP;
    EXPECT_OK((tile     ? clv_blob_look_tile
               : sweep  ? clv_blob_look_sweep
               : items  ? clv_blob_look_items
               : cosine ? clv_blob_look_cosine
                        : clv_blob_look_rows)(&b.pass, 0, FRAMES));
    EXPECT_OK(clv_queue_wait(device->queue));
    test_array_read(&b.counts);
    test_array_read(&b.peaks);
    test_array_read(&b.bins);
    char what[100];
    for (size_t frame = 0; frame < FRAMES; ++frame) {
        snprintf(what, sizeof what, "%s: %s: frame %zu", device->name, how->name, frame);
        check_frame(&b, frame, what);
    }
    close_bench(&b);
}

static void lists_every_maximum(test_device *device)
{
    const clv_blob_options cases[] = {
        { .size = sizeof(clv_blob_options),
          .min_sigma_px = 0.8,
          .max_sigma_px = 1.2,
          .num_sigma = 3,
          .threshold_given = true,
          .threshold = 20 },
        { .size = sizeof(clv_blob_options),
          .min_sigma_px = 0.8,
          .max_sigma_px = 1.2,
          .dog = true,
          .threshold_given = true,
          .threshold = 15 },
        { .size = sizeof(clv_blob_options),
          .min_sigma_px = 0.8,
          .max_sigma_px = 1,
          .num_sigma = 2,
          .threshold_sigma_given = true,
          .threshold_sigma = 1.5 },
        { .size = sizeof(clv_blob_options),
          .min_sigma_px = 0.8,
          .max_sigma_px = 4,
          .num_sigma = 2,
          .threshold_given = true,
          .threshold = 10,
          .taps = CLV_BLOB_TAPS_SCIPY }, /* folded more than once */
    };
    for (size_t f = 0; f < CLV_LEN(forms); ++f) {
        const bool lanes = forms[f].form == CLV_BLOB_ROWS || forms[f].form == CLV_BLOB_COSINE;
        if (test_left_out(device, device->slow && lanes,
                          "%s: its compiler takes minutes for 16 lanes", forms[f].name) ||
            test_left_out(device, device->tiny && f == 1, "%s: another number of bands",
                          forms[f].name))
            continue;
        for (size_t i = 0; i < CLV_LEN(cases); ++i)
            if (!test_left_out(device, device->tiny && i + 1 == CLV_LEN(cases), "case %zu: large",
                               i) &&
                !(forms[f].each > 1 && i + 1 == CLV_LEN(cases))) /* too wide for pairs */
                check_form(device, &forms[f], &cases[i]);
    }
}

static void lists_every_maximum_(void **unused)
{
    (void)unused;
    test_each_device(lists_every_maximum);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        { "lists_every_maximum", lists_every_maximum_, NULL, NULL, NULL },
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
