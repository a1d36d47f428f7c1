/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies transfers by reading the data back, so that a bit error in a transfer does not reach the weights. */
#include "host/transformer/train/verified.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"

#include <string.h>

/* PIECE: bytes of the pieces into which the verification splits the data. The transfer has other pieces, so that a
 * fault at a fixed place of a piece affects different numbers. */
enum { PIECE = (1 << 20) - 4, TRIES = 3 };

static clv_status look(clv_queue *queue, const clv_buffer *buffer, size_t at, const char *host,
                       size_t bytes, char *room, bool *same)
{
    *same = true;
    for (size_t done = 0; done < bytes && *same; done += PIECE) {
        const size_t count = CLV_MIN((size_t)PIECE, bytes - done);
        CLV_TRY(clv_read(queue, buffer, at + done, room, count));
        *same = memcmp(room, host + done, count) == 0;
    }
    return CLV_OK;
}

static clv_status again(clv_queue *queue, const clv_buffer *buffer, size_t at, void *host,
                        const void *from, size_t bytes, char *room)
{
    for (int i = 0; i < TRIES; ++i) {
        bool same;
        if (from)
            CLV_TRY(clv_write(queue, (clv_buffer *)(uintptr_t)buffer, at, from, bytes));
        else
            CLV_TRY(clv_read(queue, buffer, at, host, bytes));
        CLV_TRY(look(queue, buffer, at, from ? from : host, bytes, room, &same));
        if (same) return CLV_OK;
        clv_log(CLV_LOG_WARN,
                "%s: %zu bytes that were %s had changed when they were read a second time; they "
                "are %s again",
                clv_device_label(clv_queue_device(queue)), bytes, from ? "written" : "read",
                from ? "written" : "read");
    }
    return clv_fail(CLV_E_DEVICE,
                    "%s: %zu bytes are different each time they are read; the device or its driver "
                    "is unreliable (`cleave probe --check` tests it)",
                    clv_device_label(clv_queue_device(queue)), bytes);
}

static clv_status transfer(clv_queue *queue, const clv_buffer *buffer, size_t at, void *host,
                           const void *from, size_t bytes)
{
    const size_t most = CLV_MIN((size_t)PIECE, bytes);
    if (!bytes) return CLV_OK;
    char *room = clv_alloc(most, 1);
    if (!room) return clv_fail(CLV_E_MEMORY, "training: not enough memory for %zu bytes", most);
    const clv_status status = again(queue, buffer, at, host, from, bytes, room);
    clv_free(room);
    return status;
}

clv_status clv_read_verified(clv_queue *queue, const clv_buffer *buffer, size_t at, void *host,
                             size_t bytes)
{
    return transfer(queue, buffer, at, host, NULL, bytes);
}

clv_status clv_write_verified(clv_queue *queue, clv_buffer *buffer, size_t at, const void *host,
                              size_t bytes)
{
    return transfer(queue, buffer, at, NULL, host, bytes);
}
