/* SPDX-License-Identifier: Apache-2.0 */
/* Declares transfers that are verified by reading the data back. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_VERIFIED_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_VERIFIED_H

#include <cleave/runtime.h>

/* Read and write like clv_read and clv_write, but read the data a second time. If the two copies differ, repeat the
 * transfer and log a warning. Return CLV_E_DEVICE if the copies differ every time. */
clv_status clv_read_verified(clv_queue *queue, const clv_buffer *buffer, size_t at, void *host,
                             size_t bytes);
clv_status clv_write_verified(clv_queue *queue, clv_buffer *buffer, size_t at, const void *host,
                              size_t bytes);

#endif
