/* SPDX-License-Identifier: Apache-2.0 */
/* Outside programs in `cleave bench`: runs bench/peers/run.py on the same files that our own parties used. */
#include "bench/command/bench.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/cli/apart.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct visit {
    bench *b;
    char python[BENCH_PATH], script[BENCH_PATH], list[BENCH_PATH];
    char patience[24], repeats[24];
    void (*tell)(const char *doing, void *user);
    void *user;
    double until;
} visit;

/* Writes what the scripts need to know about the cases, and where our own maps lie. */
static clv_status write_list(const visit *v)
{
    const bench *b = v->b;
    char path[BENCH_PATH];
    clv_json *root = clv_json_object(), *cases = clv_json_add_array(root, "cases");
    size_t ours = 0;
    while (ours < b->party_count && b->parties[ours].kind != BENCH_DEVICE)
        ++ours;
    for (size_t i = 0; i < b->case_count; ++i) {
        const bench_case *c = &b->cases[i];
        clv_json *entry = clv_json_add_object(cases, NULL);
        clv_json_add_int(entry, "case", (int64_t)i);
        clv_json_add_string(entry, "workload", c->workload->name);
        clv_json_add_string(entry, "name", c->name);
        clv_json *size = clv_json_add_array(entry, "size");
        for (size_t k = 0; k < 3; ++k)
            clv_json_add_int(size, NULL, (int64_t)c->size[k]);
        clv_json_add_int(entry, "variant", c->variant);
        clv_json_add_number(entry, "effort", c->workload->effort(c));
        clv_json_add_string(entry, "folder", bench_case_folder(b, i, path));
        if (ours < b->party_count && b->cells[i][ours].stat[BENCH_FILES].count)
            clv_json_add_string(entry, "ours", bench_output_folder(b, i, ours, path));
    }
    const clv_status status = clv_json_write(root, v->list);
    clv_json_free(root);
    return status;
}

static int become_python(FILE *out, void *user)
{
    visit *v = user;
    char *const argv[] = { v->python,   v->script,
                           v->list,     (char[]){ "--patience" },
                           v->patience, (char[]){ "--repeats" },
                           v->repeats,  NULL };
    if (dup2(fileno(out), STDOUT_FILENO) < 0) return 126;
    execv(v->python, argv);
    return 127;
}

static void on_line(const char *line, void *user)
{
    visit *v = user;
    const char *doing = bench_take(v->b, SIZE_MAX, line);
    if (doing) v->tell(doing, v->user);
}

static clv_status visit_environment(visit *v, const char *environment, size_t length)
{
    const cli_apart apart = {
        .body = become_python, .line = on_line, .user = v, .until = v->until
    };
    snprintf(v->python, sizeof v->python, "%.*s/bin/python", (int)CLV_MIN(length, (size_t)4000),
             environment);
    if (access(v->python, X_OK))
        return clv_fail(CLV_E_DEVICE, "%s cannot be run; bench/peers/setup.sh makes an environment",
                        v->python);
    return cli_apart_run(&apart);
}

clv_status bench_peers(bench *b, const char *scripts, const char *environments, double until,
                       void (*tell)(const char *doing, void *user), void *user)
{
    visit v = { .b = b, .tell = tell, .user = user, .until = until };
    clv_status status = CLV_OK;
    if (!bench_hurry(b, until, b->case_count)) return CLV_OK;
    snprintf(v.script, sizeof v.script, "%.4000s/run.py", scripts);
    snprintf(v.list, sizeof v.list, "%.4000s/cases.json", b->folder);
    snprintf(v.patience, sizeof v.patience, "%g", b->plan.figure_s);
    snprintf(v.repeats, sizeof v.repeats, "%zu", bench_turn_repeats(&b->plan));
    CLV_TRY(write_list(&v));
    for (const char *at = environments; *at && status != CLV_E_CANCELLED;) {
        const size_t length = strcspn(at, ":");
        const clv_status last = length ? visit_environment(&v, at, length) : CLV_OK;
        if (last) status = last;
        at += length + (at[length] == ':');
    }
    return status;
}
