/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside (files, names of folders, drivers) made fit for a terminal. */
#ifndef CLEAVE_BASE_VISIBLE_H
#define CLEAVE_BASE_VISIBLE_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

/* A terminal obeys control characters (C0, DEL, C1), and marks of direction change the order in which it
 * shows what follows. Each of their bytes, and each byte that is no UTF-8, becomes "\x1B" and the like. A
 * line feed and a tab stay: our own messages have them. */
bool clv_is_visible(const char *text, size_t length);
void clv_text_visible(clv_text *out, const char *text, size_t length);
/* The same within a buffer of `capacity` bytes; what does not fit is cut. */
void clv_make_visible(char *text, size_t capacity);

#endif
