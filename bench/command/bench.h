/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what `cleave bench` measures, by which parties, and where the figures go.
 *
 * Every party measures every case (an input of some size). A party is a device alone, the devices of a mode
 * together, the plain C reference, or an outside program. Each party runs in its own process and sends lines of JSON
 * (bench/command/lines.c). To add a workload, write a file with a `bench_workload` and add a row to the table in
 * bench.c. */
#ifndef CLEAVE_BENCH_COMMAND_BENCH_H
#define CLEAVE_BENCH_COMMAND_BENCH_H

#include "base/json.h"
#include "base/text.h"

#include <cleave/job.h>
#include <cleave/probe.h>

#include <stdbool.h>
#include <stdio.h>

enum {
    BENCH_MOST_CASES = 160,
    BENCH_MOST_PARTIES = 24,
    BENCH_MOST_FACTS = 32,
    BENCH_MOST_SAMPLES = 32,
    BENCH_MOST_SHARES = 8,
    BENCH_PATH = 4096,
};

/* ---- cases ---------------------------------------------------------------------------------------- */

typedef struct bench_case {
    const struct bench_workload *workload;
    char name[48];         /* "100x100, T=50, shift": unique within the workload */
    size_t size[3];        /* its meaning depends on the workload */
    int variant;           /* its meaning depends on the workload */
    bool cold;             /* also measured without any cache, since compiling takes long */
    bool from_files;       /* only the whole command is measured: it is too large for memory */
    bool part;             /* a part of a command, which has no files */
    double flops, traffic; /* of the job, by its cost function; 0: unknown */
    double items;          /* in the workload's unit; 0: none */
} bench_case;

/* A plot of the cases of one family along one axis. */
typedef struct bench_plot {
    const char *title, *x_title;
    /* The case's place on the axis; 0 or less: it is not in this plot. */
    double (*x)(const bench_case *c);
} bench_plot;

typedef struct bench_sizes {
    bool full;
    const char *only;    /* from --only; NULL: all cases */
    size_t given[16][3]; /* from --sizes: height, width, frames; replaces the usual ones */
    size_t given_count;
    const char *library, *coadd; /* from --library and --coadd; NULL: synthetic */
    const char *model;           /* from --model; NULL: none */
} bench_sizes;

struct bench_party;
struct bench_run;

typedef struct bench_workload {
    const char *name, *title;
    const char *unit; /* of the rate at which a case's items are done, "tokens/s"; NULL: none */
    /* Fills `cases` and returns their number. */
    size_t (*cases)(const bench_sizes *sizes, bench_case *cases, size_t room);
    /* Returns the relative effort of a case, to predict a slow party's time from a smaller case. */
    double (*effort)(const bench_case *c);
    /* Writes the case's input files to an existing folder; NULL: memory to memory only. */
    clv_status (*prepare)(const bench_case *c, const char *folder);
    /* Sends kernel and compute times, with inputs in memory; runs in a party's process. */
    clv_status (*measure)(struct bench_run *run, size_t case_index);
    /* Returns the arguments after "cleave" that run the whole command on the case's files,
     * NULL-terminated; the strings live until the next call. */
    const char *const *(*command)(const bench_case *c, const char *folder, const char *output);
    bool alone;     /* measured on each device alone: devices together and plain C take no part */
    bool host_only; /* host work: the command has no --device, and plain C is no separate party */
    const bench_plot *plots;
    size_t plot_count;
} bench_workload;

extern const bench_workload bench_paco, bench_blobs, bench_link, bench_arrays, bench_transformer,
    bench_specfit, bench_generate, bench_offload;
/* Sets the model of bench_generate (borrowed); NULL: it has no cases. */
void bench_generate_use(const char *path);

/* ---- parties ---------------------------------------------------------------------------------------- */

typedef enum bench_kind {
    BENCH_DEVICE,
    BENCH_TOGETHER,
    BENCH_REFERENCE,
    BENCH_PEER,
} bench_kind;

