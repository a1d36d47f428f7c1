/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers that are verified by reading the data back. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_VERIFIED_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_VERIFIED_H

#include <cleave/runtime.h>

/* Like clv_read and clv_write, but the data are read a second time; if they differ, the transfer is repeated and
 * the log says so. Returns CLV_E_DEVICE if they differ every time. */
clv_status clv_read_verified(clv_queue *queue, const clv_buffer *buffer, size_t at, void *host,
                             size_t bytes);
clv_status clv_write_verified(clv_queue *queue, clv_buffer *buffer, size_t at, const void *host,
                              size_t bytes);

#endif
