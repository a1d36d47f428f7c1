/* SPDX-License-Identifier: Apache-2.0 */
/* Launches kernels on one chunk of stars; cl/spectra/spectra.clh describes the layout of the arrays. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_PASS_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_PASS_H

#include "base/alloc.h"
#include "host/spectra/spectra_job.h"

/* Keys of a worker's buffers. */
enum {
    CLV_PASS_WEIGHTS,
    CLV_PASS_BASIS,
    CLV_PASS_PRODUCTS,
    CLV_PASS_WHOLE,
    CLV_PASS_PART,
    CLV_PASS_CCF,
    CLV_PASS_POINTS,
    CLV_PASS_RANGE,
    CLV_PASS_OWNER,
    CLV_PASS_PLACE,
    CLV_PASS_BOX,
    CLV_PASS_GRID,
    CLV_PASS_CORNERS,
    CLV_PASS_FEW,
    CLV_PASS_SHARES
};

/* The number of velocities of a scan is rounded up to a multiple of this, for whole vectors on CPUs and whole
 * work-groups on graphics cards. */
enum { CLV_SCAN_ROUND_TO = 32 };

/* The form of the kernels for a device: explicit vectors and many values per work-item for CPUs; adjacent work-items
 * for GPUs, and for software rasterisers, whose drivers vectorise across work-items. */
typedef struct clv_pass_form {
    long lanes, run, span;
    size_t wg;
    bool fp64, short_loops; /* short_loops: a kernel's loops must be as short as possible */
    bool on_cores;          /* the device shares the host's cores */
    bool groups;            /* work-groups of 64 share a segment's sums or a small system */
} clv_pass_form;

/* The state that all launches of one chunk use. */
typedef struct clv_pass {
    clv_spectra_plan *plan;
    clv_pass_form f;
    clv_slot *slot;
    size_t stars, items, batch; /* batch: items of a scan processed at a time */
    unsigned stages;            /* CLV_SPECTRA_STAGE_ bits: the template stages to run */
    clv_buffer *data, *resolution, *usable, *hidden[2], *templates, *spline, *taps, *pixels,
        *resolved, *partial, *totals, *solved, *list, *state, *start_data, *start_few, *start_chi,
        *start_best, *priors, *found, *models;
    clv_buffer *curve, *shifted, *blurred, *sums, *along, *values; /* for scans along velocity */
} clv_pass;

/* ---- spectra_launch.c ---- */
clv_pass_form clv_pass_form_of(const clv_device *device);

/* Returns as a kernel argument the worker's buffer with this key, which the job's setup has made. */
clv_arg clv_pass_constant(const clv_pass *p, unsigned key);
clv_arg clv_pass_int(size_t value);
clv_arg
clv_pass_shift(const clv_spectra_grid *g); /* float2: points per km/s, and its rounding error */

/* Returns the number of blocks of columns that one work-item sums in the products of a scan. */
size_t clv_pass_blocks(const clv_pass *p);

/* Launches a kernel with work-groups along x (wide) or along y (tall); on a CPU each work-group has one work-item. */
clv_status clv_pass_launch(const clv_pass *p, const clv_cl_source *source, const char *kernel,
                           size_t x, size_t y, size_t z, bool tall, const clv_arg *args,
                           size_t count);

/* The two kernels for a kind of small system: in one, each work-item solves a system; in the other, the work-items of a
 * work-group solve a system together. */
typedef struct clv_small_kernel {
    const clv_cl_source *source, *group_source;
    const char *kernel, *in_groups;
    size_t items; /* work-items per system in the second kernel */
} clv_small_kernel;

/* Launches the kernel that suits the device's form on `systems` x y x z systems. */
clv_status clv_pass_launch_small(const clv_pass *p, const clv_small_kernel *k, size_t systems,
                                 size_t y, size_t z, const clv_arg *args, size_t count);

#define CLV_PASS_LAUNCH(p, source, kernel, x, y, z, tall, args) \
    clv_pass_launch(p, &clv_cl_spectra_##source, kernel, x, y, z, tall, args, CLV_LEN(args))

/* ---- spectra_pass.c ---- */
clv_status clv_pass_find_starts(const clv_pass *p);
/* clv_pass_list lists the items that are not finished and not confined to an arm; with `last`, all items.
 * clv_pass_list_arm lists those that are confined to the arm of spectrum `lead`; SIZE_MAX: to any arm. */
clv_status clv_pass_list(const clv_pass *p, bool last);
clv_status clv_pass_list_arm(const clv_pass *p, size_t lead);
/* clv_pass_templates computes the templates at the pixels for every item's point and, with `keep`, keeps the splines
 * for a scan; clv_pass_judge then evaluates the points and computes the next ones. */
clv_status clv_pass_templates(const clv_pass *p, bool keep);
clv_status clv_pass_templates_of(const clv_pass *p, size_t lead,
                                 bool keep); /* of the arm of spectrum `lead` */
clv_status clv_pass_judge(const clv_pass *p, bool last);

/* ---- spectra_scan.c ---- */
/* Returns the number of velocities of a scan, padded to a multiple of CLV_SCAN_ROUND_TO. */
size_t clv_scan_velocities(const clv_spectra_plan *plan);
size_t clv_scan_batch(const clv_spectra_plan *plan, size_t items);
/* Keeps the splines of the arm to which spectrum `lead` belongs. */
clv_status clv_pass_keep_curve(const clv_pass *p, size_t lead);
/* Computes the values along velocity. If the caller gives no grid of velocities, also computes the moments, and repeats
 * both on other grids until a grid suits the width of the minimum. */
clv_status clv_pass_scan(const clv_pass *p);

#endif
