/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave bench --compare OLD.json`: lists what became slower or faster than in an earlier run, beyond the noise.
 *
 * Two times differ when their samples do not overlap, and their medians differ by more than BENCH_DIFFERENCE. With
 * fewer than three samples on a side the noise is unknown, and the two times are not compared. */
#include "bench/command/bench.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "host/cli/cli.h"

#include <string.h>

enum { MOST_BYTES = 64 << 20, FEWEST_SAMPLES = 3 };
#define BENCH_DIFFERENCE 0.05 /* two runs of one build differ by up to 3 % on a quiet machine */

clv_status bench_compare_open(const char *path, clv_json **old)
{
    char *data = NULL;
    size_t length = 0;
    *old = NULL;
    CLV_TRY(clv_file_read(path, MOST_BYTES, &data, &length));
    clv_status status = clv_json_parse(path, data, length, old);
    clv_free(data);
    const char *schema = clv_json_string(clv_json_get(*old, "schema"), "");
    if (!status &&
        (strcmp(schema, "cleave.bench/1") || !clv_json_is_array(clv_json_get(*old, "cases"))))
        status = clv_fail(CLV_E_FORMAT,
                          "%s: not a result of `cleave bench --json` (its schema is \"%.40s\", "
                          "\"cleave.bench/1\" is expected)",
                          path, schema);
    if (status) clv_json_free(*old), *old = NULL;
    return status;
}

/* Returns the element of the array in which the member `key` is `text` and the member `other_key` is `other`; NULL:
 * there is none. */
static const clv_json *find(const clv_json *array, const char *key, const char *text,
                            const char *other_key, const char *other)
{
    for (size_t i = 0; i < clv_json_count(array); ++i) {
        const clv_json *o = clv_json_at(array, i);
        if (!strcmp(clv_json_string(clv_json_get(o, key), ""), text) &&
            (!other || !strcmp(clv_json_string(clv_json_get(o, other_key), ""), other)))
            return o;
    }
    return NULL;
}

bench_stat bench_compare_stat(const clv_json *result, const char *key)
{
    const clv_json *o = clv_json_get(result, key);
    return (bench_stat){ .count = (size_t)clv_json_int(clv_json_get(o, "count"), 0),
                         .median = clv_json_number(clv_json_get(o, "median"), 0),
                         .minimum = clv_json_number(clv_json_get(o, "minimum"), 0),
                         .maximum = clv_json_number(clv_json_get(o, "maximum"), 0) };
}

const clv_json *bench_compare_case(const clv_json *old, const bench_case *c)
{
    return find(clv_json_get(old, "cases"), "name", c->name, "workload", c->workload->name);
}

int bench_compare_times(const bench_stat *before, const bench_stat *now)
{
    if (now->minimum > before->maximum && now->median > before->median * (1 + BENCH_DIFFERENCE))
        return 1;
    if (now->maximum < before->minimum && now->median < before->median * (1 - BENCH_DIFFERENCE))
        return -1;
    return 0;
}

typedef struct counts {
    size_t compared, slower, faster, few;
} counts;

static void compare_cell(const bench *b, size_t c, size_t p, const clv_json *result, counts *n,
                         FILE *out)
{
    static const char *const names[BENCH_METRICS] = { "kernels", "compute", "files", "cold" };
    for (size_t m = 0; m < BENCH_METRICS; ++m) {
        const bench_stat *now = &b->cells[c][p].stat[m],
                         before = bench_compare_stat(result, bench_metric_names[m]);
        char was[BENCH_CELL], is[BENCH_CELL];
        if (!now->count || !before.count) continue;
        if (now->count < FEWEST_SAMPLES || before.count < FEWEST_SAMPLES) {
            ++n->few;
            continue;
        }
        const int change = bench_compare_times(&before, now);
        ++n->compared;
        if (!change) continue;
        *(change > 0 ? &n->slower : &n->faster) += 1;
        cli_say(out, "  %s  %s %s, %s, %s: %s, was %s (x%.2f)\n", change > 0 ? "slower" : "faster",
                b->cases[c].workload->name, b->cases[c].name, b->parties[p].name, names[m],
                bench_seconds(now->median, is), bench_seconds(before.median, was),
                now->median / before.median);
    }
}

static void warn_of_differences(const bench *b, const clv_json *old, FILE *out)
{
    const clv_json *machine = clv_json_get(old, "machine");
    const char *cpu = clv_json_string(clv_json_get(machine, "cpu"), "");
    const int64_t threads = clv_json_int(clv_json_get(machine, "threads_allowed"), 0);
    if (strcmp(cpu, b->probe->host.cpu_model) || threads != b->probe->host.threads_allowed)
        cli_say(out,
                "  The earlier run was made on another machine (%s, %lld threads): the "
                "times cannot be compared.\n",
                *cpu ? cpu : "unknown", (long long)threads);
    if (bench_was_busy(b) || clv_json_number(clv_json_get(machine, "load_before"), 0) > 1)
        cli_say(out, "  Other programs were running in one of the two runs.\n");
}

size_t bench_compare(const bench *b, const clv_json *old, FILE *out)
{
    counts n = { 0 };
    size_t missing = 0;
    cli_say(out, "\nCompared with version %s of %s:\n",
            clv_json_string(clv_json_get(old, "version"), "?"),
            clv_json_string(clv_json_get(old, "started_utc"), "?"));
    warn_of_differences(b, old, out);
    for (size_t c = 0; c < b->case_count; ++c) {
        const clv_json *was = bench_compare_case(old, &b->cases[c]);
        missing += !was;
        for (size_t p = 0; was && p < b->party_count; ++p) {
            const clv_json *result =
                find(clv_json_get(was, "results"), "party", b->parties[p].name, NULL, NULL);
            if (result) compare_cell(b, c, p, result, &n, out);
        }
    }
    cli_say(out, "  %zu times compared: %zu slower, %zu faster, %zu within the noise.", n.compared,
            n.slower, n.faster, n.compared - n.slower - n.faster);
    if (n.few) cli_say(out, " %zu have fewer than %d samples (--repeats).", n.few, FEWEST_SAMPLES);
    if (missing) cli_say(out, " %zu inputs are new.", missing);
    cli_say(out, "\n");
    return n.slower;
}
