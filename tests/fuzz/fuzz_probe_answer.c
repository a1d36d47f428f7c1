/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a helper's answer. The result is facts from which a report is decided and written, or an error
 * that leaves the report as it was. */
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
    if (!m || !clv_machine_add_icd(m)) {
        FUZZ_CHECK(fuzz_poor);
        clv_machine_free(m);
        return 0;
    }
    if (clv_isolated_read(m, (const char *)data, size, 0)) {
        FUZZ_CHECK(!m->report.platform_count && !m->report.device_count);
    } else {
        if (m->report.device_count)
            (void)clv_measure_read(m, (const char *)data, size, &m->devices[0]);
        const clv_status decided = clv_decide(m, &none);
        FUZZ_CHECK(fuzz_poor || decided == CLV_OK);
        FUZZ_CHECK(decided || (m->report.mode.reason && m->report.mode.rule));
        char *json = clv_probe_json(&m->report), *text = clv_report_text(&m->report, &style);
        FUZZ_CHECK(fuzz_poor || (json && text));
        free(json);
        clv_free(text);
    }
    clv_machine_free(m);
    return 0;
}
