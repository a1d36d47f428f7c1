/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a shard's part of the jobs and writes the results to a record; reads records for a merging run. */
#include "host/cli/shard.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static uint64_t identity_of(const clv_job *job)
{
    uint64_t hash = clv_fnv1a(CLV_FNV1A, job->name, strlen(job->name) + 1);
    if (job->signature) hash = clv_fnv1a(hash, job->signature, strlen(job->signature) + 1);
    return hash;
}

static bool is_split(const cli_place *place, const clv_job *job)
{
    return place->split_left && strcmp(place->split, job->name) == 0;
}

/* Returns the first unit after shard `number` of `count`, rounded down to where a chunk may begin. */
static size_t border(const clv_job *job, unsigned number, unsigned count)
{
    const size_t align = CLV_MAX(job->align, (size_t)1);
    const size_t at = (size_t)((double)job->units * number / count);
    return number == count ? job->units : CLV_MIN(at / align * align, job->units);
}

/* ---- writing ------------------------------------------------------------------------------------ */

static bool completed;    /* this process has completed its record */
static bool cannot_write; /* this process could not write its record */

bool cli_shard_is_done(clv_status status)
{
    return status == CLV_E_CANCELLED && completed;
}

bool cli_shard_cannot_write(void)
{
    return cannot_write;
}

static clv_status wrote(clv_status status)
{
    cannot_write = cannot_write || status;
    return status;
}

clv_status cli_shard_begin(cli_shard *s, const char *path, const cli_record_head *head)
{
    clv_outputs_discard(false); /* the record is the one output of this run */
    const clv_status status = wrote(cli_record_begin(&s->writer, path, head));
    clv_outputs_discard(true);
    s->writes = true;
    return status;
}

clv_status cli_shard_end(cli_shard *s)
{
    clv_outputs_discard(false);
    const clv_status status = s->writes ? wrote(cli_record_finish(&s->writer)) : CLV_OK;
    clv_outputs_discard(true);
    s->writes = false;
    CLV_TRY(status);
    completed = true;
    return clv_fail(CLV_E_CANCELLED, "this shard is done");
}

void cli_shard_abandon(cli_shard *s)
{
    if (!s->writes) return;
    clv_outputs_discard(false);
    clv_output_abandon(&s->writer.output);
    s->writes = false;
}

static clv_status begin_part(void *self, const clv_job *job, bool *shared)
{
    cli_shard *s = self;
    const bool split = is_split(s->place, job);
    *shared = split || s->place->in_step;
    if (!*shared) return CLV_OK;
    s->entry = (cli_record_entry){ .step = s->place->step,
                                   .job = s->place->job++,
                                   .identity = identity_of(job),
                                   .units = job->units };
    s->first = split ? border(job, s->number - 1, s->count) : 0;
    s->left = (split ? border(job, s->number, s->count) : job->units) - s->first;
    return CLV_OK;
}

static clv_status lease_part(void *self, size_t *first, size_t *count)
{
    cli_shard *s = self;
    *first = s->first, *count = s->left;
    s->left = 0;
    return CLV_OK;
}

static clv_status put_part(void *self, size_t first, size_t count, const void *bytes, size_t length)
{
    cli_shard *s = self;
    s->entry.first = first, s->entry.count = count, s->entry.bytes = length;
    return wrote(cli_record_add(&s->writer, &s->entry, bytes));
}

static clv_status get_nothing(void *self, size_t *first, size_t *count, const void **bytes,
                              size_t *length)
{
    (void)self;
    *first = *count = *length = 0, *bytes = NULL;
    return CLV_OK;
}

static clv_status end_part(void *self, clv_status status)
{
    cli_shard *s = self;
    if (status || s->place->in_step || --s->place->split_left) return status;
    return cli_shard_end(s);
}

clv_spread cli_shard_spread(cli_shard *shard)
{
    return (clv_spread){ shard, begin_part, lease_part, put_part, get_nothing, end_part };
}

/* ---- reading ------------------------------------------------------------------------------------ */

typedef struct cli_replay_item {
    const cli_record *record;
    size_t number;
} cli_replay_item;

static const cli_record_entry *entry_of(const cli_replay_item *item)
{
    return item->record->entries[item->number];
}

