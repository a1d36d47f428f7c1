/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk of stars on a device: constants, preparation, launches, results. cl/spectra/spectra.clh
 * tells how the arrays lie. */
#include "host/spectra/spectra_job.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

#include <math.h>
#include <string.h>

/* Memory of a worker, and of a chunk in flight beside its results. */
enum { WEIGHTS, BASIS, WHOLE, PART, CCF, POINTS, RANGE, REACH, OWNER, STEP, BOX };
enum {
    DATA = CLV_SPECTRA_RESULTS,
    RESOLUTION,
    USABLE,
    HIDDEN_A,
    HIDDEN_B,
    TEMPLATE,
    SPLINE,
    TAPS,
    PIXELS,
    RESOLVED,
    PARTIAL,
    TOTALS,
    SOLVED,
    LIST,
    START_DATA,
    START_CHI,
    START_BEST
};

enum { FIRST_LOOK = 7 }; /* round after which the list of items is looked at */

/* How the kernels are cut for a device: explicit vectors and long runs for CPUs. */
typedef struct family {
    long lanes, run, span;
    size_t wg;
    bool fp64;
} family;

static family family_of(const clv_device *device)
{
    const clv_probe_device *facts = clv_device_facts(device);
    const bool cpu =
        facts->device_class == CLV_CLASS_CPU || facts->device_class == CLV_CLASS_SOFTWARE;
    return cpu ? (family){ 16, 128, 4, 1, facts->fp64 } : (family){ 1, 1, 1, 64, facts->fp64 };
}

/* Bytes a star needs on a device, by what they are for. */
typedef struct sizes {
    size_t data, resolution, hidden, template_, taps, pixels, partial, totals, solved, start,
        start_chi;
} sizes;

static sizes sizes_of(const clv_spectra_plan *p)
{
    const size_t starts = p->options.starts, f = sizeof(float), spectra = p->stars.spectra;
    return (sizes){
        .data = p->all_pixels * 2 * f,
        .resolution = p->all_pixels * p->diagonals * f,
        .hidden = starts * 5 * p->widest * f,
        .template_ = starts * (clv_round_up(p->longest_template, 16) + 16) * 8 * f,
        .taps = starts * 2 * CLV_SPECTRA_TAPS * f,
        .pixels = starts * p->all_pixels * 8 * f,
        .partial = starts * p->all_pixels / CLV_SPECTRA_SEGMENT * CLV_SPECTRA_AROUND * f,
        .totals = starts * spectra * 2 * CLV_SPECTRA_AROUND * f,
        .solved = starts * spectra * CLV_SPECTRA_SOLVED * f,
        .start = spectra * 2 * p->ccf_room * f,
        .start_chi = spectra * p->library->ccf_count * p->ccf_lags * f,
    };
}

clv_cost clv_spectra_cost(size_t first, size_t count, void *user)
{
    (void)first;
    const clv_spectra_plan *p = user;
    const sizes s = sizes_of(p);
    const double n = (double)count, starts = p->options.starts;
    double network = 0, lags = 0;
    for (size_t i = 0; i < p->stars.spectra; ++i) {
        if (!p->grid[i].wavelength) continue;
        const clv_spectra_arm *a = &p->library->arms[p->grid[i].arm];
        for (size_t l = 0; l < a->layers; ++l)
            network += 2 * (double)a->width[l] * (double)a->width[l + 1];
        lags += 5.0 * (double)p->grid[i].ccf_points * (double)p->ccf_lags *
                (double)p->library->ccf_count;
    }
    const double round = 5 * network + 600 * (double)p->all_pixels;
    const size_t star = s.data + s.resolution + 2 * s.hidden + 2 * s.template_ + s.taps +
                        s.pixels * (p->diagonals ? 2 : 1) + s.partial + s.totals + s.solved +
                        s.start + s.start_chi + 4096;
    const size_t constants = (p->weight_count + p->ccf_count + p->all_pixels * 18) * sizeof(float);
    const size_t largest = CLV_MAX(CLV_MAX(s.template_, s.pixels), CLV_MAX(s.start_chi, s.partial));
    return (clv_cost){
        .flops = n * (lags + starts * 10 * round),
        .traffic_bytes = n * starts * 10 * 3 * (double)(s.template_ + s.pixels),
        .transfer_bytes = n * (double)(s.data + s.resolution + s.start),
        .memory_bytes = count * star + constants,
        .buffer_bytes = CLV_MAX(count * CLV_MAX(largest, s.resolution),
                                CLV_MAX(p->weight_count, p->ccf_count) * sizeof(float)),
    };
}

