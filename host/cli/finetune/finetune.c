/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave finetune`: trains a model on examples. */
#include "host/cli/finetune/folder.h"
#include "base/folder.h"
#include "host/cli/finetune/run.h"

#include <cleave/init.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

#include <unistd.h>

enum { MOST_BATCH = 1 << 16, MOST_EPOCHS = 1 << 20 };

typedef struct finetune_args {
    const char *data, *validation, *test, *output;
    cli_common common;
    cli_texts texts;
    int task, optimizer, schedule, header;
    uint64_t epochs, batch_size, seed, freeze, save_every, check, block_tokens;
    double rate, warmup, decay, clip, momentum, scale;
    bool resume, check_given;
} finetune_args;

typedef struct finetune_state {
    const finetune_args *args;
    const char *folder;
    clv_tokenizer *tokenizer;
    clv_model *model;
    clv_context *context;
    clv_trainer *trainer;
    clv_report *report;
    cli_classes classes;
    cli_examples examples, validation, test;
    cli_metrics tested;
    char file[4096]; /* path of the training state */
    cli_train_facts facts;
} finetune_state;

static int check_numbers(const finetune_args *a)
{
    const bool pairs = a->task == CLV_TRAIN_PAIRS;
    const struct {
        const char *option, *expected;
        double given;
        bool good;
    } rules[] = {
        { "--epochs", "1 to 1048576", (double)a->epochs, a->epochs && a->epochs <= MOST_EPOCHS },
        { "--batch-size",
          pairs ? "2 to 65536: the others of a batch are what a pair differs from" : "1 to 65536",
          (double)a->batch_size, a->batch_size >= (pairs ? 2 : 1) && a->batch_size <= MOST_BATCH },
        { "--lr", "a rate above 0, at most 1000", a->rate, a->rate > 0 && a->rate <= 1e3 },
        { "--warmup", "a part of the steps, from 0 to less than 1", a->warmup,
          a->warmup >= 0 && a->warmup < 1 },
        { "--weight-decay", "0 to 1000", a->decay, a->decay >= 0 && a->decay <= 1e3 },
        { "--clip", "a length above 0, or 0 for never", a->clip, a->clip >= 0 },
        { "--momentum", "0 to less than 1", a->momentum, a->momentum >= 0 && a->momentum < 1 },
        { "--scale", "a number above 0, at most 1000", a->scale, a->scale > 0 && a->scale <= 1e3 },
    };
    for (size_t i = 0; i < CLV_LEN(rules); ++i)
        if (!rules[i].good)
            return cli_error(&cli_finetune, CLI_USAGE, "%s is %.12g, but it must be %s",
                             rules[i].option, rules[i].given, rules[i].expected);
    return -1;
}

static int check(const finetune_args *a)
{
    if (!a->data)
        return cli_error(&cli_finetune, CLI_USAGE,
                         "--data FILE is missing: the file with the examples to learn from");
    if (!a->output)
        return cli_error(&cli_finetune, CLI_USAGE,
                         "-o FOLDER is missing: the folder for the model");
    const int code = check_numbers(a);
    return code >= 0 ? code : cli_texts_check(&cli_finetune, &a->texts);
}

/* Checks that all token ids lie within the model's word table. */
static clv_status check_fit(const finetune_state *s)
{
    clv_tokenizer_info info = CLV_INIT(clv_tokenizer_info);
    const clv_model_config *config = clv_model_get_config(s->model);
    clv_tokenizer_get_info(s->tokenizer, &info);
    if (s->args->freeze > config->layers)
        return clv_fail(CLV_E_ARGUMENT, "--freeze is %llu, but the model has only %zu layers",
                        (unsigned long long)s->args->freeze, config->layers);
    if (s->args->task == CLV_TRAIN_PAIRS && config->layers && s->args->freeze == config->layers)
        return clv_fail(CLV_E_ARGUMENT,
                        "--freeze is %llu, which leaves nothing to train: the model has %zu "
                        "layers, and --task pairs adds none",
                        (unsigned long long)s->args->freeze, config->layers);
    if (info.vocabulary <= config->vocabulary) return CLV_OK;
    return clv_fail(
        CLV_E_FORMAT,
        "%s: the tokenizer has ids up to %zu, but the model's word table has only %zu rows",
        s->folder, info.vocabulary - 1, config->vocabulary);
}

/* Checks that the two folders differ, that no input file would be overwritten, and that the outputs can be created. */
static int check_files(const finetune_state *s)
{
    enum { OWN = 3 };
    const finetune_args *a = s->args;
    cli_file inputs[CLI_MODEL_FILES + OWN] = { { "--data", a->data, NULL, CLI_STREAM },
                                               { "--val", a->validation, NULL },
                                               { "--test", a->test, NULL } };
    cli_file outputs[CLI_MODEL_FILES + 2] = { { "-o", "checkpoint.safetensors", a->output, 0 },
                                              [CLI_MODEL_FILES + 1] = { "the line of each step",
                                                                        "-", NULL, 0 } };
    int code = cli_input_status(&cli_finetune, cli_folder_check(s->folder, a->output));
    if (code) return code;
    cli_model_files("MODEL_DIR", s->folder, inputs + OWN);
    cli_model_files("-o", a->output, outputs + 1);
    return cli_check_files(&cli_finetune, &a->common, inputs, CLV_LEN(inputs), outputs,
                           CLV_LEN(outputs));
}

/* Checks for the state of an earlier run: --resume needs it, and a new run must not find one. */
static clv_status check_state(finetune_state *s)
{
    const int length =
        snprintf(s->file, sizeof s->file, "%s/checkpoint.safetensors", s->args->output);
    if (length < 0 || (size_t)length >= sizeof s->file)
        return clv_fail(
            CLV_E_ARGUMENT,
            "-o: the path of the checkpoint would have %d bytes; at most %zu are possible", length,
            sizeof s->file - 1);
    const bool there = access(s->file, F_OK) == 0;
    if (there && !s->args->resume)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s exists from a run that did not finish; add --resume to continue it, or "
                        "remove the file to start again",
                        s->file);
    if (!there && s->args->resume)
        return clv_fail(CLV_E_ARGUMENT, "--resume: there is no %s%s", s->file,
                        clv_folder_has(s->args->output, "model.safetensors")
                            ? ": the run has finished, and its model is there"
                            : "");
    return CLV_OK;
}

/* Reads all inputs before a device is opened or a file is written. */
static clv_status read_input(finetune_state *s)
{
    const finetune_args *a = s->args;
    cli_classes *classes = a->task == CLV_TRAIN_CLASSES ? &s->classes : NULL;
    CLV_TRY(check_state(s));
    CLV_TRY(cli_texts_tokenizer(&a->texts, s->folder, false, &s->tokenizer));
    CLV_TRY(clv_model_open(s->folder, &s->model));
    CLV_TRY(check_fit(s));
    CLV_TRY(cli_examples_read(a->data, &a->texts, s->tokenizer, a->header, classes, &s->examples));
    if (!classes && s->examples.count < 2)
        return clv_fail(CLV_E_FORMAT,
                        "%s: training on pairs needs at least two of them, but the file has %zu",
                        a->data, s->examples.count);
    if (a->validation)
        CLV_TRY(cli_examples_read(a->validation, &a->texts, s->tokenizer, a->header, classes,
                                  &s->validation));
    if (a->test)
        CLV_TRY(cli_examples_read(a->test, &a->texts, s->tokenizer, a->header, classes, &s->test));
    return CLV_OK;
}

/* Reports which first lines were left out as headers, and which first line might be one. */
static void tell_header(const finetune_state *s, const char *path, const cli_examples *e)
{
    if (s->args->common.quiet || (!e->header && !e->doubt)) return;
    if (e->header)
        cli_say(stderr,
                "%s: line 1 is treated as a header and left out: \"%s\" (--header no reads it as "
                "an example)\n",
                path, e->first_line);
    else
        cli_say(stderr,
                "%s: the label of line 1 occurs nowhere else: \"%s\"; if the line is a header, "
                "--header yes leaves it out\n",
                path, e->first_line);
}

/* Prints which headers were left out, and the number of examples per class. */
static void tell_examples(const finetune_state *s)
{
    enum { MOST = 12 };
    const cli_examples *e = &s->examples;
    tell_header(s, s->args->data, e);
    if (s->args->validation) tell_header(s, s->args->validation, &s->validation);
    if (s->args->test) tell_header(s, s->args->test, &s->test);
    if (s->args->common.quiet) return;
    cli_say(stderr, "%zu %s", e->count, e->labels ? "texts" : "pairs");
    if (e->labels) cli_say(stderr, ", %zu classes", s->classes.count);
    for (size_t c = 0; e->labels && c < s->classes.count && s->classes.count <= MOST; ++c) {
        size_t count = 0;
        for (size_t i = 0; i < e->count; ++i)
            count += (size_t)e->labels[i] == c;
        cli_say(stderr, "%s %s %zu", c ? "," : ":", s->classes.names[c], count);
    }
    fputc('\n', stderr);
}

static clv_status open_trainer(finetune_state *s)
{
    const finetune_args *a = s->args;
    const clv_trainer_options options = { .size = sizeof options,
                                          .task = (clv_train_task)a->task,
                                          .classes = s->classes.count,
                                          .optimizer = (clv_optimizer)a->optimizer,
                                          .momentum = a->momentum,
                                          .decay = a->decay,
                                          .clip = a->clip,
                                          .scale = a->scale,
                                          .head = CLV_TRAIN_HEAD_POOLER,
                                          .frozen_layers = (size_t)a->freeze,
                                          .seed = a->seed,
                                          .check_every = a->check,
                                          .check_every_given = a->check_given,
                                          .block_tokens = (size_t)a->block_tokens };
    return clv_trainer_open(s->context, s->model, &options, &s->trainer);
}

/* Writes the model, or if that fails, the state from which it can be written later. */
static clv_status write_model(finetune_state *s, const cli_train_plan *plan)
{
    clv_error why = { 0 };
    cli_saving(true);
    clv_status status = cli_folder_write(s->folder, s->args->output, &s->classes, s->trainer);
    cli_saving(false);
    if (!status) {
        (void)unlink(s->file);
        return CLV_OK;
    }
    clv_error_take(&why, status);
    if (cli_train_save(plan, s->trainer))
        status = clv_error_give(&why);
    else
        status = clv_fail(
            status,
            "%s; the trained weights are in %s, and --resume tries again to write the model",
            why.message, s->file);
    clv_error_clear(&why);
    return status;
}

static clv_status learn(finetune_state *s)
{
    const finetune_args *a = s->args;
    const cli_train_plan plan = { .examples = &s->examples,
                                  .validation = a->validation ? &s->validation : NULL,
                                  .classes = s->classes.count,
                                  .seed = a->seed,
                                  .epochs = a->epochs,
                                  .batch_size = a->batch_size,
                                  .save_every = a->save_every,
                                  .rate = a->rate,
                                  .warmup = a->warmup,
                                  .constant = a->schedule == 1,
                                  .state = s->file,
                                  .resume = a->resume,
                                  .quiet = a->common.quiet };
    cli_bar bar;
    CLV_TRY(clv_dir_make(a->output));
    cli_bar_start(&bar, &a->common, "steps");
    cli_doing(&a->common, "finetune: the first step (the first time compiles kernels)");
    const clv_status status = cli_train_run(&plan, s->trainer, &bar, &s->facts);
    cli_bar_end(&bar);
    CLV_TRY(status);
    CLV_TRY(write_model(s, &plan));
    return a->test ? cli_train_test(&plan, &s->test, s->trainer, &s->tested) : CLV_OK;
}

static void note(const finetune_state *s)
{
    const cli_train_facts *f = &s->facts;
    uint64_t repeated;
    const uint64_t checked = clv_trainer_checked(s->trainer, &repeated);
    const struct {
        const char *key;
        double value;
    } notes[] = { { "examples", (double)s->examples.count },
                  { "classes", (double)s->classes.count },
                  { "truncated", (double)s->examples.counts.truncated },
                  { "steps", (double)f->steps },
                  { "resumed_at", (double)f->resumed_at },
                  { "texts", (double)f->texts },
                  { "tokens", (double)f->tokens },
                  { "seconds", f->seconds },
                  { "first_loss", f->first_loss },
                  { "last_loss", f->last_loss },
                  { "checked", (double)checked },
                  { "repeated", (double)repeated } };
    for (size_t i = 0; i < CLV_LEN(notes); ++i)
        clv_report_note(s->report, notes[i].key, notes[i].value);
    clv_report_note_text(s->report, "device", clv_trainer_device(s->trainer));
    for (size_t i = 0; i < s->classes.count && i < 128; ++i) {
        char key[24];
        snprintf(key, sizeof key, "class %zu", i);
        clv_report_note_text(s->report, key, s->classes.names[i]);
    }
    if (s->args->validation) cli_metrics_note(&f->validation, s->report, "validation");
    if (s->args->test) cli_metrics_note(&s->tested, s->report, "test");
}

static void summarize(const finetune_state *s)
{
    char took[24];
    clv_tokenizer_info info = CLV_INIT(clv_tokenizer_info);
    const cli_train_facts *f = &s->facts;
    clv_tokenizer_get_info(s->tokenizer, &info);
    if (s->args->common.quiet) return;
    cli_text_warn(&cli_finetune, &s->examples.counts, info.max_length);
    if (s->args->validation) cli_metrics_tell(&f->validation, "validation", s->classes.names);
    if (s->args->test) cli_metrics_tell(&s->tested, "test", s->classes.names);
    cli_say(stderr, "%llu step%s, %llu tokens in %s (%.0f tokens/s) on %s; the model is in %s\n",
            (unsigned long long)f->steps, f->steps == 1 ? "" : "s", (unsigned long long)f->tokens,
            clv_format_seconds(f->seconds, took),
            (double)f->tokens / (f->seconds > 1e-6 ? f->seconds : 1e-6),
            clv_trainer_device(s->trainer), s->args->output);
    uint64_t repeated;
    const uint64_t checked = clv_trainer_checked(s->trainer, &repeated);
    if (checked)
        cli_say(stderr,
                "%llu step%s checked against plain C on the host; %llu of them differed and %s "
                "repeated\n",
                (unsigned long long)checked, checked == 1 ? " was" : "s were",
                (unsigned long long)repeated, repeated == 1 ? "was" : "were");
}

static int finetune(finetune_state *s)
{
    int code = check_files(s);
    if (code >= 0) return code;
    cli_listen(s->args->common.quiet, s->args->common.verbose);
    code = cli_input_status(&cli_finetune, read_input(s));
    if (code) return code;
    code = cli_common_context(&cli_finetune, &s->args->common, &s->context);
    if (code >= 0) return code;
    code = cli_status(&cli_finetune, clv_report_create(&s->report));
    if (!code) code = cli_status(&cli_finetune, open_trainer(s));
    if (!code) tell_examples(s);
    if (!code) code = cli_status(&cli_finetune, learn(s));
    if (code) return code;
    note(s);
    code = cli_write_report(&cli_finetune, &s->args->common, s->context, s->report);
    if (!code) summarize(s);
    return code;
}

static int run(int argc, char **argv)
{
    finetune_args a = { .epochs = 3,
                        .batch_size = 16,
                        .rate = 5e-5,
                        .warmup = 0.1,
                        .decay = 0.01,
                        .clip = 1,
                        .scale = 20 };
    const cli_option own[] = {
        { "data", CLI_TEXT, &a.data, "FILE",
          "examples, one per line: text TAB label, or text TAB text", NULL },
        { "o,output", CLI_TEXT, &a.output, "FOLDER", "folder for the trained model", NULL },
        { "task", CLI_CHOICE, &a.task, "classes,pairs",
          "learn labels, or pairs of texts that belong together [classes]", NULL },
        { "epochs", CLI_UINT, &a.epochs, "N", "number of passes over the examples [3]", NULL },
        { "batch-size", CLI_UINT, &a.batch_size, "N", "number of examples per step [16]", NULL },
        { "lr", CLI_DOUBLE, &a.rate, "RATE", "highest learning rate [5e-5]", NULL },
        { "warmup", CLI_DOUBLE, &a.warmup, "PART",
          "share of the steps during which the learning rate rises [0.1]", NULL },
        { "schedule", CLI_CHOICE, &a.schedule, "linear,constant",
          "how the learning rate changes after that [linear]", NULL },
        { "optimizer", CLI_CHOICE, &a.optimizer, "adamw,sgd", "optimizer [adamw]", NULL },
        { "momentum", CLI_DOUBLE, &a.momentum, "M", "momentum of sgd [0]", NULL },
        { "weight-decay", CLI_DOUBLE, &a.decay, "D", "weight decay of matrices and tables [0.01]",
          NULL },
        { "clip", CLI_DOUBLE, &a.clip, "LENGTH", "clip gradients to this norm; 0: never [1]",
          NULL },
        { "scale", CLI_DOUBLE, &a.scale, "S", "factor for the cosines of pairs [20]", NULL },
        { "freeze", CLI_UINT, &a.freeze, "N",
          "keep the embeddings and the first N layers fixed [0: none]", NULL },
        { "seed", CLI_UINT, &a.seed, "N",
          "seed of the order of examples and of the initial weights [0]", NULL },
        { "val", CLI_TEXT, &a.validation, "FILE", "examples to test with after every epoch", NULL },
        { "test", CLI_TEXT, &a.test, "FILE", "examples to test the final model with", NULL },
        { "header", CLI_CHOICE, &a.header, "auto,yes,no",
          "whether the first line of each file is a header [auto: judged by its words]", NULL },
        { "checkpoint", CLI_UINT, &a.save_every, "N",
          "number of steps between two saved states [0: one epoch]", NULL },
        { "check", CLI_UINT, &a.check, "N", "compare every N-th step with plain C; 0: never [200]",
          &a.check_given },
        { "block-tokens", CLI_UINT, &a.block_tokens, "N",
          "cut batches of at least 2 N tokens into blocks of at least N, which equal devices share "
          "[4096]",
          NULL },
        { "resume", CLI_FLAG, &a.resume, NULL, "continue from the state in FOLDER", NULL },
        { "max-length", CLI_UINT, &a.texts.max_length, "N",
          "cut texts to N tokens, including [CLS] and [SEP] [the limit of the model]",
          &a.texts.max_length_given },
        { "invalid", CLI_CHOICE, &a.texts.invalid, "error,drop",
          "what to do with bytes that are not UTF-8 [error]", NULL },
        { "threads", CLI_UINT, &a.texts.threads, "N",
          "number of threads that tokenize [all available cores]", NULL },
        { NULL },
    };
    cli_option common[CLI_COMMON_OPTIONS + 1];
    cli_common_table(&a.common, common);
    const cli_option *const tables[] = { own, common, NULL };
    int operands, code = cli_parse(&cli_finetune, tables, argc, argv, &operands);
    if (code < 0) code = cli_check_operands(&cli_finetune, "MODEL_DIR", operands, argv + 1);
    if (code < 0) code = check(&a);
    if (code >= 0) return code;
    finetune_state s = { .args = &a, .folder = argv[1] };
    code = finetune(&s);
    clv_trainer_close(s.trainer);
    clv_report_free(s.report), clv_context_free(s.context);
    cli_examples_clear(&s.examples), cli_examples_clear(&s.validation);
    cli_examples_clear(&s.test);
    cli_metrics_clear(&s.facts.validation), cli_metrics_clear(&s.tested);
    cli_classes_clear(&s.classes);
    clv_model_close(s.model), clv_tokenizer_close(s.tokenizer);
    return code;
}

const cli_command cli_finetune = {
    .name = "finetune",
    .summary = "train a BERT model on examples",
    .operands = "MODEL_DIR --data FILE -o FOLDER [OPTION...]",
    .description =
        "Trains all weights of an encoder on the first device that works. With --task classes\n"
        "(lines of text, tab, label), the model's pooler and a linear layer learn the class of a\n"
        "text. With --task pairs (lines of two texts), the vectors of texts that belong together\n"
        "learn to be similar, and different from the second texts of the other pairs of the "
        "batch.\n"
        "One line per step and one per epoch go to standard output; loss, accuracy, macro F1 and\n"
        "the confusion matrix of --val and --test go to standard error and into the report. "
        "FOLDER\n"
        "gets the files of MODEL_DIR with new weights. A model with classes is a\n"
        "BertForSequenceClassification, which `cleave classify` and transformers read with the "
        "same\n"
        "results. A first line with the names of columns is left out. A run that was interrupted\n"
        "leaves checkpoint.safetensors in FOLDER; --resume continues from there and ends with the\n"
        "same bytes. The same seed, device and data give the same bytes.",
    .run = run,
};
