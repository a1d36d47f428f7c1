/* SPDX-License-Identifier: Apache-2.0 */
/* Time. */
#ifndef CLEAVE_BASE_CLOCK_H
#define CLEAVE_BASE_CLOCK_H

#include <stddef.h>

double clv_now(void);                     /* seconds, monotonic, arbitrary zero */
void clv_sleep(double seconds);           /* at least; returns at once for <= 0 */
void clv_utc(char *out, size_t capacity); /* "2026-01-31T12:34:56Z" */

#endif
