/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: a language model continues a sentence, if $CLEAVE_MODEL or the tests' $CLEAVE_SMOLLM2 names a
 * model. Its scores are compared with those of plain C. */
#include "host/demo/demo.h"
#include "host/synthetic/worse.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

#include <cleave/generate.h>
#include <cleave/init.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MADE = 24, CONTEXT = 128 };

static const char prompt[] = "A telescope collects light from distant";
static const double limit = 1e-3; /* largest difference of a score */

static const char *model_path(void)
{
    static const char *const names[] = { "CLEAVE_MODEL", "CLEAVE_SMOLLM2" };
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        const char *path = getenv(names[i]);
        if (path && *path) return path;
    }
    return NULL;
}

bool demo_has_model(void)
{
    return model_path() != NULL;
}

const char *demo_lost_model(void)
{
    const char *path = model_path();
    return path && access(path, R_OK) ? path : NULL;
}

/* An open model with the prompt's tokens; `context` NULL: in plain C. */
typedef struct speaker {
    clv_language *language;
    clv_sequence *sequence;
    clv_token_rows tokens;
    size_t vocabulary;
} speaker;

static void close_speaker(speaker *s)
{
    clv_sequence_free(s->sequence);
    clv_language_close(s->language);
    clv_token_rows_clear(&s->tokens);
}

static clv_status open_speaker(clv_context *context, speaker *s)
{
    const char *text = prompt;
    clv_language_options options = CLV_INIT(clv_language_options);
    clv_language_info info = CLV_INIT(clv_language_info);
    options.context = CONTEXT;
    CLV_TRY(clv_language_open(context, model_path(), &options, &s->language));
    CLV_TRY(clv_language_get_info(s->language, &info));
    s->vocabulary = info.vocabulary;
    CLV_TRY(clv_tokenize(clv_language_tokenizer(s->language), &text, NULL, 1, NULL, &s->tokens));
    return clv_sequence_create(s->language, &s->sequence);
}

static clv_status feed_prompt(speaker *s, const float **scores)
{
    CLV_TRY(clv_sequence_rewind(s->sequence, 0));
    CLV_TRY(clv_sequence_feed(s->sequence, s->tokens.ids, s->tokens.tokens, NULL));
    return clv_sequence_scores(s->sequence, scores);
}

/* Runs the prompt in plain C, compares its scores with `got`, and estimates how long everything would take. */
static clv_status check(const speaker *device, const float *got, size_t made, demo_row *row)
{
    speaker plain = { 0 };
    const float *want = NULL;
    double worst = 0;
    clv_status status = open_speaker(NULL, &plain);
    const double started = clv_now();
    if (!status) status = feed_prompt(&plain, &want);
    const double tokens = (double)plain.tokens.tokens;
    if (!status) row->reference_s = (clv_now() - started) * (tokens + (double)made) / tokens;
    for (size_t i = 0; i < device->vocabulary && !status; ++i)
        worst = cli_worse(worst, fabs((double)want[i] - (double)got[i]));
    const bool good = worst <= limit;
    if (!status)
        clv_text_add(&row->notes, "%s plain C: largest difference of a score %.1g (limit %g)\n",
                     good ? "agrees with" : "DIFFERS FROM", worst, limit);
    row->ok = row->ok && good;
    close_speaker(&plain);
    return status;
}

/* Adds the prompt and its continuation to the notes, as one line. */
static void tell_text(const char *text, demo_row *row)
{
    clv_text_add(&row->notes, "%s", prompt);
    for (; *text; ++text)
        clv_text_add(&row->notes, "%c", *text == '\n' ? ' ' : *text);
    clv_text_add(&row->notes, "\n");
}

static clv_status speak(speaker *s, demo_row *row, clv_written *written)
{
    clv_writing w = CLV_INIT(clv_writing);
    const float *scores;
    w.tokens = MADE, w.ignore_end = true;
    for (demo_runs r = { 0 }; demo_next_run(&r, row);) {
        clv_free(written->tokens), clv_free(written->text);
        *written = (clv_written)CLV_INIT(clv_written);
        CLV_TRY(feed_prompt(s, &scores));
        CLV_TRY(clv_sequence_write(s->sequence, &w, written));
    }
    return CLV_OK;
}

static clv_status run(speaker *s, demo_row *row)
{
    clv_written written = CLV_INIT(clv_written);
    clv_language_share share = CLV_INIT(clv_language_share);
    const float *scores;
    clv_status status = speak(s, row, &written);
    if (!status) status = feed_prompt(s, &scores);
    if (!status) {
        tell_text(written.text, row);
        snprintf(row->input, sizeof row->input, "%zu tokens of a prompt", s->tokens.tokens);
        snprintf(row->found, sizeof row->found, "%zu tokens, %.0f a second", written.count,
                 (double)(written.count - 1) / written.rest_s);
        row->ok = written.count == MADE;
        status = check(s, scores, written.count, row);
    }
    if (!status && !clv_language_get_share(s->language, 0, &share))
        snprintf(row->by, sizeof row->by, "%s", share.device);
    clv_free(written.tokens), clv_free(written.text);
    return status;
}

clv_status demo_generate(const demo_stage *stage, demo_row *row)
{
    speaker s = { 0 };
    if (stage->preparing) return CLV_OK; /* the kernels depend on the model's types */
    clv_context *context = clv_context_device_count(stage->context) ? stage->context : NULL;
    clv_status status = open_speaker(context, &s);
    if (!status) status = run(&s, row);
    close_speaker(&s);
    return status;
}
