/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands of `cleave` share: exit codes, option tables, messages, the common options.
 *
 * A subcommand is one file with one `const cli_command`: its help text is made from its option
 * table, so that --help, the man page and completion cannot disagree. */
#ifndef CLEAVE_HOST_CLI_CLI_H
#define CLEAVE_HOST_CLI_CLI_H

#include <cleave/job.h>
#include <cleave/runtime.h>

#include <stdarg.h>
#include <stdio.h>

/* One rule for all commands. 2 is what the user can mend by giving something else: options, variables, names
 * (also of outputs: a wrong ending, an input that would be overwritten) and files that are missing, cannot be
 * read or are not what they should be. 1 is what was asked for rightly and could not be done: an output that
 * cannot be made or written, no memory, a driver that fails. */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1,     /* failed while running */
    CLI_USAGE = 2,      /* wrong usage or bad input */
    CLI_NOT_THERE = 3,  /* a device or mode that was asked for is not there */
    CLI_ICD_BROKEN = 4, /* probe --strict: a driver crashed or hung */
    CLI_WRONG = 5,      /* a device gave wrong results */
    CLI_INTERRUPTED = 130,
};

typedef struct cli_exit_code {
    int code;
    const char *text;
} cli_exit_code;
extern const cli_exit_code cli_exit_codes[]; /* for the help; ends with a NULL text */

typedef enum cli_kind {
    CLI_FLAG,     /* bool: --dog */
    CLI_TEXT,     /* const char *: any text but the empty one */
    CLI_ANY_TEXT, /* const char *: any text */
    CLI_UINT,     /* uint64_t */
    CLI_INT,      /* int64_t */
    CLI_DOUBLE,   /* double, finite */
    CLI_CHOICE,   /* int: index into `values` (a comma list) */
    CLI_BYTES,    /* uint64_t: "256M" */
    CLI_TEXTS,    /* cli_list: any text, the option may be repeated */
    CLI_OPTIONAL, /* const char *: --bench or --bench=full; "" when given bare */
} cli_kind;

/* Of an option that may be repeated; ends with NULL. */
enum { CLI_LIST_MOST = 32 };
typedef struct cli_list {
    const char *items[CLI_LIST_MOST + 1];
} cli_list;

/* One option. `target` points to a variable of the kind's type, preset to the default. */
typedef struct cli_option {
    const char *name; /* "radius": --radius; "q": -q; "o,output" both */
    cli_kind kind;
    void *target;
    const char *value;    /* how help calls the value: "PX"; for CHOICE the comma list of values */
    const char *help;     /* one line; defaults in brackets: "patch radius in pixels [4]" */
    bool *given;          /* set when the option was given; may be NULL */
    const char *variable; /* "CLEAVE_MODE": the environment variable that says the same; NULL: none.
                             The option wins: it takes the variable out of the environment */
} cli_option;

typedef struct cli_command {
    const char *name, *summary,
        *operands;                     /* "paco", "find exoplanets ...", "CUBE ANGLES PSF -o DIR" */
    const char *description;           /* paragraphs for --help and the man page */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
} cli_command;

/* Reads options (GNU style: any order, --name=value, -- ends them, -h/--help, -V/--version). The
 * operands are moved to argv[1..*operands]. Then the environment is checked, as far as no option stands
 * above it. Returns -1 to go on, else the exit code to return now (help was printed, or the mistake was
 * named). `tables` ends with NULL; each table ends with a NULL name. */
int cli_parse(const cli_command *command, const cli_option *const tables[], int argc, char **argv,
              int *operands);

/* The command whose options were read last: the one that runs. For messages of files that do not know which it is. */
const cli_command *cli_running(void);

/* The arguments that are no options must be those of the comma list `names` ("CUBE,ANGLES,PSF"; "": none).
 * Returns -1 to go on, else the exit code. */
int cli_check_operands(const cli_command *command, const char *names, int count,
                       char *const *operands);

/* What --help does with a command and all its tables; NULL brings the printer back. For
 * `cleave documents`, which runs every command with --help. */
typedef void cli_describe(const cli_command *command, const cli_option *const tables[]);
void cli_describe_with(cli_describe *writer);
void cli_print_options(FILE *out, const cli_option *table);
const char *cli_long_name(const cli_option *option); /* "output" of "o,output"; NULL: none */
char cli_short_name(const cli_option *option);       /* 'o'; '\0': none */

/* Prints "cleave 1.0" for --version. */
int cli_print_version(void);

