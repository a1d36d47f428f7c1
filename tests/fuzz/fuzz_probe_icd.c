/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as an .icd file. The result is one name without control characters, or the reason for refusing it. */
#include "fuzz.h"

#include "probe/opencl/icd.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char library[CLV_ICD_NAME];
    const char *problem = NULL;
    if (!clv_icd_parse((const char *)data, size, library, &problem)) {
        FUZZ_CHECK(problem && !*library);
        return 0;
    }
    const size_t length = strlen(library);
    FUZZ_CHECK(!problem && length > 0 && length < CLV_ICD_NAME);
    for (size_t i = 0; i < length; ++i)
        FUZZ_CHECK((unsigned char)library[i] >= ' ');
    return 0;
}
