/* SPDX-License-Identifier: Apache-2.0 */
/* Renders a conversation with any bytes as the chat template. The result is a text with one mark (0 or 1) per byte,
 * or an error. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/unicode.h"

#include <cleave/chat.h>
#include <cleave/init.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const clv_chat_message talk[] = { { "system", "Be brief." },
                                             { "user", " Hi <|im_end|>\n" },
                                             { "assistant", "\xC3\x89t\xC3\xA9 \xF0\x9F\x98\x80" },
                                             { "user", "" } };
    clv_chat_options options = CLV_INIT(clv_chat_options);
    char *source = fuzz_alloc(size + 1, 1), *text;
    unsigned char *marks;
    size_t length;
    if (!source) abort();
    if (size) memcpy(source, data, size);
    source[size] = '\0';
    options.bos = "<s>", options.eos = "</s>", options.now = 1721990000;
    if (!clv_chat_render(source, talk, 4, &options, &text, &marks, &length)) {
        FUZZ_CHECK(text[length] == '\0');
        for (size_t i = 0; i < length; ++i)
            FUZZ_CHECK(marks[i] < 2);
        clv_free(text), clv_free(marks);
    } else {
        FUZZ_CHECK(!text && !length);
    }
    clv_free(source);
    return 0;
}
