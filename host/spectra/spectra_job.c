/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a chunk of stars on a device: estimates the cost, uploads the constants, prepares the stars, runs the rounds of
 * the fit, and reads the results. */
#include "host/spectra/spectra_feed.h"
#include "host/spectra/spectra_pass.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* Buffers that a chunk in flight has in addition to its result buffers. */
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
    START_FEW,
    START_CHI,
    START_BEST,
    PRIORS,
    CURVE,
    SHIFTED,
    BLURRED,
    SUMS,
    ALONG
};

enum { FIRST_LOOK = 7 }; /* first round after which the host reads the list of items */

/* The bytes of device memory per star, by purpose. */
typedef struct sizes {
    size_t data, resolution, hidden, template_, taps, pixels, partial, totals, solved, start,
        start_few, start_chi, curve, values, scratch, scratch_solution, models, small;
} sizes;

static sizes sizes_of(const clv_spectra_plan *p)
{
    const size_t starts = p->options.starts, f = sizeof(float), spectra = p->stars.spectra;
    return (sizes){
        .data = p->sizes.all_pixels * 2 * f,
        .resolution = p->sizes.all_pixels * p->sizes.diagonals * f,
        .hidden = starts * CLV_SPECTRA_NETWORK_ROWS * p->sizes.widest * f,
        .template_ = starts * (clv_round_up(p->sizes.longest_template, 16) + 16) * 8 * f,
        .taps = starts * 8 * CLV_SPECTRA_TAPS * f,
        .pixels = starts * p->sizes.all_pixels * 8 * f,
        .partial = starts * p->sizes.all_pixels / CLV_SPECTRA_SEGMENT * CLV_SPECTRA_AROUND * f,
        .totals = starts * spectra * 2 * CLV_SPECTRA_AROUND * f,
        .solved = starts * spectra * CLV_SPECTRA_SOLVED * f,
        .start = spectra * 2 * p->sizes.ccf_room * f,
        .start_few = p->sizes.few * p->sizes.ccf_lags * f,
        .start_chi = spectra * p->library->ccf_count * p->sizes.ccf_lags * f,
        .curve = p->wish.scans ? starts * p->sizes.all_points * f : 0,
        .values = p->wish.scans ? starts * 2 * clv_scan_velocities(p) * f : 0,
        .scratch = p->wish.scans ? p->sizes.longest_spectrum * clv_scan_velocities(p) * f : 0,
        .scratch_solution =
            p->wish.scans ? 2 * clv_scan_columns(p->options.terms) * clv_scan_velocities(p) * f : 0,
        .models = p->options.models ? starts * p->sizes.all_pixels * f : 0,
        .small = (starts * (CLV_SPECTRA_STATE + 1) + CLV_SPECTRA_FOUND_BY_STAR + CLV_SPECTRA_PRIOR +
                  2 * p->library->ccf_count + 2) *
                 f,
    };
}

/* Returns the number of stars for which a chunk's buffers have room. It is `stars` rounded up, because a freed buffer
 * is only used again for a request of the same size, while chunks have many different sizes. */
static size_t room_for(size_t stars)
{
    size_t room = 1;
    while (room < stars && room < 16)
        room *= 2;
    return clv_round_up(stars, room);
}