static clv_status upload(clv_worker *worker, unsigned key, const void *data, size_t bytes)
{
    clv_buffer *buffer;
    CLV_TRY(clv_worker_buffer(worker, key, bytes, &buffer));
    return clv_write(clv_worker_queue(worker), buffer, 0, data, bytes);
}

clv_status clv_spectra_setup(clv_worker *worker, void *user)
{
    const clv_spectra_plan *p = user;
    const size_t spectra = p->stars.spectra, n = p->all_pixels;
    CLV_TRY(upload(worker, WEIGHTS, p->weights, p->weight_count * sizeof *p->weights));
    CLV_TRY(upload(worker, BASIS, p->basis, n * 16 * sizeof *p->basis));
    CLV_TRY(upload(worker, WHOLE, p->whole, n * sizeof *p->whole));
    CLV_TRY(upload(worker, PART, p->part, n * sizeof *p->part));
    CLV_TRY(upload(worker, CCF, p->ccf, p->ccf_count * sizeof *p->ccf));
    CLV_TRY(upload(worker, POINTS, p->ccf_points, p->library->ccf_count * 4 * sizeof(float)));
    CLV_TRY(upload(worker, RANGE, p->table, 2 * spectra * sizeof *p->table));
    CLV_TRY(upload(worker, REACH, p->table + 2 * spectra, spectra * sizeof *p->table));
    CLV_TRY(
        upload(worker, OWNER, p->table + 3 * spectra, n / CLV_SPECTRA_SEGMENT * sizeof *p->table));
    CLV_TRY(upload(worker, STEP, p->ccf_step, spectra * sizeof *p->ccf_step));
    return upload(worker, BOX, p->box, sizeof p->box);
}

/* What the launches of one chunk share. */
typedef struct pass {
    clv_spectra_plan *plan;
    family f;
    clv_slot *slot;
    size_t stars, items;
    clv_buffer *data, *resolution, *usable, *hidden[2], *templates, *spline, *taps, *pixels,
        *resolved, *partial, *totals, *solved, *list, *state, *start_data, *start_chi, *start_best,
        *found, *models;
} pass;

static clv_arg constant(const pass *p, unsigned key)
{
    clv_buffer *buffer = NULL;
    (void)clv_worker_buffer(clv_slot_worker(p->slot), key, 0, &buffer); /* made by setup */
    return clv_arg_buffer(buffer);
}

static clv_arg i32(size_t value)
{
    return clv_arg_i32((int32_t)value);
}

static clv_arg u32(size_t value)
{
    return clv_arg_u32((uint32_t)value);
}

/* Work-groups along x (wide) or along y (tall); a CPU's have one work-item. */
static clv_status launch(const pass *p, const clv_cl_source *source, const char *kernel,
                         const clv_define *defines, size_t define_count, size_t x, size_t y,
                         size_t z, bool tall, const clv_arg *args, size_t count)
{
    clv_launch l = { .source = source, .kernel = kernel };
    for (size_t i = 0; i < define_count; ++i)
        l.defines[i] = defines[i];
    l.local[0] = tall ? 1 : p->f.wg, l.local[1] = tall ? p->f.wg : 1, l.local[2] = 1;
    l.global[0] = clv_round_up(x, l.local[0]), l.global[1] = clv_round_up(y, l.local[1]);
    l.global[2] = z;
    return clv_launch_enqueue(clv_slot_queue(p->slot), &l, args, count, NULL);
}

#define LAUNCH(p, source, kernel, defines, x, y, z, tall, args)                                 \
    launch(p, &clv_cl_spectra_##source, kernel, defines, CLV_LEN(defines), x, y, z, tall, args, \
           CLV_LEN(args))

