/* SPDX-License-Identifier: Apache-2.0 */
/* Collects what OpenCL reports: the raw facts of every platform and device, without judgement. */
#ifndef CLEAVE_PROBE_OPENCL_H
#define CLEAVE_PROBE_OPENCL_H

#include "probe/machine.h"

/* Appends the platforms and devices of this process's loader, with native ids. Loads every driver that the loader
 * finds. No answer of a driver is an error; if memory runs out, machine->failed is set. */
void clv_opencl_enumerate(clv_machine *machine);
/* Enclose the first calls that a thread makes to the loader and to drivers. One thread at a time may make them: drivers
 * start in their first call, and PoCL crashes if another thread asks for its devices meanwhile. */
void clv_opencl_begin(void);
void clv_opencl_end(void);

/* Returns the generation (base/fork.h) in which this process loaded drivers; 0: it has loaded none. */
unsigned clv_opencl_born(void);

/* Collects facts that only vendor-specific queries report: PCI address, free memory, integrated or not, and others. */
void clv_opencl_vendor_facts(clv_machine *machine, clv_probe_device *device);

/* Finds the path, name and version of libOpenCL, and the requested layers. `ask` allows calls of libOpenCL, which may
 * load drivers; without it, only the dynamic linker is asked. */
void clv_loader_facts(clv_machine *machine, bool ask);

#endif
