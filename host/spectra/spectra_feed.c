/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares stars on the host's cores before the devices ask for these stars. The continuum, the masks and the start
 * arrays take one or two milliseconds per star, which is longer than the whole fit takes on a graphics card. */
#include "host/spectra/spectra_feed.h"

#include "base/alloc.h"
#include "base/error.h"

enum { MOST_THREADS = 64, MOST_RANGES = 2 * CLV_MAX_WORKERS, AHEAD_BYTES = 128 << 20 };
enum { NOT_BEGUN, BUSY, READY };

/* A range of stars for which a caller is waiting. */
typedef struct range {
    size_t next, end; /* empty: next == end */
} range;

struct clv_star_feed {
    const clv_spectra_plan *plan;
    clv_mutex lock;
    clv_cond changed;
    unsigned char *state; /* [stars] */
    clv_star_pack **pack; /* [stars] packs of the stars that are READY */
    clv_star_pack *spare; /* free packs */
    range wanted[MOST_RANGES];
    size_t ahead_next, ahead_end; /* stars that nobody has requested yet */
    size_t made, most;            /* packs that exist; limit at which the helpers stop */
    size_t threads, started;
    clv_thread thread[MOST_THREADS];
    bool over;
};

static void free_pack(clv_star_pack *pack)
{
    if (!pack) return;
    clv_free(pack->pairs), clv_free(pack->ccf), clv_free(pack->resolution);
    clv_free(pack);
}

/* Takes a free pack, or creates one; the caller holds the lock. Returns NULL if memory is out. */
static clv_star_pack *new_pack(clv_star_feed *feed)
{
    const clv_spectra_plan *plan = feed->plan;
    clv_star_pack *pack = feed->spare;
    if (pack) {
        feed->spare = pack->next;
        return pack;
    }
    pack = clv_zalloc(1, sizeof *pack);
    if (!pack) return NULL;
    pack->pairs = clv_alloc(2 * plan->sizes.all_pixels, sizeof *pack->pairs);
    pack->ccf = clv_alloc(plan->stars.spectra * 2 * plan->sizes.ccf_room, sizeof *pack->ccf);
    if (plan->sizes.diagonals)
        pack->resolution = clv_alloc(plan->sizes.all_pixels * plan->sizes.diagonals, sizeof(float));
    if (pack->pairs && pack->ccf && (pack->resolution || !plan->sizes.diagonals)) {
        ++feed->made;
        return pack;
    }
    free_pack(pack);
    return NULL;
}

static void swap(float **a, float **b)
{
    float *const kept = *a;
    *a = *b, *b = kept;
}

/* Prepares a star that is NOT_BEGUN. The caller holds the lock; the function releases it during the work. */
static clv_status prepare(clv_star_feed *feed, size_t star, clv_star_data *scratch)
{
    clv_star_pack *pack = new_pack(feed);
    if (!pack) return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a prepared star");
    feed->state[star] = BUSY;
    pthread_mutex_unlock(&feed->lock);
    const clv_status status = clv_star_prepare(feed->plan, star, scratch);
    swap(&pack->pairs, &scratch->pairs), swap(&pack->ccf, &scratch->ccf);
    swap(&pack->resolution, &scratch->resolution);
    pack->facts = scratch->facts;
    pthread_mutex_lock(&feed->lock);
    feed->state[star] = status ? NOT_BEGUN : READY;
    if (status)
        pack->next = feed->spare, feed->spare = pack;
    else
        feed->pack[star] = pack;
    pthread_cond_broadcast(&feed->changed);
    return status;
}

/* Chooses the next star to prepare: stars for which a caller waits come first. Returns false if there is none. */
static bool choose(clv_star_feed *feed, size_t *star)
{
    if (!feed->spare && feed->made >= feed->most)
        return false; /* the limit holds for helpers only: a waiting caller still creates packs */
    for (size_t i = 0; i < MOST_RANGES; ++i)
        for (range *r = &feed->wanted[i]; r->next < r->end;) {
            *star = r->next++;
            if (feed->state[*star] == NOT_BEGUN) return true;
        }
    while (feed->ahead_next < feed->ahead_end) {
        *star = feed->ahead_next++;
        if (feed->state[*star] == NOT_BEGUN) return true;
    }
    return false;
}

static void *help(void *argument)
{
    clv_star_feed *feed = argument;
    clv_star_data scratch;
    size_t star;
    /* a waiting caller prepares the star itself */
    if (clv_star_data_create(feed->plan, &scratch)) return NULL;
    pthread_mutex_lock(&feed->lock);
    while (!feed->over) {
        if (!choose(feed, &star))
            pthread_cond_wait(&feed->changed, &feed->lock);
        else
            (void)prepare(feed, star, &scratch); /* a caller of this star will get the error */
    }
    pthread_mutex_unlock(&feed->lock);
    clv_star_data_clear(&scratch);
    return NULL;
}

