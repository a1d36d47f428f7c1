/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that drivers compiled and keep in folders of ours. PoCL believes whatever lies there: a file that was cut
 * ends the process, and a damaged one may compute something else. So every file is compared with its digest before the
 * driver is loaded, and what nobody vouches for is removed. Mesa compares a checksum of each file, but does not check
 * whose kernel it holds: a file in another's place ends the process, so that its files have digests as well. */
#ifndef CLEAVE_HOST_CLI_KERNELS_H
#define CLEAVE_HOST_CLI_KERNELS_H

#include <stdbool.h>

/* Before the driver is loaded. Removes programs with a file that is damaged, missing, or left by a run that did not
 * come to its end, and all of them after a run that died inside the driver. Says on standard error what it removed
 * because of damage. `checked`: the driver finds most damage itself, so that a file that nobody vouched for stays.
 * Once for each driver, at most twice. False when another process uses the folder and a file in it is not what was
 * vouched for: nothing is removed then, because that process may be writing it, and this run must keep its kernels
 * elsewhere. */
bool cli_kernels_guard(const char *folder, bool checked);
/* At the end of a run: what the driver wrote is vouched for. `good` is false when a device gave wrong results: then
 * the next run starts without kept kernels. A process that ends in another way died inside the driver. */
void cli_kernels_seal(bool good);
/* Removes all of them, for `probe --check`: at once, or before the next run when another process uses them. */
void cli_kernels_forget(void);

#endif
