/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave generate --input`: answers several prompts together. */
#include "host/cli/generate/generate.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <cleave/init.h>

#include <errno.h>
#include <string.h>

/* TOGETHER texts share the weights of one step (clv_sequences_feed). All prompts are read before the first text is
 * generated. */
enum { TOGETHER = 8, AT_ONCE = 64, MOST_PROMPTS = 1 << 20, CHUNK = 1 << 20 };

typedef struct prompts {
    clv_token_rows *rows; /* [count], one row each */
    size_t count, room;
} prompts;

typedef struct totals {
    size_t prompt_tokens, tokens;
    double prompt_s, write_s;
    bool interrupted;
} totals;

static clv_status read_prompts(generate_state *s, clv_lines *lines, prompts *p)
{
    for (;;) {
        CLV_TRY(clv_lines_next(lines, AT_ONCE, CHUNK));
        if (!lines->count) break;
        for (size_t i = 0; i < lines->count; ++i) {
            if (p->count == MOST_PROMPTS)
                return clv_fail(CLV_E_FORMAT, "%s: there are more than %d prompts", lines->path,
                                MOST_PROMPTS);
            if (!clv_reserve(&p->rows, &p->room, p->count + 1, sizeof *p->rows))
                return clv_fail(CLV_E_MEMORY, "not enough memory for the prompts");
            s->prompt = (clv_token_rows){ 0 };
            const clv_status status = generate_take_prompt(s, lines->texts[i], lines->lengths[i]);
            p->rows[p->count++] = s->prompt;
            s->prompt = (clv_token_rows){ 0 };
            if (status) {
                char why[300];
                snprintf(why, sizeof why, "%s", clv_error_message());
                return clv_fail(status, "%s, prompt %llu: %s", lines->path,
                                (unsigned long long)(lines->first + i), why);
            }
        }
    }
    return p->count ? CLV_OK : clv_fail(CLV_E_FORMAT, "%s: no prompts", lines->path);
}

static int is_interrupted(const char *text, size_t length, int32_t id, void *user)
{
    (void)text, (void)length, (void)id, (void)user;
    return cli_interrupted();
}

/* Prints the text on one line; line ends and backslashes are escaped. */
static clv_status print_line(const clv_written *w)
{
    clv_text line = { 0 };
    for (size_t i = 0; i < w->length; ++i) {
        const char c = w->text[i];
        if (c == '\n' || c == '\r' || c == '\\')
            clv_text_add(&line, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : c);
        else
            clv_text_bytes(&line, &c, 1);
    }
    clv_text_bytes(&line, "\n", 1);
    if (line.failed) return clv_fail(CLV_E_MEMORY, "not enough memory for a text");
    const bool written = fwrite(line.data, 1, line.length, stdout) == line.length;
    clv_text_clear(&line);
    if (!written || fflush(stdout)) return generate_lost_output();
    return CLV_OK;
}

typedef struct group {
    clv_sequence *sequences[TOGETHER];
    clv_written written[TOGETHER];
    size_t count;
} group;

static clv_status write_group(generate_state *s, const clv_token_rows *rows, group *g, totals *t)
{
    const generate_args *a = s->args;
    const clv_writing *writings[TOGETHER];
    clv_written *written[TOGETHER];
    clv_writing w = CLV_INIT(clv_writing);
    w.tokens = (size_t)a->tokens, w.sampling = &s->sampling, w.stops = a->stops.items;
    w.ignore_end = a->ignore_eos, w.piece = is_interrupted;
    const double started = clv_now();
    for (size_t i = 0; i < g->count; ++i) {
        g->written[i] = (clv_written)CLV_INIT(clv_written);
        writings[i] = &w, written[i] = &g->written[i];
        CLV_TRY(clv_sequence_create(s->language, &g->sequences[i]));
        CLV_TRY(clv_sequence_feed(g->sequences[i], rows[i].ids, rows[i].tokens, NULL));
        t->prompt_tokens += rows[i].tokens;
    }
    s->prompt_s = clv_now() - started;
    t->prompt_s += s->prompt_s;
    CLV_TRY(clv_sequences_write(g->sequences, g->count, writings, written));
    t->write_s += clv_now() - started - s->prompt_s;
    return CLV_OK;
}

static clv_status print_group(generate_state *s, clv_token_rows *rows, const group *g, totals *t)
{
    clv_status status = CLV_OK;
    for (size_t i = 0; i < g->count && !status; ++i) {
        const clv_written *w = &g->written[i];
        t->tokens += w->count;
        t->interrupted = t->interrupted || w->stop == CLV_STOP_CALLER;
        s->prompt = rows[i];
        status = s->args->json ? generate_print_json(s, w, NULL) : print_line(w);
        s->prompt = (clv_token_rows){ 0 };
    }
    return status;
}

static clv_status write_all(generate_state *s, const prompts *p, totals *t)
{
    clv_status status = CLV_OK;
    for (size_t at = 0; at < p->count && !status && !t->interrupted; at += TOGETHER) {
        group g = { .count = CLV_MIN(p->count - at, (size_t)TOGETHER) };
        status = write_group(s, p->rows + at, &g, t);
        if (!status) status = print_group(s, p->rows + at, &g, t);
        for (size_t i = 0; i < g.count; ++i) {
            clv_sequence_free(g.sequences[i]);
            generate_clear(&g.written[i]);
        }
    }
    return status;
}

static void summarize(const generate_state *s, const prompts *p, const totals *t)
{
    clv_language_share share = CLV_INIT(clv_language_share);
    cli_say(
        stderr, "%zu prompts, %zu tokens, %.0f tokens/s; generated %zu, %.1f tokens/s together; on",
        p->count, t->prompt_tokens, t->prompt_s > 0 ? (double)t->prompt_tokens / t->prompt_s : 0,
        t->tokens, t->write_s > 0 ? (double)t->tokens / t->write_s : 0);
    for (size_t i = 0; clv_language_get_share(s->language, i, &share) == CLV_OK; ++i)
        cli_say(stderr, "%s %s (%zu layers)", i ? "," : "", share.device, share.layers);
    if (s->sampling.temperature > 0)
        cli_say(stderr, "; seed %llu", (unsigned long long)s->sampling.seed);
    fputc('\n', stderr);
}

int generate_several(generate_state *s, int (*open)(generate_state *s, double started))
{
    const double started = clv_now();
    const cli_texts texts = { .input = s->args->input };
    prompts p = { 0 };
    totals t = { 0 };
    clv_lines lines;
    int code = cli_texts_open(cli_running(), &texts, s->args->common.quiet, &lines);
    if (!code) cli_texts_await(&texts, s->args->common.quiet);
    if (!code) code = cli_input_status(cli_running(), read_prompts(s, &lines, &p));
    clv_lines_close(&lines);
    if (!code && (code = open(s, started)) < 0) {
        cli_catch_interrupts();
        code = cli_status(cli_running(), write_all(s, &p, &t));
        if (!code && !s->args->common.quiet) summarize(s, &p, &t);
        if (!code && t.interrupted) code = CLI_INTERRUPTED;
    }
    for (size_t i = 0; i < p.count; ++i)
        clv_token_rows_clear(&p.rows[i]);
    clv_free(p.rows);
    return code;
}