clv_cost clv_spectra_cost(size_t first, size_t count, void *user)
{
    (void)first;
    const clv_spectra_plan *p = user;
    const sizes s = sizes_of(p);
    const size_t room = room_for(count);
    const double n = (double)count, starts = p->options.starts;
    double network = 0, lags = 0;
    for (size_t i = 0; i < p->stars.spectra; ++i) {
        if (!p->grid[i].wavelength) continue;
        const clv_spectra_arm *a = &p->library->arms[p->grid[i].arm];
        for (size_t l = 0; l < a->layers; ++l)
            network += 2 * (double)a->width[l] * (double)a->width[l + 1];
        if (clv_is_grid(a)) network += 2 * CLV_GRID_CORNERS * (double)a->points;
        lags += 5.0 * (double)p->grid[i].ccf_points * (double)p->sizes.ccf_lags *
                (double)p->library->ccf_count;
    }
    const double round = 5 * network + 600 * (double)p->sizes.all_pixels;
    const size_t star = s.data + s.resolution + 2 * s.hidden + 2 * s.template_ + s.taps +
                        s.pixels * (p->sizes.diagonals ? 2 : 1) + s.partial + s.totals + s.solved +
                        s.start + s.start_few + s.start_chi + s.curve + s.values + s.models +
                        s.small;
    const size_t batch = clv_scan_batch(p, room);
    const size_t constants =
        (p->tables.weight_count + p->tables.grid_count + p->tables.ccf_count +
         p->tables.share_count + p->sizes.all_pixels * (18 + clv_scan_columns(p->options.terms))) *
            sizeof(float) +
        batch * (s.scratch * (p->sizes.diagonals ? 2 : 1) + 2 * s.scratch_solution);
    const size_t of_stars[] = { s.data,    s.resolution, s.hidden,    s.template_, s.pixels,
                                s.partial, s.start,      s.start_chi, s.curve,     s.models };
    size_t largest = 0;
    for (size_t i = 0; i < CLV_LEN(of_stars); ++i)
        largest = CLV_MAX(largest, of_stars[i]);
    return (clv_cost){
        .flops = n * (lags + starts * 10 * round),
        .traffic_bytes = n * starts * 10 * 3 * (double)(s.template_ + s.pixels),
        .transfer_bytes = n * (double)(s.data + s.resolution + s.start),
        .memory_bytes = room * star + constants,
        .buffer_bytes =
            CLV_MAX(room * largest, CLV_MAX(CLV_MAX(p->tables.weight_count, p->tables.grid_count),
                                            p->tables.ccf_count) *
                                        sizeof(float)),
    };
}

static clv_status upload(clv_worker *worker, unsigned key, const void *data, size_t bytes)
{
    clv_buffer *buffer;
    CLV_TRY(clv_worker_buffer(worker, key, bytes, &buffer));
    return clv_write(clv_worker_queue(worker), buffer, 0, data, bytes);
}

/* Uploads the spectra of all grids of templates directly from the library's memory, followed by zeros. */
static clv_status upload_grids(clv_worker *worker, const clv_spectra_plan *p)
{
    static const float zeros[16];
    clv_buffer *buffer;
    const size_t end = p->tables.grid_count * sizeof(float);
    CLV_TRY(clv_worker_buffer(worker, CLV_PASS_GRID, end + sizeof zeros, &buffer));
    for (size_t i = 0; i < p->stars.spectra; ++i) {
        if (clv_spectra_lead(p, i) != i) continue;
        const clv_spectra_arm *arm = &p->library->arms[p->grid[i].arm];
        if (clv_is_grid(arm))
            CLV_TRY(clv_write(clv_worker_queue(worker), buffer,
                              p->tables.arm[i].grid * sizeof(float), arm->grid_log_flux,
                              arm->grid_spectra * arm->points * sizeof(float)));
    }
    return clv_write(clv_worker_queue(worker), buffer, end, zeros, sizeof zeros);
}

clv_status clv_spectra_setup(clv_worker *worker, void *user)
{
    const clv_spectra_plan *p = user;
    if (p->tables.grid_count) CLV_TRY(upload_grids(worker, p));
    const size_t spectra = p->stars.spectra, n = p->sizes.all_pixels;
    CLV_TRY(upload(worker, CLV_PASS_WEIGHTS, p->tables.weights,
                   p->tables.weight_count * sizeof *p->tables.weights));
    CLV_TRY(upload(worker, CLV_PASS_BASIS, p->tables.basis, n * 16 * sizeof *p->tables.basis));
    CLV_TRY(upload(worker, CLV_PASS_PRODUCTS, p->tables.products,
                   n * clv_scan_columns(p->options.terms) * sizeof *p->tables.products));
    CLV_TRY(upload(worker, CLV_PASS_WHOLE, p->tables.whole, n * sizeof *p->tables.whole));
    CLV_TRY(upload(worker, CLV_PASS_PART, p->tables.part, n * sizeof *p->tables.part));
    CLV_TRY(
        upload(worker, CLV_PASS_CCF, p->tables.ccf, p->tables.ccf_count * sizeof *p->tables.ccf));
    if (p->tables.few) {
        CLV_TRY(upload(worker, CLV_PASS_FEW, p->tables.few,
                       p->tables.few_count * sizeof *p->tables.few));
        CLV_TRY(upload(worker, CLV_PASS_SHARES, p->tables.shares,
                       p->tables.share_count * sizeof *p->tables.shares));
    }
    CLV_TRY(upload(worker, CLV_PASS_POINTS, p->tables.ccf_points,
                   p->library->ccf_count * 4 * sizeof(float)));
    CLV_TRY(
        upload(worker, CLV_PASS_RANGE, p->tables.ranges, 2 * spectra * sizeof *p->tables.ranges));
    CLV_TRY(upload(worker, CLV_PASS_OWNER, p->tables.ranges + 2 * spectra,
                   n / CLV_SPECTRA_SEGMENT * sizeof *p->tables.ranges));
    CLV_TRY(upload(worker, CLV_PASS_PLACE, p->tables.places,
                   p->sizes.velocities * spectra * sizeof *p->tables.places));
    return upload(worker, CLV_PASS_BOX, p->box.numbers, sizeof p->box.numbers);
}

