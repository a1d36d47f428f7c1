/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the fake driver "card". */
#ifndef CLEAVE_TESTS_FAKE_CARD_H
#define CLEAVE_TESTS_FAKE_CARD_H

#include <CL/cl.h>
#include <CL/cl_icd.h>

/* Fills in what it takes to fill buffers. */
void fake_card(cl_icd_dispatch *dispatch);

#endif
