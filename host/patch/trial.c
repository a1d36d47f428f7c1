/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a batch of trials as a job: unit k is the k-th of the trials that stay inside the frame. */
#include "host/patch/trial.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/linalg.h"
#include "runtime/job/results.h"
#include "cl/patch/shared.clh"
#include "cl_embedded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DATA, COEFFICIENTS, PLACES, ORIGINS, FLUX, INJECTED, TABLE };
enum { SPOTS = 1, TEMPLATES, SCRATCH };

/* The way in which a device runs the trials. */
typedef struct form {
    bool in_groups;
    size_t lanes, row, group, entries, workers;
    /* trials whose images are stored at once; on CPUs, as many as fit in the caches */
    size_t together;
} form;

static clv_status form_of(const clv_trials *b, const clv_device *device, form *f)
{
    const clv_probe_device *facts = clv_device_facts(device);
    const size_t p = b->plan->pixels, pairs = p * (p + 1) / 2;
    if (facts->device_class == CLV_CLASS_SOFTWARE)
        return clv_fail(CLV_E_DEVICE, "paco: trials do not run on a software rasteriser, because "
                                      "the host is faster; use a CPU or GPU driver");
    *f = (form){ .in_groups = facts->device_class != CLV_CLASS_CPU };
    f->lanes = f->in_groups ? 1 : clv_cpu_has_avx2_alone() ? 8 : 16;
    f->row = clv_round_up(p + 4 * CLV_TRIAL_TOGETHER, CLV_MAX(f->lanes, 8));
    f->group = p <= 49 ? 64 : 256;
    f->entries = (pairs + f->group - 1) / f->group;
    f->together = f->in_groups ? SIZE_MAX : 4;
    f->workers = 8 * CLV_MAX(facts->compute_units, 1u);
    if (f->in_groups && (facts->max_work_group < f->group ||
                         facts->local_bytes < (pairs + 7 * p + f->group) * sizeof(float)))
        return clv_fail(CLV_E_DEVICE,
                        "paco: a work-group with this patch exceeds the device's limits");
    return CLV_OK;
}

static size_t scratch_floats(const clv_trials *b, const form *f)
{
    return b->plan->in.frames * f->row + clv_round_up(b->plan->pixels, 4) * f->row + 32;
}

static clv_cost cost(size_t first, size_t count, void *user)
{
    const clv_trials *b = user;
    const double t = (double)b->plan->in.frames, p = (double)b->plan->pixels, n = (double)count;
    const size_t spots = b->plan->in.frames * b->plan->in.psf_size * b->stride * sizeof(float),
                 data = b->plan->in.frames * b->height * b->width * sizeof(float);
    (void)first;
    return (clv_cost){
        .flops =
            n * t * (t * p * (p + 5) + p * p * p / 3) + n * (double)spots * CLV_TRIAL_TERMS / 2,
        .traffic_bytes = n * t * t * p * 8,
        .transfer_bytes = n * t * (2 * sizeof(clv_trial_place) + CLV_TRIAL_SUMS * sizeof(float)),
        .memory_bytes = count * spots + data + (64 << 20),
        .buffer_bytes = CLV_MAX(count * spots, data),
    };
}

static clv_status upload(clv_worker *worker, unsigned key, const void *data, size_t bytes)
{
    clv_buffer *buffer;
    CLV_TRY(clv_worker_buffer(worker, key, bytes, &buffer));
    return clv_write(clv_worker_queue(worker), buffer, 0, data, bytes);
}

/* Uploads the disc: for CPUs its rows (half width, and number of the first pixel), for GPUs the offsets of its
 * pixels. */