/* Collects prepared stars and writes several of them to the device at once, since every transfer has a fixed cost. */
typedef struct bringer {
    const clv_pass *pass;
    sizes bytes;
    size_t first, held; /* first star in the plan; stars held in the arrays */
    float *pairs, *ccf, *resolution, *usable;
} bringer;

enum { TOGETHER = 16 };

/* Writes the collected stars, the last of which precedes star `end` of the chunk, to the device. */
static clv_status hand_over(bringer *b, size_t end)
{
    const clv_pass *p = b->pass;
    clv_queue *queue = clv_slot_queue(p->slot);
    const sizes *s = &b->bytes;
    const size_t n = b->held, at = end - n;
    b->held = 0;
    CLV_TRY(clv_write(queue, p->data, at * s->data, b->pairs, n * s->data));
    CLV_TRY(clv_write(queue, p->start_data, at * s->start, b->ccf, n * s->start));
    CLV_TRY(clv_write(queue, p->usable, at * sizeof(float), b->usable, n * sizeof(float)));
    if (!p->plan->sizes.diagonals) return CLV_OK;
    return clv_write(queue, p->resolution, at * s->resolution, b->resolution, n * s->resolution);
}

static clv_status take_star(const clv_star_pack *pack, size_t i, void *user)
{
    bringer *b = user;
    clv_spectra_plan *plan = b->pass->plan;
    const sizes *s = &b->bytes;
    const size_t at = b->held++;
    memcpy(b->pairs + at * s->data / sizeof(float), pack->pairs, s->data);
    memcpy(b->ccf + at * s->start / sizeof(float), pack->ccf, s->start);
    if (plan->sizes.diagonals)
        memcpy(b->resolution + at * s->resolution / sizeof(float), pack->resolution, s->resolution);
    b->usable[at] = pack->facts.usable ? (float)(1 + pack->facts.first_arm) : 0;
    pthread_mutex_lock(&plan->run.lock);
    plan->run.facts[b->first + i] = pack->facts;
    pthread_mutex_unlock(&plan->run.lock);
    return b->held == TOGETHER || i + 1 == b->pass->stars ? hand_over(b, i + 1) : CLV_OK;
}

static clv_status feed_of(clv_spectra_plan *plan, clv_star_feed **feed)
{
    pthread_mutex_lock(&plan->run.lock);
    clv_status status = CLV_OK;
    if (!plan->run.feed)
        status =
            clv_star_feed_create(plan, CLV_MAX(plan->wish.threads, (size_t)1), &plan->run.feed);
    *feed = plan->run.feed;
    pthread_mutex_unlock(&plan->run.lock);
    return status;
}

/* Writes the chunk's prepared stars to the device. While a graphics card fits them, the host prepares as many more
 * stars; a CPU device leaves no spare cores for that. */
