/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the subcommands of `cleave` share: exit codes, option tables, messages, the common options.
 *
 * A subcommand is one file with one `const cli_command`. Its help text is generated from its option table, so that
 * --help, the man page and shell completion always agree. */
#ifndef CLEAVE_HOST_CLI_CLI_H
#define CLEAVE_HOST_CLI_CLI_H

#include <cleave/job.h>
#include <cleave/runtime.h>

#include <stdarg.h>
#include <stdio.h>

/* The exit codes, the same for all commands. 2 means that the user can fix the problem by giving something else:
 * options, variables, names (also of outputs: a wrong ending, or an input that would be overwritten) and input files
 * that are missing, unreadable or not what they should be. 1 means that the request was valid but could not be carried
 * out: an output cannot be created or written, memory ran out, or a driver failed. */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1,     /* failed while running */
    CLI_USAGE = 2,      /* wrong usage or bad input */
    CLI_NOT_THERE = 3,  /* a device or mode that was asked for is not there */
    CLI_ICD_BROKEN = 4, /* probe --strict: a driver crashed or hung */
    CLI_WRONG = 5,      /* a device gave wrong results */
    CLI_INTERRUPTED = 130,
    CLI_SHARD_DONE = 1000, /* internal: a shard has done its part; main() turns it into 0 */
};

typedef struct cli_exit_code {
    int code;
    const char *text;
} cli_exit_code;
extern const cli_exit_code cli_exit_codes[]; /* listed in the help; ends with a NULL text */

typedef enum cli_kind {
    CLI_FLAG,     /* bool: --dog */
    CLI_TEXT,     /* const char *: any text except the empty one */
    CLI_ANY_TEXT, /* const char *: any text */
    CLI_UINT,     /* uint64_t */
    CLI_INT,      /* int64_t */
    CLI_DOUBLE,   /* double, finite */
    CLI_CHOICE,   /* int: index into `values` (a comma list) */
    CLI_BYTES,    /* uint64_t: "256M" */
    CLI_TEXTS,    /* cli_list: any text, the option may be repeated */
    CLI_OPTIONAL, /* const char *: --bench or --bench=full; "" when given bare */
} cli_kind;

/* The values of an option that may be repeated; ends with NULL. */
enum { CLI_LIST_MOST = 32 };
typedef struct cli_list {
    const char *items[CLI_LIST_MOST + 1];
} cli_list;

/* One option. `target` points to a variable of the kind's type, preset to the default value. */
typedef struct cli_option {
    const char *name; /* "radius": --radius; "q": -q; "o,output": both */
    cli_kind kind;
    void *target;
    const char *value;    /* value's name in the help: "PX"; for CHOICE the comma list of values */
    const char *help;     /* one line; defaults in brackets: "patch radius in pixels [4]" */
    bool *given;          /* set when the option was given; may be NULL */
    const char *variable; /* "CLEAVE_MODE": the equivalent environment variable; NULL: none.
                             The option wins: it removes the variable from the environment */
} cli_option;

typedef struct cli_command {
    const char *name, *summary,
        *operands;                     /* "paco", "find exoplanets ...", "CUBE ANGLES PSF -o DIR" */
    const char *description;           /* paragraphs for --help and the man page */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
} cli_command;

/* Parses the options (GNU style: in any order, --name=value, "--" ends them, -h/--help, -V/--version) and moves the
 * operands to argv[1..*operands]. Then checks the environment variables, except those that an option overrides. Returns
 * -1 to continue, else the exit code to return now (the help was printed, or the mistake was reported). `tables` ends
 * with NULL; each table ends with a NULL name. */
int cli_parse(const cli_command *command, const cli_option *const tables[], int argc, char **argv,
              int *operands);

/* Returns the command whose options were parsed last, which is the running one; for messages from source files that
 * several commands share. */
const cli_command *cli_running(void);

/* Checks that the non-option arguments match the comma list `names` ("CUBE,ANGLES,PSF"; "": none are allowed). Returns
 * -1 to continue, else the exit code. */
int cli_check_operands(const cli_command *command, const char *names, int count,
                       char *const *operands);

/* Handles --help for a command and all its option tables. cli_describe_with replaces the function that prints the
 * help by another one; NULL restores it. `cleave documents` runs every command with --help and its own function. */
typedef void cli_describe(const cli_command *command, const cli_option *const tables[]);
void cli_describe_with(cli_describe *writer);
void cli_print_options(FILE *out, const cli_option *table);
const char *cli_long_name(const cli_option *option); /* "output" of "o,output"; NULL: none */
char cli_short_name(const cli_option *option);       /* 'o'; '\0': none */

/* Prints "cleave 1.0" for --version. */
int cli_print_version(void);

/* Prints text for people on standard output or error. Characters that would control a terminal are written as "\x1B"
 * and the like, see base/visible.h. All output of the command goes through these functions, except the data that the
 * user asked for (JSON, CSV, a model's text) and our own colour codes. */
