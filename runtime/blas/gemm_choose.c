/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the form that a device uses for a class of products: the fastest form whose results are correct. Notes the
 * choice. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/half.h"
#include "base/log.h"
#include "base/text.h"
#include "runtime/device/queue.h"
#include "runtime/record/context.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Classes of products by the rows of C: products of few rows are bound by memory, products of many rows by
 * arithmetic. The products that are timed for a class take very little time even on a CPU. */
static const struct {
    const char *name;
    size_t most_rows;
    size_t m, n, k;
} classes[] = {
    { "few-rows", 16, 8, 512, 512 },
    { "some-rows", 256, 96, 384, 384 },
    { "many-rows", SIZE_MAX, 512, 512, 512 },
    { "small", SIZE_MAX, 33, 17, 500 },    /* unpacked; only this class uses the DIRECT forms */
    { "halves", SIZE_MAX, 512, 512, 512 }, /* for the forms of clv_gemm_halves_forms */
};
/* Most terms in a small product whose B has dense rows, and in one whose B is gathered element by element. */
static const double small = 1e6, small_gathered = 1e5;

enum {
    SMALL = 3,
    HALVES = 4,
    KERNELS = 6, /* raised when the kernels' speed changes, so that older notes no longer apply */
    MOST_FORMS = CLV_GEMM_MOST_HALVES, /* most forms of a device */
    ROUNDS = 12
};
static const double budget_s = 0.3, clearly = 0.93;

/* Shapes that leave ragged tiles in every direction. */
static const size_t ragged[][3] = { { 7, 7, 64 }, { 13, 33, 65 }, { 65, 50, 31 } };

typedef struct trial {
    clv_queue *queue;
    const clv_gemm_form *form;
    clv_buffer *a, *b, *c, *scratch;
    float *host; /* a, then b, then c, then the expected c */
    size_t m, n, k;
    bool halves; /* a and b are halves, and B is stored as such */
} trial;

/* The forms among which a class chooses. */
typedef struct choice {
    clv_gemm_form forms[MOST_FORMS];
    size_t count;
} choice;

static choice choice_of(const clv_device *device, size_t class_index)
{
    choice c = { 0 };
    if (class_index == HALVES) {
        c.count = clv_gemm_halves_forms(device, c.forms);
        return c;
    }
    for (size_t i = 0; i < clv_gemm_form_count(device) && c.count < MOST_FORMS; ++i) {
        c.forms[c.count] = clv_gemm_form_of(device, i);
        c.count += (c.forms[c.count].provider == CLV_GEMM_DIRECT) == (class_index == SMALL);
    }
    return c;
}

static float number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-23f - 1.0f;
}

static void trial_close(trial *t)
{
    clv_buffer_free(t->a);
    clv_buffer_free(t->b);
    clv_buffer_free(t->c);
    clv_buffer_free(t->scratch);
    clv_free(t->host);
    t->a = t->b = t->c = t->scratch = NULL;
    t->host = NULL;
}

static clv_gemm product(const trial *t)
{
    return (clv_gemm){ .m = t->m,
                       .n = t->n,
                       .k = t->k,
                       .a = { t->a, 0, t->k, 1, 0 },
                       .b = { t->b, 0, t->n, 1, 0 },
                       .c = { t->c, 0, t->n, 1, 0 },
                       .b_half = t->halves,
                       .alpha = 1 };
}

/* Rounds all values of a trial to halves, and writes b as such. */
static clv_status write_halves(trial *t, float *values, size_t a, size_t b)
{
    uint16_t *halves = clv_alloc(a + b, sizeof *halves);
    if (!halves) return clv_fail(CLV_E_MEMORY, "gemm: not enough memory to choose a variant");
    for (size_t i = 0; i < a + b; ++i) {
        halves[i] = clv_half_of(values[i]);
        values[i] = clv_half_to_float(halves[i]);
    }
    const clv_status status = clv_write(t->queue, t->b, 0, halves + a, b * sizeof *halves);
    clv_free(halves);
    return status;
}

