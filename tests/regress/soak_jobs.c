/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in one process for minutes: the same numbers each time, and no memory that grows.
 *
 * usage: soak_jobs [SECONDS]    300 unless given, or a quarter of CLEAVE_SOAK_S
 * A turn is a product of matrices, a job over the items of an array, and links between spots; every THOUSAND turns the
 * context is made anew. Exit code 1: other numbers, an error, or more than MOST_GROWTH bytes that stay after the first
 * two contexts; 77: no device. */
#include <cleave/cleave.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N = 48, ITEMS = 4096, SPOTS = 60, THOUSAND = 1000, MOST_GROWTH = 16 << 20 };

static const char text[] =
    "__kernel void twice(__global const float *in, __global float *out, uint count)\n"
    "{\n"
    "    const size_t i = get_global_id(0);\n"
    "    if (i < count) out[i] = 2.0f * in[i];\n"
    "}\n";
static const clv_cl_source source = { "twice.cl", text, sizeof text - 1 };

static clv_status plain(void *const *args, size_t first, size_t count, void *user)
{
    const float *in = args[0];
    float *out = args[1];
    (void)first, (void)user;
    for (size_t i = 0; i < count; ++i)
        out[i] = 2 * in[i];
    return CLV_OK;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t resident(void)
{
    unsigned long all = 0, here = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%lu %lu", &all, &here) != 2) here = 0;
    fclose(file);
    return here * (size_t)sysconf(_SC_PAGESIZE);
}

typedef struct turn {
    float product[N * N], twice[ITEMS];
    int64_t particle[SPOTS];
} turn;

static float a[N * N], items[ITEMS];
static clv_point spots[SPOTS];
static turn first, later;

static clv_status take(clv_context *context, turn *t)
{
    const clv_item_arg args[] = { { CLV_ITEM_INPUT, .bytes = sizeof *items, .data = items },
                                  { CLV_ITEM_OUTPUT, .bytes = sizeof *items, .result = t->twice },
                                  { CLV_ITEM_COUNT } };
    const clv_items job = {
        .size = sizeof job, .source = &source, .kernel = "twice", .items = ITEMS, .reference = plain
    };
    const clv_link_options link = { .size = sizeof link, .search_range = 3 };
    memset(t, 0xFF, sizeof *t);
    clv_status status = clv_matmul(context, N, N, N, a, a, NULL, t->product);
    if (!status) status = clv_items_run(context, &job, args, 3, NULL, NULL);
    if (!status) status = clv_link(spots, SPOTS, &link, t->particle, NULL);
    return status;
}

/* Products of matrices may be made by the host or a device, as timings tell: they are alike, not the same. */
static int differs(void)
{
    if (memcmp(first.twice, later.twice, sizeof first.twice) ||
        memcmp(first.particle, later.particle, sizeof first.particle))
        return 1;
    for (size_t i = 0; i < N * N; ++i) {
        const float difference = first.product[i] - later.product[i];
        if (!(difference < 1e-3f && difference > -1e-3f)) return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *given = getenv("CLEAVE_SOAK_S");
    const double seconds = argc > 1 ? atof(argv[1])
                           : given  ? atof(given) / 4
                                    : 300,
                 end = now() + seconds;
    clv_context *context = NULL;
    size_t turns = 0, contexts = 0, before = 0;
    clv_status status = CLV_OK;
    for (size_t i = 0; i < N * N; ++i)
        a[i] = (float)(i * 37 % 101) / 101;
    for (size_t i = 0; i < ITEMS; ++i)
        items[i] = (float)i;
    for (int i = 0; i < SPOTS; ++i)
        spots[i] = (clv_point){ i / 6, 10.0 * (i % 6), 0.5 * (i / 6) };
    while (!status && (now() < end || contexts < 4)) {
        if (turns % THOUSAND == 0) {
            clv_context_free(context);
            if (++contexts == 3) before = resident();
            status = clv_context_create(NULL, &context);
            if (!status && !clv_context_device_count(context))
                return puts("SKIPPED: no device"), 77;
        }
        if (!status) status = take(context, turns ? &later : &first);
        if (!status && turns++ && differs()) {
            fprintf(stderr, "turn %zu has other numbers than the first\n", turns);
            return 1;
        }
    }
    clv_context_free(context);
    const size_t after = resident();
    if (status) fprintf(stderr, "turn %zu: %s\n", turns, clv_error_message());
    printf("%zu jobs, %zu contexts; %.1f MiB after two contexts, %.1f MiB at the end\n", 3 * turns,
           contexts, (double)before / 1048576, (double)after / 1048576);
    return status || after > before + MOST_GROWTH;
}
