/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a Parquet file in memory. An accepted file must give a table whose rows all have as many fields
 * as the header. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/text.h"
#include "host/io/tables/parquet.h"

#include <string.h>

/* Returns the number of fields of the row that begins at text[*at], and moves *at behind the row. */
static size_t skip_row(const char *text, size_t length, size_t *at)
{
    size_t fields = 1;
    bool quoted = false;
    for (; *at < length && (quoted || text[*at] != '\n'); ++*at) {
        if (text[*at] == '"') quoted = !quoted;
        if (text[*at] == ',' && !quoted) ++fields;
    }
    FUZZ_CHECK(!quoted && *at < length);
    ++*at;
    return fields;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy =
        fuzz_alloc(CLV_MAX(size, (size_t)1), 1); /* exactly the file's size, for the sanitizer */
    if (size) memcpy(copy, data, size);
    clv_text text = { 0 };
    char(*codes)[3] = NULL;
    if (clv_parquet_records("file.parquet", copy, size, &text, &codes) == CLV_OK) {
        FUZZ_CHECK(!text.failed && codes);
        size_t at = 0;
        const size_t columns = skip_row(text.data, text.length, &at);
        for (size_t c = 0; c < columns; ++c)
            FUZZ_CHECK(memchr(codes[c], '\0', sizeof codes[c]));
        while (at < text.length)
            FUZZ_CHECK(skip_row(text.data, text.length, &at) == columns);
    }
    clv_free(codes), clv_free(copy);
    clv_text_clear(&text);
    return 0;
}
