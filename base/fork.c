/* SPDX-License-Identifier: Apache-2.0 */
/* Detects forks: determines which process made an object, without a system call for each question. */
#include "base/fork.h"

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint generation = 1;

static void in_child(void)
{
    atomic_fetch_add(&generation, 1);
}

static void watch(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

unsigned clv_fork_generation(void)
{
    (void)pthread_once(&once, watch);
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

bool clv_is_forked(unsigned born)
{
    return born && born != atomic_load_explicit(&generation, memory_order_relaxed);
}

clv_status clv_fork_check(unsigned born, const char *what)
{
    if (!clv_is_forked(born)) return CLV_OK;
    return clv_fail(CLV_E_UNSUPPORTED,
                    "%s: this process is a fork of one that used OpenCL, and drivers do not work "
                    "across a fork: start it as a new program (in Python with "
                    "multiprocessing.get_context(\"spawn\")), or fork before the first use",
                    what);
}