static clv_status find_starts(const pass *p)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_specfit_options *o = &plan->options;
    const size_t spectra = plan->stars.spectra, templates = plan->library->ccf_count;
    const clv_define none[1] = { { NULL, 0 } };
    for (size_t i = 0; i < spectra; ++i) {
        const clv_spectra_grid *g = &plan->grid[i];
        if (!g->wavelength) continue;
        const clv_arg args[] = {
            constant(p, CCF),
            clv_arg_buffer(p->start_data),
            clv_arg_buffer(p->start_chi),
            clv_arg_u64(plan->arm[i].ccf),
            i32(plan->arm[i].ccf_pitch),
            i32(g->ccf_points),
            i32(plan->ccf_room),
            i32(plan->ccf_lags),
            i32(i),
            i32(spectra),
            i32(templates),
        };
        CLV_TRY(LAUNCH(p, ccf, "clv_spectra_ccf", none, plan->ccf_lags / 16, templates, p->stars,
                       false, args));
    }
    const clv_arg peak[] = {
        clv_arg_buffer(p->start_chi),
        constant(p, STEP),
        constant(p, REACH),
        clv_arg_buffer(p->start_best),
        clv_arg_f32(-(float)o->max_velocity_kms),
        clv_arg_f32((float)(2 * o->max_velocity_kms / (double)(plan->velocities - 1))),
        i32(plan->velocities),
        i32(spectra),
        i32(templates),
        i32(plan->ccf_lags),
    };
    CLV_TRY(LAUNCH(p, ccf, "clv_spectra_peak", none, templates, p->stars, 1, false, peak));
    const clv_arg start[] = {
        clv_arg_buffer(p->start_best),
        constant(p, POINTS),
        constant(p, BOX),
        clv_arg_buffer(p->usable),
        clv_arg_buffer(p->state),
        clv_arg_buffer(p->found),
        i32(templates),
        i32(o->starts),
        i32(p->items),
    };
    return LAUNCH(p, ccf, "clv_spectra_start", none, p->items, 1, 1, false, start);
}

static clv_status network(const pass *p, size_t spectrum, size_t points, size_t pitch)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_spectra_arm *arm = &plan->library->arms[plan->grid[spectrum].arm];
    const clv_spectra_weights *w = &plan->arm[spectrum];
    const clv_define defines[] = { { "LANES", p->f.lanes } };
    (void)points;
    for (size_t l = 0; l < arm->layers; ++l) {
        const bool last = l + 1 == arm->layers;
        const clv_arg args[] = {
            clv_arg_buffer(p->hidden[l % 2]),
            clv_arg_buffer(last ? p->templates : p->hidden[(l + 1) % 2]),
            clv_arg_buffer(p->list),
            constant(p, WEIGHTS),
            u32(w->weight[l]),
            u32(w->bias[l]),
            i32(arm->width[l]),
            i32(w->pitch[l]),
            i32(plan->widest),
            last ? clv_arg_u64(pitch) : i32(1),
        };
        CLV_TRY(LAUNCH(p, network, last ? "clv_spectra_output" : "clv_spectra_layer", defines,
                       (p->items + 1) / 2, w->pitch[l] / (size_t)p->f.lanes, 1, true, args));
    }
    return CLV_OK;
}

