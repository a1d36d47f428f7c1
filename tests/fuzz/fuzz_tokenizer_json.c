/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as tokenizer.json. The result is a tokenizer that works, or an error. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/tokenizer/tokenizer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const texts[] = { "the cats [MASK] run", "\xC3\x89t\xC3\xA9 \xE6\x9D\xB1!" };
    clv_token_rows rows = { 0 };
    clv_tokenizer *t = fuzz_alloc(1, sizeof *t);
    if (!t) abort();
    if (!clv_tokenizer_from_json(t, "tokenizer.json", (const char *)data, size)) {
        t->max_length = SIZE_MAX;
        const clv_status status = clv_tokenize(t, texts, NULL, 2, NULL, &rows);
        /* a vocabulary may have neither a character nor an unknown token: then the text is refused */
        const bool lacks = t->kind == CLV_TOKENIZER_BPE && t->unk < 0;
        FUZZ_CHECK(fuzz_poor || status == CLV_OK || (lacks && status == CLV_E_FORMAT));
        for (size_t i = 0; i < rows.tokens; ++i)
            FUZZ_CHECK(clv_tokenizer_piece(t, rows.ids[i]));
    }
    clv_token_rows_clear(&rows);
    clv_tokenizer_close(t);
    return 0;
}
