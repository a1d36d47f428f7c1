/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses the next tokens of a text: the tokens that followed the text's last tokens where these occurred earlier. */
#include "host/transformer/generate/language.h"

#include "base/alloc.h"

#include <string.h>

/* The numbers of last tokens to search for: three matching tokens make a better guess, but two match more often. */
enum { LONGEST = 3, SHORTEST = 2 };

/* Returns the end of the latest earlier occurrence of the last `length` tokens; 0 if there is none. */
static size_t find_earlier(const int32_t *tokens, size_t count, size_t length)
{
    const int32_t *last = tokens + count - length;
    for (size_t end = count - 1; end >= length; --end)
        if (memcmp(tokens + end - length, last, length * sizeof *last) == 0) return end;
    return 0;
}

size_t clv_lm_guess(const int32_t *tokens, size_t count, size_t most, int32_t *guess)
{
    for (size_t length = LONGEST; length >= SHORTEST; --length) {
        const size_t end = count > length ? find_earlier(tokens, count, length) : 0;
        if (!end) continue;
        /* at the end of the text, the guess continues with its own first tokens, as in a text that repeats itself */
        for (size_t i = 0; i < most; ++i)
            guess[i] = end + i < count ? tokens[end + i] : guess[end + i - count];
        return most;
    }
    return 0;
}
