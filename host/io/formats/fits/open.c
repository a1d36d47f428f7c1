/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a FITS file and steps through its HDUs. CFITSIO gets to see only what is FITS, and only
 * headers that it reads without harm; its stack of messages becomes one line. */
#include "host/io/formats/fits/library.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/gunzip.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    BLOCK = 2880, /* bytes; a FITS file is made of them */
    CARD = 80,    /* characters */
    MAX_HDUS = 10000
};

/* The first message on CFITSIO's stack is the cause, later ones tell who passed it on. */
clv_status clv_fits_error(const char *path, const char *doing, int error)
{
    char name[FLEN_STATUS], cause[FLEN_ERRMSG] = "", rest[FLEN_ERRMSG];
    char text[2 * FLEN_ERRMSG];
    fits_get_errstatus(error, name);
    if (fits_read_errmsg(cause))
        while (fits_read_errmsg(rest))
            continue;
    const clv_status status = error == MEMORY_ALLOCATION ? CLV_E_MEMORY : CLV_E_FORMAT;
    return clv_fail(status, "%s: cannot %s: %s (CFITSIO %d)%s%s", path, doing, name, error,
                    *cause ? ": " : "", clv_printable(cause, strlen(cause), text, sizeof text));
}

/* ---- headers ------------------------------------------------------------------------------- */

/* CFITSIO 4.2 copies a column's name of 70 characters, a text without quotes, into room for 69. */
static bool is_good_name(const char *card)
{
    enum { VALUE = 9 };
    if (memcmp(card, "TTYPE", 5) != 0) return true;
    for (int i = VALUE; i < CARD; ++i)
        if (card[i] != ' ') return card[i] == '\'' || card[i] == '/';
    return true;
}

static bool is_end(const char *card)
{
    static const char end[] = "END     "; /* where CFITSIO stops as well */
    return memcmp(card, end, sizeof end - 1) == 0;
}

/* Up to BLOCK bytes from `at` on; the rest of `block` is blank. */
static clv_status read_block(clv_fits_source *source, uint64_t at, char *block)
{
    const uint64_t length = source->bytes ? source->length : source->input.length;
    const size_t there = at < length ? (size_t)CLV_MIN(length - at, (uint64_t)BLOCK) : 0;
    memset(block + there, ' ', BLOCK - there);
    if (source->bytes) {
        memcpy(block, source->bytes + (there ? at : 0), there);
        return CLV_OK;
    }
    if (!there) return CLV_OK;
    CLV_TRY(clv_input_seek(&source->input, at));
    return clv_input_read(&source->input, block, there);
}

/* The header that begins at byte `at`, to its end or that of the file. */
static clv_status check_header(clv_fits_source *source, uint64_t at)
{
    char block[BLOCK];
    const uint64_t length = source->bytes ? source->length : source->input.length;
    for (; at < length; at += BLOCK) {
        CLV_TRY(read_block(source, at, block));
        for (const char *card = block; card < block + BLOCK; card += CARD) {
            if (is_end(card)) return CLV_OK;
            if (!is_good_name(card))
                return clv_fail(CLV_E_FORMAT, "%s: the name of a table's column has no quotes",
                                source->path);
        }
    }
    return CLV_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

/* Only FITS reaches CFITSIO: it would also unpack zip, pack and compress by old code. */
static clv_status check_start(const char *path, const char *start, size_t length)
{
    static const char fits[] = "SIMPLE  =";
    char found[48];
    const size_t most = sizeof fits - 1;
    if (length >= most && memcmp(start, fits, most) == 0) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "%s: begins with \"%s\", expected a FITS file (\"SIMPLE  =\") or "
                    "one compressed by gzip",
                    path, clv_printable(start, CLV_MIN(length, most), found, sizeof found));
}

