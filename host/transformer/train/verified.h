/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers whose result is looked at again. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_VERIFIED_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_VERIFIED_H

#include <cleave/runtime.h>

/* As clv_read and clv_write; what differs at a second look is brought again, which the log tells.
 * CLV_E_DEVICE: it differs every time. */
clv_status clv_read_verified(clv_queue *queue, const clv_buffer *buffer, size_t at, void *host,
                             size_t bytes);
clv_status clv_write_verified(clv_queue *queue, clv_buffer *buffer, size_t at, const void *host,
                              size_t bytes);

#endif
