/* SPDX-License-Identifier: Apache-2.0 */
/* Collects facts about the machine around the devices: operating system, processor, memory, GPUs on the PCI bus. */
#ifndef CLEAVE_PROBE_HOST_H
#define CLEAVE_PROBE_HOST_H

#include "probe/machine.h"

/* Collects all facts about the host. `root` is prepended to /proc, /sys, /dev and /etc: "" stands for the real machine,
 * and tests pass a directory tree. */
void clv_host_facts(clv_machine *machine, const char *root);

/* Returns the number of threads that this process may run at once: the number of cores in its affinity mask, or less if
 * a cgroup's quota is lower; at least 1. All code that starts threads uses this function or the number in a report. */
unsigned clv_host_threads(const char *root);

/* Reads the CPU topology of the real machine with hwloc. Without hwloc, the host's fields do not change. */
void clv_topology_facts(clv_machine *machine);

/* Appends the GPUs that sysfs lists. */
void clv_pci_facts(clv_machine *machine, const char *root);

/* Reads what the kernel's drivers report about a device with a PCI address: NUMA node, nearby CPUs, link, video memory
 * and its free part, utilisation, and whether it is an APU. */
void clv_sysfs_device_facts(clv_machine *machine, clv_probe_device *device, const char *root);

/* Writes a sentence about what is wrong with this user's access to GPU device nodes, or "". Returns false if memory
 * runs out. */
bool clv_gpu_access_problem(const char *root, clv_text *sentence);

#endif
