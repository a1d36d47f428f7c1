/* SPDX-License-Identifier: Apache-2.0 */
/* Makes text from outside (files, names of folders, drivers) fit for a terminal. */
#ifndef CLEAVE_BASE_VISIBLE_H
#define CLEAVE_BASE_VISIBLE_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

/* Find and replace what must not reach a terminal. A terminal obeys control characters (C0, DEL, C1), and direction
 * marks change the order in which it shows the text after them. Each byte of these characters, and each byte that is
 * not UTF-8, becomes "\x1B" and the like. Line feeds and tabs stay, because our own messages contain them. */
bool clv_is_visible(const char *text, size_t length);
void clv_text_visible(clv_text *out, const char *text, size_t length);
/* Replaces the same characters within a buffer of `capacity` bytes; what does not fit is cut off. */
void clv_make_visible(char *text, size_t capacity);

#endif
