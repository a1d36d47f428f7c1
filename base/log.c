/* SPDX-License-Identifier: Apache-2.0 */
/* Sends messages to one sink per process, which the caller or CLEAVE_LOG chooses. */
#include "base/log.h"

#include "base/environment.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/visible.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int current_level;
static clv_log_sink *current_sink;
static void *current_user;

static void to_stderr(clv_log_level level, const char *line, void *user)
{
    static const char *const names[] = { "", "error", "warn", "info", "debug" };
    (void)user;
    fprintf(stderr, "cleave %s: %s\n", names[level], line);
}

static void from_environment(void)
{
    const char *wanted = clv_environment("CLEAVE_LOG");
    const int level = wanted ? clv_find_word(CLV_LOG_LEVELS, wanted) : -1;
    if (level <= CLV_LOG_NONE) return; /* clv_environment_check refuses other values */
    current_sink = to_stderr;
    atomic_store(&current_level, level);
}

void clv_log_set(clv_log_level level, clv_log_sink *sink, void *user)
{
    pthread_once(&once, from_environment);
    pthread_mutex_lock(&lock);
    current_sink = sink;
    current_user = user;
    atomic_store(&current_level, sink ? (int)level : CLV_LOG_NONE);
    pthread_mutex_unlock(&lock);
}

bool clv_log_wants(clv_log_level level)
{
    pthread_once(&once, from_environment);
    return (int)level <= atomic_load_explicit(&current_level, memory_order_relaxed);
}

void clv_log(clv_log_level level, const char *format, ...)
{
    if (!clv_log_wants(level)) return;
    clv_text raw = { 0 }, line = { 0 };
    va_list args;
    va_start(args, format);
    clv_text_vadd(&raw, format, args);
    va_end(args);
    clv_text_visible(&line, clv_text_get(&raw), raw.length);
    clv_text_clear(&raw);
    pthread_mutex_lock(&lock);
    if (current_sink) current_sink(level, clv_text_get(&line), current_user);
    pthread_mutex_unlock(&lock);
    clv_text_clear(&line);
}
