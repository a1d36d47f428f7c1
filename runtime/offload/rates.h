/* SPDX-License-Identifier: Apache-2.0 */
/* Built-in rates for calls that were not timed, and the text of decisions. Pure functions. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_RATES_H
#define CLEAVE_RUNTIME_OFFLOAD_RATES_H

#include "runtime/offload/call.h"

/* Tells whether the host does the work in less time than any launch: then its kind is not looked up and
 * needs no name. */
bool clv_work_is_short(const clv_work *work);
/* Fills in a decision from the class of the device (NULL: none) and built-in rates. */
void clv_decision_guess(const clv_device *device, const char *operation, const clv_work *work,
                        clv_decision *out);
/* Fills in rates and the sentence. For small calls only when the caller asks for it, because it takes longer than
 * such a call. */
void clv_decision_explain(clv_decision *decision);
/* Replaces the sentence by a reason that does not rest on times. */
void clv_decision_because(clv_decision *decision, const char *why);

#endif