typedef struct bench_party {
    bench_kind kind;
    char name[64];       /* "AMD EPYC [pocl]" */
    char modes[32];      /* "cpu" or "cpu, hybrid": the modes that select these devices; "" */
    char selection[128]; /* for --device: "0,2" */
    const clv_probe_device *device; /* of a device alone; else NULL */
} bench_party;

/* ---- figures ---------------------------------------------------------------------------------------- */

typedef struct bench_stat {
    size_t count; /* 0: not measured */
    double median, minimum, maximum;
} bench_stat;

typedef enum bench_metric {
    BENCH_KERNEL,  /* kernels alone, by the device's clock */
    BENCH_COMPUTE, /* from memory to memory, including transfers */
    BENCH_FILES,   /* the whole program, from files to files, with warm caches */
    BENCH_COLD,    /* the whole program, with nothing cached by earlier runs */
    BENCH_METRICS
} bench_metric;

extern const char *const bench_metric_names[BENCH_METRICS]; /* the keys in the results */

typedef struct bench_share {
    char device[64];
    double part;
} bench_share;

typedef struct bench_cell {
    bench_stat stat[BENCH_METRICS];
    double seconds[BENCH_METRICS][BENCH_MOST_SAMPLES]; /* the samples of `stat`, of all turns */
    uint64_t memory_bytes; /* largest resident set of the whole program; 0: unknown */
    bench_share shares[BENCH_MOST_SHARES];
    size_t share_count;
    double agreement; /* of a peer: worst relative difference from our map; < 0: unknown */
    char note[120];   /* why a figure is missing */
    bool late;        /* left out for lack of time */
    bool kept;        /* it has figures of an earlier run or pass, and is not measured again */
} bench_cell;

/* A measured property of a device, or of the runtime on it. */
typedef struct bench_fact {
    char name[48], unit[12];
    bench_stat by_party[BENCH_MOST_PARTIES];
} bench_fact;

typedef struct bench_plan {
    bench_sizes sizes;
    size_t repeats; /* least number of repetitions of everything that is quick enough */
    size_t turns;   /* rounds in which all parties, also outside programs, share the repetitions */
    double patience_s; /* most seconds for all repetitions of a figure; slower cases are left out */
    double budget_s;   /* most seconds for everything; 0: no limit */
    double until;      /* when the budget ends, by clv_now; INFINITY: never */
    double figure_s;   /* patience_s, or less of a budget: for all repetitions of a figure */
    double single_s;   /* patience_s, or less of a budget: for one repetition */
    bool files, cold, runtime;
    double load_before, load_after; /* the machine's load; < 0: unknown */
} bench_plan;

typedef struct bench {
    const clv_probe_report *probe;
    bench_plan plan;
    bench_case cases[BENCH_MOST_CASES];
    size_t case_count;
    bench_party parties[BENCH_MOST_PARTIES];
    size_t party_count;
    bench_cell cells[BENCH_MOST_CASES][BENCH_MOST_PARTIES];
    bench_fact facts[BENCH_MOST_FACTS];
    size_t fact_count;
    const bench_workload *const *workloads; /* workloads that the user asked for */
    size_t workload_count;
    char folder[BENCH_PATH]; /* private; contains the cases' inputs and outputs */
    char started[32];        /* UTC */
    bool runtime_late;       /* the runtime was not measured completely, for lack of time */
    bool ended;              /* all parties had their turns: what is missing stays missing */
} bench;

/* ---- bench/lines.c: from a party's process to the command ------------------------------------------- */

/* The state of a party that measures, in its own process. */
typedef struct bench_run {
    const bench *bench;
    size_t party;
    clv_context *context; /* NULL if the process needs none */
    FILE *out;
    double seconds_per_effort; /* from the last case; 0: unknown */
} bench_run;

void bench_say(bench_run *run, const char *doing); /* progress for the terminal */
void bench_send(bench_run *run, size_t case_index, bench_metric metric, const double *values,
                size_t count);
