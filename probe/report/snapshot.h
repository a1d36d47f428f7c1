/* SPDX-License-Identifier: Apache-2.0 */
/* A machine out of a file, in place of this one: saved reports, and profiles of devices. */
#ifndef CLEAVE_PROBE_SNAPSHOT_H
#define CLEAVE_PROBE_SNAPSHOT_H

#include "base/json.h"
#include "probe/machine.h"

/* Reads the facts of the machine that `path` holds; decisions are made anew by clv_decide. A saved
 * report knows no scenario. CLV_E_IO, CLV_E_FORMAT, CLV_E_ARGUMENT (no such scenario; the message
 * lists them), CLV_E_MEMORY. */
clv_status clv_snapshot_load(clv_machine *machine, const char *path, const char *scenario);

/* The same from a text that was read; `name` stands for the file. */
clv_status clv_snapshot_read(clv_machine *machine, const char *name, const char *text,
                             size_t length, const char *scenario);

/* A file of schema "cleave.probe.device-profiles/1": a scenario by id, or one profile by id, with
 * the profile "cpu-pocl" beside it and 16 GB of available memory. */
clv_status clv_profiles_read(clv_machine *machine, const clv_json *root, const char *scenario,
                             const char *name);

#endif
