/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the facts of a machine from a file, in place of the machine that runs Cleave. */
#include "probe/report/snapshot.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "probe/report/report.h"

#include <string.h>

/* Notes the file and the scenario, whose names reach the terminal with the report. */
static void note_source(clv_machine *machine, const char *name, const char *scenario)
{
    const char *source = scenario ? clv_machine_text(machine, "%s, scenario %s", name, scenario)
                                  : clv_machine_keep(machine, name);
    const char *shown = source ? clv_machine_foreign(machine, source, strlen(source)) : NULL;
    machine->report.simulated = shown ? shown : "a file";
}

clv_status clv_snapshot_read(clv_machine *machine, const char *name, const char *text,
                             size_t length, const char *scenario)
{
    clv_json *root = NULL;
    CLV_TRY(clv_json_parse(name, text, length, &root));
    const char *schema = clv_json_string(clv_json_get(root, "schema"), "");
    clv_status status;
    if (strcmp(schema, "cleave.probe.device-profiles/1") == 0) {
        status = clv_profiles_read(machine, root, scenario, name);
        note_source(machine, name, scenario ? scenario : "");
    } else if (strcmp(schema, "cleave.probe/1") != 0) {
        status = clv_fail(CLV_E_FORMAT,
                          "%s: the schema is \"%.40s\"; expected cleave.probe/1 (a saved report) "
                          "or cleave.probe.device-profiles/1",
                          name, schema);
    } else if (scenario) {
        status = clv_fail(CLV_E_ARGUMENT, "%s: a saved report has no scenarios", name);
    } else {
        status = clv_report_read_host(machine, root, name);
        if (!status) status = clv_report_read_facts(machine, root, SIZE_MAX, name);
        note_source(machine, name, NULL);
    }
    clv_json_free(root);
    if (!status && machine->failed) status = clv_fail(CLV_E_MEMORY, "%s: out of memory", name);
    return status;
}

clv_status clv_snapshot_load(clv_machine *machine, const char *path, const char *scenario)
{
    char *text;
    size_t length;
    const char *slash = strrchr(path, '/');
    CLV_TRY(clv_file_read(path, CLV_REPORT_LIMIT, &text, &length));
    const clv_status status =
        clv_snapshot_read(machine, slash ? slash + 1 : path, text, length, scenario);
    clv_free(text);
    return status;
}