static clv_status upload_table(clv_worker *worker, const clv_trials *b, bool in_groups)
{
    int32_t table[2 * CLV_PACO_MAX_PIXELS];
    size_t count = 0;
    const clv_paco_plan *plan = b->plan;
    for (size_t i = 0; i < plan->pixels; ++i) {
        if (in_groups)
            table[count++] = plan->offset[i].dy, table[count++] = plan->offset[i].dx;
        else if (i == 0 || plan->offset[i].dy != plan->offset[i - 1].dy)
            table[count++] = -plan->offset[i].dx, table[count++] = (int32_t)i;
    }
    return upload(worker, TABLE, table, count * sizeof *table);
}

static clv_status setup(clv_worker *worker, void *user)
{
    const clv_trials *b = user;
    const size_t frames = b->plan->in.frames, size = b->plan->in.psf_size;
    form f;
    CLV_TRY(form_of(b, clv_worker_device(worker), &f));
    CLV_TRY(upload(worker, DATA, b->data, (frames * b->height * b->width + 16) * sizeof(float)));
    CLV_TRY(upload(worker, COEFFICIENTS, b->coefficients,
                   CLV_TRIAL_TERMS * size * b->stride * sizeof(float)));
    CLV_TRY(upload(worker, PLACES, b->places, b->count * frames * sizeof *b->places));
    CLV_TRY(upload(worker, ORIGINS, b->origins, b->count * frames * sizeof *b->origins));
    CLV_TRY(upload(worker, FLUX, b->flux, b->count * sizeof(float)));
    CLV_TRY(upload(worker, INJECTED, b->injected, b->count * sizeof(float)));
    return upload_table(worker, b, f.in_groups);
}

static clv_buffer *constant(const clv_slot *slot, unsigned key)
{
    clv_buffer *buffer = NULL;
    /* the buffer has existed since setup */
    (void)clv_worker_buffer(clv_slot_worker(slot), key, 0, &buffer);
    return buffer;
}

static clv_arg u32(size_t value)
{
    return clv_arg_u32((uint32_t)value);
}

static clv_status enqueue_images(clv_slot *slot, const clv_trials *b, const form *f, size_t first,
                                 size_t count, clv_buffer *spots, clv_buffer *templates)
{
    const size_t frames = b->plan->in.frames, size = b->plan->in.psf_size;
    const clv_arg args[] = { clv_arg_buffer(spots),
                             clv_arg_buffer(constant(slot, COEFFICIENTS)),
                             clv_arg_buffer(constant(slot, PLACES)),
                             clv_arg_buffer(constant(slot, ORIGINS)),
                             clv_arg_buffer(constant(slot, FLUX)),
                             clv_arg_buffer(constant(slot, INJECTED)),
                             u32(first),
                             u32(frames),
                             u32(size),
                             u32(b->stride),
                             u32(count * frames) };
    const size_t turns = f->in_groups ? count * frames : (count * frames + 15) / 16;
    const size_t local = f->in_groups ? 16 : 1;
    clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_patch_trial_spots,
        .kernel = "clv_trial_spots",
        .defines = { { "LANES", (long)f->lanes }, { "RADIUS", (long)b->plan->radius } },
        .global = { f->in_groups ? clv_round_up(b->stride, local) : 1, size, turns },
        .local = { local, 1, 1 }
    };
    CLV_TRY(clv_launch_enqueue(clv_slot_queue(slot), &launch, args, CLV_LEN(args), NULL));
    const clv_arg more[] = {
        clv_arg_buffer(templates), args[1], args[2], args[6], args[7], args[8], args[9], args[10]
    };
    launch.kernel = "clv_trial_templates";
    launch.global[0] = f->in_groups ? CLV_TRIAL_ROW : 1, launch.global[1] = 2 * b->plan->radius + 1;
    return clv_launch_enqueue(clv_slot_queue(slot), &launch, more, CLV_LEN(more), NULL);
}

