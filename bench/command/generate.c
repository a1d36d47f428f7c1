/* SPDX-License-Identifier: Apache-2.0 */
/* Language models in `cleave bench`: reading prompts, and generating tokens one after the other. The model is the
 * file of --model; bench/peers/generate_llamacpp.py feeds the same tokens. */
#include "bench/command/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <cleave/generate.h>
#include <cleave/init.h>

#include <stdio.h>
#include <sys/resource.h>

enum { PROMPT, TOKENS, BEHIND = 8, ROOM = 1024 };

static const char *model_path;

void bench_generate_use(const char *path)
{
    model_path = path;
}

/* The cases: the tokens of a prompt, or the tokens that are generated after BEHIND others. */
static const struct {
    const char *name;
    int kind;
    size_t tokens;
} rows[] = {
    { "prompt of 32 tokens", PROMPT, 32 },
    { "prompt of 128 tokens", PROMPT, 128 },
    { "prompt of 512 tokens", PROMPT, 512 },
    { "64 tokens one by one", TOKENS, 64 },
};

static size_t list_cases(const bench_sizes *sizes, bench_case *cases, size_t room)
{
    size_t count = 0;
    if (sizes->given_count || !model_path) return 0;
    for (size_t i = 0; i < CLV_LEN(rows) && count < room; ++i) {
        cases[count] = (bench_case){ .workload = &bench_generate,
                                     .size = { rows[i].tokens, BEHIND, 0 },
                                     .variant = rows[i].kind,
                                     .items = (double)rows[i].tokens };
        snprintf(cases[count++].name, sizeof cases->name, "%s", rows[i].name);
    }
    return count;
}

static double effort(const bench_case *c)
{
    return c->items;
}

/* Writes the files that outside programs read. */
static clv_status prepare(const bench_case *c, const char *folder)
{
    char path[BENCH_PATH];
    (void)c;
    snprintf(path, sizeof path, "%.4000s/model.json", folder);
    clv_json *root = clv_json_object();
    clv_json_add_string(root, "model", model_path);
    const clv_status status = clv_json_write(root, path);
    clv_json_free(root);
    return status;
}

/* Returns the whole command: from the file to the first token after the prompt, or to the last token. */
static const char *const *command(const bench_case *c, const char *folder, const char *output)
{
    static char ids[ROOM * 8], made[24];
    static const char *arguments[] = {
        "generate", NULL,           "--ids",         ids, "--max-tokens",
        made,       "--ignore-eos", "--temperature", "0", NULL
    };
    const size_t count = c->variant == PROMPT ? c->size[0] : BEHIND;
    size_t used = 0;
    (void)folder, (void)output;
    arguments[1] = model_path;
    for (size_t i = 0; i < count; ++i)
        used += (size_t)snprintf(ids + used, sizeof ids - used, "%s%zu", i ? "," : "", i + 1);
    snprintf(made, sizeof made, "%zu", c->variant == PROMPT ? (size_t)1 : c->size[0]);
    return arguments;
}

typedef struct trial {
    const bench_case *c;
    clv_sequence *s;
    int32_t ids[ROOM];
    double cpu_s; /* processor time of the quickest run */
} trial;

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static clv_status once(void *user, double *seconds)
{
    trial *t = user;
    const size_t count = t->c->size[0];
    const bool whole = t->c->variant == PROMPT;
    CLV_TRY(clv_sequence_rewind(t->s, 0));
    if (!whole) CLV_TRY(clv_sequence_feed(t->s, t->ids, BEHIND, NULL));
    const double started = clv_now(), cpu = cpu_seconds();
    if (whole) CLV_TRY(clv_sequence_feed(t->s, t->ids, count, NULL));
    for (size_t i = 0; i < count && !whole; ++i)
        CLV_TRY(clv_sequence_feed(t->s, &t->ids[BEHIND + i], 1, NULL));
    *seconds = clv_now() - started;
    const double spent = cpu_seconds() - cpu;
    if (!(t->cpu_s > 0) || spent < t->cpu_s) t->cpu_s = spent;
    return CLV_OK;
}

