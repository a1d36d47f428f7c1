/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what `cleave generate` returns: the text, the summary line, JSON. */
#include "host/cli/generate/generate.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

#include <cleave/init.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

clv_status generate_lost_output(void)
{
    const int reason = errno;
    if (cli_interrupted()) return clv_fail(CLV_E_CANCELLED, "interrupted");
    return clv_fail(CLV_E_IO, "standard output: cannot write: %s", strerror(reason));
}

/* ---- text ------------------------------------------------------------------------------------------ */

typedef struct printer {
    bool on, failed, in_line, on_terminal;
} printer;

static int print_piece(const char *text, size_t length, int32_t id, void *user)
{
    printer *p = user;
    (void)id;
    if (p->on && length) {
        if (p->on_terminal) /* the model's text may contain escape sequences */
            cli_say(stdout, "%.*s", (int)length, text);
        else
            p->failed = p->failed || fwrite(text, 1, length, stdout) != length;
        p->failed = p->failed || fflush(stdout);
        p->in_line = text[length - 1] != '\n';
    }
    return p->failed || cli_interrupted();
}

clv_status generate_write(generate_state *s, bool to_stdout, clv_written *written)
{
    const generate_args *a = s->args;
    clv_writing w = CLV_INIT(clv_writing);
    printer p = { .on = to_stdout && !a->no_stream, .on_terminal = isatty(STDOUT_FILENO) };
    w.tokens = (size_t)a->tokens;
    w.sampling = &s->sampling;
    w.stops = a->stops.items;
    w.ignore_end = a->ignore_eos;
    w.piece = print_piece, w.user = &p;
    w.lookup = (size_t)a->lookup;
    *written = (clv_written)CLV_INIT(clv_written);
    const clv_status status = clv_sequence_write(s->sequence, &w, written);
    if (to_stdout && a->no_stream && written->text) {
        p.on = true;
        (void)print_piece(written->text, written->length, 0, &p);
    }
    if (to_stdout && p.in_line) p.failed = p.failed || fputc('\n', stdout) == EOF || fflush(stdout);
    if (!status && p.failed) return generate_lost_output();
    return status;
}

void generate_clear(clv_written *written)
{
    clv_free(written->tokens), clv_free(written->text);
    *written = (clv_written)CLV_INIT(clv_written);
}

/* ---- the line at the end --------------------------------------------------------------------------- */

static double rate(double count, double seconds)
{
    return seconds > 0 ? count / seconds : 0;
}

/* Returns tokens per second; the tokens after the first one took rest_s. */
static double speed(const clv_written *w)
{
    return w->count > 1 ? rate((double)(w->count - 1), w->rest_s) : 0;
}

void generate_summarize(const generate_state *s, const clv_written *w)
{
    uint64_t bytes = 0;
    size_t held;
    clv_language_share share = CLV_INIT(clv_language_share);
    (void)clv_sequence_tokens(s->sequence, &held);
    cli_say(stderr,
            "prompt %zu token%s, %.0f tokens/s; generated %zu, %.1f tokens/s; first token after "
            "%.2f s; on",
            s->prompt.tokens, s->prompt.tokens == 1 ? "" : "s",
            rate((double)s->prompt.tokens, s->prompt_s), w->count, speed(w),
            s->load_s + s->prompt_s + w->first_s);
    for (size_t i = 0; clv_language_get_share(s->language, i, &share) == CLV_OK; ++i) {
        cli_say(stderr, "%s %s (%zu layers)", i ? "," : "", share.device, share.layers);
        bytes += share.weight_bytes + held * share.cache_bytes;
    }
    if (bytes)
        cli_say(stderr, "; %.0f MB", (double)bytes * 1e-6);
    else
        cli_say(stderr, " plain C");
    if (w->guessed) cli_say(stderr, "; %zu of %zu guessed tokens were right", w->hits, w->guessed);
    if (s->sampling.temperature > 0)
        cli_say(stderr, "; seed %llu", (unsigned long long)s->sampling.seed);
    fputc('\n', stderr);
}

/* ---- JSON ------------------------------------------------------------------------------------------ */

typedef struct scored {
    float score;
    int32_t id;
} scored;

static int by_score(const void *left, const void *right)
{
    const scored *a = left, *b = right;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    return (a->id > b->id) - (a->id < b->id);
}

static clv_status add_top(clv_json *root, const float *scores, size_t count, size_t most)
{
    scored *all = malloc(count * sizeof *all);
    if (!all) return clv_fail(CLV_E_MEMORY, "not enough memory for %zu scores", count);
    for (size_t i = 0; i < count; ++i)
        all[i] = (scored){ isnan(scores[i]) ? -INFINITY : scores[i], (int32_t)i };
    qsort(all, count, sizeof *all, by_score);
    clv_json *list = clv_json_add_array(root, "logits_top");
    for (size_t i = 0; i < CLV_MIN(count, most); ++i) {
        clv_json *pair = clv_json_add_array(list, NULL);
        clv_json_add_int(pair, NULL, all[i].id);
        clv_json_add_number(pair, NULL, (double)all[i].score);
    }
    free(all);
    return CLV_OK;
}