/* Enqueues the sums of every frame of every trial of the chunk. */
static clv_status enqueue_sums(clv_slot *slot, const clv_trials *b, const form *f,
                               clv_buffer *spots, clv_buffer *templates, clv_buffer *sums,
                               size_t first, size_t before, size_t count)
{
    const size_t frames = b->plan->in.frames, p = b->plan->pixels,
                 workers = CLV_MIN(f->workers, count * frames);
    clv_arg args[16];
    size_t n = 0;
    args[n++] = clv_arg_buffer(constant(slot, DATA));
    args[n++] = clv_arg_buffer(spots);
    args[n++] = clv_arg_buffer(templates);
    args[n++] = clv_arg_buffer(constant(slot, PLACES));
    args[n++] = clv_arg_buffer(constant(slot, TABLE));
    args[n++] = clv_arg_buffer(sums);
    if (!f->in_groups) {
        clv_buffer *scratch;
        CLV_TRY(clv_slot_buffer(slot, SCRATCH, f->workers * scratch_floats(b, f) * sizeof(float),
                                &scratch));
        args[n++] = clv_arg_buffer(scratch);
    }
    args[n++] = u32(first);
    if (!f->in_groups) args[n++] = u32(before), args[n++] = u32(count);
    args[n++] = u32(frames), args[n++] = u32(b->height), args[n++] = u32(b->width);
    args[n++] = u32(b->plan->in.psf_size), args[n++] = u32(b->stride);
    clv_launch launch = { .size = sizeof(clv_launch),
                          .source =
                              f->in_groups ? &clv_cl_patch_trial_group : &clv_cl_patch_trial_rows,
                          .kernel = f->in_groups ? "clv_trial_group" : "clv_trial_rows",
                          .defines = { { "LANES", (long)f->lanes },
                                       { "P", (long)p },
                                       { "RADIUS", (long)b->plan->radius } } };
    if (f->in_groups) {
        args[n++] = clv_arg_local((p * (p + 1) / 2 + 7 * p + f->group) * sizeof(float));
        launch.defines[3] = (clv_define){ "WG", (long)f->group };
        launch.defines[4] = (clv_define){ "ENTRIES", (long)f->entries };
        launch.global[0] = count * frames * f->group, launch.local[0] = f->group;
    } else {
        args[n++] = u32(workers);
        launch.defines[3] =
            (clv_define){ "SCRATCH", (long)(scratch_floats(b, f) - frames * f->row) };
        launch.global[0] = workers, launch.local[0] = 1;
    }
    return clv_launch_enqueue(clv_slot_queue(slot), &launch, args, n, NULL);
}

static clv_status enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_trials *b = user;
    form f;
    clv_buffer *spots, *templates, *result;
    CLV_TRY(form_of(b, clv_worker_device(clv_slot_worker(slot)), &f));
    const size_t frames = b->plan->in.frames, images = CLV_MIN(count, f.together) * frames;
    CLV_TRY(clv_slot_buffer(slot, SPOTS, images * b->plan->in.psf_size * b->stride * sizeof(float),
                            &spots));
    CLV_TRY(clv_slot_buffer(slot, TEMPLATES,
                            images * 3 * (2 * b->plan->radius + 1) * CLV_TRIAL_ROW * sizeof(float),
                            &templates));
    CLV_TRY(clv_slot_output(slot, CLV_TRIAL_RESULT, count * frames * CLV_TRIAL_SUMS * sizeof(float),
                            &result));
    for (size_t before = 0, now; before < count; before += now) {
        now = CLV_MIN(count - before, f.together);
        CLV_TRY(enqueue_images(slot, b, &f, first + before, now, spots, templates));
        CLV_TRY(enqueue_sums(slot, b, &f, spots, templates, result, first, before, now));
    }
    return CLV_OK;
}

/* Adds one frame's sums to the trial. Converts the derivatives from the frame's axes to the map's: a step in x or y of
 * the map moves the planet in the frame by (-s, c) or (c, s). */
