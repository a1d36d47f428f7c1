/* SPDX-License-Identifier: Apache-2.0 */
/* Runs your kernel over many items, split over the context's devices. This is the kind of job (job.h) that most
 * programs need, ready-made. */
#ifndef CLEAVE_ITEMS_H
#define CLEAVE_ITEMS_H

#include <cleave/job.h>

CLV_BEGIN_DECLS

enum { CLV_ITEMS_ARGUMENTS = 64 };

/** What the kernel gets as an argument when it is launched for a chunk of items. */
typedef enum clv_item_kind {
    CLV_ITEM_INPUT,  /**< `__global const T *`: the chunk's items of `data`, `bytes` per item */
    CLV_ITEM_SHARED, /**< `__global const T *`: all `bytes` of `data`, copied once to each device */
    CLV_ITEM_OUTPUT, /**< `__global T *`: the chunk's items of `result`, `bytes` per item */
    CLV_ITEM_VALUE,  /**< by value: `bytes` of `data`, at most 16 */
    CLV_ITEM_LOCAL,  /**< `__local T *`: `bytes` per work-group */
    CLV_ITEM_FIRST,  /**< `uint`: the chunk's first item */
    CLV_ITEM_COUNT,  /**< `uint`: how many items the chunk has */
} clv_item_kind;

/** One argument; list them in the kernel's order. The memory is yours and must stay in place during the call. The
 *  memory of an OUTPUT must not overlap that of another argument, except that an INPUT may be exactly the same array.
 *  At most 32 INPUT and OUTPUT together, and 32 SHARED. Frozen. */
typedef struct clv_item_arg {
    clv_item_kind kind;
    size_t bytes;
    const void *data; /**< memory or value of INPUT, SHARED and VALUE */
    void *result;     /**< memory of OUTPUT */
} clv_item_arg;

/**
 * Computes a chunk in plain C when no device works. args[i] points to the chunk's items (INPUT, OUTPUT), to `data`
 * (SHARED, VALUE) or to a uint32_t (FIRST, COUNT), and is NULL for LOCAL. Several threads may call your function at
 * the same time. If it returns anything but CLV_OK, clv_items_run ends with that status.
 */
typedef clv_status clv_items_reference(void *const *args, size_t first, size_t count, void *user);

/** A kernel, the number of items and how to launch the kernel. `size`, `source` and `kernel` must be set; the other
 *  fields may be zero. */
typedef struct clv_items {
    size_t size;                 /**< sizeof(clv_items) */
    const clv_cl_source *source; /**< must live as long as the context (see clv_launch) */
    const char *kernel;          /**< name of the kernel, and of the job */
    clv_define defines[CLV_MAX_DEFINES];
    size_t items; /**< number of items, below 2^32 */
    /** Work-items per item, in at most two dimensions: get_global_id(0) and (1). {0}: one work-item per item. The last
     *  dimension of the launch counts the chunk's items. */
    size_t grid[2];
    /** The work-group: one extent per dimension of the grid, of which the extent of the grid must be a multiple, then
     *  one for the items. {0}: 64 items or, if there is a grid, up to 64 neighbouring work-items of one item; fewer if
     *  a device does not accept that. */
    size_t local[3];
    /** Rough number of floating-point operations per item; the balancer measures the actual speed. */
    double flops;
    const char *signature; /**< see clv_job; NULL: made from source, defines, grid and local */
    clv_items_reference *reference; /**< NULL: none */
    clv_progress *progress;         /**< as in clv_job */
    void *progress_user;
} clv_items;

/**
 * Runs a kernel over items. Each launch gets one chunk of the items as if there were no other items: the chunk's first
 * item is at element 0 of every input and output. An item's result must not depend on its chunk; then the result does
 * not depend on the devices either.
 *
 * A work-group holds several items only if their number divides the number of items in the chunk, or if COUNT is among
 * the arguments. In the second case the last group may reach beyond the chunk, so the kernel must begin with
 * `if (get_global_id(...) >= count) return;`.
 *
 * @param args    [count], at least one of them OUTPUT.
 * @param user    passed to `reference`.
 * @param report  NULL, or the report to which the run is added.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL; a kind, bytes or extent outside its range; arguments that differ from the
 *         kernel's, or too many; results that share memory); CLV_E_BUILD (clv_error_detail() is the compiler's log);
 *         and what clv_job_run returns.
 * Threads: as for clv_job_run. Complete program: examples/items.c.
 */
CLV_API clv_status clv_items_run(clv_context *context, const clv_items *items,
                                 const clv_item_arg *args, size_t count, void *user,
                                 clv_report *report);

CLV_END_DECLS

#endif
