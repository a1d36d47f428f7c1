/* SPDX-License-Identifier: Apache-2.0 */
/* The helper process: uses one driver, answers in JSON on a descriptor, and exits. */
#ifndef CLEAVE_PROBE_CHILD_H
#define CLEAVE_PROBE_CHILD_H

#include <stdbool.h>

/* Arguments of a helper after its program name and the word "probe":
 *   --helper PARENT enumerate [LIBRARY]
 *   --helper PARENT lapack
 *   --helper PARENT check PLATFORM DEVICE
 *   --helper PARENT bench-quick|bench-full|trial PLATFORM DEVICE
 *   --helper PARENT compile PLATFORM:DEVICE FOLDER (compile.h)
 * PARENT is the process id whose end ends the helper; PLATFORM and DEVICE count as this process's
 * loader does. */
#define CLV_HELPER_MARK "--helper"

/* Runs a helper; argv[0] is CLV_HELPER_MARK. Ends the process without running destructors, because a driver's may
 * crash. Returns only if the arguments are wrong. */
void clv_child_main(int argc, char **argv);

#endif