static clv_status trial_open(trial *t)
{
    clv_device *device = clv_queue_device(t->queue);
    const size_t a = t->m * t->k, b = t->k * t->n, c = t->m * t->n;
    uint32_t state = 7;
    const clv_gemm g = product(t);
    t->host = clv_alloc(a + b + 2 * c, sizeof(float));
    if (!t->host) return clv_fail(CLV_E_MEMORY, "gemm: not enough memory to choose a variant");
    for (size_t i = 0; i < a + b; ++i)
        t->host[i] = number(&state);
    CLV_TRY(clv_buffer_create(device, a * sizeof(float), CLV_BUFFER_DEVICE, &t->a));
    CLV_TRY(clv_buffer_create(device, b * sizeof(float), CLV_BUFFER_DEVICE, &t->b));
    CLV_TRY(clv_buffer_create(device, c * sizeof(float), CLV_BUFFER_DEVICE, &t->c));
    CLV_TRY(clv_buffer_create(device, clv_gemm_scratch(t->form, &g) * sizeof(float),
                              CLV_BUFFER_DEVICE, &t->scratch));
    CLV_TRY(t->halves ? write_halves(t, t->host, a, b)
                      : clv_write(t->queue, t->b, 0, t->host + a, b * sizeof(float)));
    return clv_write(t->queue, t->a, 0, t->host, a * sizeof(float));
}

/* Runs a trial. *seconds is the time of the kernels if the queue times its events, else the time until the wait
 * ends. */
static clv_status trial_run(const trial *t, double *seconds)
{
    const clv_gemm g = product(t);
    const double started = clv_now(), before = t->queue->stats.kernel_s;
    CLV_TRY(clv_gemm_enqueue(t->queue, t->form, &g, t->scratch, NULL));
    CLV_TRY(clv_queue_wait(t->queue));
    const double waited = clv_now() - started, kernels = t->queue->stats.kernel_s - before;
    const bool by_events = clv_queue_device(t->queue)->nap && t->queue->timed && before >= 0 &&
                           kernels > 0 && t->form->provider != CLV_GEMM_CLBLAST;
    *seconds = by_events ? kernels : waited;
    return CLV_OK;
}

/* Returns the factor by which the products of a class are enlarged for timing. On cards they grow until one takes 200
 * us, because a smaller product occupies only a part of the card. */
static size_t enlargement(clv_queue *queue, size_t class_index)
{
    enum { MOST = 8 };
    static const double enough_s = 200e-6;
    const clv_gemm_form form = clv_gemm_form_of(queue->device, 0);
    size_t times = 1;
    if (!queue->device->nap || class_index == SMALL) return 1;
    for (double seconds = 0; times < MOST; times *= 2) {
        trial t = { .queue = queue,
                    .form = &form,
                    .m = classes[class_index].m * (class_index ? times : 1),
                    .n = classes[class_index].n * times,
                    .k = classes[class_index].k * times };
        clv_status status = trial_open(&t);
        for (int i = 0; i < 2 && !status; ++i) /* the first run builds the kernels */
            status = trial_run(&t, &seconds);
        trial_close(&t);
        if (status) return times > 1 ? times / 2 : 1;
        if (seconds >= enough_s) break;
    }
    return times;
}

/* Checks that each element differs from the host's by at most 2e-6 times the number of terms. */
static clv_status trial_compare(const trial *t)
{
    const size_t a = t->m * t->k, b = t->k * t->n, c = t->m * t->n;
    float *got = t->host + a + b, *want = got + c;
    const clv_host_gemm g = { .m = t->m,
                              .n = t->n,
                              .k = t->k,
                              .a = t->host,
                              .b = t->host + a,
                              .a_row = t->k,
                              .a_col = 1,
                              .b_row = t->n,
                              .b_col = 1,
                              .c = want,
                              .c_row = t->n,
                              .c_col = 1,
                              .alpha = 1 };
    CLV_TRY(clv_read(t->queue, t->c, 0, got, c * sizeof(float)));
    clv_gemm_host(&g);
    for (size_t i = 0; i < c; ++i)
        if (!(fabsf(got[i] - want[i]) <= 2e-6f * (float)t->k))
            return clv_fail(CLV_E_WRONG_RESULT,
                            "gemm: %s on %s: %g instead of %g at %zu,%zu of "
                            "%zu x %zu x %zu",
                            t->form->name, clv_device_label(clv_queue_device(t->queue)),
                            (double)got[i], (double)want[i], i / t->n, i % t->n, t->m, t->n, t->k);
    return CLV_OK;
}