static int by_place(const void *a, const void *b)
{
    const cli_record_entry *x = entry_of(a), *y = entry_of(b);
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    if (x->job != y->job) return x->job < y->job ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static clv_status check_match(const cli_record *a, const cli_record *b)
{
    if (a->head.shards != b->head.shards)
        return clv_fail(CLV_E_FORMAT,
                        "%s is one of %u shards, but %s is one of %u; they do not belong together",
                        a->path, a->head.shards, b->path, b->head.shards);
    if (a->head.shard == b->head.shard)
        return clv_fail(CLV_E_FORMAT, "shard %u of %u is given twice: %s and %s; leave one out",
                        a->head.shard, a->head.shards, a->path, b->path);
    bool same = a->head.argc == b->head.argc && a->head.input_count == b->head.input_count;
    for (int i = 0; same && i < a->head.argc; ++i)
        same = strcmp(a->head.argv[i], b->head.argv[i]) == 0;
    if (!same)
        return clv_fail(
            CLV_E_FORMAT,
            "%s and %s come from different commands: all shards need the same arguments", a->path,
            b->path);
    for (size_t i = 0; i < a->head.input_count; ++i)
        if (strcmp(a->head.inputs[i].path, b->head.inputs[i].path) != 0 ||
            strcmp(a->head.inputs[i].digest, b->head.inputs[i].digest) != 0)
            return clv_fail(CLV_E_FORMAT,
                            "%s and %s were made of different inputs: %s has changed between the "
                            "shards; run them again",
                            a->path, b->path, b->head.inputs[i].path);
    return CLV_OK;
}

static clv_status check_complete(const cli_replay *r)
{
    const unsigned shards = r->records[0].head.shards;
    clv_text missing = { 0 };
    for (size_t i = 0; i < r->record_count; ++i)
        for (size_t k = 0; k < i; ++k)
            CLV_TRY(check_match(&r->records[k], &r->records[i]));
    if (r->record_count == shards) return CLV_OK;
    for (unsigned n = 1; n <= shards; ++n) {
        bool there = false;
        for (size_t i = 0; i < r->record_count; ++i)
            there = there || r->records[i].head.shard == n;
        if (!there && missing.length < 100)
            clv_text_add(&missing, "%s%u", missing.length ? ", " : "", n);
    }
    const clv_status status =
        clv_fail(CLV_E_FORMAT, "only %zu of the %u shards are given; missing: %s", r->record_count,
                 shards, clv_text_get(&missing));
    clv_text_clear(&missing);
    return status;
}

clv_status cli_replay_open(cli_replay *r, const char *const *paths, size_t count)
{
    *r = (cli_replay){ .place = r->place };
    r->records = clv_zalloc(count, sizeof *r->records);
    if (!r->records)
        return clv_fail(CLV_E_MEMORY, "merge: not enough memory for %zu records", count);
    while (r->record_count < count) {
        cli_record *one = &r->records[r->record_count];
        CLV_TRY(cli_record_open(paths[r->record_count++], one));
        r->item_count += one->entry_count;
    }
    CLV_TRY(check_complete(r));
    r->items = clv_alloc(r->item_count + 1, sizeof *r->items);
    if (!r->items)
        return clv_fail(CLV_E_MEMORY, "merge: not enough memory for %zu results", r->item_count);
    size_t n = 0;
    for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < r->records[i].entry_count; ++k)
            r->items[n++] = (cli_replay_item){ &r->records[i], k };
    qsort(r->items, n, sizeof *r->items, by_place);
    return CLV_OK;
}

/* Checks that the entries [at, end) are the job's and hold each of its units once. */
static clv_status check_units(const cli_replay *r, const clv_job *job)
{
    size_t next = 0;
    for (size_t i = r->at; i < r->end; ++i) {
        const cli_record_entry *e = entry_of(&r->items[i]);
        const char *path = r->items[i].record->path;
        if (e->identity != identity_of(job) || e->units != job->units)
            return clv_fail(CLV_E_FORMAT,
                            "%s does not hold the expected job, %s of %zu units, at this point; "
                            "the shards were run on other inputs or with other settings",
                            path, job->name, job->units);
        if (e->first < next)
            return clv_fail(CLV_E_FORMAT,
                            "%s: unit %llu of %s is in the records twice; give each shard once",
                            path, (unsigned long long)e->first, job->name);
        if (e->first > next) break;
        next += (size_t)e->count;
    }
    if (next == job->units) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "the records lack unit %zu of job %llu (%s) in step %llu: the shards were run "
                    "on other inputs or with other settings",
                    next, (unsigned long long)r->place->job, job->name,
                    (unsigned long long)r->place->step);
}

static clv_status begin_replay(void *self, const clv_job *job, bool *shared)
{
    cli_replay *r = self;
    cli_place *place = r->place;
    *shared = place->in_step || is_split(place, job);
    if (!*shared) return CLV_OK;
    size_t low = 0, high = r->item_count;
    while (low < high) { /* finds the first entry that is not before this job */
        const size_t middle = low + (high - low) / 2;
        const cli_record_entry *e = entry_of(&r->items[middle]);
        if (e->step < place->step || (e->step == place->step && e->job < place->job))
            low = middle + 1;
        else
            high = middle;
    }
    r->at = r->end = low;
    while (r->end < r->item_count && entry_of(&r->items[r->end])->step == place->step &&
           entry_of(&r->items[r->end])->job == place->job)
        ++r->end;
    CLV_TRY(check_units(r, job));
    ++place->job;
    return CLV_OK;
}

static clv_status lease_nothing(void *self, size_t *first, size_t *count)
{
    (void)self;
    *first = *count = 0;
    return CLV_OK;
}

static clv_status put_nothing(void *self, size_t first, size_t count, const void *bytes,
                              size_t length)
{
    (void)self, (void)first, (void)count, (void)bytes, (void)length;
    return CLV_OK;
}

static clv_status get_item(void *self, size_t *first, size_t *count, const void **bytes,
                           size_t *length)
{
    cli_replay *r = self;
    *count = 0;
    if (r->at == r->end) return CLV_OK;
    const cli_replay_item *item = &r->items[r->at++];
    const cli_record_entry *e = entry_of(item);
    CLV_TRY(cli_record_read(item->record, item->number, bytes));
    *first = (size_t)e->first, *count = (size_t)e->count, *length = (size_t)e->bytes;
    ++r->used;
    return CLV_OK;
}

static clv_status end_replay(void *self, clv_status status)
{
    const cli_replay *r = self;
    if (!r->place->in_step) --r->place->split_left;
    return status;
}

clv_spread cli_replay_spread(cli_replay *replay)
{
    return (clv_spread){ replay, begin_replay, lease_nothing, put_nothing, get_item, end_replay };
}

clv_status cli_replay_check(const cli_replay *r)
{
    if (r->used == r->item_count) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "only %zu of the %zu results in the records were needed: the shards were run "
                    "on other inputs or with other settings",
                    r->used, r->item_count);
}

void cli_replay_close(cli_replay *r)
{
    for (size_t i = 0; i < r->record_count; ++i)
        cli_record_close(&r->records[i]);
    clv_free(r->records), clv_free(r->items);
    *r = (cli_replay){ 0 };
}
