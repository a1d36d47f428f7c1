/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers for the texts in /proc, /sys and /etc: pure functions that accept any text. */
#ifndef CLEAVE_PROBE_KERNEL_TEXT_H
#define CLEAVE_PROBE_KERNEL_TEXT_H

#include "base/text.h"

#include <cleave/probe.h>

/* Returns the bytes in a line of /proc/meminfo such as "MemTotal:  24684084 kB"; CLV_UNKNOWN if the line is missing. */
uint64_t clv_meminfo_bytes(const char *meminfo, const char *key);
/* Finds the value of "key : value" in the first block of /proc/cpuinfo that has the key; returns false if no block has
 * it. */
bool clv_cpuinfo_value(const char *cpuinfo, const char *key, char *out, size_t capacity);
/* Appends the instruction-set extensions in a flags line that matter to the report, separated by spaces. */
void clv_isa_text(const char *flags, clv_text *out);
/* Finds this process's path in a cgroup hierarchy of /proc/self/cgroup; a `controller` of "" stands for v2. */
bool clv_cgroup_path(const char *cgroup, const char *controller, char *out, size_t capacity);
/* Returns the number of bytes in a limit file; CLV_UNKNOWN for "max" and for v1's equivalent of it. */
uint64_t clv_cgroup_bytes(const char *text);
/* Returns the number of threads that the text "quota period" of v2's cpu.max allows, rounded up; 0: no quota. */
unsigned clv_cgroup_threads(const char *text);
/* Returns the number of CPUs in a list such as "0-3,8,10-11"; 0 if the text is invalid. */
unsigned clv_cpulist_count(const char *text);
/* Returns the PCIe generation for a link speed such as "16.0 GT/s PCIe"; CLV_UNKNOWN for any other text. */
uint64_t clv_pcie_generation(const char *text);
/* Finds the value of KEY in /etc/os-release, without quotes. */
bool clv_os_release_value(const char *text, const char *key, char *out, size_t capacity);
/* Finds the name of a device in the pci.ids database. */
bool clv_pci_ids_name(const char *text, unsigned vendor, unsigned device, char *out,
                      size_t capacity);
/* Parses a file of /proc/PID/fdinfo: a GPU's address, and the GPU memory of one client. Returns false if the file does
 * not describe a GPU. */
bool clv_fdinfo_parse(const char *text, char *address, size_t capacity, uint64_t *client,
                      uint64_t *resident_bytes);

#endif