static void add_frame(const float *v, const clv_rotation *turn, clv_trial *t)
{
    const double c = (double)turn->c * 0x1p-32, s = (double)turn->s * 0x1p-32,
                 w = (double)turn->weight, g = (double)turn->gain;
    const double hh = w * (double)v[0], hr = w * (double)v[1], hc = w * (double)v[2],
                 rr = w * (double)v[3], rc = w * (double)v[4], cc = w * (double)v[5],
                 hz = g * (double)v[6], rz = g * (double)v[7], cz = g * (double)v[8];
    t->A[0] += hh;
    t->A[1] += c * hc - s * hr, t->A[2] += c * hr + s * hc;
    t->A[4] += s * s * rr - 2 * s * c * rc + c * c * cc;
    t->A[5] += s * c * (cc - rr) + (c * c - s * s) * rc;
    t->A[8] += c * c * rr + 2 * s * c * rc + s * s * cc;
    t->c[0] += hz;
    t->c[1] += c * cz - s * rz;
    t->c[2] += c * rz + s * cz;
}

static clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    clv_trials *b = user;
    const size_t frames = b->plan->in.frames;
    const float *result;
    CLV_TRY(clv_slot_take(slot, CLV_TRIAL_RESULT, count * frames * CLV_TRIAL_SUMS * sizeof *result,
                          &result));
    const double s = (double)b->plan->scale / b->plan->psf_scale;
    for (size_t k = 0; k < count; ++k) {
        clv_trial *t = &b->trials[b->order[first + k]];
        memset(t->A, 0, sizeof t->A), memset(t->c, 0, sizeof t->c);
        for (size_t l = 0; l < frames; ++l)
            add_frame(result + (k * frames + l) * CLV_TRIAL_SUMS, &b->plan->turn[l], t);
        t->A[3] = t->A[1], t->A[6] = t->A[2], t->A[7] = t->A[5];
        for (int i = 0; i < 9; ++i)
            t->A[i] *= s * s;
        for (int i = 0; i < 3; ++i)
            t->c[i] *= s;
        t->a = t->A[0], t->b = t->c[0] + t->flux * t->a;
        if (!isfinite(t->b) || !(t->a > 0)) t->a = t->b = NAN;
    }
    return CLV_OK;
}

/* ---- before the job ---- */

/* Computes the Fourier shift's kernel at every distance as polynomials in s, degree 0 to 6. */
static void kernel_polynomials(int n, int reach, double *out)
{
    enum { NODES = 12, DEGREES = CLV_TRIAL_DEGREE + 1 };
    for (int d = -reach; d <= reach; ++d) {
        double a[NODES * DEGREES], b[NODES];
        for (int i = 0; i < NODES; ++i) {
            const double s = -0.5 * cos(3.14159265358979323846 * (i + 0.5) / NODES), u = d - s;
            const double pi = 3.14159265358979323846, t = tan(pi * u / n);
            b[i] = fabs(u) < 1e-12 ? 1 : sin(pi * u) / (n * t);
            for (int k = 0; k < DEGREES; ++k)
                a[i * DEGREES + k] = pow(s, k);
        }
        (void)clv_least_squares(a, NODES, DEGREES, b, 1, out + (size_t)(d + reach) * DEGREES);
    }
}

