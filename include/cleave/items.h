/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of the caller's over many items, split over the context's devices: the job (job.h) that
 * most programs would write, ready made. */
#ifndef CLEAVE_ITEMS_H
#define CLEAVE_ITEMS_H

#include <cleave/job.h>

CLV_BEGIN_DECLS

enum { CLV_ITEMS_ARGUMENTS = 64 };

/** How an argument of the kernel follows from the chunk that it is launched for. */
typedef enum clv_item_kind {
    CLV_ITEM_INPUT, /**< `__global const T *`: the chunk's items of `data`, which has `bytes` each */
    CLV_ITEM_SHARED, /**< `__global const T *`: `bytes` of `data`, once on each device */
    CLV_ITEM_OUTPUT, /**< `__global T *`: for the chunk's items; they go to `result`, `bytes` each */
    CLV_ITEM_VALUE,  /**< by value: `bytes` of `data`, at most 16 */
    CLV_ITEM_LOCAL,  /**< `__local T *`: `bytes` a work-group */
    CLV_ITEM_FIRST,  /**< `uint`: the chunk's first item */
    CLV_ITEM_COUNT,  /**< `uint`: how many items the chunk has */
} clv_item_kind;

/** One argument, in the kernel's order. The memory is the caller's, and stays where it is during the
 *  call. That of an OUTPUT is nobody else's, but for an INPUT that is the same array as a whole. At most
 *  32 INPUT and OUTPUT together, and 32 SHARED. Frozen. */
typedef struct clv_item_arg {
    clv_item_kind kind;
    size_t bytes;
    const void *data; /**< of INPUT, SHARED, VALUE */
    void *result;     /**< of OUTPUT */
} clv_item_arg;

/**
 * The same chunk in plain C, for when no device works. args[i]: the chunk's items of inputs and
 * outputs, `data` of shared arrays and values, a uint32_t for FIRST and COUNT, NULL for LOCAL. Any
 * thread, several at once. Another status than CLV_OK ends the call with it.
 */
typedef clv_status clv_items_reference(void *const *args, size_t first, size_t count, void *user);

/** All-zero where nothing else is said. */
typedef struct clv_items {
    size_t size;                 /**< sizeof(clv_items) */
    const clv_cl_source *source; /**< as in clv_launch: of the caller, for as long as the context */
    const char *kernel;          /**< its name, and that of the job */
    clv_define defines[CLV_MAX_DEFINES];
    size_t items; /**< below 2^32 */
    /** Work-items of one item, at most two extents, {0}: one work-item. They are get_global_id(0) and
     *  (1); the last dimension of the launch is the item of the chunk. */
    size_t grid[2];
    /** The work-group: an extent for each of the grid, which it divides, and one for the items. {0}:
     *  64 items, or up to 64 neighbours of one item where there is a grid; less where a device
     *  takes no more. */
    size_t local[3];
    double flops;          /**< arithmetic of one item, roughly; the balancer measures the rest */
    const char *signature; /**< see clv_job; NULL: source, defines, grid and local */
    clv_items_reference *reference; /**< NULL: none */
    clv_progress *progress;         /**< as in clv_job */
    void *progress_user;
} clv_items;

/**
 * Runs a kernel over items: a device gets chunks of them, and sees a chunk as if it were all there
 * is, its first item at element 0 of every input and output. What an item gives must not depend on
 * its chunk: then it does not depend on the devices either.
 *
 * Groups of several items are only made where they divide the chunk, or where COUNT is among the
 * arguments: then the last group may be larger than what is left, and the kernel begins with
 * `if (get_global_id(...) >= count) return;`.
 *
 * @param args    [count], at least one of them OUTPUT.
 * @param user    for `reference`.
 * @param report  NULL, or what the run is added to.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, a kind, bytes or extent outside its range; arguments other
 *         than the kernel's, too many, or results that share memory); CLV_E_BUILD
 *         (clv_error_detail() is the compiler's log); and what clv_job_run returns.
 * Threads: as clv_job_run. In full: examples/items.c.
 */
CLV_API clv_status clv_items_run(clv_context *context, const clv_items *items,
                                 const clv_item_arg *args, size_t count, void *user,
                                 clv_report *report);

CLV_END_DECLS

#endif
