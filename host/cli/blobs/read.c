/* SPDX-License-Identifier: Apache-2.0 */
/* Reads frames in a separate thread: while the devices compute, the next blocks are read and unpacked. */
#include "host/cli/blobs/blobs.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

enum { BLOCKS = 3, BLOCK_BYTES = 8 << 20, MOST_FRAMES = 64 };

typedef struct block {
    void *pixels;
    size_t count;
    bool full;
} block;

struct blobs_reader {
    clv_movie *movie;
    size_t next, last, frames; /* `last` ends the frames to read; `frames`: per block */
    size_t frame_bytes;
    block blocks[BLOCKS];
    size_t write, read; /* numbers of blocks that were filled and taken so far */
    bool lent, started, stop, ended;
    double seconds;
    clv_error error;
    clv_mutex lock;
    clv_cond changed;
    clv_thread thread;
};

size_t blobs_block(const clv_movie_facts *f)
{
    const size_t bytes = f->height * f->width * clv_type_size(f->type);
    return CLV_MAX(CLV_MIN((size_t)BLOCK_BYTES / CLV_MAX(bytes, (size_t)1), (size_t)MOST_FRAMES),
                   (size_t)1);
}

/* Fills a block until it is full, the movie ends or a frame cannot be read. */
static clv_status fill(blobs_reader *r, block *b)
{
    clv_status status = CLV_OK;
    for (b->count = 0; b->count < r->frames && r->next < r->last && !status;) {
        status =
            clv_movie_read(r->movie, r->next, 1, (char *)b->pixels + b->count * r->frame_bytes);
        if (!status) ++b->count, ++r->next;
    }
    return status;
}

static void *read_all(void *argument)
{
    blobs_reader *r = argument;
    pthread_mutex_lock(&r->lock);
    while (!r->stop && !r->ended) {
        block *b = &r->blocks[r->write % BLOCKS];
        if (b->full) {
            pthread_cond_wait(&r->changed, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        const double started = clv_now();
        const clv_status status = fill(r, b);
        const double took = clv_now() - started;
        pthread_mutex_lock(&r->lock);
        r->seconds += took;
        if (status) clv_error_take(&r->error, status);
        if (b->count) b->full = true, ++r->write;
        r->ended = status != CLV_OK || r->next >= r->last;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

clv_status blobs_reader_start(clv_movie *movie, size_t first, size_t last, size_t frames,
                              blobs_reader **out)
{
    const clv_movie_facts *f = clv_movie_look(movie);
    *out = NULL;
    blobs_reader *r = clv_zalloc(1, sizeof *r);
    if (!r) return clv_fail(CLV_E_MEMORY, "not enough memory for a reader");
    r->movie = movie, r->next = first, r->last = last, r->frames = frames;
    r->frame_bytes = f->height * f->width * clv_type_size(f->type);
    bool ok = clv_mutex_init(&r->lock) && clv_cond_init(&r->changed);
    size_t bytes = 0;
    ok = ok && clv_size_mul(frames, r->frame_bytes, &bytes);
    for (size_t i = 0; ok && i < BLOCKS; ++i) {
        r->blocks[i].pixels = clv_alloc_pages(bytes);
        ok = r->blocks[i].pixels != NULL;
    }
    r->started = ok && clv_thread_start(&r->thread, "cleave-read", read_all, r);
    if (!r->started) {
        blobs_reader_stop(r);
        return clv_fail(CLV_E_MEMORY, "not enough memory for %d blocks of %zu frames", BLOCKS,
                        frames);
    }
    *out = r;
    return CLV_OK;
}

clv_status blobs_reader_next(blobs_reader *r, const void **pixels, size_t *count)
{
    *pixels = NULL, *count = 0;
    clv_status status = CLV_OK;
    pthread_mutex_lock(&r->lock);
    if (r->lent) {
        r->blocks[r->read++ % BLOCKS].full = false;
        r->lent = false;
        pthread_cond_broadcast(&r->changed);
    }
    while (r->read == r->write && !r->ended)
        pthread_cond_wait(&r->changed, &r->lock);
    if (r->read < r->write) {
        const block *b = &r->blocks[r->read % BLOCKS];
        *pixels = b->pixels, *count = b->count;
        r->lent = true;
    } else if (r->error.status) {
        status = clv_error_give(&r->error);
    }
    pthread_mutex_unlock(&r->lock);
    return status;
}

double blobs_reader_seconds(blobs_reader *r)
{
    pthread_mutex_lock(&r->lock);
    const double seconds = r->seconds;
    pthread_mutex_unlock(&r->lock);
    return seconds;
}

void blobs_reader_stop(blobs_reader *r)
{
    if (!r) return;
    if (r->started) {
        pthread_mutex_lock(&r->lock);
        r->stop = true;
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
        pthread_join(r->thread, NULL);
    }
    for (size_t i = 0; i < BLOCKS; ++i)
        clv_free(r->blocks[i].pixels);
    clv_error_clear(&r->error);
    clv_free(r);
}

clv_status blobs_stop(const blobs_args *a, size_t done, size_t total, const char *what,
                      bool *stopped)
{
    if (!a->partial || !done)
        return clv_fail(CLV_E_CANCELLED, "cancelled after %zu of %zu %s%s", done, total, what,
                        a->partial ? "" : " (--partial keeps the finished part)");
    cli_warn(cli_running(), "stopped after %zu of %zu %s; these are kept (--partial)", done, total,
             what);
    *stopped = true;
    return CLV_OK;
}
