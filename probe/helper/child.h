/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the helper process, which uses one driver, writes its answer as JSON to a descriptor, and exits. */
#ifndef CLEAVE_PROBE_CHILD_H
#define CLEAVE_PROBE_CHILD_H

#include <stdbool.h>

/* Arguments of a helper after its program name and the word "probe":
 *   --helper PARENT enumerate [LIBRARY]
 *   --helper PARENT lapack
 *   --helper PARENT check PLATFORM DEVICE
 *   --helper PARENT bench-quick|bench-full|trial PLATFORM DEVICE
 *   --helper PARENT compile PLATFORM:DEVICE FOLDER (compile.h)
 * PARENT is a process id: when that process ends, so does the helper. PLATFORM and DEVICE are numbered as by this
 * process's loader. */
#define CLV_HELPER_MARK "--helper"

/* The exit code of a helper that ran out of memory itself, for which its driver is not to blame. */
enum { CLV_CHILD_NO_MEMORY = 118 };

/* Runs a helper; argv[0] is CLV_HELPER_MARK. Ends the process without running destructors, because a driver's
 * destructor may crash. Returns only if the arguments are invalid. */
void clv_child_main(int argc, char **argv);

#endif
