/* SPDX-License-Identifier: Apache-2.0 */
/* Binds each worker thread of a CPU driver to a core of its own. */
#define _GNU_SOURCE
#include "runtime/device/bind.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

double clv_bind_patience_s = 0.1;

typedef struct member {
    pthread_t thread;
    cpu_set_t may; /* the cores on which the thread may run */
    bool bound;
} member;

/* A meeting at which all threads of a device's driver are inside a native kernel at the same time. */
typedef struct meeting {
    clv_mutex lock;
    clv_cond changed;
    double until;
    size_t want, here, left; /* threads expected, arrived, and finished with their part */
    cpu_set_t cores;         /* the cores of this process */
    pthread_t caller;
    bool over, fit; /* `over`: nobody waits any more; `fit`: the threads may be bound */
    member members[];
} meeting;

static bool are_free(const meeting *m)
{
    for (size_t i = 0; i < m->here; ++i)
        if (pthread_equal(m->members[i].thread, m->caller) ||
            !CPU_EQUAL(&m->members[i].may, &m->cores))
            return false;
    return true;
}

static int core_at(const cpu_set_t *cores, size_t index)
{
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, cores) && !index--) return core;
    return -1;
}

static bool bind_me(const meeting *m, size_t index)
{
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core_at(&m->cores, index), &own);
    return sched_setaffinity(0, sizeof own, &own) == 0;
}

static void leave(meeting *m)
{
    ++m->left;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

static void CL_CALLBACK attend(void *argument)
{
    meeting *m = *(meeting **)argument;
    pthread_mutex_lock(&m->lock);
    const size_t mine = m->here;
    if (m->over || mine >= m->want) {
        leave(m);
        return;
    }
    member *me = &m->members[mine];
    me->thread = pthread_self();
    if (sched_getaffinity(0, sizeof me->may, &me->may)) CPU_ZERO(&me->may);
    if (++m->here == m->want) {
        m->fit = are_free(m);
        m->over = true;
        pthread_cond_broadcast(&m->changed);
    }
    while (!m->over && clv_now() < m->until)
        clv_cond_wait_until(&m->changed, &m->lock, m->until);
    m->over = true;
    if (m->fit) me->bound = bind_me(m, mine);
    leave(m);
}

/* Calls all threads to the meeting and waits for its end. Returns false when some threads may still be in it. */
static bool call_all(cl_command_queue queue, meeting *m, cl_event *events)
{
    size_t called = 0;
    while (called < m->want && clEnqueueNativeKernel(queue, attend, &m, sizeof m, 0, NULL, NULL, 0,
                                                     NULL, &events[called]) == CL_SUCCESS)
        ++called;
    pthread_mutex_lock(&m->lock);
    m->over |= called < m->want;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    if (called) (void)clWaitForEvents((cl_uint)called, events);
    for (size_t i = 0; i < called; ++i)
        clReleaseEvent(events[i]);
    pthread_mutex_lock(&m->lock);
    const double until = clv_now() + clv_bind_patience_s;
    while (m->left < called && clv_now() < until)
        clv_cond_wait_until(&m->changed, &m->lock, until);
    const bool ended = m->left == called;
    pthread_mutex_unlock(&m->lock);
    return ended;
}

/* Returns the core that is left for the caller if its thread is one of the device's and each other thread is
 * bound to a core of its own; else -1. */
static int home_of(const meeting *m)
{
    cpu_set_t left = m->cores;
    size_t callers = 0;
    for (size_t i = 0; i < m->want; ++i) {
        const member *who = &m->members[i];
        if (pthread_equal(who->thread, m->caller)) {
            ++callers;
        } else {
            if (CPU_COUNT(&who->may) != 1) return -1;
            CPU_XOR(&left, &left, &who->may); /* two on one core leave more than one */
        }
    }
    return callers == 1 && CPU_COUNT(&left) == 1 ? core_at(&left, 0) : -1;
}

static clv_bind_result judge(const meeting *m, int *home)
{
    if (m->here < m->want) return CLV_BIND_LATE;
    if (!m->fit) {
        *home = home_of(m);
        return *home < 0 ? CLV_BIND_OTHERS : CLV_BIND_CALLER;
    }
    for (size_t i = 0; i < m->want; ++i)
        if (!m->members[i].bound) return CLV_BIND_FAILED;
    return CLV_BIND_DONE;
}

static clv_bind_result hold(cl_command_queue queue, size_t want, const cpu_set_t *cores, int *home)
{
    clv_bind_result result = CLV_BIND_FAILED;
    bool ended = true;
    cl_event *events = clv_alloc(want, sizeof *events);
    meeting *m = clv_zalloc(1, sizeof *m + want * sizeof *m->members);
    if (m && events && clv_mutex_init(&m->lock) && clv_cond_init(&m->changed)) {
        m->want = want, m->cores = *cores, m->caller = pthread_self();
        m->until = clv_now() + clv_bind_patience_s;
        ended = call_all(queue, m, events);
        if (ended) {
            result = judge(m, home);
            pthread_cond_destroy(&m->changed);
            pthread_mutex_destroy(&m->lock);
        }
    }
    if (ended) clv_free(m); /* otherwise a late thread may still use it */
    clv_free(events);
    return result;
}

static clv_bind_result try_now(cl_device_id device, int *home)
{
    const cl_command_queue_properties any_order = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    cl_uint units = 0;
    cl_device_exec_capabilities runs = 0;
    cl_command_queue_properties queues = 0;
    cpu_set_t cores;
    if (clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL) ||
        clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof runs, &runs, NULL) ||
        clGetDeviceInfo(device, CL_DEVICE_QUEUE_PROPERTIES, sizeof queues, &queues, NULL) ||
        sched_getaffinity(getpid(), sizeof cores, &cores))
        return CLV_BIND_FAILED;
    if (!(runs & CL_EXEC_NATIVE_KERNEL) || !(queues & any_order)) return CLV_BIND_NONE;
    if (units < 2 || units != (cl_uint)CPU_COUNT(&cores)) return CLV_BIND_FEWER;
    cl_int code;
    clv_bind_result result = CLV_BIND_FAILED;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    cl_command_queue queue =
        context ? clCreateCommandQueue(context, device, any_order, &code) : NULL;
    if (queue) {
        result = hold(queue, units, &cores, home);
        clReleaseCommandQueue(queue);
    }
    if (context) clReleaseContext(context);
    return result;
}