static clv_status is_right(clv_queue *queue, size_t class_index, const clv_gemm_form *form)
{
    clv_status status = CLV_OK;
    for (size_t i = 0; i < CLV_LEN(ragged) && !status; ++i) {
        double seconds;
        trial t = { .queue = queue,
                    .form = form,
                    .m = ragged[i][0],
                    .n = ragged[i][1],
                    .k = ragged[i][2],
                    .halves = class_index == HALVES };
        status = trial_open(&t);
        if (!status) status = trial_run(&t, &seconds);
        if (!status) status = trial_compare(&t);
        trial_close(&t);
    }
    return status;
}

/* Times all candidates in turns, so that other users of the machine disturb all of them alike. The best time
 * of each counts, apart from the first round, which builds. A negative time means that the candidate failed. */
static void time_all(trial *trials, double *seconds, size_t count)
{
    const double started = clv_now();
    for (int round = 0; round < ROUNDS; ++round) {
        for (size_t i = 0; i < count; ++i) {
            double s;
            if (round && seconds[i] < 0) continue;
            if (trial_run(&trials[i], &s))
                seconds[i] = -1;
            else if (round < 2 || s < seconds[i])
                seconds[i] = s;
        }
        if (round > 2 && clv_now() - started > budget_s) break;
    }
}

static clv_status measure(clv_queue *queue, size_t class_index, clv_gemm_form *form, char *note,
                          size_t room)
{
    const clv_device *device = clv_queue_device(queue);
    const choice all = choice_of(device, class_index);
    clv_gemm_form candidates[MOST_FORMS];
    trial trials[MOST_FORMS] = { 0 };
    double seconds[MOST_FORMS], best = -1;
    clv_text figures = { 0 };
    clv_status status = CLV_OK;
    size_t count = 0;
    const size_t times = enlargement(queue, class_index);
    for (size_t i = 0; i < all.count; ++i) {
        candidates[count] = all.forms[i];
        trials[count] = (trial){ .queue = queue,
                                 .form = &candidates[count],
                                 .m = classes[class_index].m * (class_index ? times : 1),
                                 .n = classes[class_index].n * times,
                                 .k = classes[class_index].k * times,
                                 .halves = class_index == HALVES };
        const clv_status wrong = is_right(queue, class_index, &candidates[count]);
        const clv_status closed = wrong ? wrong : trial_open(&trials[count]);
        if (!closed) {
            ++count;
            continue;
        }
        status = closed;
        trial_close(&trials[count]);
        clv_text_add(&figures, " %s: failed", candidates[count].name);
    }
    time_all(trials, seconds, count);
    for (size_t i = 0; i < count; ++i) {
        trial_close(&trials[i]);
        if (seconds[i] < 0)
            clv_text_add(&figures, " %s: failed", candidates[i].name);
        else
            clv_text_add(&figures, " %s: %.3g ms", candidates[i].name, seconds[i] * 1e3);
        if (seconds[i] > 0 && (best < 0 || seconds[i] < clearly * best))
            *form = candidates[i], best = seconds[i]; /* the first one wins ties */
    }
    if (best > 0) snprintf(note, room, "%s  #%s", form->name, clv_text_get(&figures));
    clv_text_clear(&figures);
    return best > 0 ? CLV_OK
           : status
               ? status
               : clv_fail(CLV_E_DEVICE, "gemm: no variant works on %s", clv_device_label(device));
}

