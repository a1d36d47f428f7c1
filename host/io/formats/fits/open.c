/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a FITS file and steps through its HDUs. CFITSIO gets only files that are FITS, and only headers that it can
 * read without harm. */
#include "host/io/formats/fits/library.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/gunzip.h"
#include "host/io/room.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    BLOCK = 2880, /* bytes; the length of a FITS file is a multiple of it */
    CARD = 80,    /* characters */
    MAX_HDUS = 10000,
    /* bytes; without a limit, a header that lacks END would be read to the end of the file */
    MAX_HEADER = 64 << 20
};

/* ---- headers ------------------------------------------------------------------------------- */

static bool is_end(const char *card)
{
    static const char end[] = "END     "; /* CFITSIO stops here as well */
    return memcmp(card, end, sizeof end - 1) == 0;
}

/* Reads up to BLOCK bytes of the file from offset `at`, and fills the rest of `block` with blanks. */
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

/* Checks the header that begins at byte `at`, up to its END card or the end of the file. Records in *tiles what it says
 * about a tile-compressed image. */
static clv_status check_header(clv_fits_source *source, uint64_t at, clv_fits_tiles *tiles)
{
    char block[BLOCK];
    const uint64_t length = source->bytes ? source->length : source->input.length;
    const uint64_t begin = at;
    *tiles = (clv_fits_tiles){ 0 };
    for (; at < length; at += BLOCK) {
        if (at - begin >= MAX_HEADER)
            return clv_fail(CLV_E_FORMAT, "%s: a header has no END in its first %d MiB",
                            source->path, MAX_HEADER >> 20);
        CLV_TRY(read_block(source, at, block));
        /* CFITSIO, too, takes a NUL here for the end of the file */
        if (at == begin && !block[0]) return CLV_OK;
        for (char *card = block; card < block + BLOCK; card += CARD) {
            if (is_end(card)) return CLV_OK;
            CLV_TRY(clv_fits_screen_card(source->path, card, tiles));
        }
    }
    return CLV_OK;
}

/* Hides a tile-compressed image from CFITSIO: changes ZIMAGE in the header at `at`, in our copy of the file. */
static void hide_tiles(clv_fits_source *source, uint64_t at, clv_fits_tiles *tiles)
{
    for (; at + CARD <= source->length; at += CARD) {
        char *card = source->bytes + at;
        if (is_end(card)) return;
        char *hidden = clv_fits_hide_tiles(card);
        if (hidden == card && !tiles->hidden) tiles->hidden = hidden;
    }
}

/* ---- bytes in memory ------------------------------------------------------------------------- */

LONGLONG clv_fits_length(const clv_fits_source *source)
{
    return source->bytes ? (LONGLONG)source->length
                         : source->file->Fptr->filesize; /* no function of CFITSIO returns it */
}

/* Pads the file in memory to whole blocks: CFITSIO reads whole blocks and does not check where the memory ends. */
static clv_status fill_last_block(clv_fits_source *source)
{
    const size_t whole = clv_round_up(source->length, BLOCK);
    if (whole == source->length) return CLV_OK;
    char *bytes = clv_realloc(source->bytes, whole, 1);
    if (!bytes)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for its %zu bytes", source->path,
                        whole);
    memset(bytes + source->length, 0, whole - source->length);
    source->bytes = bytes;
    return CLV_OK;
}

void clv_fits_settle(clv_fits_source *source)
{
    if (!source->bytes) return;
    source->file->Fptr->filesize = (LONGLONG)clv_round_up(source->length, BLOCK);
    source->file->Fptr->logfilesize = source->file->Fptr->filesize;
}

/* ---- files --------------------------------------------------------------------------------- */

