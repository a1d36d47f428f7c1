/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a list of files, beside other files that the list may name. The result is frames that have the
 * same pixels when they are read again, or an error. */
#include "fuzz.h"

#include "base/alloc.h"
#include "folder.h"
#include "host/io/formats/movie.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 1 << 22 /* bytes of the largest frame that is read */, MOST_FRAMES = 64 };

/* Reads the last frame, then all frames in order, so that files are opened several times. */
static void read_frames(clv_movie *movie)
{
    const clv_movie_facts *f = clv_movie_look(movie);
    const size_t type = clv_type_size(f->type);
    FUZZ_CHECK(f->frames && f->height && f->width && type);
    if (f->frames > MOST_FRAMES || f->height > MOST_BYTES || f->width > MOST_BYTES) return;
    if ((double)f->height * (double)f->width * (double)type > MOST_BYTES) return;
    const size_t frame = f->height * f->width * type;
    unsigned char *last = fuzz_alloc(1, frame), *again = fuzz_alloc(1, frame);
    FUZZ_CHECK(last && again);
    const clv_status status = clv_movie_read(movie, f->frames - 1, 1, last);
    if (!status) fuzz_touch(last, frame);
    for (size_t i = 0; i < f->frames; ++i) {
        const clv_status read = clv_movie_read(movie, i, 1, again);
        if (!read) fuzz_touch(again, frame);
        if (!fuzz_poor && i == f->frames - 1) {
            FUZZ_CHECK((read == CLV_OK) == (status == CLV_OK));
            FUZZ_CHECK(status || memcmp(last, again, frame) == 0);
        }
    }
    FUZZ_CHECK(clv_movie_read(movie, f->frames, 1, again) != CLV_OK);
    clv_free(last), clv_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "list.txt", "a.npy",   "b.npy",   "c.tif", "d.png",
                                         "more.lst", "e/1.npy", "e/2.npy", NULL };
    char path[200];
    const char *folder = fuzz_folder(data, size, names);
    const int length = snprintf(path, sizeof path, "%s/list.txt", folder);
    FUZZ_CHECK(length > 0 && (size_t)length < sizeof path);
    const clv_movie_options options = { 0 };
    clv_movie *movie = NULL;
    const clv_status status = clv_movie_open(path, &options, &movie);
    FUZZ_CHECK((status == CLV_OK) == (movie != NULL));
    if (status) return 0;
    read_frames(movie);
    clv_movie_close(movie);
    return 0;
}
