/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a movie, with any --raw text. The result is frames that lie in the file, each once, or an
 * error. The text ends at the first newline; a '?' before it asks for --partial. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/io/formats/movie.h"

#include <string.h>

/* Reads the frames one by one and all at once; both must give the same pixels. */
static void read_all(clv_movie *movie, size_t most)
{
    const clv_movie_facts *f = clv_movie_look(movie);
    const size_t frame = f->height * f->width * clv_type_size(f->type);
    FUZZ_CHECK(f->frames && frame && f->frames <= most);
    unsigned char *one = fuzz_alloc(1, frame), *all = fuzz_alloc(f->frames, frame);
    FUZZ_CHECK(one && all); /* both are about as long as the file */
    FUZZ_CHECK(fuzz_poor || clv_movie_read(movie, 0, f->frames, all) == CLV_OK);
    fuzz_touch(all, f->frames * frame);
    for (size_t i = 0; i < f->frames; ++i) {
        FUZZ_CHECK(fuzz_poor || clv_movie_read(movie, i, 1, one) == CLV_OK);
        FUZZ_CHECK(memcmp(one, all + i * frame, frame) == 0);
    }
    FUZZ_CHECK(clv_movie_read(movie, f->frames, 1, one) != CLV_OK);
    clv_free(one), clv_free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    clv_movie_options options = { .partial = size && *data == '?' };
    if (options.partial) ++data, --size;
    char text[200] = "";
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    const size_t length = end ? (size_t)(end - data) : size;
    if (length >= sizeof text) return 0;
    memcpy(text, data, length);
    if (!clv_raw_parse(text, &options.raw)) return 0;
    const clv_raw_layout *l = &options.raw;
    FUZZ_CHECK(l->given && l->height && l->width && l->frames <= UINT32_MAX);
    const size_t bytes = end ? size - length - 1 : 0;
    clv_movie *movie;
    const clv_status status =
        clv_movie_open(fuzz_file(end ? end + 1 : data, bytes), &options, &movie);
    FUZZ_CHECK((status == CLV_OK) == (movie != NULL));
    if (status) return 0;
    read_all(movie, l->frames ? l->frames : bytes);
    clv_movie_close(movie);
    return 0;
}
