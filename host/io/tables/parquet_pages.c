/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the values of one column of a Parquet file, from data pages of both versions, plain or with a dictionary,
 * uncompressed or compressed by Snappy, gzip or Zstandard. Everything in the file is checked before it is used. */
#include "host/io/tables/parquet_pages.h"

#include "host/io/formats/unpack.h"
#include "host/io/room.h"
#include "host/io/tables/parquet_parts.h"

#include "base/alloc.h"
#include "base/error.h"

enum { DATA = 0, INDEX = 1, DICTIONARY = 2, DATA_2 = 3 };       /* kinds of pages */
enum { PLAIN = 0, OLD_DICTIONARY = 2, RUNS = 3, BY_INDEX = 8 }; /* encodings */
enum { UNPACKED = 0, SNAPPY = 1, GZIP = 2, ZSTD = 6 };          /* codecs */
enum { MOST_PAGE = 1 << 30 };

typedef struct header {
    /* kind: of the page; encoding: of its values; levels: encoding of its levels */
    int64_t kind, encoding, levels;
    uint64_t bytes, unpacked, values, level_bytes, repeat_bytes;
    bool packed; /* in version 2: the values are compressed */
} header;

clv_status clv_parquet_damaged(const clv_parquet_file *s, const char *what)
{
    return clv_fail(CLV_E_FORMAT, "%s: the Parquet file is damaged: %s", s->path, what);
}

void clv_parquet_place_clear(clv_parquet_place *p)
{
    clv_free(p->unpacked), clv_free(p->words), clv_free(p->entries);
    *p = (clv_parquet_place){ 0 };
}

/* ---- runs --------------------------------------------------------------------------------------- */

static void begin_runs(clv_parquet_runs *r, clv_thrift from, unsigned width)
{
    *r = (clv_parquet_runs){ .from = from, .width = width };
    if (width > 32) r->from.bad = true;
}

static void open_run(clv_parquet_runs *r)
{
    const uint64_t head = clv_thrift_varint(&r->from), count = head >> 1;
    if (!count || count > UINT32_MAX) r->from.bad = true;
    if (r->from.bad) return;
    if (head & 1) {
        r->packed = 8 * count, r->bits = 0, r->held = 0;
        return;
    }
    r->repeat = count, r->value = 0;
    for (unsigned i = 0; 8 * i < r->width; ++i)
        r->value |= clv_thrift_byte(&r->from) << 8 * i;
}

static uint32_t next_number(clv_parquet_runs *r)
{
    if (!r->repeat && !r->packed) open_run(r);
    if (r->from.bad) return 0;
    if (r->repeat) {
        --r->repeat;
        return r->value;
    }
    --r->packed;
    for (; r->held < r->width; r->held += 8)
        r->bits |= (uint64_t)clv_thrift_byte(&r->from) << r->held;
    const uint32_t number = (uint32_t)(r->bits & (((uint64_t)1 << r->width) - 1));
    r->bits >>= r->width, r->held -= r->width;
    return number;
}

/* ---- pages -------------------------------------------------------------------------------------- */

/* Reads the part of a page's header that depends on its kind: `version` is that of a data page, or 0 for the page of a
 * dictionary. */
static void read_inner(clv_thrift *c, int version, header *h)
{
    unsigned type, field = 0;
    while ((type = clv_thrift_field(c, &field)) != THRIFT_STOP)
        if (field == 1 && type == THRIFT_I32)
            h->values = (uint64_t)clv_thrift_int(c);
        else if (field == (version == 2 ? 4 : 2) && type == THRIFT_I32)
            h->encoding = clv_thrift_int(c);
        else if (version == 1 && field == 3 && type == THRIFT_I32)
            h->levels = clv_thrift_int(c);
        else if (version == 2 && field == 5 && type == THRIFT_I32)
            h->level_bytes = (uint64_t)clv_thrift_int(c);
        else if (version == 2 && field == 6 && type == THRIFT_I32)
            h->repeat_bytes = (uint64_t)clv_thrift_int(c);
        else if (version == 2 && field == 7 && type == THRIFT_FALSE)
            h->packed = false;
        else
            clv_thrift_skip_value(c, type);
}

static header read_header(clv_thrift *c)
{
    header h = { .kind = -1, .encoding = -1, .levels = RUNS, .packed = true };
    unsigned type, field = 0;
    while ((type = clv_thrift_field(c, &field)) != THRIFT_STOP)
        if (field == 1 && type == THRIFT_I32)
            h.kind = clv_thrift_int(c);
        else if (field == 2 && type == THRIFT_I32)
            h.unpacked = (uint64_t)clv_thrift_int(c);
        else if (field == 3 && type == THRIFT_I32)
            h.bytes = (uint64_t)clv_thrift_int(c);
        else if (field == 5 && type == THRIFT_STRUCT)
            read_inner(c, 1, &h);
        else if (field == 7 && type == THRIFT_STRUCT)
            read_inner(c, 0, &h);
        else if (field == 8 && type == THRIFT_STRUCT)
            read_inner(c, 2, &h);
        else
            clv_thrift_skip_value(c, type);
    return h;
}