static clv_status bring_stars(const clv_pass *p, size_t first)
{
    clv_star_feed *feed;
    CLV_TRY(feed_of(p->plan, &feed));
    bringer b = { .pass = p, .bytes = sizes_of(p->plan), .first = first };
    const size_t n = CLV_MIN(p->stars, (size_t)TOGETHER);
    b.pairs = clv_alloc(n, b.bytes.data), b.ccf = clv_alloc(n, b.bytes.start);
    b.usable = clv_alloc(n, sizeof *b.usable);
    if (p->plan->sizes.diagonals) b.resolution = clv_alloc(n, b.bytes.resolution);
    const size_t ahead = p->f.on_cores ? 0 : p->stars;
    const clv_status status =
        b.pairs && b.ccf && b.usable && (b.resolution || !p->plan->sizes.diagonals)
            ? clv_star_feed_bring(feed, first, p->stars, ahead, take_star, &b)
            : clv_fail(CLV_E_MEMORY, "specfit: not enough memory for the stars in the queue");
    clv_free(b.pairs), clv_free(b.ccf), clv_free(b.usable), clv_free(b.resolution);
    return status;
}

static clv_status bring_priors(const clv_pass *p, size_t first)
{
    const size_t bytes = CLV_SPECTRA_PRIOR * sizeof(float);
    float *numbers = clv_alloc(p->stars, bytes);
    if (!numbers) return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for priors");
    for (size_t i = 0; i < p->stars; ++i)
        clv_star_prior_numbers(p->plan, first + i, numbers + i * CLV_SPECTRA_PRIOR);
    const clv_status status =
        clv_write(clv_slot_queue(p->slot), p->priors, 0, numbers, p->stars * bytes);
    clv_free(numbers);
    return status;
}

/* Sets the state with which the fit of an item begins at a given point. */
static void begin_at_point(const clv_spectra_plan *plan, const float prior[CLV_SPECTRA_PRIOR],
                           float *s)
{
    for (size_t k = 0; k < CLV_SPECTRA_UNKNOWNS; ++k) {
        const float x = s[CLV_S_BEST + k], step = plan->box.numbers[18 + k];
        s[CLV_S_TRY + k] = x;
        s[CLV_S_STEP + k] = x + step > plan->box.numbers[6 + k] ? -step : step;
    }
    memcpy(s + CLV_S_PRIOR, prior, 12 * sizeof *prior);
    s[CLV_S_FIXED] = prior[12];
    s[CLV_S_LAMBDA] = 1e-3F;
}

/* Writes the items' states at the points that the run is given: points to evaluate, or to start fits from. */
static clv_status give_points(const clv_pass *p, size_t first)
{
    const clv_spectra_plan *plan = p->plan;
    const size_t starts = plan->options.starts,
                 bytes = p->items * CLV_SPECTRA_STATE * sizeof(float);
    const double *points = plan->wish.points ? plan->wish.points : plan->wish.begin;
    float *states = clv_zalloc(p->items * CLV_SPECTRA_STATE, sizeof *states);
    if (!states) return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for points");
    for (size_t i = 0; i < p->items; ++i) {
        float *s = states + i * CLV_SPECTRA_STATE, prior[CLV_SPECTRA_PRIOR];
        for (size_t k = 0; k < CLV_SPECTRA_UNKNOWNS; ++k)
            s[CLV_S_BEST + k] = (float)points[(first * starts + i) * CLV_SPECTRA_UNKNOWNS + k];
        pthread_mutex_lock(&p->plan->run.lock);
        const bool usable = plan->run.facts[first + i / starts].usable && !isnan(s[CLV_S_BEST]);
        s[CLV_S_STATUS] = !usable ? 4 : plan->wish.points ? 2 : 0;
        pthread_mutex_unlock(&p->plan->run.lock);
        s[CLV_S_STAR] = (float)(i / starts);
        if (plan->wish.points) continue;
        clv_star_prior_numbers(plan, first + i / starts, prior);
        begin_at_point(plan, prior, s);
    }
    const clv_status status = clv_write(clv_slot_queue(p->slot), p->state, 0, states, bytes);
    clv_free(states);
    if (status) return status;
    return clv_fill_enqueue(clv_slot_queue(p->slot), p->found, 0,
                            p->stars * CLV_SPECTRA_FOUND_BY_STAR * sizeof(float), 0, NULL);
}

static unsigned watched_key(clv_spectra_watch watch)
{
    static const unsigned keys[] = { 0, TEMPLATE, SPLINE, PIXELS, RESOLVED, START_CHI };
    return keys[watch];
}

