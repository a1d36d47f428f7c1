/* SPDX-License-Identifier: Apache-2.0 */
/* Tells which matrix units OpenCL offers on a device. */
#ifndef CLEAVE_PROBE_MATRIX_H
#define CLEAVE_PROBE_MATRIX_H

#include "probe/machine.h"

/* Returns the work-items of the sub-groups that multiply matrices of halves together (cl/common/matrix.clh): 8 or 16.
 * Returns 0 if the device has no matrix units, does not let kernels require a size of sub-groups, or does not report
 * the sizes. */
unsigned clv_matrix_lanes(const clv_probe_device *device);

#endif
