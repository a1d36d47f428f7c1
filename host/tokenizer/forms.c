/* SPDX-License-Identifier: Apache-2.0 */
/* Computes normal forms of whole texts: decompositions, lower case, texts without accents, and BERT's form. The
 * properties of characters are those of the reference: see wordpiece_chars.c. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"

#include <string.h>

static void put(uint32_t c, clv_text *out)
{
    char bytes[4];
    clv_text_bytes(out, bytes, clv_utf8_encode(c, bytes));
}

/* ---- combining marks, which are sorted by their class -------------------------------------------- */

/* A run of combining code points in the order of the text; runs in ordinary texts have one or two of them. */
typedef struct run {
    struct {
        uint32_t c;
        unsigned combining;
    } few[32], *all;
    size_t count, room;
    bool failed;
} run;

/* Writes a run sorted by combining class, and within a class in the order of the text. There are only a few dozen
 * classes, so the time does not grow with the square of the run's length. */
static void end_run(run *r, clv_text *out)
{
    unsigned next = 0;
    for (size_t i = 0; i < r->count; ++i)
        if (!next || r->all[i].combining < next) next = r->all[i].combining;
    while (next) {
        const unsigned now = next;
        next = 0;
        for (size_t i = 0; i < r->count; ++i) {
            const unsigned combining = r->all[i].combining;
            if (combining == now) put(r->all[i].c, out);
            if (combining > now && (!next || combining < next)) next = combining;
        }
    }
    r->count = 0;
}

static void add_to_run(run *r, uint32_t c, unsigned combining)
{
    if (r->count == r->room) {
        const size_t more = 2 * r->room;
        void *bigger = clv_alloc(more, sizeof *r->all);
        if (!bigger) {
            r->failed = true;
            return;
        }
        memcpy(bigger, r->all, r->count * sizeof *r->all);
        if (r->all != (void *)r->few) clv_free(r->all);
        r->all = bigger, r->room = more;
    }
    r->all[r->count].c = c;
    r->all[r->count++].combining = combining;
}

static void run_begin(run *r)
{
    r->all = (void *)r->few;
    r->room = CLV_LEN(r->few), r->count = 0;
    r->failed = false;
}

static void run_close(run *r, clv_text *out)
{
    end_run(r, out);
    if (r->all != (void *)r->few) clv_free(r->all);
    out->failed = out->failed || r->failed;
}

static void take(run *r, uint32_t c, unsigned combining, clv_text *out)
{
    if (combining) {
        add_to_run(r, c, combining);
        return;
    }
    end_run(r, out);
    put(c, out);
}

/* ---- the forms ------------------------------------------------------------------------------------ */

static size_t next_char(const char *text, size_t length, uint32_t *c)
{
    const size_t bytes = clv_utf8_decode(text, length, c);
    if (bytes) return bytes;
    *c = (unsigned char)*text; /* callers repair texts; this guarantees that loops end */
    return 1;
}

void clv_text_decompose(const char *text, size_t length, bool compat, clv_text *out)
{
    uint32_t c = 0, parts[CLV_COMPAT_MAX];
    run r;
    run_begin(&r);
    for (size_t at = 0; at < length;) {
        at += next_char(text + at, length - at, &c);
        const size_t count =
            c < 0x80 ? (parts[0] = c, 1) : clv_char_old_decompose(c, compat, parts);
        for (size_t i = 0; i < count; ++i)
            take(&r, parts[i], parts[i] < 0x300 ? 0 : clv_char_old_combining(parts[i]), out);
    }
    run_close(&r, out);
}

void clv_text_lower(const char *text, size_t length, clv_text *out)
{
    uint32_t c = 0, lower[2];
    for (size_t at = 0; at < length;) {
        at += next_char(text + at, length - at, &c);
        const size_t count = clv_char_old_lower(c, lower);
        for (size_t i = 0; i < count; ++i)
            put(lower[i], out);
    }
}

void clv_text_drop_marks(const char *text, size_t length, clv_text *out)
{
    uint32_t c = 0;
    for (size_t at = 0; at < length;) {
        at += next_char(text + at, length - at, &c);
        if (c < 0x300 || !clv_char_is_old_mark(c)) put(c, out);
    }
}

void clv_text_bert(clv_char_flags flags, const char *text, size_t length, clv_text *out)
{
    uint32_t c = 0;
    clv_spelled parts[CLV_SPELLED_MAX];
    run r;
    run_begin(&r);
    for (size_t at = 0; at < length;) {
        at += next_char(text + at, length - at, &c);
        const size_t count = clv_char_spell(flags, c, parts);
        for (size_t i = 0; i < count; ++i) {
            if (parts[i].rule != CLV_RULE_MARK)
                take(&r, parts[i].c, parts[i].combining, out);
            else if (!parts[i].combining) /* the code point is dropped, but it ends a run */
                end_run(&r, out);
        }
    }
    run_close(&r, out);
}
