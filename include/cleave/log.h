/* SPDX-License-Identifier: Apache-2.0 */
/* Where the library's messages go. It never prints on its own. */
#ifndef CLEAVE_LOG_H
#define CLEAVE_LOG_H

#include <cleave/export.h>

CLV_BEGIN_DECLS

typedef enum clv_log_level {
    CLV_LOG_NONE = 0,
    CLV_LOG_ERROR = 1, /**< a device was given up, a result is missing */
    CLV_LOG_WARN = 2,  /**< it went on, but not as asked: a fallback and its reason */
    CLV_LOG_INFO = 3,  /**< decisions with their numbers */
    CLV_LOG_DEBUG = 4, /**< builds, launches, cache hits */
} clv_log_level;

/** Called with one line without newline, from any thread, never from two at once. */
typedef void clv_log_sink(clv_log_level level, const char *line, void *user);

/**
 * Sends messages up to `level` to `sink`; NULL silences the library.
 *
 * Until the first call the environment rules: CLEAVE_LOG=error|warn|info|debug sends to stderr,
 * anything else is silence. Threads: any.
 */
CLV_API void clv_log_set(clv_log_level level, clv_log_sink *sink, void *user);

CLV_END_DECLS

#endif
