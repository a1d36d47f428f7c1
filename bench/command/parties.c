/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the parties of a bench. */
#include "bench/command/parties.h"

#include "base/alloc.h"
#include "base/environment.h"
#include "base/error.h"
#include "host/cli/cli.h"
#include "host/cli/drivers.h"
#include "probe/judge/select.h"
#include "runtime/context/devices.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int progress(const char *doing, void *user)
{
    const bool *show = user;
    if (*show) cli_status_line(doing);
    return cli_interrupted();
}

static clv_status probe(const char *selection, clv_bench level, bool *show,
                        clv_probe_report **report)
{
    const clv_probe_options options = { .size = sizeof options,
                                        .devices = selection,
                                        .devices_by = "--device",
                                        .isolate = true,
                                        .bench = level,
                                        .helper = "/proc/self/exe",
                                        .progress = progress,
                                        .progress_user = show };
    cli_vet_drivers(cli_running(), false);
    const clv_status status = clv_probe_run(&options, report);
    if (*show) cli_status_line(NULL);
    return status;
}

static void name_device(const bench *b, size_t index, char *out, size_t room)
{
    const clv_probe_device *d = &b->probe->devices[index];
    snprintf(out, room, "%.40s [%s]", d->name_clean ? d->name_clean : "device",
             clv_vendor_name(b->probe->platforms[d->platform].vendor_norm));
}

/* Makes a device a party unless it is one already; if two have the same name, their index is appended. */
static size_t add_device(bench *b, size_t index)
{
    char name[64], selection[24];
    snprintf(selection, sizeof selection, "%zu", index);
    for (size_t i = 0; i < b->party_count; ++i)
        if (b->parties[i].device == &b->probe->devices[index]) return i;
    name_device(b, index, name, sizeof name - 8);
    for (size_t i = 0; i < b->party_count; ++i)
        if (strcmp(b->parties[i].name, name) == 0)
            snprintf(name + strlen(name), sizeof name - strlen(name), " %zu", index);
    const size_t party = bench_find_party(b, BENCH_DEVICE, name);
    if (party == SIZE_MAX) return party;
    b->parties[party].device = &b->probe->devices[index];
    clv_copy_string(b->parties[party].selection, sizeof b->parties[party].selection, selection);
    return party;
}

static void add_mode(bench_party *party, const char *mode)
{
    const size_t used = strlen(party->modes);
    snprintf(party->modes + used, sizeof party->modes - used, "%s%s", used ? ", " : "", mode);
}

/* Adds each device alone as a party, and all of them together if there are several. */
static void add_group(bench *b, const size_t *devices, size_t count, const char *mode)
{
    char selection[128] = "", name[64] = "";
    size_t alone = SIZE_MAX;
    for (size_t i = 0; i < count; ++i) {
        alone = add_device(b, devices[i]);
        const size_t used = strlen(selection), length = strlen(name);
        snprintf(selection + used, sizeof selection - used, "%s%zu", i ? "," : "", devices[i]);
        char one[64];
        name_device(b, devices[i], one, sizeof one);
        snprintf(name + length, sizeof name - length, "%s%.30s", i ? " + " : "", one);
    }
    if (count == 1 && alone != SIZE_MAX && *mode) add_mode(&b->parties[alone], mode);
    if (count < 2) return;
    const size_t party = bench_find_party(b, BENCH_TOGETHER, name);
    if (party == SIZE_MAX) return;
    if (*mode) add_mode(&b->parties[party], mode);
    clv_copy_string(b->parties[party].selection, sizeof b->parties[party].selection, selection);
}

/* Adds the parties of modes. Modes that the user asked for must exist; without a request, the existing ones are
 * taken. */
