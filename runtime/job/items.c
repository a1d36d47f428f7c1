/* SPDX-License-Identifier: Apache-2.0 */
/* clv_items_run: runs the caller's kernel, or its plain C function, over items as a job. Derives the arguments from
 * the chunk and chooses work-groups that fit. */
#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/options.h"
#include "runtime/job/results.h"
#include "runtime/job/run.h"

#include <cleave/items.h>

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 64 };

typedef struct run {
    clv_items items;
    const clv_item_arg *args;
    size_t count, axes; /* numbers of arguments and of axes of the grid */
    size_t local[3];
    size_t vector;                      /* bytes of the largest vector that the source names */
    bool automatic, adapt;              /* work-groups: chosen by us; must divide every chunk */
    unsigned halvings[CLV_MAX_WORKERS]; /* per worker: how often its groups were halved */
    void *user;
} run;

static size_t divisor(size_t a, size_t b) /* the greatest common one */
{
    while (b) {
        const size_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* ---- checks of the caller's arguments ---------------------------------------------------------- */

static clv_status check_arg(const run *r, size_t i)
{
    const clv_item_arg *a = &r->args[i];
    const char *kernel = r->items.kernel, *wrong = NULL;
    switch (a->kind) {
    case CLV_ITEM_INPUT:
    case CLV_ITEM_SHARED:
        if (!a->data || !a->bytes) wrong = "expected data and its size in bytes";
        break;
    case CLV_ITEM_OUTPUT:
        if (!a->result || !a->bytes)
            wrong = "expected memory for the results and its size in bytes";
        break;
    case CLV_ITEM_VALUE:
        if (!a->data || !a->bytes || a->bytes > sizeof((clv_arg *)0)->value)
            wrong = "expected a value of 1 to 16 bytes";
        break;
    case CLV_ITEM_LOCAL:
        if (!a->bytes) wrong = "0 bytes of local memory";
        break;
    case CLV_ITEM_FIRST:
    case CLV_ITEM_COUNT:
        break;
    default:
        wrong = "no such kind";
    }
    size_t all;
    if (!wrong && (a->kind == CLV_ITEM_INPUT || a->kind == CLV_ITEM_OUTPUT) &&
        !clv_size_mul(a->bytes, r->items.items, &all))
        wrong = "more bytes than there are addresses";
    return wrong ? clv_fail(CLV_E_ARGUMENT, "items %s: argument %zu: %s", kernel, i, wrong)
                 : CLV_OK;
}

/* Refuses outputs that overlap memory that another chunk still reads or also commits. */
static clv_status check_places(const run *r)
{
    const size_t items = r->items.items;
    size_t chunks = 0, shared = 0;
    for (size_t i = 0; i < r->count; ++i) {
        const clv_item_arg *a = &r->args[i];
        chunks += a->kind == CLV_ITEM_INPUT || a->kind == CLV_ITEM_OUTPUT;
        shared += a->kind == CLV_ITEM_SHARED;
        for (size_t k = 0; k < r->count && a->kind == CLV_ITEM_OUTPUT; ++k) {
            const clv_item_arg *b = &r->args[k];
            const bool input = b->kind == CLV_ITEM_INPUT, result = b->kind == CLV_ITEM_OUTPUT;
            if (k == i || !(input || result || b->kind == CLV_ITEM_SHARED)) continue;
            if (input && b->data == a->result && b->bytes == a->bytes) continue; /* item by item */
            if (clv_shares(a->result, a->bytes * items, result ? b->result : b->data,
                           input || result ? b->bytes * items : b->bytes))
                return clv_fail(CLV_E_ARGUMENT, "items %s: arguments %zu and %zu share memory",
                                r->items.kernel, i, k);
        }
    }
    if (chunks > CLV_MAX_KEYS || shared > CLV_MAX_KEYS)
        return clv_fail(CLV_E_ARGUMENT,
                        "items %s: got %zu inputs and outputs and %zu shared arrays, but at most "
                        "%d of each are possible",
                        r->items.kernel, chunks, shared, CLV_MAX_KEYS);
    return CLV_OK;
}

static bool has(const run *r, clv_item_kind kind)
{
    for (size_t i = 0; i < r->count; ++i)
        if (r->args[i].kind == kind) return true;
    return false;
}

/* Returns the size in bytes of the vector type whose number of lanes is at `at`, or 1 if the text there names no
 * vector type. */
static size_t vector_at(const char *text, const char *at)
{
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = { { "char", 1 }, { "short", 2 }, { "int", 4 },   { "long", 8 },
                  { "half", 2 }, { "float", 4 }, { "double", 8 } };
    const size_t lanes = *at == '1' ? 16 : *at == '3' ? 4 : (size_t)(*at - '0');
    for (size_t i = 0; i < CLV_LEN(types); ++i) {
        const size_t length = strlen(types[i].name);
        if ((size_t)(at - text) >= length && memcmp(at - length, types[i].name, length) == 0)
            return lanes * types[i].bytes;
    }
    return 1;
}

/* Returns the size in bytes of the largest vector type to which a kernel may have a pointer: compilers assume that
 * such a pointer is a multiple of that size. */
static size_t largest_vector(const clv_cl_source *source)
{
    const char *const text = source->text;
    size_t most = 1;
    for (size_t i = 1; i < source->length; ++i) {
        if (text[i] && strchr("12348", text[i]) && text[i - 1] >= 'a' && text[i - 1] <= 'z')
            most = CLV_MAX(most, vector_at(text, text + i));
        if (text[i - 1] == '#' && (text[i] == '#' || text[i] == 'i'))
            return 16 * sizeof(double); /* pasted names, headers, conditions: assume the largest */
    }
    return most;
}

/* Returns the size, at most `most` bytes, of the largest vector of which an item may consist. */
static size_t whole_vector(const clv_item_arg *a, size_t most)
{
    return CLV_MIN(most, a->bytes & -a->bytes);
}

/* Returns whether an item may begin at an address where no vector of its size may begin. Only then is the source text
 * searched. */
static bool odd_inputs(const run *r)
{
    for (size_t i = 0; i < r->count; ++i) {
        const clv_item_arg *a = &r->args[i];
        if (a->kind == CLV_ITEM_INPUT && (uintptr_t)a->data % whole_vector(a, 16 * sizeof(double)))
            return true;
    }
    return false;
}

/* Chooses the work-groups: 64 items each, or neighbouring work-items of one item if an item has many work-items. */
static clv_status choose_groups(run *r)
{
    const clv_items *t = &r->items;
    const bool counted = has(r, CLV_ITEM_COUNT);
    r->axes = t->grid[1] ? 2 : t->grid[0] ? 1 : 0;
    if (t->grid[1] && !t->grid[0])
        return clv_fail(CLV_E_ARGUMENT,
                        "items %s: the grid is 0 x %zu, but its extents must be positive",
                        t->kernel, t->grid[1]);
    r->automatic = !t->local[0] && !t->local[1] && !t->local[2];
    r->adapt = r->automatic && !r->axes && !counted;
    for (size_t i = 0; i <= r->axes; ++i) {
        if (r->automatic && r->axes)
            r->local[i] = i ? 1 : divisor(t->grid[0], GROUP);
        else
            r->local[i] = r->automatic ? GROUP : t->local[i];
        if (!r->local[i])
            return clv_fail(CLV_E_ARGUMENT, "items %s: local must have %zu positive extents",
                            t->kernel, r->axes + 1);
        if (i < r->axes && t->grid[i] % r->local[i])
            return clv_fail(CLV_E_ARGUMENT,
                            "items %s: extent %zu of the grid is not a multiple of %zu, the "
                            "work-group's",
                            t->kernel, t->grid[i], r->local[i]);
    }
    if (r->local[r->axes] > 1 && !counted && !r->adapt)
        return clv_fail(CLV_E_ARGUMENT,
                        "items %s: with several items in a work-group, the arguments must include "
                        "COUNT, because the last group may reach beyond the chunk",
                        t->kernel);
    return CLV_OK;
}

static clv_status check(run *r)
{
    const clv_items *t = &r->items;
    if (!t->source || !t->source->text || !t->kernel || (!r->args && r->count))
        return clv_fail(CLV_E_ARGUMENT, "items: source, kernel or argument list is NULL");
    if (r->count > CLV_ITEMS_ARGUMENTS)
        return clv_fail(CLV_E_ARGUMENT, "items %s: got %zu arguments, but at most %d are possible",
                        t->kernel, r->count, CLV_ITEMS_ARGUMENTS);
    if (t->items > UINT32_MAX)
        return clv_fail(CLV_E_ARGUMENT, "items %s: got %zu items, expected 0 to 2^32 - 1",
                        t->kernel, t->items);
    for (size_t i = 0; i < r->count && t->items; ++i)
        CLV_TRY(check_arg(r, i));
    if (!has(r, CLV_ITEM_OUTPUT))
        return clv_fail(
            CLV_E_ARGUMENT,
            "items %s: there is no output among the arguments, so the call would have no result",
            t->kernel);
    CLV_TRY(check_places(r));
    return choose_groups(r);
}

/* Writes a signature of the job. Speeds of jobs with the same kernel, grid and work-groups are comparable. */
static void sign(const run *r, char out[96])
{
    const clv_items *t = &r->items;
    uint64_t h = clv_fnv1a(CLV_FNV1A, t->source->text, t->source->length);
    for (size_t i = 0; i < CLV_MAX_DEFINES && t->defines[i].name; ++i) {
        h = clv_fnv1a(h, t->defines[i].name, strlen(t->defines[i].name));
        h = clv_fnv1a(h, &t->defines[i].value, sizeof t->defines[i].value);
    }
    snprintf(out, 96, "%016llx %zux%zu %zux%zux%zu", (unsigned long long)h, t->grid[0], t->grid[1],
             r->local[0], r->local[1], r->local[2]);
}

static clv_cost cost_of_item(const run *r)
{
    clv_cost cost = { 0 };
    for (size_t i = 0; i < r->count; ++i) {
        const clv_item_arg *a = &r->args[i];
        if (a->kind != CLV_ITEM_INPUT && a->kind != CLV_ITEM_OUTPUT) continue;
        cost.traffic_bytes += (double)a->bytes;
        cost.memory_bytes += a->bytes;
        cost.buffer_bytes = CLV_MAX(cost.buffer_bytes, (uint64_t)a->bytes);
    }
    cost.transfer_bytes = cost.traffic_bytes;
    const double work =
        r->axes ? (double)r->items.grid[0] * (double)CLV_MAX(r->items.grid[1], 1u) : 1;
    cost.flops = r->items.flops > 0 ? r->items.flops : 10 * CLV_MAX(cost.traffic_bytes / 4, work);
    return cost;
}

/* ---- the job's functions ------------------------------------------------------------------------- */

static clv_status setup(clv_worker *worker, void *user)
{
    const run *r = user;
    unsigned key = 0;
    for (size_t i = 0; i < r->count; ++i) {
        const clv_item_arg *a = &r->args[i];
        clv_buffer *buffer;
        if (a->kind != CLV_ITEM_SHARED) continue;
        CLV_TRY(clv_worker_buffer(worker, key++, a->bytes, &buffer));
        CLV_TRY(clv_write(clv_worker_queue(worker), buffer, 0, a->data, a->bytes));
    }
    return CLV_OK;
}

static clv_status bring_input(clv_slot *slot, unsigned key, const clv_item_arg *a, size_t vector,
                              size_t first, size_t count, clv_arg *out)
{
    clv_place place;
    const size_t bytes = a->bytes * count;
    const char *host = (const char *)a->data + first * a->bytes;
    if (slot->worker->device->zero_copy && (uintptr_t)host % whole_vector(a, vector)) {
        clv_buffer *buffer;
        CLV_TRY(clv_slot_buffer(slot, key, bytes, &buffer));
        *out = clv_arg_buffer(buffer);
        return clv_write(clv_slot_queue(slot), buffer, 0, host, bytes);
    }
    const clv_box box = {
        .host = host, .element_bytes = 1, .extent = { 1, 1, bytes }, .stride = { bytes, bytes, 1 }
    };
    CLV_TRY(clv_slot_input(slot, key, &box, &place));
    assert(!place.offset); /* a box begins at the start of its buffer */
    *out = clv_arg_buffer(place.buffer);
    return CLV_OK;
}

static clv_status fill(const run *r, clv_slot *slot, size_t first, size_t count, clv_arg *out)
{
    unsigned key = 0, shared = 0;
    for (size_t i = 0; i < r->count; ++i) {
        const clv_item_arg *a = &r->args[i];
        clv_buffer *buffer = NULL;
        switch (a->kind) {
        case CLV_ITEM_INPUT:
            CLV_TRY(bring_input(slot, key++, a, r->vector, first, count, &out[i]));
            continue;
        case CLV_ITEM_OUTPUT:
            CLV_TRY(clv_slot_output(slot, key++, a->bytes * count, &buffer));
            break;
        case CLV_ITEM_SHARED:
            CLV_TRY(clv_worker_buffer(clv_slot_worker(slot), shared++, 0, &buffer));
            break;
        case CLV_ITEM_VALUE:
            out[i] = (clv_arg){ .kind = CLV_ARG_VALUE, .bytes = a->bytes };
            memcpy(out[i].value, a->data, a->bytes);
            continue;
        case CLV_ITEM_LOCAL:
            out[i] = clv_arg_local(a->bytes);
            continue;
        default:
            out[i] = clv_arg_u32((uint32_t)(a->kind == CLV_ITEM_FIRST ? first : count));
            continue;
        }
        out[i] = clv_arg_buffer(buffer);
    }
    return CLV_OK;
}

static void shape_launch(const run *r, size_t count, unsigned halvings, clv_launch *launch)
{
    const size_t most = (size_t)GROUP >> halvings;
    for (size_t i = 0; i <= r->axes; ++i)
        launch->local[i] = halvings ? divisor(r->local[i], most) : r->local[i];
    if (r->adapt) launch->local[0] = divisor(count, most);
    for (size_t i = 0; i < r->axes; ++i)
        launch->global[i] = r->items.grid[i];
    launch->global[r->axes] = clv_round_up(count, launch->local[r->axes]);
}

/* Enqueues a chunk. Work-groups that the caller did not choose are halved while the device, or this kernel
 * on it, refuses their size, which the launch reports as CLV_E_ARGUMENT. */
static clv_status enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    run *r = user;
    clv_arg args[CLV_ITEMS_ARGUMENTS];
    CLV_TRY(fill(r, slot, first, count, args));
    clv_launch launch = { .size = sizeof(clv_launch),
                          .source = r->items.source,
                          .kernel = r->items.kernel };
    memcpy(launch.defines, r->items.defines, sizeof launch.defines);
    unsigned *halvings = &r->halvings[clv_worker_index(clv_slot_worker(slot))];
    for (;; ++*halvings) {
        shape_launch(r, count, *halvings, &launch);
        const clv_status status =
            clv_launch_enqueue(clv_slot_queue(slot), &launch, args, r->count, NULL);
        if (status != CLV_E_ARGUMENT || !r->automatic || GROUP >> *halvings <= 1) return status;
    }
}

static clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    const run *r = user;
    unsigned key = 0;
    for (size_t i = 0; i < r->count; ++i) {
        const clv_item_arg *a = &r->args[i];
        if (a->kind == CLV_ITEM_OUTPUT) {
            const void *bytes;
            CLV_TRY(clv_slot_take(slot, key, count * a->bytes, &bytes));
            memcpy((char *)a->result + first * a->bytes, bytes, count * a->bytes);
        }
        key += a->kind == CLV_ITEM_OUTPUT || a->kind == CLV_ITEM_INPUT;
    }
    return CLV_OK;
}

