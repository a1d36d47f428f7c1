/* SPDX-License-Identifier: Apache-2.0 */
/* Sets where the library's messages go and which of them are sent. By default the library prints nothing. */
#ifndef CLEAVE_LOG_H
#define CLEAVE_LOG_H

#include <cleave/export.h>

CLV_BEGIN_DECLS

typedef enum clv_log_level {
    CLV_LOG_NONE = 0,
    CLV_LOG_ERROR = 1, /**< a device was given up, a result is missing */
    CLV_LOG_WARN = 2,  /**< the call went on, but not as asked: a fallback and its reason */
    CLV_LOG_INFO = 3,  /**< decisions with their numbers */
    CLV_LOG_DEBUG = 4, /**< builds, launches, cache hits */
} clv_log_level;

/** Receives one line without its newline. Any thread may call it, but never two at the same time. */
typedef void clv_log_sink(clv_log_level level, const char *line, void *user);

/**
 * Sends messages up to `level` to `sink`; NULL silences the library.
 *
 * Until you first call this function, the environment decides: with CLEAVE_LOG=error|warn|info|debug, messages up to
 * that level go to stderr; with any other value there are no messages. Threads: any.
 */
CLV_API void clv_log_set(clv_log_level level, clv_log_sink *sink, void *user);

CLV_END_DECLS

#endif
