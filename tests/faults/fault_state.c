/* SPDX-License-Identifier: Apache-2.0 */
/* The faults wanted, and the objects seen. */
#include "fault_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

fault_state fault = { .lock = PTHREAD_MUTEX_INITIALIZER, .released = PTHREAD_COND_INITIALIZER };

static bool is(const char *name, size_t length, const char *wanted)
{
    return strlen(wanted) == length && memcmp(name, wanted, length) == 0;
}

bool fault_parse(const char *text, fault_plan *plan)
{
    *plan = (fault_plan){ .on = -1, .wrong = -1, .code = CL_OUT_OF_RESOURCES, .seed = 1 };
    const struct {
        const char *name;
        long *number;
        double *real;
    } known[] = {
        { "on", &plan->on, NULL },           { "buffer", &plan->buffer, NULL },
        { "enqueue", &plan->enqueue, NULL }, { "every", &plan->every, NULL },
        { "event", &plan->event, NULL },     { "lost", &plan->lost, NULL },
        { "hang", &plan->hang, NULL },       { "hold", &plan->hold, NULL },
        { "build", &plan->build, NULL },     { "binary", &plan->binary, NULL },
        { "wrong", &plan->wrong, NULL },     { "call", &plan->call, NULL },
        { "seed", &plan->seed, NULL },       { "times", &plan->times, NULL },
        { "budget", NULL, &plan->budget },   { "throttle", NULL, &plan->throttle },
        { "save", &plan->save, NULL },       { "chance", NULL, &plan->chance },
    };
    while (*text) {
        const size_t length = strcspn(text, "=;");
        char *end;
        bool found = false;
        if (text[length] != '=') return false;
        const char *value = text + length + 1;
        for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
            if (!is(text, length, known[i].name)) continue;
            found = true;
            if (known[i].number)
                *known[i].number = strtol(value, &end, 10);
            else
                *known[i].real = strtod(value, &end);
        }
        if (is(text, length, "code")) {
            found = true;
            plan->code = (cl_int)strtol(value, &end, 10);
        }
        if (!found || end == value) return false;
        if (is(text, length, "hang") && *end == ':') plan->hang_s = strtod(end + 1, &end);
        if (*end && *end != ';') return false;
        text = *end ? end + 1 : end;
    }
    return true;
}

double fault_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_for_release(void)
{
    pthread_mutex_lock(&fault.lock);
    ++fault.stats.waiting;
    while (fault.holding)
        pthread_cond_wait(&fault.released, &fault.lock);
    --fault.stats.waiting;
    pthread_mutex_unlock(&fault.lock);
}

void fault_sleep_until(double when)
{
    if (isinf(when)) {
        wait_for_release();
        return;
    }
    for (double left; (left = when - fault_now()) > 0;) {
        const struct timespec t = { .tv_sec = (time_t)left,
                                    .tv_nsec = (long)((left - (double)(time_t)left) * 1e9) };
        nanosleep(&t, NULL);
    }
}

seen *fault_find(const void *object, fault_kind kind)
{
    for (size_t i = fault.count; i-- > 0;) /* the latest are asked for most */
        if (fault.items[i].object == object && fault.items[i].kind == kind) return &fault.items[i];
    return NULL;
}

int fault_device_of(const void *object, fault_kind kind)
{
    const seen *s = fault_find(object, kind);
    return s ? s->device : 0;
}

seen *fault_note(void *object, fault_kind kind, int device)
{
    seen *s = fault_find(object, kind);
    if (!s) {
        if (fault.count == fault.capacity) {
            fault.capacity = fault.capacity ? 2 * fault.capacity : 256;
            fault.items = realloc(fault.items, fault.capacity * sizeof *fault.items);
            if (!fault.items) abort();
        }
        s = &fault.items[fault.count++];
    }
    *s = (seen){ .object = object, .kind = kind, .device = device, .held = 1 };
    return s;
}

void fault_forget(const void *object, fault_kind kind)
{
    seen *s = fault_find(object, kind);
    if (s) *s = fault.items[--fault.count];
}

bool fault_applies(int device)
{
    return fault.plan.on < 0 || fault.plan.on == device;
}

bool fault_is_lost(int device)
{
    return fault.plan.lost > 0 && fault_applies(device) &&
           fault.commands[device] > (unsigned long)fault.plan.lost;
}

bool fault_calls(void)
{
    if (++fault.stats.calls != (unsigned long)fault.plan.call) return false;
    ++fault.stats.injected;
    return true;
}

static bool by_chance(void)
{
    if (!(fault.plan.chance > 0)) return false;
    fault.random = fault.random * 6364136223846793005u + 1442695040888963407u;
    return (double)(fault.random >> 11) * 0x1p-53 < fault.plan.chance;
}

static bool is_turn(unsigned long count, long k)
{
    return k > 0 && count == (unsigned long)k;
}

cl_int fault_commands(int device, bool kernel)
{
    const fault_plan *plan = &fault.plan;
    if (fault_calls()) return plan->code;
    if (!fault_applies(device)) return CL_SUCCESS;
    ++fault.commands[device];
    const unsigned long n = ++fault.enqueues;
    cl_int code = CL_SUCCESS;
    if (fault_is_lost(device) || is_turn(n, plan->enqueue) || by_chance() ||
        (plan->every > 0 && n % (unsigned long)plan->every == 0))
        code = plan->code;
    if (kernel && plan->budget > 0 && fault.held[device] > plan->budget)
        code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (code != CL_SUCCESS) ++fault.stats.injected;
    return code;
}
