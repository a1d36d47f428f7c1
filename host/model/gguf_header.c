/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the part of a GGUF file before the tensors' data: the pairs of metadata and the list of tensors. Nothing is
 * used before it has been checked.
 *
 * Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
#include "host/model/gguf.h"

#include "base/alloc.h"
#include "base/error.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    AT_ONCE = 1 << 20,   /* bytes of the file that are read ahead */
    MOST_HEAD = 1 << 28, /* bytes; vocabularies take up to 20 MB, but a sparse file may be huge */
    MOST_NESTING = 4,    /* levels of nested arrays */
    MOST_KEY = 65535,    /* bytes */
    MOST_NAME = 64,      /* bytes of a tensor's name */
    LEAST_STRING = 8,    /* bytes in the file */
    LEAST_ARRAY = 12,
    LEAST_PAIR = 13,
    LEAST_TENSOR = 24,
    ALIGNMENT = 32, /* bytes; the format's default */
    MOST_ALIGNMENT = 65536,
};

/* A reading position in the head, the part of the file before the data. */
typedef struct cursor {
    clv_gguf *file;
    uint64_t at;
} cursor;

static const struct {
    const char *name;
    size_t bytes; /* fewest bytes of a value */
} types[] = { { "u8", 1 },
              { "i8", 1 },
              { "u16", 2 },
              { "i16", 2 },
              { "u32", 4 },
              { "i32", 4 },
              { "f32", 4 },
              { "bool", 1 },
              { "string", LEAST_STRING },
              { "array", LEAST_ARRAY },
              { "u64", 8 },
              { "i64", 8 },
              { "f64", 8 } };

static uint64_t left(const cursor *c)
{
    return c->file->size - c->at;
}

/* Reads on in the file until the next `bytes` bytes are in the head, or fails. Memory grows only with bytes that the
 * file really contains. */
static clv_status need(cursor *c, uint64_t bytes, const char *what)
{
    clv_gguf *f = c->file;
    if (bytes > left(c))
        return clv_fail(CLV_E_FORMAT,
                        "%s: %s at byte %" PRIu64 " needs %" PRIu64
                        " bytes, but the file has %" PRIu64 " left; it is truncated or damaged",
                        f->path, what, c->at, bytes, left(c));
    const uint64_t end = c->at + bytes;
    if (end <= f->head_bytes) return CLV_OK;
    if (end > MOST_HEAD)
        return clv_fail(CLV_E_FORMAT,
                        "%s: %s at byte %" PRIu64 " takes %" PRIu64
                        " bytes, but the header before the weights may have at most %d",
                        f->path, what, c->at, bytes, MOST_HEAD);
    const size_t wanted = (size_t)CLV_MIN(CLV_MAX(end, f->head_bytes + (uint64_t)AT_ONCE), f->size);
    if (!clv_reserve(&f->head, &f->head_room, wanted, 1))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu bytes of its header", f->path,
                        wanted);
    CLV_TRY(clv_gguf_read_at(f, f->head_bytes, f->head + f->head_bytes, wanted - f->head_bytes));
    f->head_bytes = wanted;
    return CLV_OK;
}

static uint64_t bits_at(const unsigned char *p, size_t bytes)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes; ++i)
        bits |= (uint64_t)p[i] << 8 * i;
    return bits;
}

static clv_status take_bits(cursor *c, size_t bytes, const char *what, uint64_t *out)
{
    CLV_TRY(need(c, bytes, what));
    *out = bits_at(c->file->head + c->at, bytes);
    c->at += bytes;
    return CLV_OK;
}

static clv_status take_u32(cursor *c, const char *what, uint32_t *out)
{
    uint64_t bits;
    CLV_TRY(take_bits(c, 4, what, &bits));
    *out = (uint32_t)bits;
    return CLV_OK;
}

