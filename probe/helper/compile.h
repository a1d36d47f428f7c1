/* SPDX-License-Identifier: Apache-2.0 */
/* The helper "compile": compiles programs from a list that several helpers share. */
#ifndef CLEAVE_PROBE_COMPILE_H
#define CLEAVE_PROBE_COMPILE_H

#include <cleave/probe.h>

/* A folder that the parent makes, for nobody else to read:
 *
 *   list.json  { "launch": true, "binaries": false, "programs": [
 *                  { "source": TEXT, "options": TEXT, "kernels": [
 *                      { "name": TEXT, "local": [64, 1, 1], "args": "b v4 v8 l256" } ] } ] }
 *   next       an unsigned int, shared by mapping the file: the program that nobody has begun. Helpers take
 *              one after the other, and so are done at about the same time.
 *   N.bin      the binary of program N, written by its helper where "binaries" is true
 *
 * "launch": the driver compiles a kernel when it is first launched. So the helper launches each one, as a
 * single work-group whose numbers are all 0 and whose buffers are zeros: args says for each argument
 * whether it is a buffer, a value of so many bytes, or so many bytes of local memory.
 *
 * The helper answers with a line "N SECONDS" as soon as program N is compiled. It leaves out programs that
 * fail: the parent compiles them himself, and tells why. */
#define CLV_COMPILE_LIST "list.json"
#define CLV_COMPILE_NEXT "next"

/* Compiles programs that no other helper has begun until none is left. Ends the process. */
void clv_compile_main(const clv_probe_device *device, const char *folder);

#endif
