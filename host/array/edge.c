/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the pixels that stand in for pixels beyond the border of an image. */
#include "host/array/edge.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

static const char *const names[] = { "reflect", "constant", "nearest", "mirror", "wrap" };

const char *clv_edge_name(clv_edge edge)
{
    return (size_t)edge < CLV_LEN(names) ? names[edge] : "unknown";
}

clv_status clv_edge_parse(const char *name, clv_edge *edge)
{
    if (!name || !edge) return clv_fail(CLV_E_ARGUMENT, "edge: name or result is NULL");
    for (size_t i = 0; i < CLV_LEN(names); ++i)
        if (strcmp(name, names[i]) == 0) {
            *edge = (clv_edge)i;
            return CLV_OK;
        }
    return clv_fail(CLV_E_ARGUMENT,
                    "edge is \"%s\"; expected reflect, constant, nearest, mirror or wrap", name);
}

/* Returns `at` modulo `period`, never negative. */
static int64_t modulo(int64_t at, int64_t period)
{
    const int64_t rest = at % period;
    return rest < 0 ? rest + period : rest;
}

int64_t clv_edge_index(clv_edge edge, int64_t at, int64_t length)
{
    if (at >= 0 && at < length) return at;
    switch (edge) {
    case CLV_EDGE_CONSTANT:
        return -1;
    case CLV_EDGE_NEAREST:
        return at < 0 ? 0 : length - 1;
    case CLV_EDGE_WRAP:
        return modulo(at, length);
    case CLV_EDGE_MIRROR: {
        if (length == 1) return 0;
        const int64_t in = modulo(at, 2 * (length - 1));
        return in < length ? in : 2 * (length - 1) - in;
    }
    case CLV_EDGE_REFLECT:
        break;
    }
    const int64_t in = modulo(at, 2 * length);
    return in < length ? in : 2 * length - 1 - in;
}