/* Reads a count of items that take at least `least` bytes each. Fails if the rest of the file is too short for them. */
static clv_status take_count(cursor *c, uint64_t least, const char *what, uint64_t *out)
{
    const uint64_t at = c->at;
    CLV_TRY(take_bits(c, 8, what, out));
    if (*out <= left(c) / least) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "%s: the length or count of %s at byte %" PRIu64 " is %" PRIu64
                    ", but the %" PRIu64 " bytes after it hold at most %" PRIu64
                    "; the file is truncated or damaged",
                    c->file->path, what, at, *out, left(c), left(c) / least);
}

/* Copies a key or the name of a tensor to file->names, with a NUL at its end; *out is its offset there. */
static clv_status take_name(cursor *c, const char *what, size_t most, size_t *out)
{
    clv_gguf *f = c->file;
    uint64_t length;
    const uint64_t at = c->at;
    CLV_TRY(take_count(c, 1, what, &length));
    if (!length || length > most)
        return clv_fail(CLV_E_FORMAT,
                        "%s: %s at byte %" PRIu64 " has %" PRIu64 " bytes, expected 1 to %zu",
                        f->path, what, at, length, most);
    CLV_TRY(need(c, length, what));
    if (memchr(f->head + c->at, 0, (size_t)length))
        return clv_fail(CLV_E_FORMAT, "%s: %s at byte %" PRIu64 " has a NUL byte", f->path, what,
                        at);
    if (!clv_reserve(&f->names, &f->names_room, f->names_used + (size_t)length + 1, 1))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for its names", f->path);
    memcpy(f->names + f->names_used, f->head + c->at, (size_t)length);
    f->names[f->names_used + (size_t)length] = '\0';
    *out = f->names_used;
    f->names_used += (size_t)length + 1;
    c->at += length;
    return CLV_OK;
}

/* ---- values ------------------------------------------------------------------------------------ */

static clv_status check_type(const cursor *c, uint32_t type, const char *what)
{
    if (type < CLV_LEN(types)) return CLV_OK;
    return clv_fail(CLV_E_FORMAT, "%s: %s has the value type %u, expected 0 to %zu", c->file->path,
                    what, (unsigned)type, CLV_LEN(types) - 1);
}

static clv_status pass_value(cursor *c, uint32_t type, const char *key, int depth);

static clv_status pass_array(cursor *c, const char *key, int depth)
{
    uint32_t type;
    uint64_t count;
    CLV_TRY(take_u32(c, key, &type));
    CLV_TRY(check_type(c, type, key));
    CLV_TRY(take_count(c, types[type].bytes, key, &count));
    if (depth == MOST_NESTING)
        return clv_fail(CLV_E_FORMAT, "%s: %s nests arrays more than %d deep", c->file->path, key,
                        MOST_NESTING);
    if (type != CLV_GGUF_STRING && type != CLV_GGUF_ARRAY && type != CLV_GGUF_BOOL) {
        CLV_TRY(need(c, count * types[type].bytes, key));
        c->at += count * types[type].bytes;
        return CLV_OK;
    }
    for (uint64_t i = 0; i < count; ++i)
        CLV_TRY(pass_value(c, type, key, depth + 1));
    return CLV_OK;
}

/* Checks a value completely and moves past it. */
static clv_status pass_value(cursor *c, uint32_t type, const char *key, int depth)
{
    uint64_t bits;
    if (type == CLV_GGUF_ARRAY) return pass_array(c, key, depth);
    if (type == CLV_GGUF_STRING) {
        CLV_TRY(take_count(c, 1, key, &bits));
        CLV_TRY(need(c, bits, key));
        c->at += bits;
        return CLV_OK;
    }
    CLV_TRY(take_bits(c, types[type].bytes, key, &bits));
    if (type == CLV_GGUF_BOOL && bits > 1)
        return clv_fail(CLV_E_FORMAT, "%s: a bool of %s is %u, expected 0 or 1", c->file->path, key,
                        (unsigned)bits);
    return CLV_OK;
}

