/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads the records of shards. */
#include "host/cli/record.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#include <cleave/version.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[16] = "cleave record 1\n";
static const uint32_t mark = 0x1e7a5d03;
/* LEAST_INPUT is the smallest number of bytes that an input takes in the head: an empty path, a digest of 64 digits,
 * and a NUL after each. */
enum {
    STEP = 16,
    MOST_HEAD = 1 << 28,
    MOST_SHARDS = 100000,
    MOST_ARGUMENTS = 1 << 20,
    LEAST_INPUT = 66
};
_Static_assert(sizeof(cli_record_entry) % STEP == 0, "entries keep results aligned");

static size_t padded(size_t length)
{
    return (length + STEP - 1) / STEP * STEP;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static void add_string(clv_text *head, const char *text)
{
    clv_text_bytes(head, text, strlen(text) + 1);
}

static void add_number(clv_text *head, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    add_string(head, text);
}

static const char *byte_order(void)
{
    const uint32_t one = 1;
    return *(const unsigned char *)&one ? "little" : "big";
}

static clv_status write_padded(cli_record_writer *w, const void *data, size_t length)
{
    static const char zeros[STEP];
    CLV_TRY(clv_output_write(&w->output, data, length));
    return clv_output_write(&w->output, zeros, padded(length) - length);
}

clv_status cli_record_begin(cli_record_writer *w, const char *path, const cli_record_head *head)
{
    clv_text text = { 0 };
    *w = (cli_record_writer){ 0 };
    add_string(&text, clv_version());
    add_string(&text, byte_order());
    add_number(&text, head->shard), add_number(&text, head->shards);
    add_number(&text, (uint64_t)head->argc);
    for (int i = 0; i < head->argc; ++i)
        add_string(&text, head->argv[i]);
    add_number(&text, head->input_count);
    for (size_t i = 0; i < head->input_count; ++i)
        add_string(&text, head->inputs[i].path), add_string(&text, head->inputs[i].digest);
    const uint64_t lengths[2] = { text.length, 0 };
    clv_status status = text.failed ? clv_fail(CLV_E_MEMORY, "%s: out of memory", path) : CLV_OK;
    if (!status) status = clv_output_open(&w->output, path, false);
    if (!status) status = clv_output_write(&w->output, magic, sizeof magic);
    if (!status) status = clv_output_write(&w->output, lengths, sizeof lengths);
    if (!status) status = write_padded(w, text.data, text.length);
    clv_text_clear(&text);
    return status;
}

clv_status cli_record_add(cli_record_writer *w, const cli_record_entry *entry, const void *bytes)
{
    cli_record_entry e = *entry;
    const clv_digest digest = clv_sha256(bytes, (size_t)e.bytes);
    e.mark = mark, e.ends = 0;
    memcpy(e.digest, digest.bytes, sizeof e.digest);
    ++w->entries;
    CLV_TRY(clv_output_write(&w->output, &e, sizeof e));
    return write_padded(w, bytes, (size_t)e.bytes);
}

clv_status cli_record_finish(cli_record_writer *w)
{
    const cli_record_entry end = { .mark = mark, .ends = 1, .count = w->entries };
    const clv_status status = clv_output_write(&w->output, &end, sizeof end);
    if (!status) return clv_output_finish(&w->output);
    clv_output_abandon(&w->output);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------ */

static clv_status damaged(const cli_record *r, const char *what)
{
    return clv_fail(CLV_E_FORMAT,
                    "%s: the record is damaged (%s); run `cleave %s ... --shard` for it again",
                    r->path, what, r->head.argc > 0 ? r->head.argv[0] : "COMMAND");
}

/* A cursor over the strings of the head. */
typedef struct cursor {
    const char *at, *end;
} cursor;

static const char *next_string(cursor *c)
{
    const char *zero = c->at < c->end ? memchr(c->at, '\0', (size_t)(c->end - c->at)) : NULL;
    const char *text = zero ? c->at : NULL;
    if (zero) c->at = zero + 1;
    return text;
}

static bool next_number(cursor *c, uint64_t most, uint64_t *number)
{
    const char *text = next_string(c);
    return text && clv_parse_u64(text, number) && *number <= most;
}

/* Reads the head's strings. Each string takes at least one byte, which bounds the counts in a damaged head. */
static clv_status read_head(cli_record *r, cursor c)
{
    uint64_t shard, shards, argc, inputs;
    const uint64_t room = (uint64_t)(c.end - c.at);
    const char *version = next_string(&c), *order = next_string(&c);
    if (!version || !order) return damaged(r, "its head is too short");
    if (strcmp(version, clv_version()) != 0)
        return clv_fail(CLV_E_FORMAT,
                        "%s was written by version %s of cleave, but this is version %s; run all "
                        "shards and merge with one version",
                        r->path, version, clv_version());
    if (strcmp(order, byte_order()) != 0)
        return clv_fail(
            CLV_E_FORMAT,
            "%s was written on a machine with the other byte order; merge it on such a machine",
            r->path);
    if (!next_number(&c, MOST_SHARDS, &shard) || !next_number(&c, MOST_SHARDS, &shards) || !shard ||
        shard > shards || !next_number(&c, CLV_MIN(room, (uint64_t)MOST_ARGUMENTS), &argc) || !argc)
        return damaged(r, "its head holds impossible numbers");
    r->head.shard = (unsigned)shard, r->head.shards = (unsigned)shards;
    r->head.argv = clv_zalloc((size_t)argc + 1, sizeof *r->head.argv);
    if (!r->head.argv) return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->path);
    for (uint64_t i = 0; i < argc; ++i) {
        const char *text = next_string(&c);
        if (!text) return damaged(r, "arguments are missing");
        r->head.argv[i] = clv_strdup(text);
        if (!r->head.argv[i]) return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->path);
        r->head.argc = (int)i + 1;
    }
    if (!next_number(&c, room / LEAST_INPUT, &inputs)) return damaged(r, "inputs are missing");
    r->head.inputs = clv_zalloc((size_t)inputs + 1, sizeof *r->head.inputs);
    if (!r->head.inputs) return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->path);
    for (uint64_t i = 0; i < inputs; ++i) {
        const char *path = next_string(&c), *digest = next_string(&c);
        if (!path || !digest || strlen(digest) != 64) return damaged(r, "inputs are missing");
        cli_record_input *in = &r->head.inputs[i];
        memcpy(in->digest, digest, sizeof in->digest);
        if (!(in->path = clv_strdup(path)))
            return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->path);
        r->head.input_count = (size_t)i + 1;
    }
    return CLV_OK;
}

