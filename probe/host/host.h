/* SPDX-License-Identifier: Apache-2.0 */
/* The machine around the devices: operating system, processor, memory, GPUs on the PCI bus. */
#ifndef CLEAVE_PROBE_HOST_H
#define CLEAVE_PROBE_HOST_H

#include "probe/machine.h"

/* All of it. `root` stands before /proc, /sys, /dev and /etc ("" is the real machine; tests give a
 * tree of files). */
void clv_host_facts(clv_machine *machine, const char *root);

/* Threads that this process may keep busy at once: the cores of its affinity, or fewer where the quota of a
 * cgroup allows fewer; at least 1. Everything that starts threads asks this, or reads it from a report. */
unsigned clv_host_threads(const char *root);

/* CPU topology by hwloc, always of the real machine; leaves the host's fields alone without it. */
void clv_topology_facts(clv_machine *machine);

/* GPUs in sysfs. */
void clv_pci_facts(clv_machine *machine, const char *root);

/* What the kernel's drivers know of a device with a PCI address: NUMA node, nearby cpus, link,
 * video memory and what is free of it, utilisation, APU or not. */
void clv_sysfs_device_facts(clv_machine *machine, clv_probe_device *device, const char *root);

/* What is wrong with this user's access to GPU nodes: "" or a sentence; false without memory. */
bool clv_gpu_access_problem(const char *root, clv_text *sentence);

#endif
