/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a list of TARGETIDs (--targets-file) and as rvspecfit's settings (--config). */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/cli/specfit/files.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    specfit_args a = {
        .max_vel = NAN, .min_vel = NAN, .vel_step = 7, .max_vsini = NAN, .sigma0 = NAN
    };
    specfit_ids list = { 0 };
    a.config = a.targets_file = fuzz_file(data, size);
    for (int k = 0; k < CLV_DESI_ARMS; ++k)
        a.sigma_of[k] = NAN;
    const int ids = specfit_read_ids(&a, &list), settings = specfit_read_config(&a);
    FUZZ_CHECK(ids == CLI_OK || ids == CLI_USAGE || (fuzz_poor && ids == CLI_FAILED));
    for (size_t i = 1; i < list.count && !ids; ++i)
        FUZZ_CHECK(list.ids[i - 1] <= list.ids[i]);
    FUZZ_CHECK(settings == CLI_OK || settings == CLI_USAGE ||
               (fuzz_poor && settings == CLI_FAILED));
    FUZZ_CHECK(a.vel_step == 7); /* a value that an option has set stays */
    clv_free(list.ids);
    return 0;
}
