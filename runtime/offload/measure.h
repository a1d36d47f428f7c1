/* SPDX-License-Identifier: Apache-2.0 */
/* Times both sides of an operation, on operands of its own, so that each call goes to the faster side. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_MEASURE_H
#define CLEAVE_RUNTIME_OFFLOAD_MEASURE_H

#include "runtime/offload/call.h"
#include "runtime/offload/curve.h"

/* Times both sides of calls like `like` at growing amounts until the device clearly wins, and then around the
 * break-even point. First compares the results of both sides; returns CLV_E_WRONG_RESULT if they differ. */
clv_status clv_measure_curve(clv_context *context, const clv_call *like, clv_curve *curve);
/* Times both sides in turns at exactly the call's amount and shape, until they are clearly apart or for
 * about 0.1 s. */
clv_status clv_measure_shape(clv_context *context, const clv_call *like, double seconds[CLV_SIDES]);
/* Returns the bytes per second of a transfer to the device and back, timed once; 0: the device works on host memory
 * in place. */
double clv_measure_transfer(clv_context *context, clv_device *device);

/* Returns the time in seconds; tests replace it by a clock of their own. */
extern double (*clv_measure_clock)(void);

#endif
