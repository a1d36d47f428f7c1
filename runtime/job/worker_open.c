/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a worker on its device's thread, opens its device and gets its queues. */
#include "runtime/job/run.h"

#include "runtime/device/device.h"
#include "runtime/device/feeder.h"
#include "runtime/device/queue.h"

bool clv_worker_start(clv_worker *worker, void (*body)(void *worker))
{
    clv_run *run = worker->run;
    clv_feeder *feeder;
    pthread_mutex_lock(&run->lock);
    ++run->holders;
    pthread_mutex_unlock(&run->lock);
    clv_status status = clv_feeder_get(worker->device, &feeder);
    if (!status) {
        worker->call = (clv_feeder_call){ .body = body, .argument = worker };
        clv_feeder_submit(feeder, &worker->call);
        return true;
    }
    pthread_mutex_lock(&run->lock);
    --run->holders;
    worker->gone = true;
    clv_error_take(&worker->error, status);
    pthread_mutex_unlock(&run->lock);
    return false;
}

clv_status clv_worker_open(clv_worker *worker)
{
    clv_feeder *feeder = worker->device->feeder;
    CLV_TRY(clv_device_open(worker->device));
    worker->depth = worker->device->depth;
    for (unsigned i = 0; i < worker->depth; ++i) {
        clv_slot *slot = &worker->slots[i];
        CLV_TRY(clv_feeder_queue(feeder, i, &slot->queue));
        slot->worker = worker;
        worker->stats_before[i] = slot->queue->stats;
        slot->queue->stats.kernel_s = 0; /* forgets a time that could not be trusted */
        worker->stats_before[i].kernel_s = 0;
    }
    worker->queue = worker->slots[0].queue;
    return CLV_OK;
}