static int64_t signed_of(uint64_t bits, size_t bytes)
{
    const unsigned shift = 64 - 8 * (unsigned)bytes;
    return (int64_t)(bits << shift) >> shift;
}

/* Returns the value at *place, which pass_value has checked, and moves *place past it unless it is an array. */
static clv_gguf_value value_at(clv_gguf_type type, const unsigned char **place)
{
    const unsigned char *p = *place;
    clv_gguf_value v = { .type = type };
    /* the end of an array is found only by reading its elements: see behind() */
    if (type == CLV_GGUF_ARRAY) {
        v.of = (clv_gguf_type)bits_at(p, 4);
        v.count = bits_at(p + 4, 8);
        v.place = p + LEAST_ARRAY;
        return v;
    }
    if (type == CLV_GGUF_STRING) {
        v.length = (size_t)bits_at(p, 8);
        v.text = (const char *)p + 8;
        *place = p + 8 + v.length;
        return v;
    }
    const size_t bytes = types[type].bytes;
    const uint64_t bits = bits_at(p, bytes);
    *place = p + bytes;
    if (type == CLV_GGUF_F32) {
        const uint32_t low = (uint32_t)bits;
        float number;
        memcpy(&number, &low, sizeof number);
        v.number = (double)number;
    } else if (type == CLV_GGUF_F64) {
        memcpy(&v.number, &bits, sizeof v.number);
    } else {
        const bool is_signed = type == CLV_GGUF_I8 || type == CLV_GGUF_I16 ||
                               type == CLV_GGUF_I32 || type == CLV_GGUF_I64;
        v.whole = is_signed ? signed_of(bits, bytes) : bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
        v.number = is_signed ? (double)v.whole : (double)bits;
    }
    return v;
}

/* Returns the position after the value at `p`, which pass_value has checked. */
static const unsigned char *behind(clv_gguf_type type, const unsigned char *p)
{
    if (type == CLV_GGUF_STRING) return p + 8 + bits_at(p, 8);
    if (type != CLV_GGUF_ARRAY) return p + types[type].bytes;
    const clv_gguf_type of = (clv_gguf_type)bits_at(p, 4);
    const uint64_t count = bits_at(p + 4, 8);
    p += LEAST_ARRAY;
    for (uint64_t i = 0; i < count; ++i)
        p = behind(of, p);
    return p;
}

bool clv_gguf_next(clv_gguf_value *array, clv_gguf_value *element)
{
    if (!array || !element || array->type != CLV_GGUF_ARRAY || !array->count) return false;
    const unsigned char *p = array->place, *next = p;
    *element = value_at(array->of, &next);
    array->place = array->of == CLV_GGUF_ARRAY ? behind(CLV_GGUF_ARRAY, p) : next;
    --array->count;
    return true;
}

/* ---- pairs ------------------------------------------------------------------------------------- */

/* Offsets of names and values, for the time in which the head may still be reallocated. */
typedef struct places {
    size_t *names;
    uint64_t *values;
    uint32_t *types;
    size_t name_room, value_room, type_room;
} places;

static void drop_places(places *p)
{
    clv_free(p->names), clv_free(p->values), clv_free(p->types);
}

static clv_status take_pair(cursor *c, places *p, size_t i)
{
    const clv_gguf *f = c->file;
    if (!clv_reserve(&p->names, &p->name_room, i + 1, sizeof *p->names) ||
        !clv_reserve(&p->values, &p->value_room, i + 1, sizeof *p->values) ||
        !clv_reserve(&p->types, &p->type_room, i + 1, sizeof *p->types))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu pairs", f->path, i + 1);
    CLV_TRY(take_name(c, "a key", MOST_KEY, &p->names[i]));
    const char *key = f->names + p->names[i];
    CLV_TRY(take_u32(c, key, &p->types[i]));
    CLV_TRY(check_type(c, p->types[i], key));
    p->values[i] = c->at;
    return pass_value(c, p->types[i], key, 0);
}

