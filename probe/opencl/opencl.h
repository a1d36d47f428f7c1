/* SPDX-License-Identifier: Apache-2.0 */
/* Collects what OpenCL reports: the raw facts of every platform and device, without judgement. */
#ifndef CLEAVE_PROBE_OPENCL_H
#define CLEAVE_PROBE_OPENCL_H

#include "probe/machine.h"

/* Appends the platforms and devices of this process's loader, with native ids. Loads every driver that the loader
 * knows. Nothing that a driver answers is treated as an error; if memory runs out, machine->failed is set. */
void clv_opencl_enumerate(clv_machine *machine);

/* Returns the generation (base/fork.h) in which drivers were loaded in this process; 0: none were. */
unsigned clv_opencl_born(void);

/* Collects answers that only one vendor gives: PCI address, free memory, integrated or not, ... */
void clv_opencl_vendor_facts(clv_machine *machine, clv_probe_device *device);

/* Finds path, name and version of libOpenCL, and the requested layers. `ask` allows calls to it, which may load
 * drivers; otherwise only the dynamic linker's knowledge is used. */
void clv_loader_facts(clv_machine *machine, bool ask);

#endif
