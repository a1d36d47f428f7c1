/* SPDX-License-Identifier: Apache-2.0 */
/* Declares an in-order queue that checks, times and counts every command. */
#ifndef CLEAVE_RUNTIME_DEVICE_QUEUE_H
#define CLEAVE_RUNTIME_DEVICE_QUEUE_H

#include "runtime/record/device.h"

typedef enum clv_command {
    CLV_COMMAND_KERNEL,
    CLV_COMMAND_UPLOAD,
    CLV_COMMAND_DOWNLOAD,
    CLV_COMMAND_OTHER
} clv_command;

typedef struct clv_queue_stats {
    double kernel_s; /* from event times; negative once an event time could not be trusted */
    double transfer_s;
    uint64_t bytes_to_device, bytes_from_device;
    uint64_t launches;
    uint64_t cold_launches; /* first launches of a program, not typical of later ones */
} clv_queue_stats;

/* A command that was enqueued and whose result has not been checked yet. */
typedef struct clv_pending {
    cl_event event;
    clv_command command;
    const char *name; /* kernel name, or "write"...: static lifetime or owned by the queue */
    size_t bytes;
    double enqueued; /* host clock */
} clv_pending;

struct clv_queue {
    clv_device *device;
    cl_command_queue cl;
    struct clv_kernel *kernels; /* for the queue's thread; device/kernel.h */
    clv_pending *pending;
    size_t pending_count, pending_capacity;
    bool
        rehearsing; /* launches are only noted (program/ahead.h); other commands do nothing, reads give zeros */
    bool timed;            /* the driver notes when its commands begin and end */
    unsigned track;        /* number of the queue on its device, for traces */
    struct clv_held *held; /* device/held.h */
    clv_queue_stats stats;
};

/* Creates a queue like clv_queue_create, but with event times even if the context does not ask for them. For tuning. */
clv_status clv_queue_create_timed(clv_device *device, clv_queue **out);

/* Notes a command after a successful clEnqueue... call. Takes over the event, and returns a copy in `done`. */
clv_status clv_queue_note(clv_queue *queue, cl_event event, clv_command command, const char *name,
                          size_t bytes, clv_event **done);

/* Waits like clv_queue_wait. If `status` is a failure, waits as well, and then returns `status` and restores its
 * message. */
clv_status clv_queue_finish(clv_queue *queue, clv_status status);
/* Waits and ignores the result, so that this thread's last error message stays. */
void clv_queue_drain(clv_queue *queue);

/* Hands the queue's commands to the device without waiting for them. */
void clv_queue_flush(clv_queue *queue);

/* Copies a strided box from the host into dense memory of the device with one command, or back. Copies to the host
 * leave the gaps between the box's rows untouched. */
clv_status clv_write_box_enqueue(clv_queue *queue, clv_buffer *buffer, const void *host,
                                 size_t element_bytes, const size_t extent[3],
                                 const size_t stride[3]);
clv_status clv_read_box_enqueue(clv_queue *queue, const clv_buffer *buffer, void *host,
                                size_t element_bytes, const size_t extent[3],
                                const size_t stride[3]);
/* Maps device memory for the host in place, so that results need no copy. *host is the memory's address. */
clv_status clv_map_enqueue(clv_queue *queue, clv_buffer *buffer, bool write, void **host);
clv_status clv_unmap_enqueue(clv_queue *queue, clv_buffer *buffer, void *host);

#endif