void bench_send_cost(bench_run *run, size_t case_index, double flops, double traffic);
void bench_send_shares(bench_run *run, size_t case_index, const clv_report *report);
void bench_send_note(bench_run *run, size_t case_index, const char *note);
/* Sends a note that a case is left out; `late`: for lack of time. */
void bench_send_left_out(bench_run *run, size_t case_index, const char *note, bool late);
/* Sends the figure of another party; it is made if there is none of that name. */
void bench_send_for(bench_run *run, const char *party, size_t case_index, const double *values,
                    size_t count);
void bench_send_fact(bench_run *run, const char *name, const char *unit, const double *values,
                     size_t count);
/* Adds a line to the figures of a party. Returns the text of a "doing" line (valid until the next call), else
 * NULL. Peers name themselves and become parties with their first line. */
const char *bench_take(bench *b, size_t party, const char *line);
/* Removes the note that a cell was left out for lack of time. */
void bench_in_time(bench_cell *cell);
void bench_take_shares(bench_cell *cell, const clv_json *list);
/* Returns the party of that name, and adds it if there is none; SIZE_MAX: too many parties. */
size_t bench_find_party(bench *b, bench_kind kind, const char *name);

/* ---- bench/measure.c ---------------------------------------------------------------------------------- */

bench_stat bench_stat_of(double *values, size_t count); /* sorts the values */
size_t bench_turn_repeats(const bench_plan *plan);      /* repetitions per turn */

/* Runs one repetition and measures its seconds. */
typedef clv_status bench_once(void *user, double *seconds);
/* Makes one turn's share of the repetitions. Over all turns these are at least plan->repeats and take one second,
 * unless plan->figure_s ends them earlier. */
clv_status bench_repeat(const bench_plan *plan, bench_once *once, void *user, double *values,
                        size_t *count);
/* Returns whether a case would take too long, predicted from the time of a smaller case; if so, notes that the case
 * is left out. */
bool bench_is_too_long(bench_run *run, size_t case_index);

/* Runs the whole command on the files of all cases until a time. `tell` is called with a description of each run. */
clv_status bench_files(bench *b, size_t party, double until,
                       void (*tell)(const char *doing, void *user), void *user);
/* Makes the folders and input files of all cases. */
clv_status bench_prepare(bench *b);
/* Return the folder of a case's inputs, or of a party's outputs; `out` has room for BENCH_PATH bytes. */
const char *bench_case_folder(const bench *b, size_t case_index, char *out);
const char *bench_output_folder(const bench *b, size_t case_index, size_t party, char *out);

/* ---- bench/turns.c, bench/budget.c ------------------------------------------------------------------------ */

typedef struct bench_orders {
    const char *scripts, *environments; /* of outside programs; NULL: none */
    bool show;                          /* progress on the terminal */
    void (*keep)(void *user);           /* called after each figure, to save what is known */
    void (*warn)(const char *who);      /* tells the error message of a party that failed */
    void *user;
} bench_orders;

/* Measures all parties. *failed: something could not be measured. */
clv_status bench_measure(bench *b, const bench_orders *orders, bool *failed);

/* Returns when the next of `count` equal parts of the remaining budget ends. */
double bench_share_until(const bench *b, size_t count);
/* Limits the time of a figure so that `cases` cases, smaller ones first, end by `until`. Returns false if no time is
 * left. */
bool bench_hurry(bench *b, double until, size_t cases);
/* Takes the figures of an earlier, incomplete result. Returns false, and takes none, if it is of another version. */
bool bench_resume(bench *b, const clv_json *earlier);

/* ---- bench/runtime.c, bench/peers.c --------------------------------------------------------------------- */

/* Measures latencies, bandwidths and overheads of a device; for several devices together, compares them with the
 * best one alone. Runs in a party's process. */
clv_status bench_runtime(bench_run *run);

/* Runs run.py of the folder `scripts` with every Python environment in `environments` (separated by colons). If one
 * environment fails, the others still run; the result is then CLV_E_DEVICE, and clv_error_message names it. */
clv_status bench_peers(bench *b, const char *scripts, const char *environments, double until,
                       void (*tell)(const char *doing, void *user), void *user);

