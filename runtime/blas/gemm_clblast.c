/* SPDX-License-Identifier: Apache-2.0 */
/* Computes products on GPUs with CLBlast, and applies bias, activation and residual in a launch of our own.
 *
 * The library is searched for only when a GPU first asks. On CPUs its kernels reach a tenth of the peak and take
 * seconds to compile, so they are not offered there. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"
#include "runtime/device/pool.h"
#include "runtime/device/queue.h"
#include "runtime/record/cl_status.h"

enum { FINISHERS = 64 }; /* work-items per group of the finishing kernel */

clv_status clv_gemm_finish_enqueue(clv_queue *queue, const clv_gemm *g, float beta,
                                   clv_event **done)
{
    const clv_matrix add = g->add.buffer ? g->add : g->c;
    const clv_launch launch = { .size = sizeof(clv_launch),
                                .source = &clv_cl_blas_finish,
                                .kernel = "clv_gemm_finish",
                                .defines = { { "LANES", 1 }, { "LOCAL", FINISHERS } },
                                .global = { clv_round_up(g->n, FINISHERS), g->m,
                                            CLV_MAX(g->batch, (size_t)1) },
                                .local = { FINISHERS, 1, 1 } };
    const clv_arg args[] = { clv_arg_buffer(g->c.buffer),
                             clv_arg_u64(g->c.offset),
                             clv_arg_u64(g->c.row),
                             clv_arg_u64(g->c.batch),
                             clv_arg_buffer(g->bias ? g->bias : g->c.buffer),
                             clv_arg_u64(g->bias_offset),
                             clv_gemm_u32(g->bias != NULL),
                             clv_arg_buffer(add.buffer),
                             clv_arg_u64(add.offset),
                             clv_arg_u64(add.row),
                             clv_arg_u64(add.batch),
                             clv_gemm_u32(g->n),
                             clv_arg_f32(beta),
                             clv_gemm_u32(g->activation) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), done);
}

#if defined(CLEAVE_HAVE_CLBLAST)
#include <clblast_c.h>
#include <dlfcn.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static __typeof__(&CLBlastSgemm) sgemm;
static __typeof__(&CLBlastSgemmStridedBatched) sgemm_batched;

static void load(void)
{
    void *library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    *(void **)&sgemm = dlsym(library, "CLBlastSgemm");
    *(void **)&sgemm_batched = dlsym(library, "CLBlastSgemmStridedBatched");
}

bool clv_gemm_clblast_is_here(void)
{
    pthread_once(&once, load);
    return sgemm && sgemm_batched;
}

/* Sets *transpose and *lead to CLBlast's description of a matrix of these strides; returns false if there is none. */
static bool orient(const clv_matrix *m, size_t rows, size_t cols, CLBlastTranspose *transpose,
                   size_t *lead)
{
    if (m->col == 1 && (m->row >= cols || rows == 1)) {
        *transpose = CLBlastTransposeNo;
        *lead = CLV_MAX(m->row, cols);
        return true;
    }
    *transpose = CLBlastTransposeYes;
    *lead = CLV_MAX(m->col, rows);
    return m->row == 1 && (m->col >= rows || cols == 1);
}

bool clv_gemm_clblast_can(const clv_gemm *g)
{
    CLBlastTranspose t;
    size_t lead;
    const bool own = !g->add.buffer || g->add.buffer == g->c.buffer;
    const bool follows = g->bias || g->activation;
    return g->k && g->c.row >= g->n && !(own && g->beta != 0 && follows) &&
           orient(&g->a, g->m, g->k, &t, &lead) && orient(&g->b, g->k, g->n, &t, &lead);
}

clv_status clv_gemm_clblast_enqueue(clv_queue *queue, const clv_gemm *g, clv_event **done)
{
    CLBlastTranspose ta, tb;
    size_t lda, ldb;
    cl_event event = NULL;
    const bool own = !g->add.buffer || g->add.buffer == g->c.buffer;
    const float beta = own ? g->beta : 0;
    const bool follows = g->bias || g->activation || (!own && g->beta != 0);
    if (queue->rehearsing)
        return follows ? clv_gemm_finish_enqueue(queue, g, own ? 0 : g->beta, done) : CLV_OK;
    if (!orient(&g->a, g->m, g->k, &ta, &lda) || !orient(&g->b, g->k, g->n, &tb, &ldb))
        return clv_fail(CLV_E_ARGUMENT, "gemm: CLBlast does not support these strides");
    const CLBlastStatusCode code =
        g->batch > 1
            ? sgemm_batched(CLBlastLayoutRowMajor, ta, tb, g->m, g->n, g->k, g->alpha,
                            g->a.buffer->mem, g->a.offset, lda, g->a.batch, g->b.buffer->mem,
                            g->b.offset, ldb, g->b.batch, beta, g->c.buffer->mem, g->c.offset,
                            g->c.row, g->c.batch, g->batch, &queue->cl, &event)
            : sgemm(CLBlastLayoutRowMajor, ta, tb, g->m, g->n, g->k, g->alpha, g->a.buffer->mem,
                    g->a.offset, lda, g->b.buffer->mem, g->b.offset, ldb, beta, g->c.buffer->mem,
                    g->c.offset, g->c.row, &queue->cl, &event);
    if (code != CLBlastSuccess)
        return clv_fail(CLV_E_DEVICE, "%s: CLBlast failed with status %d",
                        clv_device_label(clv_queue_device(queue)), (int)code);
    const clv_buffer *used[] = { g->a.buffer, g->b.buffer, g->c.buffer };
    for (size_t i = 0; i < CLV_LEN(used) && event; ++i)
        clv_buffer_used(used[i], queue, event);
    if (event)
        CLV_TRY(clv_queue_note(queue, event, CLV_COMMAND_KERNEL, "CLBlastSgemm", 0,
                               follows ? NULL : done));
    return follows ? clv_gemm_finish_enqueue(queue, g, own ? 0 : g->beta, done) : CLV_OK;
}
#else
bool clv_gemm_clblast_is_here(void)
{
    return false;
}

bool clv_gemm_clblast_can(const clv_gemm *gemm)
{
    (void)gemm;
    return false;
}

clv_status clv_gemm_clblast_enqueue(clv_queue *queue, const clv_gemm *gemm, clv_event **done)
{
    (void)queue, (void)gemm, (void)done;
    return clv_fail(CLV_E_ARGUMENT, "gemm: this Cleave was built without CLBlast");
}
#endif
