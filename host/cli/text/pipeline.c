/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizes texts in its own thread while the caller works on the previous chunk. */
#include "host/cli/text/pipeline.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

enum { SLOTS = 3 }; /* one in use, two waiting */

typedef struct line {
    const cli_pipeline *pipeline;
    cli_chunk slots[SLOTS];
    clv_mutex lock;
    clv_cond changed;
    uint64_t made, used; /* chunk counts of the queue's two sides: producer and caller */
    bool ended;          /* no more chunks will come */
    atomic_bool stop;    /* the caller wants no more chunks */
    clv_error error;     /* why the producer ended */
} line;

static clv_status make(line *l, cli_chunk *chunk)
{
    const cli_pipeline *p = l->pipeline;
    const double started = clv_now();
    CLV_TRY(clv_lines_next(p->lines, p->chunk_lines, p->chunk_bytes));
    chunk->first = p->lines->first;
    CLV_TRY(cli_texts_tokenize(p->texts, p->tokenizer, p->lines, &chunk->rows));
    chunk->seconds = clv_now() - started;
    return CLV_OK;
}

static void *produce(void *argument)
{
    line *l = argument;
    pthread_mutex_lock(&l->lock);
    while (!l->ended) {
        if (l->stop) break;
        if (l->made - l->used == SLOTS) {
            pthread_cond_wait(&l->changed, &l->lock);
            continue;
        }
        cli_chunk *chunk = &l->slots[l->made % SLOTS];
        pthread_mutex_unlock(&l->lock);
        const clv_status status = make(l, chunk);
        pthread_mutex_lock(&l->lock);
        if (status) clv_error_take(&l->error, status);
        l->ended = status || !chunk->rows.rows;
        l->made += !l->ended;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Returns the next chunk, or NULL at the end, with the reason in *status. Without a thread, this function makes the
 * chunk itself. */
static const cli_chunk *await(line *l, bool threaded, clv_status *status)
{
    const cli_chunk *chunk = NULL;
    pthread_mutex_lock(&l->lock);
    while (threaded && l->made == l->used && !l->ended && !cli_interrupted())
        clv_cond_wait_until(&l->changed, &l->lock, clv_now() + 0.1);
    if (cli_interrupted())
        *status = clv_fail(CLV_E_CANCELLED, "interrupted");
    else if (!threaded && (*status = make(l, &l->slots[0])) == CLV_OK && l->slots[0].rows.rows)
        chunk = &l->slots[0];
    else if (threaded && l->made != l->used)
        chunk = &l->slots[l->used % SLOTS];
    else if (threaded && l->error.status)
        *status = clv_error_give(&l->error);
    pthread_mutex_unlock(&l->lock);
    return chunk;
}

clv_status cli_pipeline_run(const cli_pipeline *pipeline, cli_chunk_work *work, void *user)
{
    line l = { .pipeline = pipeline };
    clv_thread thread;
    clv_status status = CLV_OK;
    if (!clv_mutex_init(&l.lock)) return clv_fail(CLV_E_MEMORY, "no mutex");
    if (!clv_cond_init(&l.changed)) {
        pthread_mutex_destroy(&l.lock);
        return clv_fail(CLV_E_MEMORY, "no condition");
    }
    pipeline->lines->stop = &l.stop;
    const bool threaded = clv_thread_start(&thread, "cleave-texts", produce, &l);
    for (const cli_chunk *chunk; !status && (chunk = await(&l, threaded, &status));) {
        status = work(chunk, user);
        pthread_mutex_lock(&l.lock);
        l.used += threaded;
        pthread_cond_broadcast(&l.changed);
        pthread_mutex_unlock(&l.lock);
    }
    clv_error first = { 0 };
    if (status) clv_error_take(&first, status); /* later clean-up may fail as well */
    pthread_mutex_lock(&l.lock);
    l.stop = true;
    pthread_cond_broadcast(&l.changed);
    pthread_mutex_unlock(&l.lock);
    if (threaded) pthread_join(thread, NULL);
    pipeline->lines->stop = NULL;
    for (size_t i = 0; i < SLOTS; ++i)
        clv_token_rows_clear(&l.slots[i].rows);
    pthread_cond_destroy(&l.changed);
    pthread_mutex_destroy(&l.lock);
    if (status) clv_error_give(&first);
    clv_error_clear(&first), clv_error_clear(&l.error);
    return status;
}
