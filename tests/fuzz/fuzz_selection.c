/* SPDX-License-Identifier: Apache-2.0 */
/* Parses any text as a selection of devices. The result is at least one device, or none with a reason. */
#include "fuzz.h"

#include "base/alloc.h"
#include "probe/judge/select.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char uuid[] = "00112233-4455-6677-8899-aabbccddeeff", pci[] = "0000:03:00.0";
    clv_probe_platform platforms[2] = { { .name = "Portable" }, { .name = "Cards" } };
    clv_probe_device devices[DEVICES] = {
        { .name = "EPYC", .name_clean = "EPYC", .device_class = CLV_CLASS_CPU, .platform = 0 },
        { .name = "Radeon",
          .name_clean = "Radeon",
          .device_class = CLV_CLASS_DISCRETE_GPU,
          .platform = 1,
          .uuid = uuid,
          .pci_address = pci },
        { .name = "Radeon", .device_class = CLV_CLASS_DISCRETE_GPU, .platform = 1 },
    };
    const clv_probe_report report = {
        .platforms = platforms, .platform_count = 2, .devices = devices, .device_count = DEVICES
    };
    bool chosen[DEVICES];
    char *text = fuzz_alloc(size + 1, 1); /* the sanitizer guards the end of this memory */
    if (!text) abort();
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    const clv_status readable = clv_check_selection(text);
    const clv_status status = clv_select_devices(&report, text, chosen);
    size_t count = 0;
    for (int i = 0; i < DEVICES; ++i)
        count += chosen[i];
    FUZZ_CHECK(readable == CLV_OK || readable == CLV_E_ARGUMENT ||
               (fuzz_poor && readable == CLV_E_MEMORY));
    FUZZ_CHECK(fuzz_poor || readable == CLV_OK || status == CLV_E_ARGUMENT);
    FUZZ_CHECK((status == CLV_OK) == (count > 0));
    clv_free(text);
    return 0;
}
