/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses the next tokens of a text: those that followed the same tokens earlier in the text. */
#include "host/transformer/generate/language.h"

#include "base/alloc.h"

#include <string.h>

/* Numbers of last tokens to search for: a match of three makes a better guess, a match of two is likelier. */
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
        /* where the text ends, the guess goes on with its own first tokens: the text repeats itself */
        for (size_t i = 0; i < most; ++i)
            guess[i] = end + i < count ? tokens[end + i] : guess[end + i - count];
        return most;
    }
    return 0;
}
