/* SPDX-License-Identifier: Apache-2.0 */
/* An in-order queue whose every command is checked, timed and counted. */
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
    double kernel_s; /* by events; negative once a time could not be trusted */
    double transfer_s;
    uint64_t bytes_to_device, bytes_from_device;
    uint64_t launches;
    uint64_t cold_launches; /* first ones of a program: their time says nothing about the next */
} clv_queue_stats;

/* A command that was enqueued and not looked at since. */
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
    struct clv_kernel *kernels; /* of its thread; device/kernel.h */
    clv_pending *pending;
    size_t pending_count, pending_capacity;
    bool
        rehearsing; /* launches are only noted (program/ahead.h); other commands do nothing, reads give zeros */
    bool timed;            /* its driver notes when commands begin and end */
    unsigned track;        /* number of the queue on its device, for traces */
    struct clv_held *held; /* device/held.h */
    clv_queue_stats stats;
};

/* As clv_queue_create, but with event times also on a device where nobody asked for them: for tuning. */
clv_status clv_queue_create_timed(clv_device *device, clv_queue **out);

/* After a successful clEnqueue...: takes the event over, notes it, hands a copy to `done`. */
clv_status clv_queue_note(clv_queue *queue, cl_event event, clv_command command, const char *name,
                          size_t bytes, clv_event **done);

/* Waits after a failure as well, which it passes on with its message; else as clv_queue_wait. */
clv_status clv_queue_finish(clv_queue *queue, clv_status status);
/* Waits, whatever comes of it: this thread's last message stays. */
void clv_queue_drain(clv_queue *queue);

/* Hands commands to the device without waiting. */
void clv_queue_flush(clv_queue *queue);

/* One strided copy of a box, host to device, into dense memory; and back, where what lies between its
 * rows is not touched. */
clv_status clv_write_box_enqueue(clv_queue *queue, clv_buffer *buffer, const void *host,
                                 size_t element_bytes, const size_t extent[3],
                                 const size_t stride[3]);
clv_status clv_read_box_enqueue(clv_queue *queue, const clv_buffer *buffer, void *host,
                                size_t element_bytes, const size_t extent[3],
                                const size_t stride[3]);
/* Makes device memory visible to the host in place: what maps to (zero-copy results). */
clv_status clv_map_enqueue(clv_queue *queue, clv_buffer *buffer, bool write, void **host);
clv_status clv_unmap_enqueue(clv_queue *queue, clv_buffer *buffer, void *host);

#endif
