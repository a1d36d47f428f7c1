/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as examples to learn from: with labels, and as pairs. */
#include "fuzz.h"

#include "base/error.h"
#include "host/cli/finetune/data.h"
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n##b\nthe\n";

/* Replaces host/cli/texts.c and bar.c. */
clv_status cli_texts_tokenize(const cli_texts *texts, const clv_tokenizer *tokenizer,
                              const clv_lines *lines, clv_token_rows *rows)
{
    (void)texts;
    return clv_tokenize(tokenizer, lines->texts, lines->lengths, lines->count, NULL, rows);
}

void cli_text_count(cli_text_counts *counts, const clv_token_rows *rows)
{
    counts->texts += rows->rows;
}

bool cli_interrupted(void)
{
    return false;
}

static void try_examples(const char *path, const clv_tokenizer *tokenizer, bool labels, int header)
{
    const cli_texts texts = { 0 };
    cli_classes classes = { 0 };
    cli_examples e;
    if (cli_examples_read(path, &texts, tokenizer, header, labels ? &classes : NULL, &e) ==
        CLV_OK) {
        FUZZ_CHECK(strlen(e.first_line) < sizeof e.first_line);
        const size_t each = labels ? 1 : 2;
        FUZZ_CHECK(e.texts_each == each && (e.labels != NULL) == labels);
        for (size_t i = 0; i < e.count * each; ++i)
            FUZZ_CHECK(e.offsets[i] < e.offsets[i + 1]);
        FUZZ_CHECK(e.offsets[e.count * each] == e.tokens);
        for (size_t i = 0; labels && i < e.count; ++i)
            FUZZ_CHECK(e.labels[i] >= 0 && (size_t)e.labels[i] < classes.count);
        (void)cli_examples_fingerprint(&e);
    }
    cli_examples_clear(&e);
    cli_classes_clear(&classes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static clv_tokenizer *tokenizer;
    if (!tokenizer) {
        tokenizer = fuzz_alloc(1, sizeof *tokenizer);
        if (!tokenizer || clv_tokenizer_from_vocabulary(tokenizer, "vocab.txt", vocabulary,
                                                        sizeof vocabulary - 1, NULL, NULL, NULL))
            abort();
        tokenizer->max_length = 16;
    }
    const char *path = fuzz_file(data, size);
    for (int header = CLI_HEADER_AUTO; header <= CLI_HEADER_NO; ++header) {
        try_examples(path, tokenizer, true, header);
        try_examples(path, tokenizer, false, header);
    }
    return 0;
}
