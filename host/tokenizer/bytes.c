/* SPDX-License-Identifier: Apache-2.0 */
/* Writes bytes as characters, as GPT-2's vocabulary does: printable Latin-1 stands for itself; the other 68 bytes
 * become U+0100 and up, in rising order. */
#include "host/tokenizer/tokenizer.h"

enum { MOVED = 0x100, PRINTABLE_1 = 33, GAP_1 = 127, PRINTABLE_2 = 161, GAP_2 = 173 };

static bool stays(uint32_t c)
{
    return (c >= PRINTABLE_1 && c < GAP_1) || (c >= PRINTABLE_2 && c < GAP_2) ||
           (c > GAP_2 && c < MOVED);
}

uint32_t clv_byte_char(unsigned char byte)
{
    if (stays(byte)) return byte;
    if (byte < PRINTABLE_1) return MOVED + (uint32_t)byte;
    if (byte < PRINTABLE_2) return MOVED + PRINTABLE_1 + (uint32_t)byte - GAP_1;
    return MOVED + PRINTABLE_1 + PRINTABLE_2 - GAP_1; /* GAP_2 */
}

int clv_char_byte(uint32_t c)
{
    if (stays(c)) return (int)c;
    if (c < MOVED) return -1;
    c -= MOVED;
    if (c < PRINTABLE_1) return (int)c;
    c -= PRINTABLE_1;
    if (c < PRINTABLE_2 - GAP_1) return GAP_1 + (int)c;
    return c == PRINTABLE_2 - GAP_1 ? GAP_2 : -1;
}
