/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the folders in which OpenCL drivers keep compiled kernels for us. PoCL trusts whatever lies in its folder: a
 * truncated file ends the process, and a damaged one may compute something else. So before the driver is loaded, every
 * file is compared with its recorded digest, and files without a digest are removed. Mesa verifies a checksum of each
 * file but not which kernel the file holds: a file in another one's place ends the process, so Mesa's files have
 * digests as well. */
#ifndef CLEAVE_HOST_CLI_KERNELS_H
#define CLEAVE_HOST_CLI_KERNELS_H

#include <stdbool.h>

/* Notes it if a fatal signal or a driver's exit ends the process, and removes temporary files then. cli_kernels_guard
 * calls this. */
void cli_kernels_watch(void);
/* Checks a driver's folder; call it before that driver is loaded, once per driver and at most twice in all. Removes
 * programs with a file that is damaged, missing, or left by a run that did not finish, and removes all programs after a
 * run that died inside the driver. Reports on standard error what it removed because of damage. `checked` means that
 * the driver itself finds most damage, so that files without a digest stay. Returns false when another process uses the
 * folder and a file in it does not match its digest: then nothing is removed, because that process may be writing the
 * file, and this run must keep its kernels elsewhere. */
bool cli_kernels_guard(const char *folder, bool checked);
/* Records the digests of what the driver wrote; call it at the end of a run. `good` is false when a device gave wrong
 * results: then the next run starts without kept kernels. A process that ends without this call counts as having died
 * inside the driver. */
void cli_kernels_seal(bool good);
/* Removes all kept kernels, for `probe --check`: at once, or before the next run if another process uses them. */
void cli_kernels_forget(void);

#endif
