/* SPDX-License-Identifier: Apache-2.0 */
/* What a context knows about the speed of each kind of call. It is read from tuning.txt, measured once that
 * pays off, corrected after each call, and saved. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_TABLE_H
#define CLEAVE_RUNTIME_OFFLOAD_TABLE_H

#include "runtime/offload/call.h"

/* Made and freed with the context. */
clv_status clv_offload_make(clv_context *context);
void clv_offload_free(clv_context *context); /* notes what it has learnt */

/* Decides and fills in call->told. Error: CLV_E_NO_DEVICE (forced to a device). */
clv_status clv_offload_decide(clv_context *context, clv_call *call);
/* Learns, for the next calls, that `side` did the call and took that long. */
void clv_offload_learn(clv_context *context, const clv_call *call, clv_side side, double seconds);
/* Notes that the host had to do a call that was sent to the device. */
void clv_offload_failed(clv_context *context, const clv_call *call);

#endif
