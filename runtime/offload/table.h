/* SPDX-License-Identifier: Apache-2.0 */
/* What a context knows of kinds of calls: looked up, timed once that pays, taught, kept in tuning.txt. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_TABLE_H
#define CLEAVE_RUNTIME_OFFLOAD_TABLE_H

#include "runtime/offload/call.h"

/* For the context. */
clv_status clv_offload_make(clv_context *context);
void clv_offload_free(clv_context *context); /* notes what it learnt */

/* Fills call->told. CLV_E_NO_DEVICE (forced). */
clv_status clv_offload_decide(clv_context *context, clv_call *call);
/* The call that was decided was done by `side` and took that long: what the next ones learn from. */
void clv_offload_learn(clv_context *context, const clv_call *call, clv_side side, double seconds);
/* It was done by the host after all. */
void clv_offload_failed(clv_context *context, const clv_call *call);

#endif