static clv_status reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const run *r = user;
    void *at[CLV_ITEMS_ARGUMENTS];
    uint32_t from = (uint32_t)first, many = (uint32_t)count;
    unsigned key = 0;
    for (size_t i = 0; i < r->count; ++i) {
        const clv_item_arg *a = &r->args[i];
        at[i] = (void *)(uintptr_t)a->data; /* the reference only reads it */
        if (a->kind == CLV_ITEM_FIRST) at[i] = &from;
        if (a->kind == CLV_ITEM_COUNT) at[i] = &many;
        if (a->kind == CLV_ITEM_LOCAL) at[i] = NULL;
        if (a->kind == CLV_ITEM_INPUT) at[i] = (char *)at[i] + first * a->bytes;
        if (a->kind == CLV_ITEM_OUTPUT)
            CLV_TRY(clv_slot_result_create(slot, key, a->bytes * count, &at[i]));
        key += a->kind == CLV_ITEM_OUTPUT || a->kind == CLV_ITEM_INPUT;
    }
    return r->items.reference(at, first, count, r->user);
}

clv_status clv_items_run(clv_context *context, const clv_items *items, const clv_item_arg *args,
                         size_t count, void *user, clv_report *report)
{
    if (!context || !items)
        return clv_fail(CLV_E_ARGUMENT, "items: context or description is NULL");
    run r = { .args = args, .count = count, .user = user };
    CLV_TRY(clv_take_struct(&r.items, sizeof r.items, items, "clv_items_run", "clv_items"));
    char signature[96];
    CLV_TRY(check(&r));
    r.vector = odd_inputs(&r) ? largest_vector(r.items.source) : 1;
    const clv_items *t = &r.items; /* the caller's struct, in this version's layout */
    if (!t->signature) sign(&r, signature);
    const clv_job job = { .size = sizeof job,
                          .name = t->kernel,
                          .signature = t->signature ? t->signature : signature,
                          .units = t->items,
                          .align = r.adapt && t->items > GROUP ? GROUP : 1,
                          .setup = setup,
                          .enqueue = enqueue,
                          .commit = commit,
                          .reference = t->reference ? reference : NULL,
                          .progress = t->progress,
                          .progress_user = t->progress_user,
                          .unit_cost = cost_of_item(&r) };
    return clv_job_run(context, &job, &r, report);
}