/* Counts the bytes of unpacked pages and dictionaries, and fails beyond the file's limit. A few bytes can hold a page
 * of 1 GB, and many chunks can share these bytes. */
static clv_status count_made(clv_parquet_file *s, uint64_t bytes)
{
    s->made += bytes;
    if (s->made <= s->most_made) return CLV_OK;
    return clv_fail(
        CLV_E_FORMAT,
        "%s: its pages would have more than %llu bytes when unpacked, which is more than "
        "Cleave accepts from a file of %zu bytes; split it into several files",
        s->path, (unsigned long long)s->most_made, s->length);
}

/* Unpacks the bytes `in` into the buffer *room, which grows as required, and sets *out to the `wanted` unpacked bytes.
 * Without a codec, sets *out to the bytes themselves. */
static clv_status unpack(clv_parquet_file *s, unsigned codec, clv_thrift in, uint64_t wanted,
                         unsigned char **room, size_t *size, clv_thrift *out)
{
    *out = in;
    if (codec == UNPACKED || !wanted) {
        out->end = wanted ? in.end : in.at;
        return CLV_OK;
    }
    clv_unpacker *const unpacker = codec == SNAPPY ? clv_unpack_snappy
                                   : codec == GZIP ? clv_unpack_zlib
                                   : codec == ZSTD ? clv_unpack_zstd
                                                   : NULL;
    if (!unpacker) {
        s->other = "columns that are packed by something else than Snappy, gzip or Zstandard";
        return CLV_OK;
    }
    if (wanted > MOST_PAGE) return clv_parquet_damaged(s, "a page of more than 1 GB");
    CLV_TRY(count_made(s, wanted));
    if (wanted > *size) {
        CLV_TRY(clv_io_need(s->path, "unpacked", wanted));
        clv_free(*room);
        *size = 0;
        *room = clv_alloc((size_t)wanted, 1);
        if (!*room)
            return clv_fail(CLV_E_MEMORY, "%s: not enough memory to unpack a page", s->path);
        *size = (size_t)wanted;
    }
    CLV_TRY(unpacker(s->path, in.at, (size_t)(in.end - in.at), *room, (size_t)wanted));
    *out = (clv_thrift){ *room, *room + wanted, false };
    return CLV_OK;
}

static uint32_t four_of(clv_thrift *c)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i)
        value |= clv_thrift_byte(c) << 8 * i;
    return value;
}

/* Returns the next `length` bytes of `from` as a reader of their own, and skips them in `from`. */
static clv_thrift part_of(clv_thrift *from, uint64_t length)
{
    clv_thrift part = *from;
    clv_thrift_skip(from, length);
    part.end = from->bad ? part.at : from->at;
    part.bad = from->bad;
    return part;
}

static clv_parquet_value plain_value(const clv_parquet_column *of, clv_thrift *from)
{
    const size_t length = of->type == PARQUET_BYTE_ARRAY ? four_of(from) : of->size;
    const clv_thrift part = part_of(from, length);
    return (clv_parquet_value){ part.at, length };
}

static clv_status read_dictionary(clv_parquet_file *s, const clv_parquet_column *of,
                                  clv_parquet_place *p, const header *h, clv_thrift in)
{
    clv_thrift words;
    if (h->encoding != PLAIN && h->encoding != OLD_DICTIONARY)
        return clv_parquet_damaged(s, "a dictionary that is not plain");
    CLV_TRY(unpack(s, p->codec, in, h->unpacked, &p->words, &p->words_room, &words));
    if (s->other) return CLV_OK;
    const size_t least = of->type == PARQUET_BYTE_ARRAY ? 4 : of->size;
    if (!least || h->values > (uint64_t)(words.end - words.at) / least)
        return clv_parquet_damaged(s, "a dictionary of another length");
    CLV_TRY(count_made(s, h->values * sizeof *p->entries));
    if (!clv_reserve(&p->entries, &p->entry_room, (size_t)h->values + 1, sizeof *p->entries))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a dictionary", s->path);
    for (p->entry_count = 0; p->entry_count < h->values; ++p->entry_count)
        p->entries[p->entry_count] = plain_value(of, &words);
    return words.bad ? clv_parquet_damaged(s, "a dictionary of another length") : CLV_OK;
}

/* Begins to read the values of a data page; they follow the page's levels. */
static clv_status begin_values(clv_parquet_file *s, const clv_parquet_column *of,
                               clv_parquet_place *p, const header *h)
{
    const bool truth = of->type == PARQUET_BOOLEAN;
    p->indexed = h->encoding == OLD_DICTIONARY || h->encoding == BY_INDEX;
    p->runs_of_bits = truth && h->encoding == RUNS;
    if (!p->indexed && !p->runs_of_bits && h->encoding != PLAIN) {
        s->other = "pages in another encoding than plain, by runs or by dictionary";
        return CLV_OK;
    }
    if (p->indexed) {
        const unsigned width = clv_thrift_byte(&p->page);
        begin_runs(&p->numbers, p->page, width);
    } else if (p->runs_of_bits) {
        const uint32_t length = four_of(&p->page);
        begin_runs(&p->numbers, part_of(&p->page, length), 1);
    } else if (truth) {
        /* plain truth values are bits without a head: one endless group */
        begin_runs(&p->numbers, p->page, 1);
        p->numbers.packed = UINT64_MAX;
    }
    return p->page.bad ? clv_parquet_damaged(s, "a page of another length") : CLV_OK;
}