/* Sends the bytes and operations per token: every weight counts, except a word table that does not make the scores. */
static void tell_cost(bench_run *run, size_t index, const clv_language *l, const bench_case *c)
{
    clv_language_info info = CLV_INIT(clv_language_info);
    (void)clv_language_get_info(l, &info);
    const double head = (double)info.vocabulary * (double)info.width;
    const double layers = (double)info.parameters - head * (info.tied ? 1 : 2);
    const double flops = 2 * (layers * c->items + head * (c->variant == PROMPT ? 1 : c->items));
    bench_send_cost(run, index, flops, c->variant == TOKENS ? (double)info.bytes * c->items : 0);
}

/* Measures the seconds per token with a few tokens, to predict whether a case would take too long. */
static clv_status find_pace(bench_run *run, trial *t)
{
    enum { FEW = 4 };
    double started = 0;
    for (int i = 0; i < 2; ++i) { /* the first run compiles */
        started = clv_now();
        CLV_TRY(clv_sequence_rewind(t->s, 0));
        CLV_TRY(clv_sequence_feed(t->s, t->ids, FEW, NULL));
    }
    run->seconds_per_effort = (clv_now() - started) / FEW;
    return CLV_OK;
}

static clv_status measure_open(bench_run *run, size_t index, clv_language *l)
{
    const bench_case *c = &run->bench->cases[index];
    trial t = { .c = c };
    double values[BENCH_MOST_SAMPLES], seconds;
    size_t count = 0;
    char note[80];
    clv_language_info info = CLV_INIT(clv_language_info);
    CLV_TRY(clv_language_get_info(l, &info));
    for (size_t i = 0; i < ROOM; ++i)
        t.ids[i] = (int32_t)(i * 7919 % info.vocabulary);
    CLV_TRY(clv_sequence_create(l, &t.s));
    clv_status status = run->seconds_per_effort > 0 ? CLV_OK : find_pace(run, &t);
    if (status || bench_is_too_long(run, index)) {
        clv_sequence_free(t.s);
        return status;
    }
    status = once(&t, &seconds); /* compiles, makes room */
    t.cpu_s = 0;
    if (!status) status = bench_repeat(&run->bench->plan, once, &t, values, &count);
    if (!status) {
        bench_send(run, index, BENCH_COMPUTE, values, count);
        tell_cost(run, index, l, c);
        snprintf(note, sizeof note, "%.2f ms of processor time per token",
                 1e3 * t.cpu_s / c->items);
        bench_send_note(run, index, note);
        run->seconds_per_effort = bench_stat_of(values, count).median / c->items;
    }
    clv_sequence_free(t.s);
    return status;
}

static clv_status measure(bench_run *run, size_t index)
{
    const bench_case *c = &run->bench->cases[index];
    clv_language *l = NULL;
    char note[80];
    clv_language_options options = CLV_INIT(clv_language_options);
    clv_language_info info = CLV_INIT(clv_language_info);
    CLV_TRY(clv_language_open(NULL, model_path, &options, &l)); /* a quick look at its context */
    clv_status status = clv_language_get_info(l, &info);
    clv_language_close(l);
    if (!status && info.context < c->size[0] + BEHIND) {
        snprintf(note, sizeof note, "left out: the model's context is %zu tokens", info.context);
        bench_send_note(run, index, note);
        return CLV_OK;
    }
    options.context = CLV_MIN(info.context, (size_t)ROOM);
    if (!status)
        status = clv_language_open(clv_context_device_count(run->context) ? run->context : NULL,
                                   model_path, &options, &l);
    if (!status) status = measure_open(run, index, l);
    clv_language_close(l);
    return status;
}

const bench_workload bench_generate = {
    .name = "generate",
    .title = "Language model: prompts, and tokens one by one",
    .unit = "tokens/s",
    .cases = list_cases,
    .effort = effort,
    .prepare = prepare,
    .command = command,
    .measure = measure,
};
