/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the functions with which the library writes to the log of cleave/log.h. */
#ifndef CLEAVE_BASE_LOG_H
#define CLEAVE_BASE_LOG_H

#include <cleave/log.h>

#include <stdbool.h>

void clv_log(clv_log_level level, const char *format, ...) CLV_PRINTF(2, 3);
bool clv_log_wants(clv_log_level level); /* ask it before making a costly message */

#endif
