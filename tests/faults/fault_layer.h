/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL layer (OPENCL_LAYERS) with which tests make drivers fail, lie and hang.
 *
 * What goes wrong is one string: from $CLEAVE_FAULTS when the loader loads the layer, later from
 * fault_layer_set, which tests find by dlsym. Faults are separated by ';':
 *
 *   on=N         only on device N: 0 is whole, 1, 2... are the parts of a split one; else on all
 *   code=C       the code of failing commands [-5, CL_OUT_OF_RESOURCES]
 *   buffer=K     the K-th clCreateBuffer fails
 *   budget=B     kernels fail while buffers hold more than B bytes: lazily, as drivers do
 *   enqueue=K    the K-th command fails when it is enqueued
 *   every=K      so does every K-th of all
 *   event=K      the K-th kernel is accepted, and its event ends with `code`
 *   lost=K       after K commands the device is gone: whatever it is asked fails
 *   throttle=S   a kernel takes S seconds longer for each work-item
 *   hang=K:S     the K-th kernel takes S seconds longer
 *   hold=K       the K-th kernel does not end before fault_layer_release
 *   build=K      the K-th clBuildProgram fails, with a build log
 *   binary=1     program binaries are refused
 *   save=1       the process ends by SIGABRT when a program's binaries are asked for
 *   wrong=K      one bit of what the K-th clEnqueueReadBuffer brings is wrong; 0: of all
 *   times=1      profiling says that every command took a nanosecond
 *   call=K       the K-th call that may fail does, whichever it is
 *   chance=P     every command fails with that probability, by a generator of its own,
 *   seed=N       which starts with this
 *
 * At the end of the process, how many calls could have failed goes to the file $CLEAVE_FAULTS_COUNT.
 */
#ifndef CLEAVE_TESTS_FAULT_LAYER_H
#define CLEAVE_TESTS_FAULT_LAYER_H

typedef struct fault_stats {
    unsigned long calls;    /* that may fail, since the last fault_layer_set */
    unsigned long injected; /* faults that happened, likewise */
    unsigned long kernels;  /* launched, likewise */
    unsigned long early;    /* buffers released while a kernel that uses them was under way */
    long live;              /* OpenCL objects that somebody still holds */
    long waiting;           /* threads that wait for a kernel that is held */
} fault_stats;

typedef int fault_set(const char *faults); /* 0: not understood */
typedef fault_stats fault_get(void);
typedef unsigned fault_release(void); /* how many kernels were held */

#endif
