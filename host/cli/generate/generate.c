/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave generate`: runs language models on any device. */
#define _GNU_SOURCE
#include "host/cli/generate/generate.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <cleave/init.h>

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { MOST_TOP = 1 << 20, MOST_LOOKUP = 7 };

/* Returns the exit code; an unsupported model counts as bad input here. */
static int input_code(clv_status status)
{
    const int code = cli_input_status(&cli_generate, status);
    return status == CLV_E_UNSUPPORTED ? CLI_USAGE : code;
}

static clv_status open_with(generate_state *s, clv_context *context)
{
    clv_language_options options = CLV_INIT(clv_language_options);
    options.context = (size_t)s->args->context;
    options.cache = (clv_language_cache)s->args->cache;
    options.activations = (clv_language_activations)s->args->activations;
    return clv_language_open(context, s->path, &options, &s->language);
}

clv_status generate_look(generate_state *s)
{
    return open_with(s, NULL);
}

clv_status generate_open(generate_state *s)
{
    clv_language_close(s->language);
    s->language = NULL;
    CLV_TRY(open_with(s, s->context));
    return clv_sequence_create(s->language, &s->sequence);
}

/* ---- one text -------------------------------------------------------------------------------------- */

static clv_status feed(generate_state *s, const float **scores)
{
    const double started = clv_now();
    CLV_TRY(clv_sequence_feed(s->sequence, s->prompt.ids, s->prompt.tokens, NULL));
    s->prompt_s = clv_now() - started;
    return clv_sequence_scores(s->sequence, scores);
}

static clv_status answer(generate_state *s, clv_written *written)
{
    const generate_args *a = s->args;
    const float *scores = NULL, *top = NULL;
    float *kept = NULL;
    clv_language_info info = CLV_INIT(clv_language_info);
    CLV_TRY(clv_language_get_info(s->language, &info));
    if (s->context) CLV_TRY(feed(s, &scores));
    if (scores && a->logits_top) { /* scores are overwritten by the next token's */
        kept = malloc(info.vocabulary * sizeof *kept);
        if (!kept)
            return clv_fail(CLV_E_MEMORY, "not enough memory for %zu scores", info.vocabulary);
        memcpy(kept, scores, info.vocabulary * sizeof *kept);
        top = kept;
    }
    clv_status status = CLV_OK;
    written->stop = CLV_STOP_LENGTH;
    if (a->tokens) status = generate_write(s, !a->json, written);
    if (!status && a->json) status = generate_print_json(s, written, top);
    free(kept);
    return status;
}

/* Writes the report. `w` is NULL for a conversation, for which tokens are not counted. */
static int write_report(generate_state *s, const clv_written *w)
{
    const clv_written none = CLV_INIT(clv_written);
    const bool counts = w != NULL;
    if (!w) w = &none;
    const struct {
        const char *key;
        double value;
    } notes[] = { { "load_s", s->load_s },
                  { "prompt_tokens", (double)s->prompt.tokens },
                  { "prompt_s", s->prompt_s },
                  { "tokens", (double)w->count },
                  { "generate_s", w->first_s + w->rest_s } };
    if (!s->args->common.report && !s->args->common.trace) return CLI_OK;
    const clv_status status = clv_report_create(&s->report);
    if (status) return cli_status(&cli_generate, status);
    for (size_t i = 0; i < (counts ? CLV_LEN(notes) : 1); ++i)
        clv_report_note(s->report, notes[i].key, notes[i].value);
    clv_language_share share = CLV_INIT(clv_language_share);
    for (size_t i = 0; clv_language_get_share(s->language, i, &share) == CLV_OK; ++i) {
        char key[32];
        snprintf(key, sizeof key, "layers_of_%zu", i);
        clv_report_note_text(s->report, "device", share.device);
        clv_report_note(s->report, key, (double)share.layers);
    }
    return cli_write_report(&cli_generate, &s->args->common, s->context, s->report);
}

static int make_context(generate_state *s, double started)
{
    const int code = cli_common_context(&cli_generate, &s->args->common, &s->context);
    if (code >= 0) return code;
    const int opened = input_code(generate_open(s));
    s->load_s = clv_now() - started;
    clv_language_share share = CLV_INIT(clv_language_share);
    for (size_t i = 0; !opened && s->args->activations && !s->args->common.quiet &&
                       clv_language_get_share(s->language, i, &share) == CLV_OK;
         ++i)
        if (!share.int8)
            cli_warn(&cli_generate,
                     "%s: --activations int8 is for CPUs only; this device computes in float32",
                     share.device);
    return opened ? opened : -1;
}

static int one_text(generate_state *s)
{
    const generate_args *a = s->args;
    const double started = clv_now();
    int code = input_code(generate_look(s));
    if (!code && a->info) return cli_status(&cli_generate, generate_print_info(s));
    if (!code) code = input_code(generate_read_prompt(s));
    if (code) return code;
    if ((a->tokens || a->logits_top) && (code = make_context(s, started)) >= 0) return code;
    clv_written written = CLV_INIT(clv_written);
    cli_catch_interrupts();
    code = cli_status(&cli_generate, answer(s, &written));
    if (!code && s->context) {
        code = write_report(s, &written);
        if (!a->common.quiet) generate_summarize(s, &written);
    } else if (!code && !a->json) {
        cli_say(stdout, "%zu tokens\n", s->prompt.tokens);
    }
    if (!code && written.stop == CLV_STOP_CALLER) code = CLI_INTERRUPTED;
    generate_clear(&written);
    return code;
}

static int several_texts(generate_state *s)
{
    int code = input_code(generate_look(s));
    if (code) return code;
    code = generate_several(s, make_context);
    return code || !s->context ? code : write_report(s, NULL);
}

static int conversation(generate_state *s)
{
    const double started = clv_now();
    int code = make_context(s, started);
    if (code >= 0) return code;
    code = generate_talk(s);
    return code ? code : write_report(s, NULL);
}

/* ---- options --------------------------------------------------------------------------------------- */

static int check(const generate_args *a)
{
    const clv_sampling *p = &a->sampling;
    const struct {
        const char *option, *expected;
        double given;
        bool good;
    } rules[] = {
        { "--temperature", "0 or more", p->temperature, p->temperature >= 0 },
        { "--top-p", "0 to 1", p->top_p, p->top_p >= 0 && p->top_p <= 1 },
        { "--min-p", "0 to 1", p->min_p, p->min_p >= 0 && p->min_p <= 1 },
        { "--repeat-penalty", "0.01 to 100", p->penalty, p->penalty >= 0.01 && p->penalty <= 100 },
        { "--logits-top", "at most 1048576", (double)a->logits_top, a->logits_top <= MOST_TOP },
        { "--lookup", "0 to 7", (double)a->lookup, a->lookup <= MOST_LOOKUP },
    };
    const int prompts =
        (a->prompt != NULL) + (a->prompt_file != NULL) + (a->input != NULL) + (a->ids != NULL);
    for (size_t i = 0; i < CLV_LEN(rules); ++i)
        if (!rules[i].good)
            return cli_error(&cli_generate, CLI_USAGE, "%s is %.12g, but it must be %s",
                             rules[i].option, rules[i].given, rules[i].expected);
    for (const char *const *stop = a->stops.items; *stop; ++stop)
        if (!**stop)
            return cli_error(&cli_generate, CLI_USAGE,
                             "--stop is \"\", but it must be a text that is not empty");
    if (prompts > 1)
        return cli_error(&cli_generate, CLI_USAGE,
                         "--prompt, --prompt-file, --input and --ids cannot be used together");
    if (a->input && (a->logits_top || a->lookup || !a->tokens || a->stream))
        return cli_error(&cli_generate, CLI_USAGE,
                         "--input generates several texts together; it cannot be combined with "
                         "--logits-top, --lookup, --stream or --max-tokens 0");
    if (a->chat && a->ids)
        return cli_error(&cli_generate, CLI_USAGE,
                         "--chat needs a text; it cannot be combined with --ids");
    if (a->system && !a->chat && prompts)
        return cli_error(&cli_generate, CLI_USAGE, "--system needs --chat");
    if (a->family_given && !a->chat && prompts)
        return cli_error(&cli_generate, CLI_USAGE,
                         "--template is the format of a conversation; it needs --chat");
    if (!a->info && !prompts && !a->chat && !isatty(STDIN_FILENO))
        return cli_error(
            &cli_generate, CLI_USAGE,
            "there is no prompt; try --prompt TEXT, --prompt - for standard input, or --chat");
    if (a->json && !a->info && !prompts)
        return cli_error(&cli_generate, CLI_USAGE, "--json needs a prompt");
    if (!a->tokens && !a->info && !prompts)
        return cli_error(&cli_generate, CLI_USAGE,
                         "--max-tokens is 0, but in a conversation it must be 1 or more");
    return -1;
}

static int check_files(const generate_args *a, const char *model)
{
    cli_file inputs[CLI_MODEL_FILES + 2] = {
        [CLI_MODEL_FILES] = { "--prompt-file", a->prompt_file, NULL, CLI_STREAM },
        [CLI_MODEL_FILES + 1] = { "--input", a->input, NULL, CLI_STREAM }
    };
    cli_model_files("MODEL", model, inputs);
    return cli_check_files(&cli_generate, &a->common, inputs, CLV_LEN(inputs), NULL, 0);
}

static uint64_t random_seed(void)
{
    uint32_t seed;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) seed = (uint32_t)(clv_now() * 1e6);
    return seed;
}

static int run(int argc, char **argv)
{
    generate_args a = { .sampling = CLV_SAMPLING_INIT,
                        .tokens = 256,
                        .family = "auto",
                        .common = { .lean = true },
                        .repeat_last = 64,
                        .top_k = 40 };
    clv_sampling *p = &a.sampling;
    const cli_option own[] = {
        { "p,prompt", CLI_TEXT, &a.prompt, "TEXT",
          "text to continue, or with --chat a message; - is standard input", NULL },
        { "prompt-file", CLI_TEXT, &a.prompt_file, "FILE", "a file with the prompt", NULL },
        { "i,input", CLI_TEXT, &a.input, "FILE",
          "several prompts: lines, a table or JSON lines (.csv, .tsv, .jsonl); generate one line "
          "of "
          "text for each, all at the same time",
          NULL },
        { "ids", CLI_TEXT, &a.ids, "IDS", "the prompt as token numbers, such as 1,2,3", NULL },
        { "chat", CLI_FLAG, &a.chat, NULL,
          "treat the prompt as a message to a chat model, in the format that the model expects",
          NULL },
        { "system", CLI_TEXT, &a.system, "TEXT",
          "system message: instructions for the model before a conversation", NULL },
        { "template", CLI_TEXT, &a.family, "NAME",
          "format of a conversation: auto, chatml, llama2, llama3, mistral, gemma, phi3, zephyr or "
          "none [auto: the model's own]",
          &a.family_given },
        { "n,max-tokens", CLI_UINT, &a.tokens, "N", "largest number of tokens to generate [256]",
          NULL },
        { "temperature", CLI_DOUBLE, &p->temperature, "T",
          "how random the choice of tokens is; 0: always the most probable [0.8]", NULL },
        { "top-k", CLI_UINT, &a.top_k, "K",
          "draw from the K most probable tokens; 0: from all [40]", NULL },
        { "top-p", CLI_DOUBLE, &p->top_p, "P",
          "draw from the smallest set of tokens with at least this total probability [0.95]",
          NULL },
        { "min-p", CLI_DOUBLE, &p->min_p, "P",
          "leave out tokens below this share of the probability of the most probable one [0.05]",
          NULL },
        { "repeat-penalty", CLI_DOUBLE, &p->penalty, "R",
          "divide the scores of recent tokens by R, 0.01 to 100; 1: do not [1]", NULL },
        { "repeat-last", CLI_UINT, &a.repeat_last, "N",
          "number of tokens that count as recent [64]", NULL },
        { "seed", CLI_UINT, &p->seed, "N", "the same seed gives the same text [a random one]",
          &a.seeded },
        { "stop", CLI_TEXTS, &a.stops, "TEXT",
          "end before the model generates this text; may be repeated", NULL },
        { "ignore-eos", CLI_FLAG, &a.ignore_eos, NULL,
          "continue after the token with which the model ends a text", NULL },
        { "context", CLI_UINT, &a.context, "N",
          "largest number of tokens of prompt and text together [that of the model, at most 4096]",
          NULL },
        { "lookup", CLI_UINT, &a.lookup, "N",
          "guess up to N tokens (at most 7) from earlier text: gives the same result, but faster "
          "where the text repeats itself [0: do not guess]",
          NULL },
        { "cache-type", CLI_CHOICE, &a.cache, "fp32,fp16",
          "type of the cached keys and values; fp16 needs half the memory [fp32]", NULL },
        { "activations", CLI_CHOICE, &a.activations, "fp32,int8",
          "type of the activations in matrix products; int8 is faster on CPUs with AVX2 (PoCL), "
          "and changes scores by up to 0.8 [fp32]",
          NULL },
        { "stream", CLI_FLAG, &a.stream, NULL, "write the text while it is generated (the default)",
          NULL },
        { "no-stream", CLI_FLAG, &a.no_stream, NULL, "write the text when it is complete", NULL },
        { "json", CLI_FLAG, &a.json, NULL, "write one JSON object instead of the text", NULL },
        { "logits-top", CLI_UINT, &a.logits_top, "K",
          "with --json: write the K highest scores after the prompt", NULL },
        { "info", CLI_FLAG, &a.info, NULL, "describe the model and stop", NULL },
        { NULL },
    };
    cli_option common[CLI_COMMON_OPTIONS + 1];
    cli_common_table(&a.common, common);
    const cli_option *const tables[] = { own, common, NULL };
    int operands, code = cli_parse(&cli_generate, tables, argc, argv, &operands);
    if (code < 0) code = cli_check_operands(&cli_generate, "MODEL", operands, argv + 1);
    if (code < 0) code = check(&a);
    if (code < 0) code = check_files(&a, argv[1]);
    if (code >= 0) return code;
    p->top_k = (size_t)a.top_k, p->penalty_last = (size_t)a.repeat_last;
    if (!a.seeded) p->seed = random_seed();
    cli_listen(a.common.quiet, a.common.verbose);
    generate_state s = { .args = &a, .path = argv[1], .sampling = a.sampling };
    const bool asks = a.prompt || a.prompt_file || a.ids || a.info;
    code = a.input && !a.info ? several_texts(&s) : asks ? one_text(&s) : conversation(&s);
    clv_sequence_free(s.sequence);
    clv_language_close(s.language);
    clv_report_free(s.report), clv_context_free(s.context);
    clv_token_rows_clear(&s.prompt);
    return code;
}

const cli_command cli_generate = {
    .name = "generate",
    .summary = "continue texts and answer questions with a language model",
    .operands = "MODEL [--prompt TEXT] [--chat] [OPTION...]",
    .description =
        "Continues a text, or answers questions, with a language model on the devices of this\n"
        "machine. MODEL is a GGUF file or a Hugging Face folder (config.json, safetensors,\n"
        "tokenizer.json) of the architectures llama, mistral, qwen2 or qwen3. Quantised weights\n"
        "stay quantised on the devices; everything else is computed in single precision. A model\n"
        "that does not fit on one device is cut between layers. Text goes to standard output,\n"
        "everything else to standard error.\n\n"
        "Without a prompt, and on a terminal, you have a conversation: each line is a message; a\n"
        "line that ends in \\ continues on the next one. /clear forgets the conversation, /system\n"
        "TEXT sets the system message, /stats shows the speed, /exit or Ctrl-D ends it. Ctrl-C\n"
        "stops an answer.",
    .run = run,
};
