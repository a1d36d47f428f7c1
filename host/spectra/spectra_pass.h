/* SPDX-License-Identifier: Apache-2.0 */
/* Launches on one chunk of stars; cl/spectra/spectra.clh describes the layout of the arrays. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_PASS_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_PASS_H

#include "base/alloc.h"
#include "host/spectra/spectra_job.h"

/* Buffers of a worker. */
enum {
    CLV_PASS_WEIGHTS,
    CLV_PASS_BASIS,
    CLV_PASS_PRODUCTS,
    CLV_PASS_WHOLE,
    CLV_PASS_PART,
    CLV_PASS_CCF,
    CLV_PASS_POINTS,
    CLV_PASS_RANGE,
    CLV_PASS_REACH,
    CLV_PASS_OWNER,
    CLV_PASS_STEP,
    CLV_PASS_BOX,
    CLV_PASS_GRID,
    CLV_PASS_CORNERS,
    CLV_PASS_FEW,
    CLV_PASS_SHARES
};

/* Velocities of a scan are rounded up to whole vectors, and on cards to whole work-groups. */
enum { CLV_SCAN_ROUND_TO = 32 };

/* How the kernels are shaped for a device: explicit vectors and long runs for CPUs, adjacent work-items for GPUs and
 * for rasterisers, which vectorise them on their own. */
typedef struct clv_pass_form {
    long lanes, run, span;
    size_t wg;
    bool fp64, short_loops; /* short_loops: a kernel's loops must be as short as possible */
    bool on_cores;          /* the device shares the host's cores */
    bool groups;            /* work-groups of 64 share the sums of a segment, and small systems */
} clv_pass_form;

/* What the launches of one chunk share. */
typedef struct clv_pass {
    clv_spectra_plan *plan;
    clv_pass_form f;
    clv_slot *slot;
    size_t stars, items, batch; /* batch: items of a scan processed at a time */
    unsigned stages;            /* stages to run of those that make templates */
    clv_buffer *data, *resolution, *usable, *hidden[2], *templates, *spline, *taps, *pixels,
        *resolved, *partial, *totals, *solved, *list, *state, *start_data, *start_few, *start_chi,
        *start_best, *priors, *found, *models;
    clv_buffer *curve, *shifted, *blurred, *sums, *along, *values; /* of a scan */
} clv_pass;

/* ---- spectra_launch.c ---- */
clv_pass_form clv_pass_form_of(const clv_device *device);

/* Returns a worker's buffer, which setup made, as an argument. */
clv_arg clv_pass_constant(const clv_pass *p, unsigned key);
clv_arg clv_pass_int(size_t value);
clv_arg
clv_pass_shift(const clv_spectra_grid *g); /* float2: points per km/s, and its rounding error */

/* Number of blocks of columns that one work-item of the scan's products sums. */
size_t clv_pass_blocks(const clv_pass *p);

/* Launches a kernel with work-groups along x (wide) or along y (tall); on a CPU they have one work-item. */
clv_status clv_pass_launch(const clv_pass *p, const clv_cl_source *source, const char *kernel,
                           size_t x, size_t y, size_t z, bool tall, const clv_arg *args,
                           size_t count);

/* A kernel that solves one small system per work-item, and the one whose work-groups share systems. */
typedef struct clv_small_kernel {
    const clv_cl_source *source, *group_source;
    const char *kernel, *in_groups;
    size_t items; /* work-items of a group for each system */
} clv_small_kernel;

/* Launches either of them on `systems` x y x z systems, as the device's form has it. */
clv_status clv_pass_launch_small(const clv_pass *p, const clv_small_kernel *k, size_t systems,
                                 size_t y, size_t z, const clv_arg *args, size_t count);

#define CLV_PASS_LAUNCH(p, source, kernel, x, y, z, tall, args) \
    clv_pass_launch(p, &clv_cl_spectra_##source, kernel, x, y, z, tall, args, CLV_LEN(args))

/* ---- spectra_pass.c ---- */
clv_status clv_pass_find_starts(const clv_pass *p);
clv_status clv_pass_list(const clv_pass *p, bool last); /* lists the items that are not finished */
/* clv_pass_templates goes from points to pixels and, with `keep`, keeps what a scan needs; clv_pass_judge then
 * evaluates the points and computes the next ones. */
clv_status clv_pass_templates(const clv_pass *p, bool keep);
clv_status clv_pass_judge(const clv_pass *p, bool last);

/* ---- spectra_scan.c ---- */
size_t clv_scan_velocities(const clv_spectra_plan *plan); /* padded */
size_t clv_scan_batch(const clv_spectra_plan *plan, size_t items);
/* Keeps the splines of the arm to which spectrum `lead` belongs. */
clv_status clv_pass_keep_curve(const clv_pass *p, size_t lead);
/* Computes the values along velocity. If no grid of velocities is given, also computes the moments, on as many grids as
 * it takes. */
clv_status clv_pass_scan(const clv_pass *p);

#endif
