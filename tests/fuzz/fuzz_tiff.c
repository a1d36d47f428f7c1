/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a movie. The result is frames or an error. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/io/formats/movie.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST_BYTES = 1 << 24 };
    const clv_movie_options options = { .partial = size % 2,
                                        .channel_given = size % 3 == 0,
                                        .stacks = size % 5 == 0 };
    clv_movie *movie;
    if (clv_movie_open(fuzz_file(data, size), &options, &movie)) {
        FUZZ_CHECK(!movie);
        return 0;
    }
    const clv_movie_facts *f = clv_movie_look(movie);
    FUZZ_CHECK(f->frames && f->height && f->width);
    const size_t bytes = f->height * f->width * clv_type_size(f->type);
    void *pixels = bytes <= MOST_BYTES ? fuzz_alloc(bytes, 1) : NULL;
    for (size_t t = 0; pixels && t < f->frames && t < 4; ++t)
        if (!clv_movie_read(movie, t, 1, pixels)) fuzz_touch(pixels, bytes);
    clv_free(pixels);
    clv_movie_close(movie);
    return 0;
}
