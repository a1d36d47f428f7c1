/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenCL says is here: the raw facts of every platform and device, no judgement. */
#ifndef CLEAVE_PROBE_OPENCL_H
#define CLEAVE_PROBE_OPENCL_H

#include "probe/machine.h"

/* Appends the platforms and devices of this process's loader, with native ids. Loads every driver
 * that the loader knows. Nothing a driver answers is an error; without memory machine->failed. */
void clv_opencl_enumerate(clv_machine *machine);

/* In which generation (base/fork.h) drivers were loaded here; 0: in none. */
unsigned clv_opencl_born(void);

/* The answers that only one vendor gives: PCI address, free memory, integrated or not, ... */
void clv_opencl_vendor_facts(clv_machine *machine, clv_probe_device *device);

/* Path, name and version of libOpenCL, and the layers asked for. `ask` allows questions to it,
 * which may load drivers; without it only what the dynamic linker knows. */
void clv_loader_facts(clv_machine *machine, bool ask);

#endif