static int by_key(const void *left_entry, const void *right_entry)
{
    return strcmp((*(const clv_gguf_entry *const *)left_entry)->key,
                  (*(const clv_gguf_entry *const *)right_entry)->key);
}

/* Fills in the pairs, which point into the names and the head; neither may be reallocated afterwards. */
static clv_status file_pairs(clv_gguf *f, const places *p, size_t count)
{
    f->pairs = clv_alloc(CLV_MAX(count, (size_t)1), sizeof *f->pairs);
    f->by_key = clv_alloc(CLV_MAX(count, (size_t)1), sizeof *f->by_key);
    if (!f->pairs || !f->by_key)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu pairs", f->path, count);
    for (size_t i = 0; i < count; ++i) {
        const unsigned char *place = f->head + p->values[i];
        f->pairs[i].key = f->names + p->names[i];
        f->pairs[i].value = value_at((clv_gguf_type)p->types[i], &place);
        f->by_key[i] = &f->pairs[i];
    }
    f->pair_count = count;
    qsort(f->by_key, count, sizeof *f->by_key, by_key);
    for (size_t i = 1; i < count; ++i)
        if (strcmp(f->by_key[i - 1]->key, f->by_key[i]->key) == 0)
            return clv_fail(CLV_E_FORMAT, "%s: the key %.64s occurs twice", f->path,
                            f->by_key[i]->key);
    return CLV_OK;
}

/* ---- tensors ----------------------------------------------------------------------------------- */

static clv_status take_shape(cursor *c, const char *name, clv_gguf_tensor *t)
{
    const char *path = c->file->path;
    uint32_t rank;
    CLV_TRY(take_u32(c, name, &rank));
    if (rank < 1 || rank > CLV_GGUF_RANK_MAX)
        return clv_fail(CLV_E_FORMAT, "%s: tensor \"%s\" has %u dimensions, expected 1 to %d", path,
                        name, (unsigned)rank, CLV_GGUF_RANK_MAX);
    t->rank = rank;
    t->count = 1;
    for (size_t i = 0; i < CLV_GGUF_RANK_MAX; ++i)
        t->extent[i] = 1;
    for (size_t i = 0; i < rank; ++i) {
        CLV_TRY(take_bits(c, 8, name, &t->extent[i]));
        if (!t->extent[i] || __builtin_mul_overflow(t->count, t->extent[i], &t->count) ||
            t->count > INT64_MAX)
            return clv_fail(CLV_E_FORMAT,
                            "%s: dimension %zu of tensor \"%s\" is %" PRIu64
                            ", expected 1 or more and a product below 2^63",
                            path, i, name, t->extent[i]);
    }
    return CLV_OK;
}

/* Reads a tensor's type and computes its size in bytes. */
static clv_status take_kind(cursor *c, const char *name, clv_gguf_tensor *t)
{
    const char *path = c->file->path;
    CLV_TRY(take_u32(c, name, &t->type));
    const clv_quant_facts *facts = clv_quant_get_facts(t->type);
    if (!facts)
        return clv_fail(CLV_E_FORMAT,
                        "%s: tensor \"%s\" is of type %u, which the format does not "
                        "have (Q4_1 is 3)",
                        path, name, (unsigned)t->type);
    if (t->extent[0] % facts->count)
        return clv_fail(CLV_E_FORMAT,
                        "%s: rows of tensor \"%s\" have %" PRIu64
                        " weights, expected whole blocks of %zu (%s)",
                        path, name, t->extent[0], facts->count, facts->name);
    if (__builtin_mul_overflow(t->count / facts->count, (uint64_t)facts->bytes, &t->bytes))
        return clv_fail(CLV_E_FORMAT, "%s: the size of tensor \"%s\" overflows", path, name);
    return CLV_OK;
}