/* Text for people, on standard output or error: whatever a terminal would obey is written as "\x1B" and the
 * like, see base/visible.h. All output of the command goes through these, but data that were asked for (JSON,
 * CSV, a model's text) and our own colours. */
void cli_say(FILE *out, const char *format, ...) CLV_PRINTF(2, 3);
void cli_vsay(FILE *out, const char *format, va_list args);
/* "cleave paco: message" on stderr; returns `code`. */
int cli_error(const cli_command *command, int code, const char *format, ...) CLV_PRINTF(3, 4);
/* The library's message, with the exit code that fits the status; CLV_OK gives CLI_OK. */
int cli_status(const cli_command *command, clv_status status);
/* The same while reading what the user gave: a file that cannot be read is bad input. */
int cli_input_status(const cli_command *command, clv_status status);
void cli_warn(const cli_command *command, const char *format, ...) CLV_PRINTF(2, 3);

/* ---- the options that every job command takes ------------------------------------------------ */

typedef struct cli_common {
    const char *mode, *device, *mem_limit, *batch, *sched, *report, *trace;
    uint64_t sub_devices;
    bool quiet, verbose, no_progress;
    bool
        lean; /* no option: drivers that only repeat the cores of a better one are not loaded, unless devices or a
                  mode are chosen */
} cli_common;

enum { CLI_COMMON_OPTIONS = 11 };
/* Fills `table` (CLI_COMMON_OPTIONS + 1 rows) with options that write into `common`. */
void cli_common_table(cli_common *common, cli_option *table);
/* The library's warnings (and news, when verbose) go to standard error from now on; as
 * cli_common_context does, for what is read before it. */
void cli_listen(bool quiet, bool verbose);
/* Are the common options and their variables good? To be asked before what takes long; cli_check_files
 * does. Returns -1 to go on, else an exit code. */
int cli_common_check(const cli_command *command, const cli_common *common);
/* Creates the context. Returns -1 to go on, else an exit code. */
int cli_common_context(const cli_command *command, const cli_common *common, clv_context **context);

/* Progress bar with rate and remaining time on stderr, when that is a terminal and it is wanted;
 * also the place where SIGINT cancels. Give `cli_progress` and the bar to clv_job's progress. */
typedef struct cli_bar {
    bool show;
    double started, drawn;
    const char *unit; /* "rows" */
} cli_bar;
void cli_bar_start(cli_bar *bar, const cli_common *common, const char *unit);
int cli_progress(const char *job, size_t done, size_t total, void *bar);
void cli_bar_end(cli_bar *bar);
/* Whether standard error is a terminal that can take a line back. */
bool cli_has_status_line(void);
/* That line, cut to the terminal's width: one that wraps could not be taken back. NULL: none any more. */
void cli_status_line(const char *text);
/* What goes on, on a terminal that wants progress: a line that the next message takes the place of.
 * NULL takes it away. */
void cli_doing(const cli_common *common, const char *what);
/* signals.c. SIGINT, SIGTERM and SIGHUP leave no temporary file or folder behind; one that the parent ignores
 * (nohup, &) stays ignored. main() calls this first. */
void cli_watch_signals(void);
/* From now on the first signal is told by cli_interrupted, so that the command ends in good order. If it has not
 * done so 1.2 s later (a driver that does not return), or with the second signal, the process ends at once. For
 * commands without a bar. */
void cli_catch_interrupts(void);
void cli_release_interrupts(void); /* the first signal ends the process again */
bool cli_interrupted(void);
/* What was computed is being saved: the 1.2 s begin anew at its end. */
void cli_saving(bool saving);
/* In a child of fork: signals do what they do in a new process. */
void cli_leave_signals(void);

/* Writes --report and --trace when they were asked for. */
int cli_write_report(const cli_command *command, const cli_common *common, clv_context *context,
                     const clv_report *report);

/* Every subcommand, in the order of `cleave --help`; ends with NULL. */
extern const cli_command *const cli_commands[];
/* Options before or after the command's name, and those of `cleave` alone. */
extern const cli_option cli_global_options[], cli_main_options[];
extern const cli_command cli_probe, cli_demo, cli_paco, cli_blobs, cli_link, cli_tracks, cli_bench,
    cli_selftest, cli_cache;
extern const cli_command cli_specfit, cli_templates, cli_embed, cli_classify, cli_tokenize,
    cli_detokenize, cli_finetune, cli_generate;
extern const cli_command cli_documents; /* for the build; not listed */

#endif