/* Pixels of all spectra on one arm of the library: its templates are made once. */
static clv_status sample_arm(const pass *p, size_t first)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_spectra_grid *lead = &plan->grid[first];
    const size_t points = plan->library->arms[lead->arm].points;
    const size_t pitch = clv_round_up(plan->longest_template, 16) + 16;
    const clv_define defines[] = { { "RUN", p->f.run } };
    const clv_define lanes[] = { { "LANES", p->f.lanes } };
    const size_t run = (size_t)p->f.run;
    const clv_arg inputs[] = {
        clv_arg_buffer(p->state),     clv_arg_buffer(p->list), constant(p, WEIGHTS),
        clv_arg_buffer(p->hidden[0]), i32(plan->widest),       u32(plan->arm[first].scale),
    };
    CLV_TRY(LAUNCH(p, network, "clv_spectra_inputs", lanes, p->items, 1, 1, false, inputs));
    CLV_TRY(network(p, first, points, pitch));
    const clv_arg taps[] = {
        clv_arg_buffer(p->state),      clv_arg_buffer(p->list), clv_arg_buffer(p->taps),
        clv_arg_f32((float)lead->dln), i32(CLV_SPECTRA_TAPS),
    };
    CLV_TRY(LAUNCH(p, template, "clv_spectra_taps", defines, p->items, 2, 1, false, taps));
    const clv_arg spline[] = {
        clv_arg_buffer(p->templates),
        clv_arg_buffer(p->spline),
        clv_arg_buffer(p->list),
        clv_arg_buffer(p->taps),
        i32(CLV_SPECTRA_TAPS),
        i32(points),
        i32(pitch),
    };
    CLV_TRY(LAUNCH(p, template, "clv_spectra_spline", defines, (points + run - 1) / run, p->items,
                   1, false, spline));
    for (size_t i = first; i < plan->stars.spectra; ++i) {
        const clv_spectra_grid *g = &plan->grid[i];
        if (!g->wavelength || g->arm != lead->arm) continue;
        const clv_arg sample[] = {
            clv_arg_buffer(p->spline),
            clv_arg_buffer(p->state),
            clv_arg_buffer(p->list),
            constant(p, WHOLE),
            constant(p, PART),
            clv_arg_buffer(p->pixels),
            clv_arg_f32((float)g->dln),
            i32(points),
            i32(pitch),
            i32(g->first),
            i32(g->padded),
            i32(plan->all_pixels),
        };
        CLV_TRY(LAUNCH(p, template, "clv_spectra_sample", defines, (g->padded + run - 1) / run,
                       p->items, 1, false, sample));
        if (!plan->diagonals) continue;
        const clv_arg resolve[] = {
            clv_arg_buffer(p->pixels),
            clv_arg_buffer(p->resolved),
            clv_arg_buffer(p->resolution),
            clv_arg_buffer(p->state),
            clv_arg_buffer(p->list),
            i32(plan->diagonals),
            i32(g->first),
            i32(g->padded),
            i32(plan->all_pixels),
        };
        CLV_TRY(LAUNCH(p, template, "clv_spectra_resolve", defines, (g->padded + run - 1) / run,
                       p->items, 1, false, resolve));
    }
    return CLV_OK;
}

static clv_status add_up(const pass *p, size_t columns)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_define defines[] = { { "NPOLY", (long)plan->options.terms }, { "FP64", p->f.fp64 } };
    const clv_arg args[] = {
        clv_arg_buffer(p->partial),
        constant(p, RANGE),
        clv_arg_buffer(p->list),
        clv_arg_buffer(p->totals),
        i32(plan->all_pixels / CLV_SPECTRA_SEGMENT),
        i32(plan->stars.spectra),
        i32(columns),
    };
    return LAUNCH(p, solve, "clv_spectra_total", defines, CLV_SPECTRA_AROUND / 16, p->items,
                  plan->stars.spectra, false, args);
}

/* From pixels to the next point: normal equations, their surroundings, the step. */
static clv_status judge(const pass *p, bool last)
{
    const clv_spectra_plan *plan = p->plan;
    const size_t spectra = plan->stars.spectra, span = (size_t)p->f.span;
    const size_t segments = plan->all_pixels / CLV_SPECTRA_SEGMENT;
    clv_buffer *pixels = plan->diagonals ? p->resolved : p->pixels;
    const clv_define spans[] = { { "NPOLY", (long)plan->options.terms }, { "SPAN", p->f.span } };
    const clv_define defines[] = { { "NPOLY", (long)plan->options.terms }, { "FP64", p->f.fp64 } };
    const clv_arg gram[] = {
        clv_arg_buffer(pixels),   clv_arg_buffer(p->data), constant(p, BASIS),
        clv_arg_buffer(p->state), clv_arg_buffer(p->list), clv_arg_buffer(p->partial),
        i32(plan->all_pixels),
    };
    CLV_TRY(LAUNCH(p, gram, "clv_spectra_gram", spans, (segments + span - 1) / span, p->items, 1,
                   false, gram));
    CLV_TRY(add_up(p, plan->options.terms * 16));
    const clv_arg solve[] = { clv_arg_buffer(p->totals), clv_arg_buffer(p->list),
                              clv_arg_buffer(p->solved), i32(spectra) };
    CLV_TRY(LAUNCH(p, solve, "clv_spectra_solve", defines, p->items, spectra, 1, false, solve));
    const clv_arg around[] = {
        clv_arg_buffer(pixels),    clv_arg_buffer(p->data),
        constant(p, BASIS),        clv_arg_buffer(p->state),
        clv_arg_buffer(p->list),   constant(p, OWNER),
        clv_arg_buffer(p->solved), clv_arg_buffer(p->partial),
        i32(plan->all_pixels),     i32(spectra),
    };
    CLV_TRY(LAUNCH(p, gram, "clv_spectra_around", spans, (segments + span - 1) / span, p->items, 1,
                   false, around));
    CLV_TRY(add_up(p, CLV_SPECTRA_AROUND));
    const clv_arg step[] = {
        clv_arg_buffer(p->totals),
        clv_arg_buffer(p->solved),
        constant(p, BOX),
        clv_arg_buffer(p->list),
        clv_arg_buffer(p->state),
        i32(spectra),
        i32(last),
    };
    CLV_TRY(LAUNCH(p, solve, "clv_spectra_step", defines, p->items, 1, 1, false, step));
    if (!last || !plan->options.models) return CLV_OK;
    const clv_arg model[] = {
        clv_arg_buffer(pixels),    constant(p, BASIS),
        clv_arg_buffer(p->list),   constant(p, OWNER),
        clv_arg_buffer(p->solved), clv_arg_buffer(p->models),
        i32(plan->all_pixels),     i32(spectra),
    };
    return LAUNCH(p, gram, "clv_spectra_model", spans, (segments + span - 1) / span, p->items, 1,
                  false, model);
}