void cli_say(FILE *out, const char *format, ...) CLV_PRINTF(2, 3);
void cli_vsay(FILE *out, const char *format, va_list args);
/* Sets the name under which this process writes messages. When several processes do the same work, one of them
 * prints all messages. Each of the other ranks has a name ("rank 3: ") at the beginning of its lines, and prints only
 * errors and, with --verbose, what the library chose. */
void cli_speak_as(const char *name);
const char *cli_speaker(void); /* "": this process prints all messages */
void cli_say_always(FILE *out, const char *format, ...) CLV_PRINTF(2, 3);
/* Whether memory ran out for a part of what these functions print on standard output. */
bool cli_told_less(void);
/* Prints "cleave paco: message" on stderr and returns `code`. */
int cli_error(const cli_command *command, int code, const char *format, ...) CLV_PRINTF(3, 4);
/* Prints the library's message and returns the exit code that fits the status; CLV_OK gives CLI_OK. */
int cli_status(const cli_command *command, clv_status status);
/* Prints the library's message after a failure to read the user's input, and returns the exit code: a file that
 * cannot be read counts as bad input. */
int cli_input_status(const cli_command *command, clv_status status);
void cli_warn(const cli_command *command, const char *format, ...) CLV_PRINTF(2, 3);

/* ---- the options that every job command takes ------------------------------------------------ */

typedef struct cli_common {
    const char *mode, *device, *mem_limit, *batch, *sched, *report, *trace;
    const char *shard, *record; /* host/cli/share.h */
    uint64_t sub_devices, devices_per_rank;
    bool quiet, verbose, no_progress;
    bool
        lean; /* set by the command, not by an option: unless devices or a mode are chosen, drivers that only offer the
               * cores of a better driver again are not loaded */
} cli_common;

enum { CLI_COMMON_OPTIONS = 11 };
/* Fills `table` (CLI_COMMON_OPTIONS + 1 rows) with options that write into `common`. */
void cli_common_table(cli_common *common, cli_option *table);
/* Sends the library's warnings (and, when verbose, its news) to standard error from now on. cli_common_context calls
 * it; call it earlier when inputs are read before the context is created. */
void cli_listen(bool quiet, bool verbose);
/* Checks the common options and their environment variables. Call it before any long step; cli_check_files does.
 * Returns -1 to continue, else an exit code. */
int cli_common_check(const cli_command *command, const cli_common *common);
/* Creates the context. Returns -1 to continue, else an exit code. */
int cli_common_context(const cli_command *command, const cli_common *common, clv_context **context);

/* A progress bar with rate and remaining time on stderr, if that is a terminal and the user wants progress. The bar is
 * also where SIGINT cancels a job. Pass `cli_progress` and the bar as the progress callback of clv_job. */
typedef struct cli_bar {
    bool show;
    double started, drawn;
    const char *unit; /* "rows" */
} cli_bar;
void cli_bar_start(cli_bar *bar, const cli_common *common, const char *unit);
int cli_progress(const char *job, size_t done, size_t total, void *bar);
void cli_bar_end(cli_bar *bar);
/* Returns whether standard error is a terminal on which a line can be erased again. */
bool cli_has_status_line(void);
/* Shows `text` as the status line, cut to the terminal's width because a wrapped line could not be erased. NULL erases
 * the line. */
void cli_status_line(const char *text);
/* Shows what the command is doing now, on a terminal and if the user wants progress. The next message replaces the
 * line; NULL erases it. */
void cli_doing(const cli_common *common, const char *what);
/* Defined in signals.c. From now on, SIGINT, SIGTERM and SIGHUP remove temporary files and folders before they end the
 * process. A signal that the parent set to be ignored (nohup, &) stays ignored. main() calls this first. */
void cli_watch_signals(void);
/* From now on cli_interrupted reports the first signal, so that the command can end in good order. If the command has
 * not ended 1.2 s later (a driver call that does not return), or when a second signal arrives, the process ends at
 * once. For commands without a bar. */
void cli_catch_interrupts(void);
void cli_release_interrupts(void); /* from now on the first signal ends the process again */
bool cli_interrupted(void);
/* Tells the signal handlers that results are being saved (true) or have been saved (false); the 1.2 s start again after
 * the save. */
void cli_saving(bool saving);
/* Restores the default signal handling; call it in a child after fork. */
void cli_leave_signals(void);

/* Writes the files of --report and --trace if they were requested. */
int cli_write_report(const cli_command *command, const cli_common *common, clv_context *context,
                     const clv_report *report);

/* Every subcommand, in the order of `cleave --help`; ends with NULL. */
extern const cli_command *const cli_commands[];
/* Options that may stand before or after the command's name, and options of `cleave` without a command. */
extern const cli_option cli_global_options[], cli_main_options[];
extern const cli_command cli_probe, cli_demo, cli_paco, cli_blobs, cli_link, cli_tracks, cli_bench,
    cli_selftest, cli_cache;
extern const cli_command cli_specfit, cli_templates, cli_embed, cli_classify, cli_tokenize,
    cli_detokenize, cli_search, cli_rank, cli_finetune, cli_generate, cli_merge;
extern const cli_command cli_documents; /* for the build only; not listed */

#endif
