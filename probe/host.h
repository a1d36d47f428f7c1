/* SPDX-License-Identifier: Apache-2.0 */
/* The machine around the devices: operating system, processor, memory, GPUs on the PCI bus. */
#ifndef CLEAVE_PROBE_HOST_H
#define CLEAVE_PROBE_HOST_H

#include "probe/machine.h"

/* All of it. `root` stands before /proc, /sys, /dev and /etc ("" is the real machine; tests give a
 * tree of files). */
void clv_host_facts(clv_machine *machine, const char *root);

/* CPU topology by hwloc, always of the real machine; leaves the host's fields alone without it. */
void clv_topology_facts(clv_machine *machine);

/* GPUs in sysfs. */
void clv_pci_facts(clv_machine *machine, const char *root);

/* What the kernel's drivers know of a device with a PCI address: NUMA node, nearby cpus, link,
 * video memory and what is free of it, utilisation, APU or not. */
void clv_sysfs_device_facts(clv_machine *machine, clv_probe_device *device, const char *root);

/* What is wrong with this user's access to GPU nodes: "" or a sentence; false without memory. */
bool clv_gpu_access_problem(const char *root, clv_text *sentence);

/* ---- readers of the kernel's texts; pure, for every text whatever it holds ------------------- */

/* "MemTotal:  24684084 kB" in /proc/meminfo; CLV_UNKNOWN when it is not there. */
uint64_t clv_meminfo_bytes(const char *meminfo, const char *key);
/* Value of "key : value" in /proc/cpuinfo's first block that has it; false when there is none. */
bool clv_cpuinfo_value(const char *cpuinfo, const char *key, char *out, size_t capacity);
/* The instruction-set extensions that matter, out of a flags line; joined by spaces. */
void clv_isa_text(const char *flags, clv_text *out);
/* Path of this process in a cgroup hierarchy, out of /proc/self/cgroup: `controller` "" is v2. */
bool clv_cgroup_path(const char *cgroup, const char *controller, char *out, size_t capacity);
/* Bytes of a limit file; CLV_UNKNOWN for "max" and for v1's way to say so. */
uint64_t clv_cgroup_bytes(const char *text);
/* Threads that "quota period" (v2's cpu.max) allows, rounded up; 0 = no quota. */
unsigned clv_cgroup_threads(const char *text);
/* Number of cpus in "0-3,8,10-11"; 0 when it cannot be read. */
unsigned clv_cpulist_count(const char *text);
/* PCIe generation of "16.0 GT/s PCIe"; CLV_UNKNOWN otherwise. */
uint64_t clv_pcie_generation(const char *text);
/* Value of KEY in /etc/os-release, without quotes. */
bool clv_os_release_value(const char *text, const char *key, char *out, size_t capacity);
/* Name of a device in the pci.ids database. */
bool clv_pci_ids_name(const char *text, unsigned vendor, unsigned device, char *out,
                      size_t capacity);

/* ---- small files ----------------------------------------------------------------------------- */

enum { CLV_SMALL_FILE = 65536 };
/* Reads ROOT/PATH, cut at `capacity` - 1 bytes; false (and "") when it is not there. */
bool clv_small_read(const char *root, char *out, size_t capacity, const char *format, ...)
    CLV_PRINTF(4, 5);
/* The same for one number: decimal or 0x...; CLV_UNKNOWN otherwise. */
uint64_t clv_small_number(const char *root, const char *format, ...) CLV_PRINTF(2, 3);

#endif