static clv_status list_items(const pass *p, bool last)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_define defines[] = { { "NPOLY", (long)plan->options.terms }, { "FP64", p->f.fp64 } };
    const clv_arg list[] = { clv_arg_buffer(p->state), clv_arg_buffer(p->list), constant(p, BOX),
                             i32(p->items), i32(last) };
    return LAUNCH(p, solve, "clv_spectra_list", defines, 1, 1, 1, false, list);
}

static clv_status round_of(const pass *p, bool last)
{
    const clv_spectra_plan *plan = p->plan;
    CLV_TRY(list_items(p, last));
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        bool lead = plan->grid[i].wavelength != NULL;
        for (size_t j = 0; j < i; ++j)
            lead &= !plan->grid[j].wavelength || plan->grid[j].arm != plan->grid[i].arm;
        if (lead) CLV_TRY(sample_arm(p, i));
    }
    return judge(p, last);
}

/* Prepares the stars one by one and hands them over; the queue is idle, so nothing waits long. */
static clv_status bring_stars(const pass *p, size_t first)
{
    clv_spectra_plan *plan = p->plan;
    clv_queue *queue = clv_slot_queue(p->slot);
    const sizes s = sizes_of(plan);
    clv_star_data d;
    CLV_TRY(clv_star_data_create(plan, &d));
    clv_status status = CLV_OK;
    for (size_t i = 0; i < p->stars && !status; ++i) {
        status = clv_star_prepare(plan, first + i, &d);
        const float usable = d.facts.usable;
        if (!status) status = clv_write(queue, p->data, i * s.data, d.pairs, s.data);
        if (!status) status = clv_write(queue, p->start_data, i * s.start, d.ccf, s.start);
        if (!status)
            status = clv_write(queue, p->usable, i * sizeof usable, &usable, sizeof usable);
        if (!status && plan->diagonals)
            status = clv_write(queue, p->resolution, i * s.resolution, d.resolution, s.resolution);
        pthread_mutex_lock(&plan->lock);
        plan->facts[first + i] = d.facts;
        pthread_mutex_unlock(&plan->lock);
    }
    clv_star_data_clear(&d);
    return status;
}

/* States that stand at the points to be judged, in place of a fit. */
static clv_status give_points(const pass *p, size_t first)
{
    const clv_spectra_plan *plan = p->plan;
    const size_t starts = plan->options.starts,
                 bytes = p->items * CLV_SPECTRA_STATE * sizeof(float);
    float *states = clv_zalloc(p->items * CLV_SPECTRA_STATE, sizeof *states);
    if (!states) return clv_fail(CLV_E_MEMORY, "specfit: no memory for points");
    for (size_t i = 0; i < p->items; ++i) {
        float *s = states + i * CLV_SPECTRA_STATE;
        for (size_t k = 0; k < CLV_SPECTRA_UNKNOWNS; ++k)
            s[CLV_S_BEST + k] =
                (float)plan->points[(first * starts + i) * CLV_SPECTRA_UNKNOWNS + k];
        pthread_mutex_lock(&p->plan->lock);
        s[CLV_S_STATUS] = plan->facts[first + i / starts].usable ? 2 : 4;
        pthread_mutex_unlock(&p->plan->lock);
        s[CLV_S_STAR] = (float)(i / starts);
    }
    const clv_status status = clv_write(clv_slot_queue(p->slot), p->state, 0, states, bytes);
    clv_free(states);
    if (status) return status;
    return clv_fill_enqueue(clv_slot_queue(p->slot), p->found, 0, p->stars * 2 * sizeof(float), 0,
                            NULL);
}

