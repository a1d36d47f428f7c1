/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a saved report or a file of device profiles. A first line "#ID" names the scenario. An accepted
 * machine is decided and written; reading it again must give the same outcome. */
#include "fuzz.h"

#include "base/alloc.h"
#include "probe/judge/decide.h"
#include "probe/report/snapshot.h"

#include <stdlib.h>
#include <string.h>

static char *decide(clv_machine *m)
{
    const clv_orders none = { 0 };
    FUZZ_CHECK(fuzz_poor || clv_decide(m, &none) == CLV_OK);
    m->report.simulated = NULL;
    char *json = clv_probe_json(&m->report);
    FUZZ_CHECK(fuzz_poor || json);
    return json;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char scenario[64], *text = fuzz_alloc(size + 1, 1);
    memcpy(text, data, size);
    const char *body = text, *id = NULL;
    if (*text == '#') {
        const size_t length = strcspn(text, "\n");
        clv_copy_string(scenario, CLV_MIN(length, sizeof scenario), text + 1);
        id = scenario;
        body += length;
    }
    clv_machine *m = clv_machine_create(), *again = clv_machine_create();
    FUZZ_CHECK(fuzz_poor || (m && again));
    if (m && again &&
        clv_snapshot_read(m, "fuzz", body, size - (size_t)(body - text), id) == CLV_OK) {
        char *first = decide(m), *second = NULL;
        const clv_status status =
            first ? clv_snapshot_read(again, "fuzz", first, strlen(first), NULL) : CLV_E_MEMORY;
        FUZZ_CHECK(fuzz_poor || status == CLV_OK);
        if (!status) second = decide(again);
        FUZZ_CHECK(fuzz_poor || strcmp(first, second) == 0);
        free(first), free(second);
    }
    clv_machine_free(again);
    clv_machine_free(m);
    clv_free(text);
    return 0;
}
