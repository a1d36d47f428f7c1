/* SPDX-License-Identifier: Apache-2.0 */
/* Host or device: which side does a call's work, and why. */
#ifndef CLEAVE_OFFLOAD_H
#define CLEAVE_OFFLOAD_H

#include <cleave/runtime.h>

CLV_BEGIN_DECLS

/** Who does the work of clv_matmul and of the operations of cleave/array_math.h and array.h. */
typedef enum clv_side {
    CLV_SIDE_AUTO = 0, /**< whoever is predicted to be done first */
    CLV_SIDE_HOST,     /**< plain C, no OpenCL: the calling thread; for array.h all cores */
    CLV_SIDE_DEVICE,   /**< the context's first device that works; for array.h the balancer's */
} clv_side;

enum { CLV_OFFLOAD_REASON = 200 };

/**
 * One decision and its numbers. Predictions are of a warm call: programs built, memory at hand.
 *
 * host_s = call + work on the host; device_s = launch_s + transfer_bytes / transfer_rate + work on
 * the device. Work is timed once a device and kind of operation, at several sizes on both sides, with
 * the caller's way of handing over memory; a prediction lies between its neighbours on that curve.
 * That takes about a second (more where one call takes long) and is done when a first plan is asked
 * for (clv_offload_dry), or when calls of the kind have taken 0.1 s on the host, which does them until
 * then. Where the curve says that the sides are within a factor of 1.7, in calls of 5 us to 4 ms, both
 * are timed once more at just the call's shape and weighed with it: when a plan is asked for, or when
 * calls of that shape have taken 0.15 s; that takes about 0.1 s, and at most 1.5 s a process and kind.
 * The figures stay in tuning.txt (`cleave cache path`). Where nothing may be timed (no_tuning,
 * CLEAVE_TUNE=0, no cache directory) built-in rates stand in, and `measured` is false.
 *
 * What a process' first call of a kind adds on the device (compiling or loading its program) is
 * learnt and counted: the host does the calls until what they lose there adds up to it.
 *
 * Calls teach: each one's time moves the prediction of its side, by 10 % at most, while the context
 * lives; what a side that is not called any more showed at last fades within seconds. What calls of a
 * shape that was timed itself showed on the whole is noted with its figures at the end. Where the sides
 * are close, some calls go to the other side now and then, about 15 ms of them after 0.04 to 0.15 s of
 * calls and at last every 4 s, as a machine does not stay as it was when it was timed. So a choice may
 * change from call to call; where bits matter, and an operation does not say that both sides give the
 * same, force a side.
 *
 * Frozen.
 */
typedef struct clv_offload {
    clv_side side;         /**< HOST or DEVICE */
    bool forced;           /**< by clv_offload_force, or since there is no other side */
    bool measured;         /**< from timings; else by built-in rates */
    double flops;          /**< arithmetic of the call */
    double bytes;          /**< its operands and results */
    double transfer_bytes; /**< that would have to go to the device and back */
    double resident_bytes; /**< operands that lie on the device already */
    double host_s;         /**< predicted, of the host; 0: not asked for */
    double device_s;       /**< predicted, of the device; 0: not asked for */
    double launch_s;       /**< part of device_s that does not depend on the size */
    double host_rate;      /**< flops / host_s */
    double kernel_rate;    /**< flops / (device_s - launch_s - transfer) */
    double transfer_rate;  /**< bytes a second between host and device; 0: it works in place */
    double first_s;        /**< what this process' first such call adds; 0: it was made */
    char operation[32];    /**< "matmul", "map", ... */
    char device[96];       /**< label; "" without one */
    char reason[CLV_OFFLOAD_REASON]; /**< one sentence with the numbers */
} clv_offload;

/** Overrides the choice for this thread until the next call; returns what was in force before.
 *  DEVICE is an order: without a device that works the call fails with CLV_E_NO_DEVICE, and what
 *  fails there is not done again on the host. */
CLV_API clv_side clv_offload_force(clv_side side);

/** While it is on, this thread's calls decide only: they check their arguments, note the decision
 *  for clv_offload_last, and compute nothing. A result of theirs that has no contents may be an
 *  operand of the next: it is taken to lie on the side that was planned. Turning it on forgets the
 *  latest decision: what is told afterwards is of a call that was made meanwhile. Returns what was in
 *  force before. */
CLV_API bool clv_offload_dry(bool on);

/** The latest decision of this thread. CLV_E_ARGUMENT when there was none. */
CLV_API clv_status clv_offload_last(clv_offload *decision);

/** "host" or "device" or "auto"; static. */
CLV_API const char *clv_side_name(clv_side side);

CLV_END_DECLS

#endif
