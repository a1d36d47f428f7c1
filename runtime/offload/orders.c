/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what each thread has requested (the side that it forces; whether its calls are only planned), and the last
 * decision for the thread. Each live thread has a number, which is the number of its row. */
#include "runtime/offload/orders.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/offload/rates.h"
#include "runtime/record/caller.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct row {
    clv_call_orders orders;
    atomic_bool taken; /* the number belongs to a live thread */
} row;

/* Rows never move, so that a thread finds its own row without a lock. The first rows are in `first`, and part k has
 * FIRST << k more. */
enum { FIRST = 64, PARTS = 40 };
static row first[FIRST];
static _Atomic(row *) part[PARTS];

/* Returns the row of `number`, which counts from 1, or NULL without memory. */
static row *row_of(size_t number)
{
    size_t at = number - 1;
    if (at < FIRST) return &first[at];
    int k = 0;
    size_t rows = FIRST;
    for (at -= FIRST; at >= rows; rows *= 2, ++k)
        at -= rows;
    row *there = atomic_load_explicit(&part[k], memory_order_acquire);
    if (there) return &there[at];
    row *made = clv_zalloc(rows, sizeof *made);
    if (made && !atomic_compare_exchange_strong(&part[k], &there, made)) {
        clv_free(made); /* another thread was faster */
        made = there;
    }
    return made ? &made[at] : NULL;
}

static pthread_key_t at_end;
static bool told_of_ends;

/* Frees the number of a thread that ends. */
static void give_back(void *mine)
{
    clv_caller_here()->number = 0;
    atomic_store_explicit(&((row *)mine)->taken, false, memory_order_release);
}

static void make_key(void)
{
    told_of_ends = pthread_key_create(&at_end, give_back) == 0;
}

/* Deletes the key when the library is unloaded, since threads that outlive the library must not call into it at their
 * ends. */
__attribute__((destructor)) static void delete_key(void)
{
    if (told_of_ends) pthread_key_delete(at_end);
}

static row *take_number(clv_caller *caller)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    for (size_t number = 1;; ++number) {
        row *r = row_of(number);
        if (!r) return NULL;
        if (atomic_exchange_explicit(&r->taken, true, memory_order_acq_rel)) continue;
        r->orders = (clv_call_orders){ 0 };
        caller->number = number;
        if (told_of_ends) (void)pthread_setspecific(at_end, r);
        return r;
    }
}

clv_call_orders *clv_call_orders_here(void)
{
    clv_caller *caller = clv_caller_here();
    row *mine = caller->number ? row_of(caller->number) : take_number(caller);
    return mine ? &mine->orders : NULL;
}

static clv_call_orders *to_order(void)
{
    clv_call_orders *mine = clv_call_orders_here();
    if (!mine)
        clv_log(CLV_LOG_ERROR,
                "offload: not enough memory to record the choice of this thread: it is ignored");
    return mine;
}

clv_side clv_offload_force(clv_side side)
{
    clv_call_orders *mine = to_order();
    if (!mine) return CLV_SIDE_AUTO;
    const clv_side before = mine->forced;
    mine->forced = side;
    return before;
}

bool clv_offload_dry(bool on)
{
    clv_call_orders *mine = to_order();
    if (!mine) return false;
    const bool before = mine->plans;
    if (on && !before) mine->latest.of.side = CLV_SIDE_AUTO; /* forget earlier decisions */
    mine->plans = on;
    return before;
}

clv_status clv_offload_last(clv_offload *decision)
{
    clv_call_orders *mine = clv_call_orders_here();
    if (!decision) return clv_fail(CLV_E_ARGUMENT, "offload: decision is NULL");
    *decision = (clv_offload){ 0 };
    if (!mine || !mine->latest.of.side)
        return clv_fail(CLV_E_ARGUMENT, "offload: no call of this thread has made a decision yet");
    clv_decision_explain(&mine->latest);
    *decision = mine->latest.of;
    return CLV_OK;
}
