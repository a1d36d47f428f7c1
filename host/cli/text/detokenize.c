/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave detokenize`: turns token numbers into texts. It needs no device. */
#include "host/cli/clash.h"
#include "host/cli/texts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "host/io/output.h"

#include <cleave/tokenizer.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 30 };

typedef struct detokenize_args {
    const char *input, *output;
    bool null, control, quiet;
} detokenize_args;

typedef struct state {
    const detokenize_args *args;
    clv_detokenizer *detokenizer;
    clv_output output;
    size_t texts, tokens;
} state;

static clv_status put(state *s, const char *text, size_t length)
{
    return length ? clv_output_write(&s->output, text, length) : CLV_OK;
}

static clv_status add_token(state *s, int64_t id)
{
    const char *text;
    size_t length;
    if (id < 0 || id > INT32_MAX)
        return clv_fail(CLV_E_FORMAT, "%s: text %zu: %lld is not a token number", s->args->input,
                        s->texts, (long long)id);
    const clv_status status = clv_detokenizer_add(s->detokenizer, (int32_t)id, &text, &length);
    if (status == CLV_E_ARGUMENT)
        return clv_fail(CLV_E_FORMAT, "%s: text %zu: the vocabulary has no token %lld",
                        s->args->input, s->texts, (long long)id);
    CLV_TRY(status);
    ++s->tokens;
    return put(s, text, length);
}

static clv_status end_text(state *s)
{
    const char *text;
    size_t length;
    CLV_TRY(clv_detokenizer_finish(s->detokenizer, &text, &length));
    CLV_TRY(put(s, text, length));
    ++s->texts;
    return put(s, s->args->null ? "\0" : "\n", 1);
}

static clv_status add_list(state *s, const clv_json *list)
{
    for (size_t i = 0; i < clv_json_count(list); ++i) {
        const clv_json *id = clv_json_at(list, i);
        if (!clv_json_is_int(id)) {
            char *given = clv_json_text(id, true);
            const clv_status status = clv_fail(
                CLV_E_FORMAT, "%s: text %zu: element %zu is %.80s, which is not a whole number",
                s->args->input, s->texts, i, given ? given : "too long to show");
            clv_json_text_free(given);
            return status;
        }
        CLV_TRY(add_token(s, clv_json_int(id, -1)));
    }
    return end_text(s);
}

/* Reads a list of lists, or one list of numbers. */
static clv_status from_json(state *s, const char *text, size_t length)
{
    clv_json *root;
    CLV_TRY(clv_json_parse(s->args->input, text, length, &root));
    clv_status status = CLV_OK;
    const bool single = clv_json_is_int(clv_json_at(root, 0));
    if (single) status = add_list(s, root);
    for (size_t i = 0; !single && i < clv_json_count(root) && !status; ++i) {
        const clv_json *list = clv_json_at(root, i);
        status = clv_json_is_array(list)
                     ? add_list(s, list)
                     : clv_fail(CLV_E_FORMAT, "%s: element %zu is not a list of token numbers",
                                s->args->input, i);
    }
    clv_json_free(root);
    return status;
}

/* Reads numbers separated by spaces or commas, one text per line. */
static clv_status from_lines(state *s, const char *text, size_t length)
{
    bool any = false;
    if (strlen(text) < length)
        return clv_fail(CLV_E_FORMAT,
                        "%s: byte %zu is 0, but token numbers are text: a JSON list of lists, or "
                        "one text per line, as `cleave tokenize` writes them",
                        s->args->input, strlen(text));
    for (const char *at = text; *at;) {
        if (*at == '\n') {
            CLV_TRY(end_text(s));
            any = false, ++at;
            continue;
        }
        if (strchr(" \t\r,", *at)) {
            ++at;
            continue;
        }
        char *end;
        errno = 0;
        const long long id = strtoll(at, &end, 10);
        if (end == at || *at == '+' || !strchr(" \t\r\n,", *end) || errno)
            return clv_fail(CLV_E_FORMAT, "%s: line %zu: \"%.*s\" is not a token number",
                            s->args->input, s->texts + 1,
                            (int)CLV_MIN(strcspn(at, " \t\r\n,"), (size_t)12), at);
        CLV_TRY(add_token(s, id));
        any = true, at = end;
    }
    return any ? end_text(s) : CLV_OK;
}

static clv_status convert(state *s, const char *text, size_t length)
{
    const char *start = text + strspn(text, " \t\r\n");
    clv_status status = clv_output_open(&s->output, s->args->output, false);
    if (!status) status = *start == '[' ? from_json(s, text, length) : from_lines(s, text, length);
    if (!status) status = clv_output_finish(&s->output);
    clv_output_abandon(&s->output);
    return status;
}

static int read_and_convert(state *s)
{
    char *text = NULL;
    size_t length;
    const char *path = strcmp(s->args->input, "-") == 0 ? "/dev/stdin" : s->args->input;
    int code = cli_input_status(&cli_detokenize, clv_file_read(path, MOST_BYTES, &text, &length));
    if (!code) code = cli_status(&cli_detokenize, convert(s, text, length));
    clv_free(text);
    return code;
}

static int check_files(const detokenize_args *a, const char *model)
{
    const cli_file output = { "-o", a->output, NULL, CLI_LINES };
    cli_file inputs[CLI_MODEL_FILES + 1] = { [CLI_MODEL_FILES] = { "-i", a->input, NULL,
                                                                   CLI_STREAM } };
    cli_model_files("MODEL", model, inputs);
    return cli_check_files(&cli_detokenize, NULL, inputs, CLV_LEN(inputs), &output, 1);
}

static int run(int argc, char **argv)
{
    detokenize_args a = { .input = "-", .output = "-" };
    const cli_option own[] = {
        { "i,input", CLI_TEXT, &a.input, "FILE",
          "a JSON list of lists, or numbers with one text per line; - is standard input [-]",
          NULL },
        { "o,output", CLI_TEXT, &a.output, "FILE", "file for the texts; - is standard output [-]",
          NULL },
        { "null", CLI_FLAG, &a.null, NULL, "separate texts by NUL bytes instead of newlines",
          NULL },
        { "special", CLI_FLAG, &a.control, NULL,
          "show special tokens as the vocabulary writes them", NULL },
        { "q,quiet", CLI_FLAG, &a.quiet, NULL, "print no messages except errors", NULL },
        { NULL },
    };
    const cli_option *const tables[] = { own, NULL };
    int operands, code = cli_parse(&cli_detokenize, tables, argc, argv, &operands);
    if (code >= 0) return code;
    if ((code = cli_check_operands(&cli_detokenize, "MODEL", operands, argv + 1)) >= 0) return code;
    if ((code = check_files(&a, argv[1])) >= 0) return code;

    clv_tokenizer *t = NULL;
    state s = { .args = &a };
    cli_listen(a.quiet, false);
    code = cli_input_status(&cli_detokenize, clv_tokenizer_open(argv[1], NULL, &t));
    if (!code)
        code = cli_status(&cli_detokenize, clv_detokenizer_create(t, a.control, &s.detokenizer));
    if (!code) code = read_and_convert(&s);
    if (!code && !a.quiet)
        cli_say(stderr, "%zu text%s, %zu tokens\n", s.texts, s.texts == 1 ? "" : "s", s.tokens);
    clv_detokenizer_free(s.detokenizer);
    clv_tokenizer_close(t);
    return code;
}

const cli_command cli_detokenize = {
    .name = "detokenize",
    .summary = "turn token numbers of a model back into texts",
    .operands = "MODEL [-i IDS.json] [-o TEXTS] [OPTION...]",
    .description =
        "Turns token numbers into texts: the reverse of `cleave tokenize`. MODEL is a GGUF file "
        "or\n"
        "a folder with tokenizer.json. Bytes that do not make whole characters become U+FFFD.\n"
        "Special tokens are left out unless you give --special. Texts of byte-level vocabularies\n"
        "(GPT-2, SmolLM, Llama 3) come back exactly, those of Qwen2 in Unicode's composed form\n"
        "(NFC), and those of BERT without what its rules remove.",
    .run = run,
};
