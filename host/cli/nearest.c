/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses which word a mistyped one was meant to be, by the smallest edit distance. */
#include "host/cli/nearest.h"

#include "base/alloc.h"

#include <string.h>

enum { MOST = 40 }; /* longest word that is compared, in letters */

/* Returns the Damerau-Levenshtein distance in which neighbours are swapped at most once ("optimal string
 * alignment"). */
static size_t distance(const char *a, size_t m, const char *b, size_t n)
{
    size_t before[MOST + 1], last[MOST + 1], now[MOST + 1];
    for (size_t j = 0; j <= n; ++j)
        last[j] = before[j] = j;
    for (size_t i = 1; i <= m; ++i) {
        now[0] = i;
        for (size_t j = 1; j <= n; ++j) {
            const size_t exchange = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = CLV_MIN(exchange, CLV_MIN(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = CLV_MIN(now[j], before[j - 2] + 1);
        }
        memcpy(before, last, sizeof before);
        memcpy(last, now, sizeof last);
    }
    return last[n];
}

const char *cli_nearest(const char *word, const char *const names[], size_t count)
{
    const size_t length = strlen(word);
    const char *best = NULL;
    size_t least = CLV_MAX(length / 3, (size_t)1) + 1;
    if (length < 2 || length > MOST) return NULL;
    for (size_t i = 0; i < count; ++i) {
        const size_t other = strlen(names[i]);
        if (!other || other > MOST) continue;
        const size_t apart = distance(word, length, names[i], other);
        if (apart < least) least = apart, best = names[i];
    }
    return best;
}
