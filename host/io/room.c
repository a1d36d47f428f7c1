/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the memory that the contents of a file may take when they are unpacked. */
#include "host/io/room.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdatomic.h>

static _Atomic uint64_t chosen;

void clv_io_set_room(uint64_t bytes)
{
    chosen = bytes;
}

uint64_t clv_io_room(void)
{
    return chosen ? chosen : clv_memory_free() / 2;
}

clv_status clv_io_need(const char *path, const char *what, uint64_t bytes)
{
    char needed[16], most[16];
    const uint64_t room = clv_io_room();
    if (bytes <= room) return CLV_OK;
    return clv_fail(CLV_E_MEMORY,
                    "%s: %s it needs at least %s of memory, but only %s may be used (%s); if the "
                    "file is correct, allow more with --mem-limit",
                    path, what, clv_format_bytes(bytes, needed), clv_format_bytes(room, most),
                    chosen ? "--mem-limit" : "half of what is free");
}
