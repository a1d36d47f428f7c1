/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the helper "compile", which compiles programs from a list that several helpers work through together. */
#ifndef CLEAVE_PROBE_COMPILE_H
#define CLEAVE_PROBE_COMPILE_H

#include <cleave/probe.h>

/* A private folder that the parent makes, with these files:
 *
 *   list.json  { "launch": true, "binaries": false, "programs": [
 *                  { "source": TEXT, "options": TEXT, "kernels": [
 *                      { "name": TEXT, "local": [64, 1, 1], "args": "b v4 v8 l256" } ] } ] }
 *   next       an unsigned int, shared by mapping the file: the next program that no helper has begun. Helpers take
 *              one program after another, so that all finish at about the same time.
 *   N.bin      the binary of program N, written by its helper if "binaries" is true
 *
 * "launch" means that the driver compiles a kernel only when it is first launched. So the helper launches each
 * kernel as a single work-group whose values are all 0 and whose buffers hold zeros. "args" describes each argument:
 * b is a buffer, v4 a value of 4 bytes, l256 local memory of 256 bytes.
 *
 * The helper answers with a line "N SECONDS" as soon as program N is compiled. It skips programs that fail; the
 * parent compiles those itself and reports the reason. */
#define CLV_COMPILE_LIST "list.json"
#define CLV_COMPILE_NEXT "next"

/* Compiles programs that no other helper has begun until none is left. Ends the process. */
void clv_compile_main(const clv_probe_device *device, const char *folder);

#endif