static clv_status read_data(clv_parquet_file *s, const clv_parquet_column *of, clv_parquet_place *p,
                            const header *h, clv_thrift in)
{
    clv_thrift levels = { 0 };
    unsigned codec = p->codec;
    uint64_t wanted = h->unpacked;
    if (h->kind == DATA_2) { /* the levels are never compressed */
        if (h->repeat_bytes || h->level_bytes > h->unpacked)
            return clv_parquet_damaged(s, "the levels of a page");
        levels = part_of(&in, h->level_bytes);
        wanted -= h->level_bytes;
        if (!h->packed) codec = UNPACKED;
        if (in.bad) return clv_parquet_damaged(s, "the levels of a page");
    }
    CLV_TRY(unpack(s, codec, in, wanted, &p->unpacked, &p->unpacked_room, &p->page));
    if (s->other) return CLV_OK;
    p->optional = of->optional;
    if (of->optional && h->kind == DATA) {
        if (h->levels != RUNS) {
            s->other = "levels in an encoding that is no longer used";
            return CLV_OK;
        }
        const uint32_t length = four_of(&p->page);
        levels = part_of(&p->page, length);
        if (p->page.bad) return clv_parquet_damaged(s, "the levels of a page");
    }
    begin_runs(&p->levels, levels, 1);
    return begin_values(s, of, p, h);
}

static clv_status open_chunk(clv_parquet_file *s, clv_parquet_place *p)
{
    const clv_parquet_chunk *from = &s->chunks[p->next];
    p->next += s->count;
    if (from->offset > s->length || from->bytes > s->length - from->offset)
        return clv_parquet_damaged(s, "a column lies beyond its end");
    s->opened += from->bytes;
    if (s->opened > s->length) return clv_parquet_damaged(s, "its columns share bytes");
    const unsigned char *at = s->data + from->offset;
    p->pages = (clv_thrift){ at, at + from->bytes, false };
    p->left = from->values, p->codec = from->codec;
    p->entry_count = 0;
    return CLV_OK;
}

clv_status clv_parquet_turn(clv_parquet_file *s, const clv_parquet_column *of, clv_parquet_place *p,
                            uint64_t rows)
{
    while (!p->here) {
        while (!p->left && p->next < s->chunk_count)
            CLV_TRY(open_chunk(s, p));
        if (!p->left) return CLV_OK;
        const header h = read_header(&p->pages);
        const clv_thrift in = part_of(&p->pages, h.bytes);
        if (p->pages.bad) return clv_parquet_damaged(s, "the header of a page");
        if (h.kind == INDEX) continue;
        if (h.kind == DICTIONARY) {
            CLV_TRY(read_dictionary(s, of, p, &h, in));
        } else if (h.kind == DATA || h.kind == DATA_2) {
            if (h.values > p->left || h.values > rows)
                return clv_parquet_damaged(s, "a page of another length");
            CLV_TRY(read_data(s, of, p, &h, in));
            p->here = h.values;
        } else {
            return clv_parquet_damaged(s, "a page of an unknown kind");
        }
        if (s->other) return CLV_OK;
    }
    return CLV_OK;
}

clv_status clv_parquet_next(clv_parquet_file *s, const clv_parquet_column *of, clv_parquet_place *p,
                            uint64_t rows, clv_parquet_value *value)
{
    *value = (clv_parquet_value){ 0 };
    if (!p->here) CLV_TRY(clv_parquet_turn(s, of, p, rows));
    if (s->other) return CLV_OK;
    if (!p->here) return clv_parquet_damaged(s, "columns of different lengths");
    --p->here, --p->left;
    const bool there = !p->optional || next_number(&p->levels);
    if (p->optional && p->levels.from.bad) return clv_parquet_damaged(s, "the levels of a page");
    if (!there) return CLV_OK;
    if (of->type == PARQUET_BOOLEAN && !p->indexed) {
        p->bit = (unsigned char)next_number(&p->numbers);
        *value = (clv_parquet_value){ &p->bit, 1 };
        return p->numbers.from.bad ? clv_parquet_damaged(s, "a page of another length") : CLV_OK;
    }
    if (!p->indexed) {
        *value = plain_value(of, &p->page);
        return p->page.bad ? clv_parquet_damaged(s, "a page of another length") : CLV_OK;
    }
    const uint32_t number = next_number(&p->numbers);
    if (p->numbers.from.bad || number >= p->entry_count)
        return clv_parquet_damaged(s, "a place beyond the dictionary");
    *value = p->entries[number];
    return CLV_OK;
}