/* ---- results --------------------------------------------------------------------------------------------- */

/* Rates of kernels (or of the computation if kernels were not timed), and their fraction of the device's measured
 * peak; negative: unknown. */
typedef struct bench_rate {
    double gflops, gflops_part, gb_s, gb_s_part;
} bench_rate;

/* Returns the median of the fastest device or group of devices; 0: there is none. */
double bench_best(const bench *b, size_t case_index, bench_metric metric);
/* Returns the kernel time if it is known, else the compute time; 0 if neither is. */
double bench_working_s(const bench_cell *cell);
bool bench_rates(const bench *b, size_t case_index, size_t party, bench_rate *rate);
bool bench_has(const bench *b, size_t case_index,
               size_t party); /* a figure, or a note why there is none */
bool bench_has_facts(const bench *b, size_t party);
size_t bench_late(const bench *b);      /* number of cells that were left out for lack of time */
bool bench_few_repeats(const bench *b); /* some figure has fewer than plan.repeats: marked by '*' */
bool bench_was_busy(const bench *b);    /* other programs were running: do not trust the times */

/* Return the text of a cell, "" for what is unknown; `out` has room for BENCH_CELL bytes and is returned. */
enum { BENCH_CELL = 32 };
const char *bench_seconds(double seconds, char *out);                           /* "1.24 s" */
const char *bench_time_cell(const bench *b, const bench_stat *stat, char *out); /* "61.4 s*" */
const char *bench_ratio_cell(const bench *b, size_t case_index, const bench_stat *stat,
                             bench_metric metric, char *out);     /* "x206" of the fastest device */
const char *bench_rate_cell(double rate, double part, char *out); /* "35.2 (28 %)" */
double bench_items_s(const bench *b, size_t case_index,
                     size_t party); /* items per second; 0: none */
/* Writes the items per second as text; "" if the workload has no items. */
const char *bench_items_cell(const bench *b, size_t case_index, size_t party, char *out);
const char *bench_fact_cell(const bench_fact *fact, size_t party, char *out);
void bench_describe_machine(const bench *b, clv_text *out);
void bench_describe_device(const bench *b, size_t party, clv_text *out); /* of a BENCH_DEVICE */

/* bench/compare.c. Reads an earlier result; free it with clv_json_free. */
clv_status bench_compare_open(const char *path, clv_json **old);
/* Return the entry of a case in an earlier result, or the times that an entry has under a key; NULL or count 0:
 * unknown. */
const clv_json *bench_compare_case(const clv_json *old, const bench_case *c);
bench_stat bench_compare_stat(const clv_json *result, const char *key);
/* Returns 1 if `now` is slower beyond the noise, -1 if it is faster, else 0. */
int bench_compare_times(const bench_stat *before, const bench_stat *now);
/* Prints what became slower or faster, and returns how many times became slower. */
size_t bench_compare(const bench *b, const clv_json *old, FILE *out);

void bench_print(const bench *b, FILE *out); /* bench/text.c */
clv_json *bench_json(const bench *b);        /* bench/json.c; schema cleave.bench/1 */
char *bench_markdown(const bench *b);        /* bench/markdown.c; free with clv_free */
char *bench_html(const bench *b);            /* bench/html.c; free with clv_free */
/* Adds the times of a workload's cases by mode (bench/modes.c), if any were measured. */
void bench_add_modes(const bench *b, const bench_workload *workload, bool html, clv_text *out);
/* These draw inline SVG and add it to `out` (bench/plot.c). */
void bench_draw_plot(const bench *b, const bench_plot *plot, bench_metric metric, clv_text *out);
void bench_draw_dots(const bench *b, const bench_workload *workload, bench_metric metric,
                     clv_text *out);
void bench_draw_shares(const bench *b, clv_text *out);
const char *bench_colour(const bench *b, size_t party); /* "#2a78d6" */
void bench_escape(const char *text, clv_text *out);     /* for HTML and SVG */

#endif
