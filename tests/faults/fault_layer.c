/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL layer under which drivers fail, lie and hang as fault_layer.h says. Every call goes to
 * the driver below unless a fault wants otherwise. */
#include "fault_calls.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fault_set fault_layer_set;
fault_get fault_layer_get;
fault_release fault_layer_release;

const char layer_name[] = "fault layer of Cleave's tests";

int fault_layer_set(const char *faults)
{
    fault_plan plan;
    if (!fault_parse(faults, &plan)) return 0;
    enter();
    fault.plan = plan;
    fault.stats = (fault_stats){ .live = fault.stats.live, .waiting = fault.stats.waiting };
    fault.buffers = fault.enqueues = fault.kernels = fault.builds = fault.reads = 0;
    memset(fault.commands, 0, sizeof fault.commands);
    fault.random = (unsigned long long)plan.seed;
    leave();
    return 1;
}

fault_stats fault_layer_get(void)
{
    enter();
    const fault_stats stats = fault.stats;
    leave();
    return stats;
}

unsigned fault_layer_release(void)
{
    enter();
    const unsigned held = fault.holding;
    const double now = fault_now();
    fault.holding = 0;
    for (size_t i = 0; i < fault.count; ++i)
        if (isinf(fault.items[i].ready)) fault.items[i].ready = now;
    pthread_cond_broadcast(&fault.released);
    leave();
    return held;
}

/* For tests of commands, which cannot ask: how many calls could have failed. */
__attribute__((destructor)) static void tell_calls(void)
{
    const char *path = getenv("CLEAVE_FAULTS_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%lu\n", fault.stats.calls);
    fclose(file);
}

bool layer_install(cl_icd_dispatch *own)
{
    const char *faults = getenv("CLEAVE_FAULTS");
    if (!fault_layer_set(faults ? faults : "")) return false;
    fault_objects_install(own);
    fault_commands_install(own);
    return true;
}
