/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the facts of a machine from a file, in place of the machine that runs Cleave: from saved reports, or from
 * profiles of devices. */
#ifndef CLEAVE_PROBE_SNAPSHOT_H
#define CLEAVE_PROBE_SNAPSHOT_H

#include "base/json.h"
#include "probe/machine.h"

/* Reads the facts of the machine in the file `path`; clv_decide makes the decisions anew. Saved reports have no
 * scenarios. CLV_E_IO, CLV_E_FORMAT, CLV_E_ARGUMENT (the scenario does not exist; the message lists those that do),
 * CLV_E_MEMORY. */
clv_status clv_snapshot_load(clv_machine *machine, const char *path, const char *scenario);

/* Does what clv_snapshot_load does with a text that has already been read; `name` stands for the file in messages. */
clv_status clv_snapshot_read(clv_machine *machine, const char *name, const char *text,
                             size_t length, const char *scenario);

/* Reads a file of schema "cleave.probe.device-profiles/1". `scenario` is the id of a scenario, or the id of one
 * profile, which is then combined with the profile "cpu-pocl" and 16 GB of available memory. */
clv_status clv_profiles_read(clv_machine *machine, const clv_json *root, const char *scenario,
                             const char *name);

#endif