static clv_status make_buffers(pass *p)
{
    const clv_spectra_plan *plan = p->plan;
    const sizes s = sizes_of(plan);
    const size_t n = p->stars, templates = plan->library->ccf_count;
    const struct {
        unsigned key;
        size_t bytes;
        clv_buffer **buffer;
    } rows[] = {
        { DATA, n * s.data, &p->data },
        { RESOLUTION, CLV_MAX(n * s.resolution, (size_t)64), &p->resolution },
        { USABLE, n * sizeof(float), &p->usable },
        { HIDDEN_A, n * s.hidden, &p->hidden[0] },
        { HIDDEN_B, n * s.hidden, &p->hidden[1] },
        { TEMPLATE, n * s.template_, &p->templates },
        { SPLINE, n * s.template_, &p->spline },
        { TAPS, n * s.taps, &p->taps },
        { PIXELS, n * s.pixels, &p->pixels },
        { RESOLVED, plan->diagonals ? n * s.pixels : 64, &p->resolved },
        { PARTIAL, n * s.partial, &p->partial },
        { TOTALS, n * s.totals, &p->totals },
        { SOLVED, n * s.solved, &p->solved },
        { LIST, (p->items + 2) * sizeof(int32_t), &p->list },
        { START_DATA, n * s.start, &p->start_data },
        { START_CHI, n * s.start_chi, &p->start_chi },
        { START_BEST, n * templates * 2 * sizeof(float), &p->start_best },
    };
    for (size_t i = 0; i < CLV_LEN(rows); ++i)
        CLV_TRY(clv_slot_buffer(p->slot, rows[i].key, rows[i].bytes, rows[i].buffer));
    CLV_TRY(clv_slot_output(p->slot, CLV_SPECTRA_STATES,
                            p->items * CLV_SPECTRA_STATE * sizeof(float), &p->state));
    CLV_TRY(clv_slot_output(p->slot, CLV_SPECTRA_FOUND, n * 2 * sizeof(float), &p->found));
    if (!plan->options.models) return CLV_OK;
    return clv_slot_output(p->slot, CLV_SPECTRA_MODELS, p->items * plan->all_pixels * sizeof(float),
                           &p->models);
}

clv_status clv_spectra_enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    clv_spectra_plan *plan = user;
    pass p = { .plan = plan,
               .f = family_of(clv_worker_device(clv_slot_worker(slot))),
               .slot = slot,
               .stars = count,
               .items = count * plan->options.starts };
    CLV_TRY(make_buffers(&p));
    CLV_TRY(bring_stars(&p, first));
    CLV_TRY(clv_fill_enqueue(clv_slot_queue(slot), p.pixels, 0, count * sizes_of(plan).pixels, 0,
                             NULL));
    if (plan->diagonals)
        CLV_TRY(clv_fill_enqueue(clv_slot_queue(slot), p.resolved, 0, count * sizes_of(plan).pixels,
                                 0, NULL));
    if (plan->options.models)
        CLV_TRY(clv_fill_enqueue(clv_slot_queue(slot), p.models, 0,
                                 p.items * plan->all_pixels * sizeof(float), 0, NULL));
    if (plan->points) CLV_TRY(give_points(&p, first));
    if (!plan->points) {
        CLV_TRY(find_starts(&p));
        for (int round = 0; round < CLV_SPECTRA_ROUNDS; ++round) {
            CLV_TRY(round_of(&p, false));
            if (round < FIRST_LOOK || round % 2) continue;
            int32_t working; /* most stars need few rounds: the rest of them would do nothing */
            CLV_TRY(list_items(&p, false));
            CLV_TRY(clv_read(clv_slot_queue(slot), p.list, 0, &working, sizeof working));
            if (!working) break;
        }
    }
    return round_of(&p, true);
}