/* Fails unless the file begins like FITS. CFITSIO would also unpack zip, pack and compress, with old code. */
static clv_status check_start(const char *path, const char *start, size_t length)
{
    static const char fits[] = "SIMPLE  =";
    char found[48];
    const size_t most = sizeof fits - 1;
    if (length >= most && memcmp(start, fits, most) == 0) return CLV_OK;
    return clv_fail(
        CLV_E_FORMAT,
        "%s begins with \"%s\"; expected a FITS file (\"SIMPLE  =\") or one compressed with gzip",
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
    CLV_TRY(fill_last_block(source));
    if (fits_open_memfile(&source->file, "unpacked", READONLY, bytes, &source->length, 0, NULL,
                          &error)) {
        source->file = NULL;
        return clv_fits_error(source->path, "read as FITS", error);
    }
    clv_fits_settle(source);
    return CLV_OK;
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
    CLV_TRY(check_header(source, 0, &source->tiles));
    source->tiles.found = false; /* the primary HDU has no table to hold tiles */
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
    clv_fits_forget(source);
    clv_free(source->bytes);
    *source = (clv_fits_source){ 0 };
}

/* ---- HDUs ---------------------------------------------------------------------------------- */

/* Reads the whole file into memory, where its headers can be changed, and opens that copy with CFITSIO at the same
 * HDU. */
static clv_status take_into_memory(clv_fits_source *source)
{
    int number = 0, error = 0;
    const uint64_t length = source->input.length;
    fits_get_hdu_num(source->file, &number);
    fits_close_file(source->file, &error);
    source->file = NULL;
    CLV_TRY(clv_io_need(source->path, "to unpack its images", length));
    source->bytes = clv_alloc((size_t)length, 1);
    if (!source->bytes)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for its %llu bytes", source->path,
                        (unsigned long long)length);
    source->length = (size_t)length;
    CLV_TRY(clv_input_seek(&source->input, 0));
    CLV_TRY(clv_input_read(&source->input, source->bytes, source->length));
    clv_fits_tiles tiles;
    CLV_TRY(check_header(source, 0, &tiles)); /* the file may have changed meanwhile */
    hide_tiles(source, 0, &tiles);
    CLV_TRY(open_memory(source));
    for (int i = 1; i < number; ++i) {
        LONGLONG end = 0;
        error = 0;
        fits_get_hduaddrll(source->file, NULL, NULL, &end, &error);
        if (error) return clv_fits_error(source->path, "find an HDU again", error);
        CLV_TRY(check_header(source, (uint64_t)CLV_MAX(end, (LONGLONG)0), &tiles));
        hide_tiles(source, (uint64_t)CLV_MAX(end, (LONGLONG)0), &tiles);
        if (fits_movrel_hdu(source->file, 1, NULL, &error))
            return clv_fits_error(source->path, "read again", error);
        clv_fits_settle(source);
    }
    return CLV_OK;
}

clv_status clv_fits_next(clv_fits_source *source, bool *more)
{
    int number = 0, error = 0;
    clv_fits_tiles tiles;
    LONGLONG end = 0;
    *more = false;
    if (fits_get_hdu_num(source->file, &number) >= MAX_HDUS) return CLV_OK;
    fits_get_hduaddrll(source->file, NULL, NULL, &end, &error);
    if (error) return clv_fits_error(source->path, "find the next HDU", error);
    const uint64_t at = (uint64_t)CLV_MAX(end, (LONGLONG)0);
    CLV_TRY(check_header(source, at, &tiles));
    if (tiles.mentioned && !source->bytes) {
        CLV_TRY(take_into_memory(source));
        CLV_TRY(check_header(source, at, &tiles));
    }
    if (tiles.mentioned) hide_tiles(source, at, &tiles);
    tiles.hdu = number;
    clv_fits_forget(source);
    source->tiles = tiles;
    *more = !fits_movrel_hdu(source->file, 1, NULL, &error);
    clv_fits_settle(source);
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

/* Returns the version (EXTVER) of the current HDU; 1 if it has none. */
static long version_of(clv_fits_source *source)
{
    long version = 1;
    int error = 0;
    fits_read_key(source->file, TLONG, "EXTVER", &version, NULL, &error);
    fits_clear_errmsg();
    return error ? 1 : version;
}

clv_status clv_fits_goto_extension(clv_fits_source *source, const char *extension)
{
    char name[FLEN_VALUE];
    uint64_t number = 0, version = 0;
    bool found = false, more = true;
    const char *comma = strrchr(extension, ',');
    clv_copy_string(name, sizeof name, extension);
    if (clv_parse_u64(extension, &number)) {
        if (number < MAX_HDUS) CLV_TRY(clv_fits_goto(source, (int)number, &found));
    } else if (strcasecmp(extension, "PRIMARY") == 0 || strcasecmp(extension, "P") == 0) {
        found = true; /* the current HDU is the primary one, which CFITSIO also calls so */
    } else {
        if (comma && (size_t)(comma - extension) < sizeof name &&
            clv_parse_u64(comma + 1, &version))
            name[comma - extension] = '\0';
        while (more && !found) {
            found = is_called(source, name) && (!version || version_of(source) == (long)version);
            fits_clear_errmsg();
            if (!found) CLV_TRY(clv_fits_next(source, &more));
        }
    }
    return found ? CLV_OK
                 : clv_fail(CLV_E_FORMAT,
                            "%s: there is no HDU [%s]; expected a number from 0 (the primary HDU) "
                            "or an EXTNAME of this file",
                            source->path, extension);
}
