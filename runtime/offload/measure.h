/* SPDX-License-Identifier: Apache-2.0 */
/* How a curve comes about: from built-in rates, from the notes, or by timing both sides. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_MEASURE_H
#define CLEAVE_RUNTIME_OFFLOAD_MEASURE_H

#include "runtime/offload/offload.h"
#include "runtime/record/context.h"

/* Where the next timing tells most: between two neighbours of which different sides win, then between
 * two far apart where the sides are alike. */
bool clv_curve_next(const clv_curve *curve, double *work);

/* Less work never takes longer: what says so was disturbed. */
void clv_curve_smooth(clv_curve *curve);

/* Times both sides at growing sizes until the device clearly wins, then around the break-even. */
clv_status clv_offload_measure(clv_context *context, const clv_offload_request *request,
                               clv_curve *curve);

/* Times both sides in turns at just the request's shape, until they are clearly apart or about 0.1 s;
 * `lasted_s` gets what it took but for compilers. */
clv_status clv_offload_measure_exact(clv_context *context, const clv_offload_request *request,
                                     double *host_s, double *device_s, double *lasted_s);

/* Bytes a second to the device and back, timed once; 0: it works on host memory in place. */
double clv_offload_transfer_rate(clv_context *context, clv_device *device);

/* Without timing: from the kind of device. */
void clv_offload_guess(const clv_device *device, const clv_offload_request *request, double *host_s,
                       double *device_s, double *launch_s);

#endif
