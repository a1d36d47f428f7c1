/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the ops of training on the devices of a context. */
#include "host/transformer/train/ops.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "runtime/device/queue.h"
#include "runtime/job/turn.h"
#include "runtime/record/context.h"

#include <string.h>

/* The usual number of rows of C in a batch of texts. */
enum { USUAL_ROWS = 1024 };

/* Opens the ops on a new queue of the device. `form` NULL: chooses the fastest form of products by measurements. */
static clv_status open_on(clv_context *context, clv_device *device, const clv_gemm_form *form,
                          clv_train_ops **ops)
{
    clv_queue *queue;
    clv_gemm_form chosen;
    clv_status status = CLV_OK;
    CLV_TRY(clv_queue_create(device, &queue));
    if (!form) {
        const bool locked = clv_jobs_lock(context); /* choosing measures, and stores the choice */
        status = clv_gemm_choose(context, queue, USUAL_ROWS, &chosen);
        if (locked) clv_jobs_unlock(context);
    }
    if (!status) status = clv_train_ops_on(queue, true, form ? form : &chosen, ops);
    if (status) clv_queue_free(queue);
    return status;
}

clv_status clv_train_ops_open(clv_context *context, char *label, size_t room, clv_train_ops **ops)
{
    *ops = NULL;
    for (size_t i = 0; i < clv_context_device_count(context); ++i) {
        clv_device *device = clv_context_device(context, i);
        clv_copy_string(label, room, clv_device_label(device));
        if (!open_on(context, device, NULL, ops)) return CLV_OK;
        clv_log(CLV_LOG_WARN, "%s cannot be used for training: %s", clv_device_label(device),
                clv_error_message());
    }
    clv_copy_string(label, room, "host");
    return clv_train_ops_plain(ops);
}

clv_status clv_train_ops_alike(clv_context *context, size_t index, const clv_train_ops *like,
                               clv_train_ops **ops)
{
    clv_gemm_form form;
    clv_device *device = clv_context_device(context, index);
    const clv_device *mine = clv_queue_device(clv_train_ops_queue(like, &form));
    const clv_probe_device *a = clv_device_facts(mine), *b = clv_device_facts(device);
    *ops = NULL;
    if (device == mine || (device->pool_group >= 0 && device->pool_group == mine->pool_group) ||
        strcmp(a->name, b->name) != 0 || strcmp(a->driver_version, b->driver_version) != 0 ||
        a->device_class != b->device_class)
        return CLV_OK;
    return open_on(context, device, &form, ops);
}