static clv_status add_modes(bench *b, const char *modes, const char *selection, size_t *chosen)
{
    /* if the time is limited, GPUs come first */
    const char *const usual = b->plan.budget_s > 0 ? "gpu,cpu,hybrid" : "cpu,gpu,hybrid";
    for (const char *at = modes ? modes : usual; *at;) {
        char name[16];
        size_t length = strcspn(at, ","), count;
        clv_mode mode;
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (length >= sizeof name || clv_mode_parse(name, &mode) ||
            (mode != CLV_MODE_CPU && mode != CLV_MODE_GPU && mode != CLV_MODE_HYBRID))
            return clv_fail(CLV_E_ARGUMENT,
                            "--modes is \"%s\", but it must be a list of cpu, gpu and hybrid",
                            modes);
        const clv_status status = clv_choose_devices(b->probe, mode, selection, chosen, &count);
        if (status && modes) return status;
        if (!status) add_group(b, chosen, count, clv_mode_name(mode));
        at += length + (at[length] == ',');
    }
    return CLV_OK;
}

static clv_status add_selected(bench *b, const char *selection, size_t *chosen)
{
    size_t count = 0;
    bool *picked = clv_zalloc(b->probe->device_count, sizeof *picked);
    if (!picked) return clv_fail(CLV_E_MEMORY, "not enough memory to choose devices");
    const clv_status status = clv_select_devices(b->probe, selection, picked);
    for (size_t i = 0; i < b->probe->device_count && !status; ++i)
        if (picked[i]) chosen[count++] = i;
    clv_free(picked);
    if (!status) add_group(b, chosen, count, "");
    return status;
}

static clv_status add_parties(bench *b, const char *modes, const char *selection)
{
    size_t *chosen = clv_zalloc(b->probe->device_count + 1, sizeof *chosen);
    if (!chosen) return clv_fail(CLV_E_MEMORY, "not enough memory to choose devices");
    clv_status status = selection && !modes ? add_selected(b, selection, chosen)
                                            : add_modes(b, modes, selection, chosen);
    clv_free(chosen);
    if (!status && bench_find_party(b, BENCH_REFERENCE, "plain C") == SIZE_MAX)
        status = clv_fail(CLV_E_ARGUMENT, "too many devices for one table");
    return status;
}

static bool lacks_rates(const bench *b)
{
    for (size_t i = 0; i < b->party_count; ++i) {
        const clv_probe_device *d = b->parties[i].device;
        if (d && !(d->measured.fp32_gflops > 0) && !d->measured.date) return true;
    }
    return false;
}

int bench_choose_parties(bench *b, const char *modes, const char *selection, bool tell)
{
    char orders[1024] = "", ordered_modes[16] = "";
    const char *device = clv_environment("CLEAVE_DEVICE");
    bool show = tell && cli_has_status_line();
    clv_probe_report *report = NULL;
    int mode;
    /* these environment variables are read here, so the parties' contexts must not read them again */
    if (selection || device) clv_copy_string(orders, sizeof orders, selection ? selection : device);
    selection = *orders ? orders : NULL;
    if (clv_environment_choice("CLEAVE_MODE", CLV_MODES, &mode))
        return cli_status(cli_running(), CLV_E_ARGUMENT);
    if (!modes && mode > CLV_MODE_AUTO) {
        /* plain C always takes part */
        clv_copy_string(ordered_modes, sizeof ordered_modes,
                        mode == CLV_MODE_REFERENCE ? "" : clv_mode_name((clv_mode)mode));
        modes = ordered_modes;
    }
    unsetenv("CLEAVE_DEVICE"), unsetenv("CLEAVE_MODE");
    clv_status status = probe(selection, CLV_BENCH_NONE, &show, &report);
    b->probe = report;
    if (!status) status = add_parties(b, modes, selection);
    if (!status && lacks_rates(b)) {
        clv_probe_report *measured;
        status = probe(selection, CLV_BENCH_QUICK, &show, &measured);
        if (!status) { /* indexes may have changed: the fastest entry comes first */
            clv_probe_free(report);
            b->probe = measured;
            b->party_count = 0;
            status = add_parties(b, modes, selection);
        }
    }
    return cli_status(cli_running(), status);
}