clv_status clv_star_feed_create(const clv_spectra_plan *plan, size_t threads, clv_star_feed **out)
{
    const size_t stars = CLV_MAX(plan->stars.count, (size_t)1);
    const size_t bytes =
        (2 * plan->sizes.all_pixels + plan->stars.spectra * 2 * plan->sizes.ccf_room +
         plan->sizes.all_pixels * plan->sizes.diagonals) *
        sizeof(float);
    clv_star_feed *feed = clv_zalloc(1, sizeof *feed);
    *out = NULL;
    if (!feed) return clv_fail(CLV_E_MEMORY, "specfit: out of memory");
    feed->plan = plan;
    feed->threads = CLV_MIN(CLV_MIN(threads, stars), (size_t)MOST_THREADS);
    feed->most = CLV_MAX(AHEAD_BYTES / CLV_MAX(bytes, (size_t)1), (size_t)1);
    feed->state = clv_zalloc(stars, 1);
    feed->pack = clv_zalloc(stars, sizeof *feed->pack);
    if (feed->state && feed->pack && clv_mutex_init(&feed->lock)) {
        if (clv_cond_init(&feed->changed)) {
            *out = feed;
            return CLV_OK;
        }
        (void)pthread_mutex_destroy(&feed->lock);
    }
    clv_free(feed->state), clv_free(feed->pack), clv_free(feed);
    return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for prepared stars");
}

void clv_star_feed_free(clv_star_feed *feed)
{
    if (!feed) return;
    pthread_mutex_lock(&feed->lock);
    feed->over = true;
    pthread_cond_broadcast(&feed->changed);
    pthread_mutex_unlock(&feed->lock);
    for (size_t i = 0; i < feed->started; ++i)
        pthread_join(feed->thread[i], NULL);
    for (size_t i = 0; i < feed->plan->stars.count; ++i)
        free_pack(feed->pack[i]);
    for (clv_star_pack *pack; (pack = feed->spare);) {
        feed->spare = pack->next;
        free_pack(pack);
    }
    (void)pthread_cond_destroy(&feed->changed);
    (void)pthread_mutex_destroy(&feed->lock);
    clv_free(feed->state), clv_free(feed->pack), clv_free(feed);
}

/* Starts the helper threads; the caller holds the lock. */
static void start_threads(clv_star_feed *feed)
{
    while (feed->started + 1 < feed->threads &&
           clv_thread_start(&feed->thread[feed->started], "cleave-stars", help, feed))
        ++feed->started;
    feed->threads = feed->started + 1; /* later calls do not retry threads that failed to start */
}

static clv_status take(clv_star_feed *feed, size_t star, clv_star_data *scratch,
                       clv_star_pack **pack)
{
    while (feed->state[star] != READY) {
        if (feed->state[star] == BUSY)
            pthread_cond_wait(&feed->changed, &feed->lock);
        else
            CLV_TRY(prepare(feed, star, scratch));
    }
    *pack = feed->pack[star];
    feed->pack[star] = NULL, feed->state[star] = NOT_BEGUN; /* for another run over the star */
    return CLV_OK;
}

/* Returns an unused range of `wanted`; NULL if all are used, when the helpers already have enough stars to prepare. */
static range *free_range(clv_star_feed *feed)
{
    for (size_t i = 0; i < MOST_RANGES; ++i)
        if (feed->wanted[i].next == feed->wanted[i].end) return &feed->wanted[i];
    return NULL;
}

clv_status clv_star_feed_bring(clv_star_feed *feed, size_t first, size_t count, size_t ahead,
                               clv_star_use *use, void *user)
{
    clv_star_data scratch;
    CLV_TRY(clv_star_data_create(feed->plan, &scratch));
    const size_t end = first + count;
    pthread_mutex_lock(&feed->lock);
    start_threads(feed);
    range *mine = free_range(feed);
    if (mine) *mine = (range){ first, end };
    if (end > feed->ahead_next) feed->ahead_next = end;
    if (ahead)
        feed->ahead_end = CLV_MAX(feed->ahead_end, CLV_MIN(end + ahead, feed->plan->stars.count));
    pthread_cond_broadcast(&feed->changed);
    clv_status status = CLV_OK;
    for (size_t i = 0; i < count && !status; ++i) {
        clv_star_pack *pack;
        status = take(feed, first + i, &scratch, &pack);
        if (status) break;
        pthread_mutex_unlock(&feed->lock);
        status = use(pack, i, user);
        pthread_mutex_lock(&feed->lock);
        pack->next = feed->spare, feed->spare = pack;
        pthread_cond_broadcast(&feed->changed);
    }
    pthread_mutex_unlock(&feed->lock);
    clv_star_data_clear(&scratch);
    return status;
}