/* Computes the coefficients of spot(fy, fx) = sum_jk fy^j fx^k A_j psf A_k', in order of total degree. */
static clv_status make_coefficients(clv_trials *b)
{
    enum { DEGREES = CLV_TRIAL_DEGREE + 1 };
    const size_t size = b->plan->in.psf_size;
    const int side = (int)size, n = side + 2 + (side & 1);
    b->stride = clv_round_up(size + 2 * CLV_TRIAL_PAD, 16);
    b->coefficients = clv_zalloc(CLV_TRIAL_TERMS * size * b->stride, sizeof *b->coefficients);
    double *kernel = clv_alloc((2 * size + 1) * DEGREES, sizeof *kernel),
           *half = clv_alloc(size * size, sizeof *half);
    if (!b->coefficients || !kernel || !half) {
        clv_free(kernel), clv_free(half);
        return clv_fail(CLV_E_MEMORY, "paco: not enough memory for the planet's images");
    }
    kernel_polynomials(n, side, kernel);
    for (int j = 0; j < DEGREES; ++j) {
        for (int y = 0; y < side; ++y)
            for (int x = 0; x < side; ++x) {
                double sum = 0;
                for (int v = 0; v < side; ++v)
                    sum += kernel[(y - v + side) * DEGREES + j] * b->plan->psf[v * side + x];
                half[y * side + x] = sum;
            }
        for (int k = 0; j + k < DEGREES; ++k) {
            const int degree = j + k, term = degree * (degree + 1) / 2 + k;
            float *out = b->coefficients + (size_t)term * b->stride + CLV_TRIAL_PAD;
            for (int y = 0; y < side; ++y)
                for (int x = 0; x < side; ++x) {
                    double sum = 0;
                    for (int u = 0; u < side; ++u)
                        sum += kernel[(x - u + side) * DEGREES + k] * half[y * side + u];
                    out[(size_t)y * CLV_TRIAL_TERMS * b->stride + (size_t)x] = (float)sum;
                }
        }
    }
    clv_free(kernel), clv_free(half);
    return CLV_OK;
}

static clv_trial_place place_of(const clv_rotation *turn, double row, double col)
{
    const double y = floor(row + 0.5), x = floor(col + 0.5);
    return (clv_trial_place){ (int32_t)y,       (int32_t)x,   (float)(row - y),
                              (float)(col - x), turn->weight, turn->gain };
}

/* Computes the positions of all trials in all frames. Trials whose planet leaves the frame are left out. */
static clv_status make_places(clv_trials *b, size_t count)
{
    const clv_paco_plan *plan = b->plan;
    const size_t frames = plan->in.frames;
    const double s = plan->scale, h = plan->psf_scale;
    b->order = clv_alloc(count + 1, sizeof *b->order);
    b->places = clv_alloc(count * frames + 1, sizeof *b->places);
    b->origins = clv_alloc(count * frames + 1, sizeof *b->origins);
    b->flux = clv_alloc(count + 1, sizeof *b->flux);
    b->injected = clv_alloc(count + 1, sizeof *b->injected);
    if (!b->order || !b->places || !b->origins || !b->flux || !b->injected)
        return clv_fail(CLV_E_MEMORY, "paco: not enough memory for %zu trials", count);
    const int32_t r = (int32_t)plan->radius;
    int32_t low_row = INT32_MAX, low_col = INT32_MAX, high_row = 0, high_col = 0;
    for (size_t k = 0; k < count; ++k) {
        clv_trial *t = &b->trials[k];
        const double dy = t->y - plan->centre_y, dx = t->x - plan->centre_x;
        bool inside = isfinite(dy) && isfinite(dx);
        clv_trial_place *places = b->places + b->count * frames,
                        *origins = b->origins + b->count * frames;
        int32_t low[2] = { INT32_MAX, INT32_MAX }, high[2] = { 0, 0 };
        for (size_t l = 0; l < frames && inside; ++l) {
            const double c = (double)plan->turn[l].c * 0x1p-32,
                         sine = (double)plan->turn[l].s * 0x1p-32;
            const double row = plan->centre_y + dy * c - dx * sine,
                         col = plan->centre_x + dx * c + dy * sine;
            inside = row >= r - 0.5 && col >= r - 0.5 && row < (double)plan->in.height - 0.5 - r &&
                     col < (double)plan->in.width - 0.5 - r;
            if (!inside) break;
            places[l] = place_of(&plan->turn[l], row, col);
            origins[l] = place_of(&plan->turn[l], row + t->aside_y * c - t->aside_x * sine,
                                  col + t->aside_x * c + t->aside_y * sine);
            low[0] = CLV_MIN(low[0], places[l].row), high[0] = CLV_MAX(high[0], places[l].row);
            low[1] = CLV_MIN(low[1], places[l].col), high[1] = CLV_MAX(high[1], places[l].col);
        }
        t->a = t->b = NAN;
        if (!inside) continue;
        low_row = CLV_MIN(low_row, low[0]), high_row = CLV_MAX(high_row, high[0]);
        low_col = CLV_MIN(low_col, low[1]), high_col = CLV_MAX(high_col, high[1]);
        b->flux[b->count] = (float)(t->flux * s / h),
        b->injected[b->count] = (float)(t->injected * s / h);
        b->order[b->count++] = k;
    }
    if (!b->count) return CLV_OK;
    b->row0 = (size_t)(low_row - r), b->col0 = (size_t)(low_col - r);
    b->height = (size_t)(high_row + r) + 1 - b->row0,
    b->width = (size_t)(high_col + r) + 1 - b->col0;
    for (size_t i = 0; i < b->count * frames; ++i) {
        b->places[i].row -= (int32_t)b->row0, b->places[i].col -= (int32_t)b->col0;
        b->origins[i].row -= (int32_t)b->row0, b->origins[i].col -= (int32_t)b->col0;
    }
    return CLV_OK;
}

