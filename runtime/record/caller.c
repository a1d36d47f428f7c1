/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the state of the calling thread. */
#include "runtime/record/caller.h"

static _Thread_local clv_caller here;

clv_caller *clv_caller_here(void)
{
    return &here;
}
