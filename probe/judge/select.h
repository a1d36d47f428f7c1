/* SPDX-License-Identifier: Apache-2.0 */
/* The one grammar that names devices: --device, CLEAVE_DEVICE, clv_context_options.devices. */
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
 * each with '!' in front to exclude; only exclusions means all but those. Of entries that show the
 * same hardware the best one that is neither excluded nor unusable is taken, unless N or P:D names
 * another.
 *
 * @param chosen  out, [device_count].
 * @return CLV_OK (at least one is chosen); CLV_E_ARGUMENT (unreadable); CLV_E_NO_DEVICE (a name
 *         that nothing has, an entry that cannot be used, nothing left); the message lists what
 *         there is. After an error `chosen` is all false.
 */
clv_status clv_select_devices(const clv_probe_report *report, const char *selection, bool *chosen);

/* Whether the selection can be read, whatever devices there are. CLV_E_ARGUMENT. */
clv_status clv_check_selection(const char *selection);

/* "0 discrete_gpu \"Radeon VII\", 1 cpu \"AMD EPYC\""; free with clv_free. NULL without memory. */
char *clv_devices_summary(const clv_probe_report *report);

#endif