static void add_ids(clv_json *root, const char *key, const int32_t *ids, size_t count)
{
    clv_json *list = clv_json_add_array(root, key);
    for (size_t i = 0; i < count; ++i)
        clv_json_add_int(list, NULL, ids[i]);
}

static void add_timings(clv_json *root, const generate_state *s, const clv_written *w)
{
    clv_json *t = clv_json_add_object(root, "timings");
    clv_json_add_number(t, "load_s", s->load_s);
    clv_json_add_number(t, "prompt_s", s->prompt_s);
    clv_json_add_number(t, "prompt_tokens_s", rate((double)s->prompt.tokens, s->prompt_s));
    clv_json_add_number(t, "generate_s", w->first_s + w->rest_s);
    clv_json_add_number(t, "tokens_s", speed(w));
}

static void add_model(clv_json *root, const generate_state *s)
{
    clv_language_info info = CLV_INIT(clv_language_info);
    clv_language_share share = CLV_INIT(clv_language_share);
    (void)clv_language_get_info(s->language, &info);
    clv_json *m = clv_json_add_object(root, "model");
    clv_json_add_string(m, "architecture", info.architecture);
    clv_json_add_int(m, "layers", (int64_t)info.layers);
    clv_json_add_bytes(m, "parameters", info.parameters);
    clv_json_add_bytes(m, "bytes", info.bytes);
    clv_json_add_string(m, "types", info.types);
    clv_json_add_int(m, "context", (int64_t)info.room);
    clv_json *devices = clv_json_add_array(root, "devices");
    for (size_t i = 0; clv_language_get_share(s->language, i, &share) == CLV_OK; ++i) {
        clv_json *d = clv_json_add_object(devices, NULL);
        clv_json_add_string(d, "name", share.device);
        clv_json_add_int(d, "layers", (int64_t)share.layers);
    }
}

clv_status generate_print_json(const generate_state *s, const clv_written *w, const float *scores)
{
    static const char *const stops[] = { "end", "stop", "length", "context", "interrupted" };
    clv_language_info info = CLV_INIT(clv_language_info);
    CLV_TRY(clv_language_get_info(s->language, &info));
    clv_json *root = clv_json_object();
    clv_json_add_string(root, "schema", "cleave.generate/1");
    add_ids(root, "prompt_tokens", s->prompt.ids, s->prompt.tokens);
    add_ids(root, "tokens", w->tokens, w->count);
    clv_json_add_string(root, "text", w->text ? w->text : "");
    clv_json_add_string(root, "stop", stops[w->stop]);
    if (s->sampling.temperature > 0) clv_json_add_bytes(root, "seed", s->sampling.seed);
    if (s->args->lookup) {
        clv_json_add_int(root, "guessed", (int64_t)w->guessed);
        clv_json_add_int(root, "guessed_right", (int64_t)w->hits);
    }
    clv_status status = CLV_OK;
    if (scores) status = add_top(root, scores, info.vocabulary, (size_t)s->args->logits_top);
    add_timings(root, s, w);
    add_model(root, s);
    char *text = status ? NULL : clv_json_text(root, true);
    clv_json_free(root);
    if (!text) return status ? status : clv_fail(CLV_E_MEMORY, "not enough memory for the result");
    const bool good = fputs(text, stdout) >= 0 && fputc('\n', stdout) != EOF && !fflush(stdout);
    clv_json_text_free(text);
    return good ? CLV_OK : generate_lost_output();
}

/* ---- --info ---------------------------------------------------------------------------------------- */

clv_status generate_print_info(const generate_state *s)
{
    clv_language_info i = CLV_INIT(clv_language_info);
    CLV_TRY(clv_language_get_info(s->language, &i));
    const char *family = i.template_ ? clv_chat_family(i.template_) : NULL;
    const clv_tokenizer *t = clv_language_tokenizer(s->language);
    if (s->args->json) {
        clv_written none = CLV_INIT(clv_written);
        return generate_print_json(s, &none, NULL);
    }
    cli_say(stdout, "Model         %s%s%s\n", i.architecture, *i.name ? ", " : "", i.name);
    cli_say(stdout, "Parameters    %.1f million, %.1f MB of weights\n", (double)i.parameters * 1e-6,
            (double)i.bytes * 1e-6);
    cli_say(stdout, "Tensors       %s\n", i.types);
    cli_say(stdout, "Layers        %zu of width %zu; feed-forward %zu\n", i.layers, i.width, i.ffn);
    cli_say(stdout, "Heads         %zu of width %zu; %zu of keys and values\n", i.heads,
            i.head_width, i.kv_heads);
    cli_say(stdout, "Context       %zu tokens\n", i.context);
    cli_say(stdout, "Vocabulary    %zu tokens; end of text:", i.vocabulary);
    for (size_t k = 0; k < i.end_count; ++k) {
        const char *piece = clv_tokenizer_piece(t, i.ends[k]);
        cli_say(stdout, "%s %d %s", k ? "," : "", (int)i.ends[k], piece ? piece : "");
    }
    cli_say(stdout, "%s\nChat template %s\n", i.end_count ? "" : " nothing",
            !i.template_ ? "none"
            : family     ? family
                         : "the model's own");
    return CLV_OK;
}
