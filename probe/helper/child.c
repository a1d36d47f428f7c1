/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the helper process, which uses one driver, writes its answer as JSON to a descriptor, and exits. */
#define _GNU_SOURCE
#include "probe/helper/child.h"

#include "base/error.h"
#include "base/lapack.h"
#include "base/text.h"
#include "probe/helper/compile.h"
#include "probe/measure/bench.h"
#include "probe/measure/check.h"
#include "probe/judge/decide.h"
#include "probe/memory/free_memory.h"
#include "probe/opencl/opencl.h"
#include "probe/report/report.h"
#include "probe/helper/spawn.h"
#include "probe/memory/trial.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void close_above(int last)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, last + 1, ~0u, 0) == 0) return;
#endif
    for (int fd = last + 1; fd < 4096; ++fd)
        close(fd);
}

/* Restricts the helper before any driver is loaded: it writes no core files, ends with its parent, and closes the
 * descriptors it inherited. */
static bool confine(const char *parent)
{
    const struct rlimit none = { 0, 0 };
    uint64_t pid;
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!clv_parse_u64(parent, &pid) || (uint64_t)getppid() != pid) return false;
    close_above(CLV_CHILD_RESULT_FD);
    return true;
}

static void answer(clv_json *root)
{
    char *text = clv_json_text(root, true);
    size_t left = text ? strlen(text) : 0;
    for (const char *at = text; left;) {
        const ssize_t put = write(CLV_CHILD_RESULT_FD, at, left);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) _exit(1);
        at += put;
        left -= (size_t)put;
    }
    _exit(text ? 0 : CLV_CHILD_NO_MEMORY);
}

/* Loads the driver as the loader would, and sets *path to its path. Returns the reason if the library cannot be loaded
 * or is no driver; NULL if it is one. */
static const char *load(clv_machine *machine, const char *library, const char **path)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    struct link_map *map = NULL;
    char real[PATH_MAX];
    if (!handle) {
        const char *reason = dlerror();
        return clv_machine_foreign(machine, reason ? reason : "cannot be loaded", 4096);
    }
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name)
        *path = clv_machine_keep(machine, realpath(map->l_name, real) ? real : map->l_name);
    if (!dlsym(handle, "clGetExtensionFunctionAddress") && !dlsym(handle, "clIcdGetPlatformIDsKHR"))
        return "the library is no OpenCL driver: it lacks clGetExtensionFunctionAddress";
    return NULL;
}

static void enumerate(const char *library)
{
    clv_machine *machine = clv_machine_create();
    if (!machine) _exit(CLV_CHILD_NO_MEMORY);
    const char *path = NULL, *problem = library ? load(machine, library, &path) : NULL;
    if (!problem) {
        clv_loader_facts(machine, true);
        clv_opencl_enumerate(machine);
        clv_free_memory_facts(machine, 0, "");
    }
    clv_json *root = clv_report_facts_to_json(&machine->report);
    clv_json_add_string(root, "library_path", path);
    clv_json_add_string(root, "problem", problem);
    if (machine->failed) _exit(CLV_CHILD_NO_MEMORY);
    answer(root);
}

/* Finds LAPACK in the helper, not in the caller's process, because OpenBLAS starts its threads when it is loaded. */
static void find_lapack(void)
{
    const clv_lapack *lapack = clv_lapack_get();
    clv_json *root = clv_json_object();
    clv_json_add_string(root, "library", lapack ? lapack->library : NULL);
    answer(root);
}

/* Returns the device that the loader of this process lists as number `place` of platform number `platform`. */
static clv_probe_device *find_device(clv_machine *machine, const char *platform, const char *place)
{
    const clv_orders none = { 0 };
    uint64_t p, d;
    if (!clv_parse_u64(platform, &p) || !clv_parse_u64(place, &d)) return NULL;
    clv_opencl_enumerate(machine);
    if (clv_decide(machine, &none)) return NULL; /* sets classes and flags for the bench */
    for (size_t i = 0; i < machine->report.device_count; ++i) {
        clv_probe_device *device = &machine->devices[i];
        if (machine->platforms[device->platform].ordinal == p && device->ordinal == d)
            return device;
    }
    return NULL;
}

/* Compiles the programs in `folder` for the device `place`, which is PLATFORM:DEVICE. */
static void compile(const char *place, const char *folder)
{
    char platform[24];
    const size_t length = strcspn(place, ":");
    clv_machine *machine = clv_machine_create();
    if (!machine || place[length] != ':' || length >= sizeof platform) _exit(1);
    memcpy(platform, place, length);
    platform[length] = '\0';
    const clv_probe_device *device = find_device(machine, platform, place + length + 1);
    if (!device) _exit(1);
    clv_compile_main(device, folder);
}

static void measure(const char *job, const char *platform, const char *place)
{
    clv_machine *machine = clv_machine_create();
    clv_json *root = clv_json_object();
    clv_probe_device *device = machine ? find_device(machine, platform, place) : NULL;
    clv_check found;
    clv_bench_result result;
    clv_trial trial;
    if (!machine || machine->failed) _exit(CLV_CHILD_NO_MEMORY);
    if (!device) _exit(1);
    if (strcmp(job, "check") == 0) {
        clv_check_device(device, &found);
        if (!found.check.done) _exit(CLV_CHILD_NO_MEMORY);
        clv_report_write_check(root, &found.check);
    } else if (strcmp(job, "trial") == 0) {
        clv_trial_device(device, &trial);
        clv_json *object = clv_json_add_object(root, "trial");
        if (trial.free_bytes == CLV_UNKNOWN)
            clv_json_add_string(object, "message", trial.message);
        else
            clv_json_add_int(object, "free_bytes", (int64_t)trial.free_bytes);
    } else {
        clv_bench_device(device, strcmp(job, "bench-full") == 0 ? CLV_BENCH_FULL : CLV_BENCH_QUICK,
                         &result);
        clv_report_write_rates(root, &result.rates);
    }
    answer(root);
}

void clv_child_main(int argc, char **argv)
{
    if (argc < 3 || strcmp(argv[0], CLV_HELPER_MARK) != 0 || !confine(argv[1])) return;
    if (strcmp(argv[2], "enumerate") == 0) enumerate(argc > 3 ? argv[3] : NULL);
    if (strcmp(argv[2], "lapack") == 0) find_lapack();
    if (argc == 5 && strcmp(argv[2], "compile") == 0) compile(argv[3], argv[4]);
    if (argc == 5) measure(argv[2], argv[3], argv[4]);
}