static clv_status make_buffers(clv_pass *p)
{
    const clv_spectra_plan *plan = p->plan;
    const sizes s = sizes_of(plan);
    const size_t n = room_for(p->stars), templates = plan->library->ccf_count;
    const size_t batch = clv_scan_batch(plan, n);
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
        { RESOLVED, plan->sizes.diagonals ? n * s.pixels : 64, &p->resolved },
        { PARTIAL, n * s.partial, &p->partial },
        { TOTALS, n * s.totals, &p->totals },
        { SOLVED, n * s.solved, &p->solved },
        { LIST, (n * plan->options.starts + 2) * sizeof(int32_t), &p->list },
        { START_DATA, n * s.start, &p->start_data },
        { START_FEW, CLV_MAX(n * s.start_few, (size_t)64), &p->start_few },
        { START_CHI, n * s.start_chi, &p->start_chi },
        { START_BEST, n * templates * 2 * sizeof(float), &p->start_best },
        { PRIORS, n * CLV_SPECTRA_PRIOR * sizeof(float), &p->priors },
        { CURVE, CLV_MAX(n * s.curve, (size_t)64), &p->curve },
        { SHIFTED, CLV_MAX(batch * s.scratch, (size_t)64), &p->shifted },
        { BLURRED, plan->sizes.diagonals && plan->wish.scans ? batch * s.scratch : 64,
          &p->blurred },
        { SUMS, CLV_MAX(batch * s.scratch_solution, (size_t)64), &p->sums },
        { ALONG, CLV_MAX(batch * s.scratch_solution, (size_t)64), &p->along },
    };
    for (size_t i = 0; i < CLV_LEN(rows); ++i) {
        const bool watched = plan->wish.watch && rows[i].key == watched_key(plan->wish.watch);
        CLV_TRY(watched
                    ? clv_slot_output(p->slot, CLV_SPECTRA_WATCHED, rows[i].bytes, rows[i].buffer)
                    : clv_slot_buffer(p->slot, rows[i].key, rows[i].bytes, rows[i].buffer));
    }
    CLV_TRY(clv_slot_output(p->slot, CLV_SPECTRA_SCANS, CLV_MAX(p->stars * s.values, (size_t)64),
                            &p->values));
    CLV_TRY(clv_slot_output(p->slot, CLV_SPECTRA_STATES,
                            p->items * CLV_SPECTRA_STATE * sizeof(float), &p->state));
    CLV_TRY(clv_slot_output(p->slot, CLV_SPECTRA_FOUND,
                            p->stars * CLV_SPECTRA_FOUND_BY_STAR * sizeof(float), &p->found));
    if (!plan->options.models) return CLV_OK;
    return clv_slot_output(p->slot, CLV_SPECTRA_MODELS,
                           p->items * plan->sizes.all_pixels * sizeof(float), &p->models);
}

/* Evaluates every item at its present point: a point that the caller gave, or the end of a fit. */
static clv_status look(const clv_pass *p)
{
    const clv_spectra_plan *plan = p->plan;
    CLV_TRY(clv_pass_list(p, true));
    CLV_TRY(clv_pass_templates(p, true));
    CLV_TRY(clv_pass_judge(p, true));
    return plan->wish.scans ? clv_pass_scan(p) : CLV_OK;
}

/* Runs the first rounds of a fit, which use a single arm of each star. */
static clv_status fit_arms(const clv_pass *p)
{
    const clv_spectra_plan *plan = p->plan;
    for (int round = 0; round < CLV_SPECTRA_ARM_ROUNDS; ++round) {
        for (size_t lead = 0; lead < plan->stars.spectra; ++lead) {
            if (clv_spectra_lead(plan, lead) != lead) continue;
            CLV_TRY(clv_pass_list_arm(p, lead));
            CLV_TRY(clv_pass_templates_of(p, lead, false));
        }
        CLV_TRY(clv_pass_list_arm(p, SIZE_MAX));
        CLV_TRY(clv_pass_judge(p, false));
    }
    return CLV_OK;
}

