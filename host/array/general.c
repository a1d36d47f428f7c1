/* SPDX-License-Identifier: Apache-2.0 */
/* Computes eigenvalues of general matrices with LAPACK on the host; each thread works on one matrix at a time. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/lapack.h"
#include "base/options.h"
#include "base/thread.h"
#include "runtime/job/watch.h"
#include "runtime/offload/call.h"
#include "runtime/record/context.h"

#include <cleave/array.h>

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 64, LARGEST = 32767 };

/* Guards OpenBLAS's thread count. It is recursive because a progress function may call the public function again. */
static pthread_mutex_t thread_count_lock;
static pthread_once_t thread_count_once = PTHREAD_ONCE_INIT;

static void make_thread_count_lock(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&thread_count_lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

const char *clv_eigvals_provider(void)
{
    const clv_lapack *lapack = clv_lapack_get();
    return lapack ? lapack->library : NULL;
}

typedef struct values {
    clv_context *context;
    const clv_eigen_options *options;
    clv_report *report;
    const clv_lapack *lapack;
    const float *matrices;
    float *real, *imaginary;
    size_t count, n;
    int room; /* size of dgeev's workspace, in doubles */
    atomic_size_t next, done;
    atomic_bool over;
    pthread_mutex_t lock;
    clv_error error;
} values;

typedef struct pair {
    double re, im;
} pair;

static int ascending(const void *left, const void *right)
{
    const pair *a = left, *b = right;
    if (a->re != b->re) return a->re < b->re ? -1 : 1;
    return (a->im > b->im) - (a->im < b->im);
}

static clv_status do_matrix(const values *v, size_t which, double *room, pair *pairs)
{
    const size_t n = v->n;
    const float *from = v->matrices + which * n * n;
    double *a = room, *re = a + n * n, *im = re + n, *work = im + n, none = 0;
    const int extent = (int)n, one = 1;
    int info = 0;
    bool finite = true;
    for (size_t i = 0; i < n * n; ++i) {
        a[i] = (double)from[i]; /* Fortran reads the transpose, which has the same eigenvalues */
        finite = finite && isfinite(from[i]);
    }
    if (finite)
        v->lapack->dgeev("N", "N", &extent, a, &extent, re, im, &none, &one, &none, &one, work,
                         &v->room, &info, 1, 1);
    if (info)
        return clv_fail(CLV_E_INTERNAL,
                        "eigenvalues: LAPACK's dgeev failed on matrix %zu with info %d", which,
                        info);
    for (size_t i = 0; i < n; ++i)
        pairs[i] = finite ? (pair){ re[i], im[i] } : (pair){ (double)NAN, (double)NAN };
    if (finite) qsort(pairs, n, sizeof *pairs, ascending);
    for (size_t i = 0; i < n; ++i) {
        v->real[which * n + i] = (float)pairs[i].re;
        v->imaginary[which * n + i] = (float)pairs[i].im;
    }
    return CLV_OK;
}

static void stop(values *v, clv_status status)
{
    pthread_mutex_lock(&v->lock);
    if (!v->error.status) clv_error_take(&v->error, status);
    pthread_mutex_unlock(&v->lock);
    atomic_store(&v->over, true);
}

/* Works on matrices until none is left. Only the calling thread passes `watch`; it reports the progress of all
 * threads. */
static void work_on(values *v, clv_watch *watch)
{
    const size_t n = v->n;
    double *room = clv_alloc(n * n + 2 * n + (size_t)v->room, sizeof *room);
    pair *pairs = clv_alloc(n, sizeof *pairs);
    if (!room || !pairs)
        stop(v,
             clv_fail(CLV_E_MEMORY, "eigenvalues: not enough memory for a matrix [%zu,%zu]", n, n));
    while (!atomic_load(&v->over)) {
        const size_t which = atomic_fetch_add(&v->next, 1);
        if (which >= v->count) break;
        clv_status status = do_matrix(v, which, room, pairs);
        const size_t done = atomic_fetch_add(&v->done, 1) + 1;
        if (!status && watch) status = clv_watch_tell(watch, done);
        if (status) stop(v, status);
    }
    clv_free(room);
    clv_free(pairs);
}

static void *helper(void *argument)
{
    work_on(argument, NULL);
    return NULL;
}

static clv_status on_host(void *user)
{
    values *v = user;
    const clv_eigen_options *o = v->options;
    size_t threads = CLV_MIN((size_t)v->context->probe->host.threads_allowed, v->count);
    threads = CLV_MIN(CLV_MAX(threads, (size_t)1), (size_t)MOST_THREADS);
    clv_thread started[MOST_THREADS];
    size_t helpers = 0;
    pthread_once(&thread_count_once, make_thread_count_lock);
    pthread_mutex_lock(&thread_count_lock);
    const clv_lapack *l = v->lapack;
    const int before = l->set_threads && l->get_threads && threads > 1 ? l->get_threads() : 0;
    if (before) l->set_threads(1);
    clv_watch watch = clv_watch_begin("eigenvalues", o->progress, o->progress_user, v->count);
    watch.next = 0; /* reports the first matrix at once */
    while (helpers + 1 < threads && clv_thread_start(&started[helpers], "cleave-eigen", helper, v))
        ++helpers;
    work_on(v, &watch);
    for (size_t i = 0; i < helpers; ++i)
        pthread_join(started[i], NULL);
    if (!v->error.status) clv_watch_end(&watch);
    if (before) l->set_threads(before);
    pthread_mutex_unlock(&thread_count_lock);
    if (v->report) {
        clv_report_note(v->report, "host_threads", (double)(helpers + 1));
        clv_report_note_text(v->report, "provider", l->library);
    }
    const clv_status status = v->error.status ? clv_error_give(&v->error) : CLV_OK;
    clv_error_clear(&v->error);
    return status;
}

clv_status clv_eigvals(clv_context *context, const float *matrices, size_t count, size_t n,
                       const clv_eigen_options *options, float *real, float *imaginary,
                       clv_report *report)
{
    clv_eigen_options o = { .size = sizeof(clv_eigen_options) };
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_eigvals", "clv_eigen_options"));
    if (!context || ((!matrices || !real || !imaginary) && count))
        return clv_fail(CLV_E_ARGUMENT, "eigenvalues: context, input or result is NULL");
    if (!n || n > LARGEST)
        return clv_fail(
            CLV_E_SHAPE,
            "eigenvalues: the matrices are [%zu,%zu], but they must be square with 1 to %d rows", n,
            n, LARGEST);
    if (count > SIZE_MAX / (16 * n * n))
        return clv_fail(CLV_E_SHAPE,
                        "eigenvalues: %zu matrices need more memory than can be addressed", count);
    const size_t bytes = count * n * sizeof *real;
    if (clv_shares(real, bytes, matrices, bytes * n) ||
        clv_shares(imaginary, bytes, matrices, bytes * n) ||
        clv_shares(real, bytes, imaginary, bytes))
        return clv_fail(
            CLV_E_ARGUMENT,
            "eigenvalues: a result shares memory with the matrices or with the other result");
    const clv_lapack *lapack = clv_lapack_get();
    if (!lapack)
        return clv_fail(CLV_E_UNSUPPORTED,
                        "eigenvalues of general matrices need LAPACK, and " CLV_LAPACK_WHERE);
    if (!count) return CLV_OK;
    values v = { .context = context,
                 .options = &o,
                 .report = report,
                 .lapack = lapack,
                 .matrices = matrices,
                 .real = real,
                 .imaginary = imaginary,
                 .count = count,
                 .n = n,
                 .room = (int)(n > 256 ? 66 * n : 34 * n),
                 .lock = PTHREAD_MUTEX_INITIALIZER };
    const double numbers = (double)count * (double)n;
    clv_call call = { .operation = "eigvals",
                      .work = { .flops = 10 * numbers * (double)n * (double)n,
                                .bytes = 4 * numbers * (double)(n + 2) },
                      .host_only = "host: eigenvalues of general matrices are LAPACK's",
                      .host = on_host,
                      .user = &v };
    clv_call_take_orders(&call);
    return clv_call_run(context, &call);
}
