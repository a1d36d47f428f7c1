/* SPDX-License-Identifier: Apache-2.0 */
/* Passes any text to the readers of /proc, /sys and /etc, and to the selection of devices. */
#include "fuzz.h"

#include "base/alloc.h"
#include "probe/judge/classify.h"
#include "probe/host/kernel_text.h"
#include "probe/judge/select.h"

#include <string.h>

static void read_kernel_texts(const char *text)
{
    char out[64];
    uint64_t client, bytes;
    clv_text isa = { 0 };
    (void)clv_meminfo_bytes(text, "MemTotal");
    if (clv_cpuinfo_value(text, "model name", out, sizeof out)) FUZZ_CHECK(strlen(out) < 64);
    clv_isa_text(text, &isa);
    FUZZ_CHECK(fuzz_poor || !isa.failed);
    clv_text_clear(&isa);
    if (clv_cgroup_path(text, "", out, sizeof out)) FUZZ_CHECK(*out == '/' && !strstr(out, ".."));
    if (clv_cgroup_path(text, "memory", out, sizeof out)) FUZZ_CHECK(*out == '/');
    (void)clv_cgroup_bytes(text);
    (void)clv_cgroup_threads(text);
    FUZZ_CHECK(clv_cpulist_count(text) <= 1 << 20);
    const uint64_t generation = clv_pcie_generation(text);
    FUZZ_CHECK(generation == CLV_UNKNOWN || (generation >= 1 && generation <= 6));
    (void)clv_os_release_value(text, "NAME", out, sizeof out);
    (void)clv_pci_ids_name(text, 0x10DE, 0x1E07, out, sizeof out);
    (void)clv_fdinfo_parse(text, out, sizeof out, &client, &bytes);
    (void)clv_opencl_version(text);
    clv_clean_name(text, NULL, out, sizeof out);
    FUZZ_CHECK(fuzz_poor || *out);
}

static void select_devices(const char *text)
{
    static const clv_probe_platform platform = { .name = "Platform" };
    static const clv_probe_device devices[] = {
        { .name = "A",
          .name_clean = "A",
          .device_class = CLV_CLASS_DISCRETE_GPU,
          .usable = true,
          .primary = true,
          .duplicate_of = SIZE_MAX,
          .pci_address = "0000:03:00.0" },
        { .name = "B",
          .name_clean = "B",
          .device_class = CLV_CLASS_DISCRETE_GPU,
          .usable = true,
          .duplicate_of = 0 },
        { .name = "C",
          .name_clean = "C",
          .device_class = CLV_CLASS_CPU,
          .primary = true,
          .unusable_reason = "test",
          .duplicate_of = SIZE_MAX },
    };
    const clv_probe_report report = { .platforms = &platform,
                                      .platform_count = 1,
                                      .devices = devices,
                                      .device_count = CLV_LEN(devices) };
    bool chosen[CLV_LEN(devices)];
    const clv_status status = clv_select_devices(&report, text, chosen);
    FUZZ_CHECK(status == CLV_OK || status == CLV_E_ARGUMENT || status == CLV_E_NO_DEVICE ||
               (fuzz_poor && status == CLV_E_MEMORY));
    FUZZ_CHECK(fuzz_poor || (chosen[0] || chosen[1]) == (status == CLV_OK));
    FUZZ_CHECK(!chosen[2]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_alloc(size + 1, 1);
    memcpy(text, data, size);
    read_kernel_texts(text);
    select_devices(text);
    clv_free(text);
    return 0;
}
