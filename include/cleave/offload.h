/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the side, host or device, that computes a call, and reports the reasons. */
#ifndef CLEAVE_OFFLOAD_H
#define CLEAVE_OFFLOAD_H

#include <cleave/runtime.h>

CLV_BEGIN_DECLS

/** Which side computes clv_matmul and the operations of cleave/array_math.h and array.h. */
typedef enum clv_side {
    CLV_SIDE_AUTO = 0, /**< the side that is predicted to finish first */
    CLV_SIDE_HOST,     /**< plain C without OpenCL, on the calling thread (array.h: on all cores) */
    CLV_SIDE_DEVICE,   /**< the first device that works (for array.h: all devices of the context) */
} clv_side;

enum { CLV_OFFLOAD_REASON = 200 };

/**
 * The decision on which side computes a call, and the numbers behind it. Predictions are for a warm call, with programs
 * built and memory allocated.
 *
 * host_s = time of the call itself + work on the host; device_s = launch_s + transfer_bytes / transfer_rate + work on
 * the device. The library times the work once per device and kind of operation, at several sizes on both sides, with
 * memory passed in the way in which your calls pass it. A prediction is interpolated on the curve through these times.
 * Timing takes about a second (more if one call takes long). It happens when you first ask for a plan
 * (clv_offload_dry), or as soon as the host, which computes calls of that kind until then, has spent 0.1 s on them. If
 * you ask for a plan, and the curve says that the sides are within a factor of 2 and that the call takes 5 us to 4 ms,
 * the library also times both sides at exactly the call's shape and combines the result with the curve. That takes
 * about 0.1 s, and at most 1.5 s per process and kind. The results are kept in tuning.txt (`cleave cache path`). If
 * timing is not allowed or its results cannot be kept (no_tuning, CLEAVE_TUNE=0, no cache directory), built-in rates
 * are used, and `measured` is false.
 *
 * The first call of a kind in a process takes longer on the device, because its program is compiled or loaded. The
 * library learns this extra time and takes it into account: the host computes such calls until the time lost by not
 * using the device adds up to this extra time.
 *
 * Predictions follow the calls: the time of each call moves the prediction for its side by a limited step, as long as
 * the context lives; what was learnt about a side fades while calls go to the other side. For a call shape for which
 * both sides take nearly the same time, the library keeps separate times and saves them when the context is freed. From
 * time to time, some calls of such a shape, about 15 ms in all, go to the side that is predicted to be slower, because
 * the speed of a machine changes. The choice may therefore change from call to call. If you need the same bits every
 * time, and the operation does not say that both sides give the same bits, force a side.
 *
 * Frozen.
 */
typedef struct clv_offload {
    clv_side side; /**< HOST or DEVICE */
    bool forced;   /**< you forced the side (clv_offload_force), or there is no other side */
    bool measured; /**< true: predicted from timings; false: from built-in rates */
    double flops;  /**< arithmetic of the call */
    double bytes;  /**< size of its operands and results */
    double transfer_bytes; /**< bytes that would have to go to the device and back */
    double resident_bytes; /**< size of the operands that are on the device already */
    double host_s;         /**< prediction for the host; 0: not computed */
    double device_s;       /**< prediction for the device; 0: not computed */
    double launch_s;       /**< part of device_s that does not depend on the size */
    double host_rate;      /**< flops / host_s */
    double kernel_rate;    /**< flops / (device_s - launch_s - time of the transfers) */
    double transfer_rate;  /**< bytes per second between host and device; 0: nothing is copied */
    double first_s;        /**< extra seconds of a first call of its kind; 0: not the first */
    char operation[32];    /**< "matmul", "map", ... */
    char device[96];       /**< the device's label; "" if there is no device */
    char reason[CLV_OFFLOAD_REASON]; /**< one sentence with the numbers */
} clv_offload;

/** Overrides the choice for this thread until you call it again; returns the previous setting. CLV_SIDE_DEVICE is
 *  binding: if no device works, calls fail with CLV_E_NO_DEVICE, and the host does not repeat a call that fails on the
 *  device. */
CLV_API clv_side clv_offload_force(clv_side side);

/** Turns planning on or off for this thread and returns the previous setting. While it is on, the thread's calls only
 *  decide: they check their arguments, record the decision for clv_offload_last, and compute nothing. The result of
 *  such a call stays empty, but may be an operand of the next call, which assumes that it lies on the planned side.
 *  Turning planning on forgets the latest decision, so clv_offload_last then reports only later calls. */
CLV_API bool clv_offload_dry(bool on);

/** Gets the latest decision of this thread. Returns CLV_E_ARGUMENT if there is none. */
CLV_API clv_status clv_offload_last(clv_offload *decision);

/** Returns "host", "device" or "auto"; static. */
CLV_API const char *clv_side_name(clv_side side);

CLV_END_DECLS

#endif