clv_bind_result clv_bind_threads(cl_device_id device, int *home)
{
    enum { MOST = 32, TRIES = 3 };
    static clv_mutex lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        cl_device_id device;
        clv_bind_result result;
        int tries; /* attempts that ended without a final result */
        int home;
    } known[MOST];
    static size_t count;
    pthread_mutex_lock(&lock); /* other callers for this device wait for the result */
    size_t i = 0;
    while (i < count && known[i].device != device)
        ++i;
    if (i == count && count < MOST) known[count].home = -1, known[count++].device = device;
    clv_bind_result result = CLV_BIND_FAILED;
    *home = -1;
    if (i < count) {
        const bool open = known[i].result == CLV_BIND_LATE || known[i].result == CLV_BIND_FAILED;
        if (open && known[i].tries++ < TRIES) known[i].result = try_now(device, &known[i].home);
        result = known[i].result;
        *home = known[i].home;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

_Static_assert(sizeof(cpu_set_t) == sizeof((clv_bind_stay){ 0 }.may), "a mask is 1024 bits");

clv_bind_stay clv_bind_come(int home)
{
    clv_bind_stay stay = { .stays = false };
    cpu_set_t may, there;
    if (home < 0 || home >= CPU_SETSIZE || sched_getcpu() == home ||
        sched_getaffinity(0, sizeof may, &may) || !CPU_ISSET(home, &may))
        return stay;
    CPU_ZERO(&there);
    CPU_SET(home, &there);
    memcpy(stay.may, &may, sizeof may);
    stay.stays = sched_setaffinity(0, sizeof there, &there) == 0;
    return stay;
}

void clv_bind_leave(const clv_bind_stay *stay)
{
    cpu_set_t may;
    if (!stay->stays) return;
    memcpy(&may, stay->may, sizeof may);
    (void)sched_setaffinity(0, sizeof may, &may);
}

const char *clv_bind_reason(clv_bind_result result)
{
    static const char *const reasons[] = {
        [CLV_BIND_DONE] = "each of its threads has a core of its own",
        [CLV_BIND_NONE] = "its threads are not bound: it runs no native kernels",
        [CLV_BIND_FEWER] = "its threads are not bound: they are not as many as this process' cores",
        [CLV_BIND_LATE] = "its threads are not bound: they did not come together",
        [CLV_BIND_OTHERS] = "its threads are not bound: it sees to that itself",
        [CLV_BIND_CALLER] = "its threads have a core each; callers go to the one that is left",
        [CLV_BIND_FAILED] = "its threads are not bound: a call failed",
    };
    return reasons[result];
}
