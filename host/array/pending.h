/* SPDX-License-Identifier: Apache-2.0 */
/* Declares how callers wait for asynchronous calls, and how a storage keeps the failure of such a call. */
#ifndef CLEAVE_HOST_ARRAY_PENDING_H
#define CLEAVE_HOST_ARRAY_PENDING_H

#include "base/error.h"
#include "host/array/data.h"

/* Why the call that should have written a storage failed. */
struct clv_pending_failure {
    uint64_t serial; /* the call that failed first */
    clv_error error;
};

/* Waits for the calls that use the storages. Returns CLV_E_BUSY if this thread is inside another call, and
 * CLV_E_UNSUPPORTED in a child of a fork. The thread that runs the calls does not wait. */
clv_status clv_pending_settle(clv_storage *const *storages, size_t count);
/* Waits for all calls of the context, if possible. */
void clv_pending_settle_all(clv_context *context);
/* Waits for the calls that use the array, if possible. */
void clv_pending_settle_array(const clv_array *array);
/* Returns the failure of a call that should have written one of the storages, and forgets it. The caller holds their
 * locks. */
clv_status clv_pending_check(clv_storage *const *storages, size_t count);
/* Returns memory in which a failure can be kept, to be freed by clv_free or handed to clv_pending_mark; NULL if memory
 * runs out. A call gets it before it is accepted: without a mark, what its result held before would be read as its
 * result. */
struct clv_pending_failure *clv_pending_prepare(void);
/* Marks a storage as failed, with this thread's last message. */
void clv_pending_mark(clv_storage *storage, struct clv_pending_failure *failure, uint64_t serial,
                      clv_status status);
/* Frees the failure of a storage that is being freed. */
void clv_pending_forgive(clv_storage *storage);

#endif
