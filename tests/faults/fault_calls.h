/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the fault layer: calls that stand before the driver's. */
#ifndef CLEAVE_TESTS_FAULT_CALLS_H
#define CLEAVE_TESTS_FAULT_CALLS_H

#include "fault_state.h"
#include "layer.h"

void fault_objects_install(cl_icd_dispatch *layer);  /* devices to kernels */
void fault_commands_install(cl_icd_dispatch *layer); /* commands and their events */

static inline void enter(void)
{
    pthread_mutex_lock(&fault.lock);
}

static inline void leave(void)
{
    pthread_mutex_unlock(&fault.lock);
}

#endif
