/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of the texts under /proc, /sys and /etc: pure, for every text whatever it holds. */
#ifndef CLEAVE_PROBE_KERNEL_TEXT_H
#define CLEAVE_PROBE_KERNEL_TEXT_H

#include "base/text.h"

#include <cleave/probe.h>

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
/* A file of /proc/PID/fdinfo: what a client of a GPU holds in its memory; false when it is not about
 * a GPU. */
bool clv_fdinfo_parse(const char *text, char *address, size_t capacity, uint64_t *client,
                      uint64_t *resident_bytes);

#endif
