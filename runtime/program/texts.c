/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the source texts of kernels that are written at run time. */
#include "runtime/program/texts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/record/context.h"

#include <string.h>

typedef struct text {
    struct text *next;
    clv_cl_source source;
    char text[];
} text;

struct clv_texts {
    clv_mutex lock;
    text *first;
};

clv_status clv_texts_make(clv_context *context)
{
    context->texts = clv_zalloc(1, sizeof *context->texts);
    if (!context->texts) return clv_fail(CLV_E_MEMORY, "not enough memory for a context");
    clv_mutex_init(&context->texts->lock);
    return CLV_OK;
}

clv_status clv_texts_get(clv_context *context, const char *name, const char *words, size_t length,
                         const clv_cl_source **source)
{
    struct clv_texts *texts = context->texts;
    pthread_mutex_lock(&texts->lock);
    text *t = texts->first;
    while (t && (t->source.length != length || memcmp(t->text, words, length) != 0))
        t = t->next;
    if (!t && (t = clv_zalloc(1, sizeof *t + length + 1))) {
        memcpy(t->text, words, length);
        t->source = (clv_cl_source){ .name = name, .text = t->text, .length = length };
        t->next = texts->first;
        texts->first = t;
    }
    pthread_mutex_unlock(&texts->lock);
    if (!t) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a kernel's text", name);
    *source = &t->source;
    return CLV_OK;
}

void clv_texts_free(clv_context *context)
{
    struct clv_texts *texts = context->texts;
    if (!texts) return;
    while (texts->first) {
        text *t = texts->first;
        texts->first = t->next;
        clv_free(t);
    }
    pthread_mutex_destroy(&texts->lock);
    clv_free(texts);
    context->texts = NULL;
}