/* Takes the first form whose results are correct, without timing any. */
static clv_status first_right(clv_queue *queue, size_t class_index, clv_gemm_form *form)
{
    const choice all = choice_of(clv_queue_device(queue), class_index);
    clv_status status = CLV_OK;
    for (size_t i = 0; i < all.count; ++i) {
        *form = all.forms[i];
        status = is_right(queue, class_index, form);
        if (!status) return CLV_OK;
    }
    return status;
}

/* Notes the launches of every form that would be tried, and takes the first of these forms for now. */
static clv_status rehearse(clv_queue *queue, size_t class_index, bool all, clv_gemm_form *form)
{
    const clv_device *device = clv_queue_device(queue);
    const choice c = choice_of(device, class_index);
    for (size_t i = 0; i < c.count && (all || !i); ++i)
        (void)is_right(queue, class_index, &c.forms[i]); /* false, since nothing is computed */
    *form = c.forms[0];
    return c.count ? CLV_OK
                   : clv_fail(CLV_E_DEVICE, "gemm: there is no variant for %s", device->label);
}

/* Measures on a queue with event times, also on cards whose own queues have none. */
static clv_status measure_by_events(clv_queue *queue, size_t class_index, clv_gemm_form *form,
                                    char *note, size_t room)
{
    clv_queue *timed = NULL;
    if (queue->timed || clv_queue_create_timed(queue->device, &timed))
        return measure(queue, class_index, form, note, room);
    const clv_status status = measure(timed, class_index, form, note, room);
    clv_queue_free(timed);
    return status;
}

static clv_status choose(clv_context *context, clv_queue *queue, size_t c, clv_gemm_form *form)
{
    const clv_device *device = clv_queue_device(queue);
    char key[300], note[300];
    snprintf(key, sizeof key, "gemm.%d %s on %s", KERNELS, classes[c].name, device->key);
    if (clv_notes_get(&context->tuned, key, note, sizeof note)) {
        note[strcspn(note, " ")] = '\0'; /* the figures after the name are for human readers */
        const choice all = choice_of(device, c);
        for (size_t i = 0; i < all.count; ++i) {
            *form = all.forms[i];
            if (strcmp(form->name, note) == 0) return CLV_OK;
        }
    }
    const bool measures = context->tuning && clv_notes_are_kept(&context->tuned);
    if (queue->rehearsing) return rehearse(queue, c, measures, form);
    if (!measures) {
        CLV_TRY(first_right(queue, c, form));
        clv_notes_set_here(&context->tuned, key, form->name);
        return CLV_OK;
    }
    CLV_TRY(measure_by_events(queue, c, form, note, sizeof note));
    clv_notes_set(&context->tuned, key, note);
    clv_notes_save(&context->tuned);
    clv_log(CLV_LOG_INFO, "%s: %s: %s", device->label, key, note);
    return CLV_OK;
}

clv_status clv_gemm_choose(clv_context *context, clv_queue *queue, size_t m, clv_gemm_form *form)
{
    size_t c = 0;
    while (m > classes[c].most_rows)
        ++c;
    return choose(context, queue, c, form);
}

clv_status clv_gemm_choose_halves(clv_context *context, clv_queue *queue, size_t m,
                                  clv_gemm_form *form)
{
    clv_gemm_form forms[CLV_GEMM_MOST_HALVES];
    return clv_gemm_halves_forms(clv_queue_device(queue), forms)
               ? choose(context, queue, HALVES, form)
               : clv_gemm_choose(context, queue, m, form);
}

clv_status clv_gemm_choose_once(clv_context *context, clv_queue *queue, const clv_gemm *g,
                                clv_gemm_form *form)
{
    const bool is_cpu = clv_device_facts(clv_queue_device(queue))->device_class == CLV_CLASS_CPU;
    const double terms = (double)g->m * (double)g->n * (double)g->k;
    if (is_cpu && terms <= (g->b.col == 1 ? small : small_gathered) &&
        !choose(context, queue, SMALL, form))
        return CLV_OK;
    return clv_gemm_choose(context, queue, g->m, form);
}
