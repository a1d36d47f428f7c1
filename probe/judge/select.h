/* SPDX-License-Identifier: Apache-2.0 */
/* Parses texts that name devices: --device, CLEAVE_DEVICE, clv_context_options.devices. There is no other parser of
 * them. */
#ifndef CLEAVE_PROBE_SELECT_H
#define CLEAVE_PROBE_SELECT_H

#include <cleave/probe.h>

/**
 * Chooses devices of a decided report.
 *
 * `selection` is a comma list of
 *   gpu, cpu, all   every usable piece of hardware of that kind, once
 *   N, P:D          one entry of the report by index, or by platform and ordinal
 *   name~TEXT       device or platform name contains TEXT, whatever the case
 *   pci=ADDRESS     "0000:03:00.0", or without the domain
 *   uuid=...        with or without dashes
 * each with '!' in front to exclude. A list of exclusions alone means all other hardware. If several entries
 * show the same hardware, the best one that is usable and not excluded is taken, unless N or P:D names
 * another.
 *
 * @param chosen  out, [device_count].
 * @return CLV_OK (at least one is chosen); CLV_E_ARGUMENT (the selection cannot be parsed); CLV_E_NO_DEVICE (a
 *         name that no device has, an entry that cannot be used, or nothing is left); the message lists the
 *         devices. After an error `chosen` is all false.
 */
clv_status clv_select_devices(const clv_probe_report *report, const char *selection, bool *chosen);

/* Checks that the selection can be parsed, without looking up any device. Returns CLV_E_ARGUMENT if it cannot. */
clv_status clv_check_selection(const char *selection);

/* Returns a text such as "0 discrete_gpu \"Radeon VII\", 1 cpu \"AMD EPYC\""; free it with clv_free. Returns NULL if
 * memory runs out. */
char *clv_devices_summary(const clv_probe_report *report);

#endif
