/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what a context has learnt about the speed of each kind of call. The times are read from tuning.txt, measured
 * as soon as a measurement pays off, corrected after each call, and saved. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_TABLE_H
#define CLEAVE_RUNTIME_OFFLOAD_TABLE_H

#include "runtime/offload/call.h"

/* Create and free the context's table. */
clv_status clv_offload_make(clv_context *context);
void clv_offload_free(clv_context *context); /* notes what the table has learnt */

/* Decides on the side of a call and fills in call->told. Error: CLV_E_NO_DEVICE (forced to a device). */
clv_status clv_offload_decide(clv_context *context, clv_call *call);
/* Learns, for later calls, that `side` did the call in `seconds`. */
void clv_offload_learn(clv_context *context, const clv_call *call, clv_side side, double seconds);
/* Notes that the host had to do a call that was sent to the device. */
void clv_offload_failed(clv_context *context, const clv_call *call);

#endif
