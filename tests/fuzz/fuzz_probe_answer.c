/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a helper's answer: facts that can be decided and written, or an error that leaves
 * the report as it was. */
#include "fuzz.h"

#include "probe/judge/decide.h"
#include "probe/helper/isolate.h"
#include "probe/measure/measure.h"
#include "probe/report/report_text.h"

#include "base/alloc.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const clv_orders none = { 0 };
    const clv_report_style style = { .lines = true, .more = true };
    clv_machine *m = clv_machine_create();
    clv_machine_add_icd(m);
    if (clv_isolated_read(m, (const char *)data, size, 0)) {
        FUZZ_CHECK(!m->report.platform_count && !m->report.device_count);
    } else {
        if (m->report.device_count)
            (void)clv_measure_read(m, (const char *)data, size, &m->devices[0]);
        FUZZ_CHECK(clv_decide(m, &none) == CLV_OK);
        FUZZ_CHECK(m->report.mode.reason && m->report.mode.rule);
        char *json = clv_probe_json(&m->report), *text = clv_report_text(&m->report, &style);
        FUZZ_CHECK(json && text);
        free(json);
        clv_free(text);
    }
    clv_machine_free(m);
    return 0;
}
