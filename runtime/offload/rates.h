/* SPDX-License-Identifier: Apache-2.0 */
/* Uses built-in rates to predict calls that were not timed, and writes the text of decisions. Pure functions. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_RATES_H
#define CLEAVE_RUNTIME_OFFLOAD_RATES_H

#include "runtime/offload/call.h"

/* Returns whether the host does the work in less time than any launch takes. The kind of such work is not looked up
 * and may lack a name. */
bool clv_work_is_short(const clv_work *work);
/* Fills in a decision from the class of the device (NULL: none) and built-in rates. */
void clv_decision_guess(const clv_device *device, const char *operation, const clv_work *work,
                        clv_decision *out);
/* Adds rates and a sentence to a decision. For small calls this is done only when the caller asks for it, because it
 * takes longer than such a call. */
void clv_decision_explain(clv_decision *decision);
/* Replaces the decision's sentence by a reason that does not depend on times. */
void clv_decision_because(clv_decision *decision, const char *why);

#endif
