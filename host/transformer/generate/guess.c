/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses of what a text says next: what it said before behind the same tokens. */
#include "host/transformer/generate/language.h"

#include "base/alloc.h"

#include <string.h>

/* Two tokens are few enough to meet again, and more of them make a guess better. */
enum { LONGEST = 3, SHORTEST = 2 };

/* Where the last `length` tokens ended before, as late as possible; 0: nowhere. */
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
        /* a text that repeats itself goes on with what is guessed of it */
        for (size_t i = 0; i < most; ++i)
            guess[i] = end + i < count ? tokens[end + i] : guess[end + i - count];
        return most;
    }
    return 0;
}