static clv_status fit(const clv_pass *p, size_t first)
{
    CLV_TRY(p->plan->wish.begin ? give_points(p, first) : clv_pass_find_starts(p));
    if (p->plan->wish.stages == CLV_SPECTRA_STAGE_START) return CLV_OK;
    if (!p->plan->wish.begin && clv_spectra_has_first_arms(p->plan)) CLV_TRY(fit_arms(p));
    for (int round = 0; round < clv_spectra_most_rounds(p->plan); ++round) {
        CLV_TRY(clv_pass_list(p, false));
        CLV_TRY(clv_pass_templates(p, false));
        CLV_TRY(clv_pass_judge(p, false));
        if (round < FIRST_LOOK || round % 2) continue;
        int32_t working; /* unfinished items: most stars need only a few rounds */
        CLV_TRY(clv_pass_list(p, false));
        CLV_TRY(clv_read(clv_slot_queue(p->slot), p->list, 0, &working, sizeof working));
        if (!working) break;
    }
    return CLV_OK;
}

/* Runs the stages that `wish.stages` selects again, `wish.repeats` times, so that they can be timed. */
static clv_status repeat(clv_pass *p)
{
    const unsigned stages = p->stages = p->plan->wish.stages;
    for (size_t i = 0; i < p->plan->wish.repeats; ++i) {
        CLV_TRY(clv_pass_list(p, true));
        if (stages & CLV_SPECTRA_STAGE_START) CLV_TRY(clv_pass_find_starts(p));
        if (stages & (CLV_SPECTRA_STAGE_NETWORK | CLV_SPECTRA_STAGE_SPLINE))
            CLV_TRY(clv_pass_templates(p, false));
        if (stages & CLV_SPECTRA_STAGE_JUDGE) CLV_TRY(clv_pass_judge(p, true));
        if (stages & (CLV_SPECTRA_STAGE_SHIFT | CLV_SPECTRA_STAGE_VALUES))
            CLV_TRY(clv_pass_scan(p));
    }
    return CLV_OK;
}

/* Copies the facts about a chunk's stars into the results of the chunk. */
static clv_status note_facts(clv_slot *slot, clv_spectra_plan *plan, size_t first, size_t count)
{
    void *facts;
    CLV_TRY(
        clv_slot_result_create(slot, CLV_SPECTRA_FACTS, count * sizeof(clv_star_facts), &facts));
    pthread_mutex_lock(&plan->run.lock);
    memcpy(facts, plan->run.facts + first, count * sizeof(clv_star_facts));
    pthread_mutex_unlock(&plan->run.lock);
    return CLV_OK;
}

clv_status clv_spectra_enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    clv_spectra_plan *plan = user;
    clv_queue *queue = clv_slot_queue(slot);
    clv_pass p = { .plan = plan,
                   .f = clv_pass_form_of(clv_worker_device(clv_slot_worker(slot))),
                   .slot = slot,
                   .stars = count,
                   .items = count * plan->options.starts,
                   .batch = clv_scan_batch(plan, count),
                   .stages = ~0u };
    const size_t pixels = count * sizes_of(plan).pixels;
    CLV_TRY(make_buffers(&p));
    CLV_TRY(bring_stars(&p, first));
    CLV_TRY(note_facts(slot, plan, first, count));
    CLV_TRY(bring_priors(&p, first));
    CLV_TRY(clv_fill_enqueue(queue, p.pixels, 0, pixels, 0, NULL));
    if (plan->sizes.diagonals) CLV_TRY(clv_fill_enqueue(queue, p.resolved, 0, pixels, 0, NULL));
    if (plan->options.models)
        CLV_TRY(clv_fill_enqueue(queue, p.models, 0,
                                 p.items * plan->sizes.all_pixels * sizeof(float), 0, NULL));
    if (plan->wish.points)
        CLV_TRY(give_points(&p, first));
    else
        CLV_TRY(fit(&p, first));
    CLV_TRY(look(&p));
    return plan->wish.stages ? repeat(&p) : CLV_OK;
}

clv_job clv_spectra_job(const char *name, size_t units)
{
    return (clv_job){ .size = sizeof(clv_job),
                      .name = name,
                      .units = units,
                      .cost = clv_spectra_cost,
                      .setup = clv_spectra_setup,
                      .enqueue = clv_spectra_enqueue,
                      .rehearse = true };
}
