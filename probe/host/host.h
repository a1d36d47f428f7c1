/* SPDX-License-Identifier: Apache-2.0 */
/* The machine around the devices: operating system, processor, memory, GPUs on the PCI bus. */
#ifndef CLEAVE_PROBE_HOST_H
#define CLEAVE_PROBE_HOST_H

#include "probe/machine.h"

/* Collects all facts about the host. `root` is put before /proc, /sys, /dev and /etc ("": the real machine; tests pass
 * a tree of files). */
void clv_host_facts(clv_machine *machine, const char *root);

/* Returns the number of threads that this process may keep busy at once: the cores in its affinity mask, or fewer if a
 * cgroup's quota allows fewer; at least 1. All code that starts threads calls this or reads the number from a
 * report. */
unsigned clv_host_threads(const char *root);

/* Reads the CPU topology of the real machine with hwloc; without hwloc leaves the host's fields unchanged. */
void clv_topology_facts(clv_machine *machine);

/* Finds the GPUs in sysfs. */
void clv_pci_facts(clv_machine *machine, const char *root);

/* Reads what the kernel's drivers know about a device with a PCI address: NUMA node, nearby CPUs, link, video memory
 * and how much of it is free, utilisation, APU or not. */
void clv_sysfs_device_facts(clv_machine *machine, clv_probe_device *device, const char *root);

/* Explains what is wrong with this user's access to GPU nodes: "" or a sentence; returns false if out of memory. */
bool clv_gpu_access_problem(const char *root, clv_text *sentence);

#endif