static clv_status take_tensor(cursor *c, places *p, size_t *room, size_t i)
{
    clv_gguf *f = c->file;
    if (!clv_reserve(&f->tensors, room, i + 1, sizeof *f->tensors) ||
        !clv_reserve(&p->names, &p->name_room, i + 1, sizeof *p->names))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu tensors", f->path, i + 1);
    clv_gguf_tensor *t = &f->tensors[i];
    *t = (clv_gguf_tensor){ 0 };
    CLV_TRY(take_name(c, "a tensor's name", MOST_NAME, &p->names[i]));
    const char *name = f->names + p->names[i];
    CLV_TRY(take_shape(c, name, t));
    CLV_TRY(take_kind(c, name, t));
    return take_bits(c, 8, name, &t->offset);
}

static int by_offset(const void *a, const void *b)
{
    const clv_gguf_tensor *x = *(const clv_gguf_tensor *const *)a;
    const clv_gguf_tensor *y = *(const clv_gguf_tensor *const *)b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const clv_gguf_tensor *const *)a)->name,
                  (*(const clv_gguf_tensor *const *)b)->name);
}

/* Checks that every tensor lies inside the file and that no two overlap. */
static clv_status check_places(clv_gguf *f)
{
    const uint64_t bytes = f->size > f->data ? f->size - f->data : 0;
    for (size_t i = 0; i < f->tensor_count; ++i) {
        const clv_gguf_tensor *t = &f->tensors[i];
        if (t->offset % f->alignment)
            return clv_fail(CLV_E_FORMAT,
                            "%s: the data of tensor \"%s\" begin at byte %" PRIu64
                            ", expected a multiple of %" PRIu64,
                            f->path, t->name, t->offset, f->alignment);
        if (t->offset > bytes || t->bytes > bytes - t->offset)
            return clv_fail(CLV_E_FORMAT,
                            "%s: tensor \"%s\" needs bytes %" PRIu64 " to %" PRIu64
                            " of the data, but the file has %" PRIu64
                            "; it is truncated or damaged",
                            f->path, t->name, t->offset, t->offset + t->bytes, bytes);
    }
    qsort(f->by_name, f->tensor_count, sizeof *f->by_name, by_offset);
    for (size_t i = 1; i < f->tensor_count; ++i) {
        const clv_gguf_tensor *t = f->by_name[i - 1];
        if (t->offset + t->bytes > f->by_name[i]->offset)
            return clv_fail(CLV_E_FORMAT, "%s: tensors \"%s\" and \"%s\" overlap", f->path, t->name,
                            f->by_name[i]->name);
    }
    return CLV_OK;
}

static clv_status file_tensors(clv_gguf *f, const places *p)
{
    f->by_name = clv_alloc(CLV_MAX(f->tensor_count, (size_t)1), sizeof *f->by_name);
    if (!f->by_name)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu tensors", f->path,
                        f->tensor_count);
    for (size_t i = 0; i < f->tensor_count; ++i) {
        f->tensors[i].name = f->names + p->names[i];
        f->by_name[i] = &f->tensors[i];
    }
    CLV_TRY(check_places(f));
    for (size_t i = 0; i < f->tensor_count; ++i)
        f->tensors[i].offset += f->data;
    qsort(f->by_name, f->tensor_count, sizeof *f->by_name, by_name);
    for (size_t i = 1; i < f->tensor_count; ++i)
        if (strcmp(f->by_name[i - 1]->name, f->by_name[i]->name) == 0)
            return clv_fail(CLV_E_FORMAT, "%s: tensor \"%s\" occurs twice", f->path,
                            f->by_name[i]->name);
    return CLV_OK;
}

/* ---- all of it --------------------------------------------------------------------------------- */

static const char *mistaken_for(const unsigned char *start, uint64_t size)
{
    if (size >= 8 && memcmp(start, "version ", 8) == 0)
        return "a Git LFS pointer, not the file that it stands for: fetch it with git lfs pull";
    if (memcmp(start, "PK\3\4", 4) == 0 || (start[0] == 0x80 && start[1] >= 2 && start[1] <= 5))
        return "a PyTorch pickle; expected GGUF or a folder with safetensors, so convert it";
    if (memcmp(start, "lmgg", 4) == 0 || memcmp(start, "fmgg", 4) == 0 ||
        memcmp(start, "tjgg", 4) == 0)
        return "a GGML file, which came before GGUF: convert it";
    if (size >= 9 && start[8] == '{')
        return "a safetensors file; expected GGUF, or the folder that holds this file and "
               "config.json";
    return NULL;
}

