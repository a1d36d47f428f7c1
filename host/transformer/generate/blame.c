/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out why the scores of a language model are no numbers. */
#include "host/transformer/generate/model.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>

enum { ROOM = 16384 }; /* weights that are read at once */

static clv_status look(const clv_lm_model *m, const clv_lm_tensor *t, float room[ROOM])
{
    const size_t all = t->name ? t->rows * t->columns : 0;
    for (size_t at = 0; at < all; at += ROOM) {
        const size_t count = CLV_MIN(all - at, (size_t)ROOM);
        CLV_TRY(t->block ? clv_gguf_read_f32(m->gguf, t->block, at, count, room)
                         : clv_tensors_read_f32(m->shards[t->file], t->plain, at, count, room));
        for (size_t i = 0; i < count; ++i)
            if (!isfinite(room[i]))
                return clv_fail(CLV_E_FORMAT,
                                "%s: weight %zu of tensor \"%s\" is %g, so the scores of this "
                                "model are no numbers; the file is damaged, or its training failed",
                                m->path, at + i, t->name, (double)room[i]);
    }
    return CLV_OK;
}

static clv_status look_at_all(const clv_lm_model *m, float room[ROOM])
{
    for (size_t i = 0; i < CLV_LM_MODEL_ROLES; ++i)
        CLV_TRY(look(m, &m->top[i], room));
    for (size_t l = 0; l < m->config.layers; ++l)
        for (size_t i = CLV_LM_MODEL_ROLES; i < CLV_LM_ROLES; ++i)
            CLV_TRY(look(m, &m->layers[l][i], room));
    return CLV_OK;
}

clv_status clv_lm_blame(const clv_lm_model *m, clv_status status)
{
    if (status != CLV_E_WRONG_RESULT) return status;
    float *room = clv_alloc(ROOM, sizeof *room);
    const clv_status found = room ? look_at_all(m, room) : CLV_OK;
    clv_free(room);
    return found == CLV_E_FORMAT ? found : status;
}
