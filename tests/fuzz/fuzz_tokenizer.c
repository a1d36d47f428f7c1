/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizes any bytes as a text. All ids must be in the vocabulary, and their number is bounded by the length of the
 * text. With a limit, the ids must be the same up to the last one, which is the closing token. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT = 9 };

static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[\n]\na\nb\n##a\n##b\n##"
                                 "ab\nab\nthe\n##e\ne\n!\n\xE6\x9D\xB1\n"
                                 "##\xE1\x85\xA1\n\xE1\x84\x80\n##\xE3\x80\xAE\n##\xE3\x80\xAF\n";

static clv_tokenizer *make(bool lenient, size_t limit)
{
    clv_tokenizer *t = fuzz_alloc(1, sizeof *t);
    if (!t || clv_tokenizer_from_vocabulary(t, "vocab.txt", vocabulary, sizeof vocabulary - 1, NULL,
                                            NULL, NULL))
        abort();
    t->max_length = limit;
    t->replace_invalid = lenient;
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static clv_tokenizer *strict, *lenient, *limited;
    static clv_token_rows rows, cut;
    if (!strict) {
        strict = make(false, SIZE_MAX);
        lenient = make(true, SIZE_MAX);
        limited = make(true, LIMIT);
    }
    char *text = fuzz_alloc(size + 1, 1); /* the sanitizer guards the end of this memory */
    if (!text) abort();
    if (size) memcpy(text, data, size);
    const char *const texts[] = { text };
    const clv_status status = clv_tokenize(strict, texts, &size, 1, NULL, &rows);
    FUZZ_CHECK(status == CLV_OK || status == CLV_E_FORMAT || fuzz_poor);
    if (clv_tokenize(lenient, texts, &size, 1, NULL, &rows)) {
        FUZZ_CHECK(fuzz_poor);
        clv_free(text);
        return 0;
    }
    FUZZ_CHECK(fuzz_poor || (status == CLV_OK) == (rows.replaced == 0));
    FUZZ_CHECK(rows.tokens >= 2 && rows.tokens <= 3 * size + 2 && rows.offsets[1] == rows.tokens);
    for (size_t i = 0; i < rows.tokens; ++i)
        FUZZ_CHECK(clv_tokenizer_piece(strict, rows.ids[i]));
    if (clv_tokenize(limited, texts, &size, 1, NULL, &cut)) {
        FUZZ_CHECK(fuzz_poor);
        clv_free(text);
        return 0;
    }
    const size_t same = CLV_MIN(rows.tokens, (size_t)LIMIT);
    FUZZ_CHECK(cut.tokens == same && cut.truncated == (rows.tokens > LIMIT));
    FUZZ_CHECK(memcmp(cut.ids, rows.ids, (same - 1) * sizeof *rows.ids) == 0);
    FUZZ_CHECK(cut.ids[same - 1] == rows.ids[rows.tokens - 1]);
    clv_free(text);
    return 0;
}