static clv_status make_data(clv_trials *b)
{
    const clv_paco_input *in = &b->plan->in;
    const size_t plane = b->height * b->width;
    b->data = clv_zalloc(in->frames * plane + 16, sizeof *b->data);
    if (!b->data)
        return clv_fail(CLV_E_MEMORY, "paco: not enough memory for %zu frames", in->frames);
    double *mean = clv_zalloc(b->width, sizeof *mean);
    if (!mean) return clv_fail(CLV_E_MEMORY, "paco: not enough memory for a row");
    for (size_t y = 0; y < b->height; ++y) {
        const float *row = in->cube + (b->row0 + y) * in->row_stride + b->col0;
        memset(mean, 0, b->width * sizeof *mean);
        for (size_t l = 0; l < in->frames; ++l)
            for (size_t x = 0; x < b->width; ++x)
                mean[x] += (double)row[l * in->frame_stride + x];
        for (size_t x = 0; x < b->width; ++x)
            mean[x] /= (double)in->frames;
        for (size_t l = 0; l < in->frames; ++l)
            for (size_t x = 0; x < b->width; ++x)
                b->data[l * plane + y * b->width + x] =
                    (float)(((double)row[l * in->frame_stride + x] - mean[x]) * b->plan->scale);
    }
    clv_free(mean);
    return CLV_OK;
}

clv_status clv_trials_run(clv_context *context, const clv_paco_plan *plan, clv_trial *trials,
                          size_t count, clv_progress *progress, void *user, clv_report *report)
{
    clv_trials b = { .plan = plan, .trials = trials };
    clv_status status = make_places(&b, count);
    if (!status && b.count) status = make_data(&b);
    if (!status && b.count) status = make_coefficients(&b);
    if (!status && b.count) {
        char signature[96];
        snprintf(signature, sizeof signature, "P%zu T%zu N%zu", plan->pixels, plan->in.frames,
                 plan->in.psf_size);
        const clv_job job = { .size = sizeof job,
                              .name = "paco trials",
                              .signature = signature,
                              .units = b.count,
                              .cost = cost,
                              .setup = setup,
                              .enqueue = enqueue,
                              .commit = commit,
                              .reference = clv_trial_reference,
                              .progress = progress,
                              .progress_user = user,
                              .rehearse = true };
        status = clv_job_run(context, &job, &b, report);
    }
    clv_free(b.order), clv_free(b.data), clv_free(b.coefficients), clv_free(b.places),
        clv_free(b.origins);
    clv_free(b.flux), clv_free(b.injected);
    return status;
}
