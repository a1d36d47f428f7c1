/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates and frees memory of the ops that grows on demand. */
#include "host/transformer/train/ops.h"

#include "base/error.h"

clv_status clv_room_fit(clv_train_ops *ops, clv_room *room, size_t count)
{
    if (room->memory && room->count >= count) return CLV_OK;
    clv_room_free(ops, room);
    CLV_TRY(ops->take(ops, count, &room->memory));
    room->count = count;
    return CLV_OK;
}

void clv_room_free(clv_train_ops *ops, clv_room *room)
{
    if (room->memory) ops->drop(ops, room->memory);
    *room = (clv_room){ 0 };
}
