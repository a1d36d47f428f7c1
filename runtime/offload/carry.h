/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out a call on the side that was chosen for it. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_CARRY_H
#define CLEAVE_RUNTIME_OFFLOAD_CARRY_H

#include "runtime/offload/call.h"

clv_status clv_carry_to_host(clv_context *context, const clv_call *call);
/* Carries out a call on the device. *by_host, for jobs only, says that no device was left and the host did a part.
 * Error: CLV_E_NO_DEVICE. */
clv_status clv_carry_to_device(clv_context *context, const clv_call *call, bool *by_host);
/* Only notes the kernels that the device would launch, while the context prepares (context/prepare.h). */
clv_status clv_carry_rehearse(clv_context *context, const clv_call *call);

#endif
