/* SPDX-License-Identifier: Apache-2.0 */
/* Advice to enable Mesa's rusticl stands only where it helps.
 *
 * Debian installs rusticl with a desktop and enables it for no GPU. Every machine without one, and every NVIDIA
 * machine, was told to "set RUSTICL_ENABLE=radeonsi,iris or the driver of your GPU", which changes nothing there. */
#include "test.h"

#include "probe/judge/decide.h"

#include <stdio.h>
#include <string.h>

enum { NONE = 0, NVIDIA = 0x10DE, AMD = 0x1002, INTEL = 0x8086, EMULATOR = 0x1234 };

/* rusticl without devices, PoCL, and one GPU on the bus, which another driver may show. */
static void machine_says(unsigned vendor, bool shown, const char *driver)
{
    char hint[64] = "";
    size_t told = 0;
    clv_machine *m = clv_machine_create();
    assert_non_null(m);
    clv_machine_add_platform(m)->name = "rusticl";
    clv_machine_add_platform(m)->name = "Portable Computing Language";
    clv_probe_device *device = clv_machine_add_device(m);
    device->platform = 1, device->type = "CPU", device->name = "pthread-A Chip";
    device->version = "OpenCL 3.0 x", device->vendor = "pocl";
    device->global_bytes = device->max_alloc_bytes = 8000000000;
    if (vendor) {
        clv_probe_pci_gpu *gpu = clv_machine_add_pci_gpu(m);
        gpu->address = "0000:03:00.0", gpu->vendor_id = vendor;
    }
    if (shown) {
        clv_machine_add_platform(m)->name = "AMD Accelerated Parallel Processing";
        clv_probe_device *gpu = clv_machine_add_device(m);
        gpu->platform = 2, gpu->type = "GPU", gpu->name = "gfx1100", gpu->vendor = "AMD";
        gpu->version = "OpenCL 2.1 x", gpu->pci_address = "0000:03:00.0";
        gpu->global_bytes = gpu->max_alloc_bytes = 16000000000;
    }
    EXPECT_OK(clv_decide(m, &(clv_orders){ 0 }));
    for (size_t i = 0; i < m->report.warning_count; ++i)
        if (strcmp(m->report.warnings[i].code, "rusticl_not_enabled") == 0) {
            ++told;
            assert_string_equal(
                m->report.warnings[i].hint,
                (snprintf(hint, sizeof hint, "set the environment variable RUSTICL_ENABLE=%s",
                          driver ? driver : "?"),
                 hint));
        }
    assert_int_equal(told, driver ? 1 : 0);
    clv_machine_free(m);
}

static void advice_stands_where_it_helps(void **state)
{
    (void)state;
    machine_says(NONE, false, NULL);
    machine_says(EMULATOR, false, NULL);
    machine_says(NVIDIA, false, NULL);
    machine_says(AMD, true, NULL);
    machine_says(AMD, false, "radeonsi");
    machine_says(INTEL, false, "iris");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(advice_stands_where_it_helps) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
