/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels written at run time. */
#include "runtime/program/texts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/record/context.h"

#include <string.h>

typedef struct clv_texts {
    struct clv_texts *next;
    clv_cl_source source;
    char text[];
} clv_texts;

clv_status clv_texts_get(clv_context *context, const char *name, const char *text, size_t length,
                         const clv_cl_source **source)
{
    pthread_mutex_lock(&context->array_lock);
    clv_texts *t = context->texts;
    while (t && (t->source.length != length || memcmp(t->text, text, length) != 0))
        t = t->next;
    if (!t && (t = clv_zalloc(1, sizeof *t + length + 1))) {
        memcpy(t->text, text, length);
        t->source = (clv_cl_source){ .name = name, .text = t->text, .length = length };
        t->next = context->texts;
        context->texts = t;
    }
    pthread_mutex_unlock(&context->array_lock);
    if (!t) return clv_fail(CLV_E_MEMORY, "%s: no memory for a kernel's text", name);
    *source = &t->source;
    return CLV_OK;
}

void clv_texts_free(struct clv_texts *texts)
{
    while (texts) {
        clv_texts *t = texts;
        texts = t->next;
        clv_free(t);
    }
}