static clv_status check_magic(cursor *c)
{
    clv_gguf *f = c->file;
    if (f->size < 4)
        return clv_fail(CLV_E_FORMAT, "%s has %" PRIu64 " bytes, but a GGUF file has at least 24",
                        f->path, f->size);
    CLV_TRY(need(c, CLV_MIN(f->size, (uint64_t)9), "the start"));
    const unsigned char *start = f->head;
    const char *mistake = mistaken_for(start, f->size);
    if (memcmp(start, "GGUF", 4) != 0)
        return mistake ? clv_fail(CLV_E_FORMAT, "%s: %s", f->path, mistake)
                       : clv_fail(CLV_E_FORMAT,
                                  "%s begins with the bytes %02X %02X %02X %02X, expected "
                                  "47 47 55 46 (GGUF)",
                                  f->path, start[0], start[1], start[2], start[3]);
    c->at = 4;
    CLV_TRY(take_u32(c, "the version", &f->version));
    if (f->version == 0x03000000 || f->version == 0x02000000)
        return clv_fail(CLV_E_UNSUPPORTED,
                        "%s is a big-endian GGUF file; only little-endian ones are supported",
                        f->path);
    if (f->version != 2 && f->version != 3)
        return clv_fail(f->version == 1 ? CLV_E_UNSUPPORTED : CLV_E_FORMAT,
                        "%s is of GGUF version %u; expected 2 or 3", f->path, (unsigned)f->version);
    return CLV_OK;
}

static clv_status check_alignment(clv_gguf *f)
{
    clv_gguf_value v;
    f->alignment = ALIGNMENT;
    if (!clv_gguf_get(f, "general.alignment", &v)) return CLV_OK;
    if (v.type != CLV_GGUF_U32 || v.whole < 8 || v.whole > MOST_ALIGNMENT ||
        (v.whole & (v.whole - 1)))
        return clv_fail(CLV_E_FORMAT,
                        "%s: general.alignment is %" PRId64
                        " (%s), expected a power of two from 8 to %d (u32)",
                        f->path, v.whole, types[v.type].name, MOST_ALIGNMENT);
    f->alignment = (uint64_t)v.whole;
    return CLV_OK;
}

/* Reads the lists of pairs and of tensors, and fills in both when the head is complete. */
static clv_status take_lists(cursor *c, uint64_t tensors, uint64_t pairs, places *keys,
                             places *names)
{
    clv_gguf *f = c->file;
    size_t room = 0;
    for (size_t i = 0; i < pairs; ++i)
        CLV_TRY(take_pair(c, keys, i));
    for (size_t i = 0; i < tensors; ++i)
        CLV_TRY(take_tensor(c, names, &room, i));
    CLV_TRY(file_pairs(f, keys, (size_t)pairs));
    CLV_TRY(check_alignment(f));
    f->data = (c->at + f->alignment - 1) / f->alignment * f->alignment;
    f->tensor_count = (size_t)tensors;
    return file_tensors(f, names);
}

clv_status clv_gguf_parse(clv_gguf *f)
{
    cursor c = { f, 0 };
    places keys = { 0 }, names = { 0 };
    uint64_t tensors, pairs;
    CLV_TRY(check_magic(&c));
    CLV_TRY(take_count(&c, LEAST_TENSOR, "tensors", &tensors));
    CLV_TRY(take_count(&c, LEAST_PAIR, "pairs of metadata", &pairs));
    const clv_status status = take_lists(&c, tensors, pairs, &keys, &names);
    drop_places(&keys), drop_places(&names);
    return status;
}
