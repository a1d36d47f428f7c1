/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the input's parts as the files of an OME-Zarr folder. The result is frames that have the same pixels when
 * they are read again, or an error. */
#include "fuzz.h"

#include "base/alloc.h"
#include "folder.h"
#include "host/io/formats/movie.h"

#include <string.h>

enum { MOST_BYTES = 1 << 22 }; /* bytes of the largest frame that is read */

static void read_frames(clv_movie *movie)
{
    const clv_movie_facts *f = clv_movie_look(movie);
    const size_t type = clv_type_size(f->type);
    FUZZ_CHECK(f->frames && f->height && f->width && type);
    if (f->height > MOST_BYTES || f->width > MOST_BYTES) return;
    const double bytes = (double)f->height * (double)f->width * (double)type;
    if (bytes > MOST_BYTES) return;
    const size_t frame = f->height * f->width * type;
    unsigned char *first = fuzz_alloc(1, frame), *again = fuzz_alloc(1, frame);
    FUZZ_CHECK(first && again);
    const clv_status status = clv_movie_read(movie, 0, 1, first);
    if (!status) fuzz_touch(first, frame);
    (void)clv_movie_read(movie, f->frames - 1, 1, again);
    if (!status && !fuzz_poor) {
        FUZZ_CHECK(clv_movie_read(movie, 0, 1, again) == CLV_OK);
        FUZZ_CHECK(memcmp(first, again, frame) == 0);
    }
    FUZZ_CHECK(clv_movie_read(movie, f->frames, 1, again) != CLV_OK);
    clv_free(first), clv_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { ".zarray",     ".zattrs", "zarr.json", "0.0",
                                         "0.0.0",       "c.0.0",   "c.0.0.0",   "0/.zarray",
                                         "0/zarr.json", "0/0.0.0", "0/c.0.0.0", "0/0.0.0.0.0",
                                         NULL };
    const char *folder = fuzz_folder(data, size, names);
    const clv_movie_options options = { 0 };
    clv_movie *movie = NULL;
    const clv_status status = clv_movie_open(folder, &options, &movie);
    FUZZ_CHECK((status == CLV_OK) == (movie != NULL));
    if (status) return 0;
    read_frames(movie);
    clv_movie_close(movie);
    return 0;
}
