/* SPDX-License-Identifier: Apache-2.0 */
/* Built-in rates, for what was not timed; and a decision in words. Pure. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_RATES_H
#define CLEAVE_RUNTIME_OFFLOAD_RATES_H

#include "runtime/offload/call.h"

/* Shorter on the host than any launch: the kind is not looked at, and need not be named. */
bool clv_work_is_short(const clv_work *work);
/* Fills in a decision by the kind of device (NULL: none). */
void clv_decision_guess(const clv_device *device, const char *operation, const clv_work *work,
                        clv_decision *out);
/* Rates and the sentence; of small calls when somebody asks, since it takes longer than they do. */
void clv_decision_explain(clv_decision *decision);
/* A reason that is not by times, in its place. */
void clv_decision_because(clv_decision *decision, const char *why);

#endif
