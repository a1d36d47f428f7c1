/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the files of `cleave generate` share. */
#ifndef CLEAVE_HOST_CLI_GENERATE_GENERATE_H
#define CLEAVE_HOST_CLI_GENERATE_GENERATE_H

#include "host/cli/clash.h"
#include "host/cli/texts.h"

#include <cleave/generate.h>

typedef struct generate_args {
    const char *prompt, *prompt_file, *input, *ids, *system, *family;
    cli_list stops;
    cli_common common;
    clv_sampling sampling;
    uint64_t tokens, context, top_k, repeat_last, logits_top, lookup;
    bool seeded, family_given, chat, ignore_eos, json, info, no_stream, stream;
    int cache;       /* a clv_language_cache */
    int activations; /* a clv_language_activations */
} generate_args;

typedef struct generate_state {
    const generate_args *args;
    const char *path;
    clv_context *context;
    clv_language *language;
    clv_sequence *sequence;
    clv_report *report;
    clv_sampling sampling;
    clv_token_rows prompt; /* one row */
    double load_s, prompt_s;
} generate_state;

/* Opens the model without a device, to tokenize texts and to check that the model is valid. */
clv_status generate_look(generate_state *state);
/* Opens the model on the context's devices. */
clv_status generate_open(generate_state *state);

/* Reads the text, file or question that the options name, and stores its tokens in state->prompt. */
clv_status generate_read_prompt(generate_state *state);
/* Turns a prompt from a file, or from one line of it, into state->prompt. */
clv_status generate_take_prompt(generate_state *state, const char *text, size_t length);
/* Turns a conversation into tokens, and prints what was chosen for the user. */
clv_status generate_render(generate_state *state, const clv_chat_message *messages, size_t count);

/* Generates text after the tokens that the model was fed. Clear `written` with generate_clear. */
clv_status generate_write(generate_state *state, bool to_stdout, clv_written *written);
void generate_clear(clv_written *written);
/* Prints the summary line to standard error. */
void generate_summarize(const generate_state *state, const clv_written *written);

/* Sets the error for standard output that could not be written (errno). A signal may be the reason. */
clv_status generate_lost_output(void);
/* Prints the object of --json on standard output. `scores` NULL: the object has no scores. */
clv_status generate_print_json(const generate_state *state, const clv_written *written,
                               const float *scores);
/* Prints the facts of --info. */
clv_status generate_print_info(const generate_state *state);
/* Handles --input: answers several prompts. `open` opens the model on its devices and returns a negative number, or
 * the exit code. Returns the exit code. */
int generate_several(generate_state *state, int (*open)(generate_state *state, double started));
/* Holds a conversation on standard input. Returns the exit code. */
int generate_talk(generate_state *state);

#endif