static clv_status read_entries(cli_record *r, size_t at)
{
    size_t room = 0;
    for (;;) {
        const cli_record_entry *e = (const cli_record_entry *)(const void *)(r->bytes + at);
        if (r->length - at < sizeof *e || e->mark != mark) return damaged(r, "it is cut short");
        at += sizeof *e;
        if (e->ends)
            return e->count == r->entry_count && at == r->length
                       ? CLV_OK
                       : damaged(r, "it has more or less than its end says");
        if (e->bytes > r->length - at || padded((size_t)e->bytes) > r->length - at || !e->count ||
            e->first > e->units || e->count > e->units - e->first)
            return damaged(r, "sizes do not fit the file");
        if (!clv_reserve(&r->entries, &room, r->entry_count + 1, sizeof *r->entries))
            return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->path);
        r->entries[r->entry_count++] = e;
        at += padded((size_t)e->bytes);
    }
}

static clv_status map(cli_record *r)
{
    struct stat facts;
    const int file = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return clv_fail(CLV_E_IO, "%s: cannot open: %s", r->path, strerror(errno));
    void *bytes = MAP_FAILED;
    const bool known = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
    if (known && facts.st_size > 0)
        bytes = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (bytes == MAP_FAILED)
        return clv_fail(CLV_E_FORMAT, "%s is not a record of a shard, but %s", r->path,
                        known ? "an empty file" : "not a regular file");
    r->bytes = bytes, r->length = (size_t)facts.st_size;
    return CLV_OK;
}

clv_status cli_record_open(const char *path, cli_record *r)
{
    uint64_t length;
    const size_t before = sizeof magic + 2 * sizeof length;
    *r = (cli_record){ .path = path };
    CLV_TRY(map(r));
    if (r->length < before || memcmp(r->bytes, magic, sizeof magic) != 0)
        return clv_fail(CLV_E_FORMAT,
                        "%s is not a record of a shard; give files that --record has written",
                        path);
    memcpy(&length, r->bytes + sizeof magic, sizeof length);
    if (length > MOST_HEAD || padded((size_t)length) > r->length - before)
        return damaged(r, "its head is longer than the file");
    const char *head = (const char *)r->bytes + before;
    CLV_TRY(read_head(r, (cursor){ head, head + length }));
    return read_entries(r, before + padded((size_t)length));
}

clv_status cli_record_read(const cli_record *r, size_t entry, const void **bytes)
{
    const cli_record_entry *e = r->entries[entry];
    *bytes = e + 1;
    const clv_digest digest = clv_sha256(*bytes, (size_t)e->bytes);
    return memcmp(digest.bytes, e->digest, sizeof e->digest) == 0
               ? CLV_OK
               : damaged(r, "the results of a chunk are not those that were written");
}

void cli_record_close(cli_record *r)
{
    for (int i = 0; i < r->head.argc; ++i)
        clv_free(r->head.argv[i]);
    for (size_t i = 0; i < r->head.input_count; ++i)
        clv_free(r->head.inputs[i].path);
    clv_free(r->head.argv), clv_free(r->head.inputs), clv_free(r->entries);
    if (r->bytes) munmap((void *)(uintptr_t)r->bytes, r->length);
    *r = (cli_record){ 0 };
}