static clv_status open_disk(clv_fits_source *source)
{
    char name[FLEN_FILENAME];
    int error = 0;
    const char *path = source->path;
    /* "./" keeps CFITSIO from reading "~user" and from dropping leading blanks. */
    const int length = snprintf(name, sizeof name, "%s%s", *path == '/' ? "" : "./", path);
    if (length < 0 || length >= FLEN_FILENAME - 16)
        return clv_fail(CLV_E_IO, "path too long for the FITS library (at most %d bytes): %s",
                        FLEN_FILENAME - 17, path);
    if (!fits_open_diskfile(&source->file, name, READONLY, &error)) return CLV_OK;
    source->file = NULL;
    return clv_fits_error(path, "read as FITS", error);
}

static clv_status open_memory(clv_fits_source *source)
{
    int error = 0;
    void **bytes = (void **)&source->bytes;
    if (!fits_open_memfile(&source->file, "unpacked", READONLY, bytes, &source->length, 0, NULL,
                           &error))
        return CLV_OK;
    source->file = NULL;
    return clv_fits_error(source->path, "read as FITS", error);
}

static clv_status open_source(clv_fits_source *source)
{
    char start[16];
    clv_input *input = &source->input;
    size_t length = (size_t)CLV_MIN(input->length, (uint64_t)sizeof start);
    CLV_TRY(clv_input_read(input, start, length));
    CLV_TRY(clv_input_seek(input, 0));
    if (length >= 2 && memcmp(start, "\x1F\x8B", 2) == 0) {
        CLV_TRY(clv_gunzip(input, &source->bytes, &source->length));
        length = CLV_MIN(source->length, sizeof start);
        memcpy(start, source->bytes, length);
    }
    CLV_TRY(check_start(source->path, start, length));
    CLV_TRY(check_header(source, 0));
    fits_clear_errmsg();
    return source->bytes ? open_memory(source) : open_disk(source);
}

clv_status clv_fits_open(clv_fits_source *source, const char *path)
{
    *source = (clv_fits_source){ .path = path, .input.descriptor = -1 };
    CLV_TRY(clv_input_open(&source->input, path));
    const clv_status status = open_source(source);
    if (status) clv_fits_close(source);
    return status;
}

void clv_fits_close(clv_fits_source *source)
{
    int error = 0;
    if (!source->path) return;
    if (source->file) fits_close_file(source->file, &error);
    fits_clear_errmsg();
    clv_input_close(&source->input);
    clv_free(source->bytes);
    *source = (clv_fits_source){ 0 };
}

/* ---- HDUs ---------------------------------------------------------------------------------- */

clv_status clv_fits_next(clv_fits_source *source, bool *more)
{
    int number = 0, error = 0;
    LONGLONG end = 0;
    *more = false;
    if (fits_get_hdu_num(source->file, &number) >= MAX_HDUS) return CLV_OK;
    fits_get_hduaddrll(source->file, NULL, NULL, &end, &error);
    if (error) return clv_fits_error(source->path, "find the next HDU", error);
    CLV_TRY(check_header(source, (uint64_t)CLV_MAX(end, (LONGLONG)0)));
    *more = !fits_movrel_hdu(source->file, 1, NULL, &error);
    if (error && error != END_OF_FILE)
        return clv_fits_error(source->path, "read the next HDU", error);
    fits_clear_errmsg();
    return CLV_OK;
}

clv_status clv_fits_goto(clv_fits_source *source, int hdu, bool *found)
{
    *found = hdu >= 0;
    for (int i = 0; i < hdu && *found; ++i)
        CLV_TRY(clv_fits_next(source, found));
    return CLV_OK;
}

static bool is_called(clv_fits_source *source, const char *name)
{
    static const char *const keys[] = { "EXTNAME", "HDUNAME" };
    for (size_t i = 0; i < CLV_LEN(keys); ++i) {
        char value[FLEN_VALUE] = "";
        int error = 0;
        fits_read_key(source->file, TSTRING, keys[i], value, NULL, &error);
        if (!error && strcasecmp(value, name) == 0) return true;
    }
    return false;
}

clv_status clv_fits_goto_name(clv_fits_source *source, const char *name, bool *found)
{
    for (bool more = true; more;) {
        *found = is_called(source, name);
        fits_clear_errmsg();
        if (*found) return CLV_OK;
        CLV_TRY(clv_fits_next(source, &more));
    }
    return CLV_OK;
}
