/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel objects belong to a queue: arguments are set per object, and a queue has one thread. */
#ifndef CLEAVE_RUNTIME_PROGRAM_LAUNCH_H
#define CLEAVE_RUNTIME_PROGRAM_LAUNCH_H

#include "runtime/device/queue.h"

void clv_kernels_free(clv_queue *queue);

#endif
