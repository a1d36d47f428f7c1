/* SPDX-License-Identifier: Apache-2.0 */
/* Implements clv_decoder, a language model together with one sequence. */
#include "host/transformer/generate/language.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <cleave/init.h>

#include <math.h>

struct clv_decoder {
    clv_language *language;
    clv_sequence *sequence;
    clv_decoder_config config;
};

clv_status clv_decoder_open(clv_context *context, const char *path, size_t positions,
                            clv_decoder **out)
{
    clv_language_options options = CLV_INIT(clv_language_options);
    if (!out) return clv_fail(CLV_E_ARGUMENT, "decoder: out is NULL");
    *out = NULL;
    if (!context || !path) return clv_fail(CLV_E_ARGUMENT, "decoder: context or path is NULL");
    clv_decoder *d = clv_zalloc(1, sizeof *d);
    if (!d) return clv_fail(CLV_E_MEMORY, "decoder: out of memory");
    options.context = positions ? positions : SIZE_MAX; /* SIZE_MAX: all the model's positions */
    clv_status status = clv_lm_language_open(context, path, false, &options, &d->language);
    if (!status) status = clv_sequence_create(d->language, &d->sequence);
    if (status) {
        clv_decoder_close(d);
        return status;
    }
    const clv_lm_config *c = &d->language->model->config;
    d->config = (clv_decoder_config){ .width = c->width,
                                      .heads = c->heads,
                                      .kv_heads = c->kv_heads,
                                      .layers = c->layers,
                                      .ffn = c->ffn,
                                      .vocabulary = c->vocabulary,
                                      .positions = d->language->room,
                                      .eps = c->eps,
                                      .rope_base = c->base,
                                      .tied = c->tied };
    *out = d;
    return CLV_OK;
}

void clv_decoder_close(clv_decoder *d)
{
    if (!d) return;
    clv_sequence_free(d->sequence);
    clv_language_close(d->language);
    clv_free(d);
}

const clv_decoder_config *clv_decoder_get_config(const clv_decoder *d)
{
    return d ? &d->config : NULL;
}

clv_status clv_decoder_feed(clv_decoder *d, size_t first, const int32_t *ids, size_t count,
                            float *scores)
{
    if (!d || !ids || !scores || !count)
        return clv_fail(CLV_E_ARGUMENT, "decoder: an argument is NULL, or there is no token");
    if (first > d->sequence->count)
        return clv_fail(
            CLV_E_ARGUMENT,
            "decoder: cannot continue after the first %zu tokens, because only %zu are kept", first,
            d->sequence->count);
    CLV_TRY(clv_sequence_rewind(d->sequence, first));
    return clv_sequence_feed(d->sequence, ids, count, scores);
}

clv_status clv_generate(clv_decoder *d, const int32_t *prompt, size_t prompt_count,
                        const clv_generate_options *given, int32_t *made, size_t *count)
{
    clv_generate_options o = { .size = sizeof(clv_generate_options) };
    clv_sampling sampling = CLV_INIT(clv_sampling);
    if (!d || !given || !made || !count)
        return clv_fail(CLV_E_ARGUMENT, "generate: decoder, options, made or count is NULL");
    *count = 0;
    CLV_TRY(clv_take_struct(&o, sizeof o, given, "clv_generate", "clv_generate_options"));
    sampling.temperature = o.temperature, sampling.top_k = o.top_k, sampling.seed = o.seed;
    CLV_TRY(clv_sequence_rewind(d->sequence, 0));
    clv_status status = clv_sequence_feed(d->sequence, prompt, prompt_count, NULL);
    for (size_t i = 0; i < o.tokens && !status; ++i) {
        const clv_sequence *s = d->sequence;
        status = clv_sample(s->scores, d->config.vocabulary, &sampling, s->tokens, s->count,
                            s->count, &made[i]);
        status = clv_lm_blame(s->language->model, status);
        if (status) break;
        *count = i + 1;
        if ((o.stops && made[i] == o.stop) || s->count >= d->config.positions || i + 1 == o.tokens)
            break;
        status = clv_sequence_feed(d->sequence, &made[i], 1, NULL);
    }
    if (status) *count = 0;
    return status;
}
