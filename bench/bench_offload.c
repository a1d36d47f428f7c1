/* SPDX-License-Identifier: Apache-2.0 */
/* Is the side that a call chooses the faster one? 200 points of operation and size, each timed on both
 * sides in turn, against the decision made before. usage: bench_offload [DEVICE] [-v] */
#include "base/alloc.h"
#include "base/clock.h"

#include <cleave/array_math.h>
#include <cleave/blas.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 23 };

typedef enum operation {
    SAXPY,
    WAVES,
    ROWS,
    SUM,
    LARGEST,
    COLUMNS,
    NORMALIZE,
    SQUARE,
    FLAT,
    NARROW,
    STACK,
    STEP,
    TRAIN,
    OPERATIONS
} operation;

static const struct {
    const char *name;
    int points;
    double least, most; /* elements; the edge of a matrix for products */
} grid[] = {
    [SAXPY] = { "map k*x+y", 20, 256, 1 << 23 },
    [WAVES] = { "map sin(x)*exp(-y)+sqrt(x)", 20, 64, 1 << 21 },
    [ROWS] = { "map (x-m)/s by rows of 128", 15, 512, 1 << 22 },
    [SUM] = { "sum", 20, 256, 1 << 23 },
    [LARGEST] = { "max", 15, 256, 1 << 22 },
    [COLUMNS] = { "mean of columns, 256 wide", 15, 1024, 1 << 22 },
    [NORMALIZE] = { "normalize, 64 wide", 15, 512, 1 << 21 },
    [SQUARE] = { "matmul n x n x n", 20, 8, 768 },
    [FLAT] = { "matmul 4 x n x n", 15, 16, 1500 },
    [NARROW] = { "matmul n x 8 x n", 10, 16, 1200 },
    [STACK] = { "matmul 32 x 32 x 32, stacks", 10, 1, 2000 },
    [STEP] = { "linear step, 64 wide", 15, 512, 1 << 22 },
    [TRAIN] = { "linear train, 8 steps, 64 wide", 10, 512, 1 << 20 },
};

typedef struct point {
    operation what;
    clv_context *context;
    size_t size;
    clv_array *in[4], *out[2];
} point;

static float *memory;
static size_t used;

static clv_array *place(clv_context *context, size_t rank, size_t a, size_t b, size_t c)
{
    const size_t shape[3] = { a, b, c };
    size_t count = 1;
    for (size_t i = 0; i < rank; ++i)
        count *= shape[i];
    clv_array *array = NULL;
    if (clv_array_wrap(context, memory + used, rank, shape, &array)) return NULL;
    used += clv_round_up(count, 1024) + 64;
    return array;
}

static void set_up(point *p)
{
    const size_t n = p->size;
    clv_context *c = p->context;
    used = 0;
    size_t rows = n / 128 ? n / 128 : 1;
    switch (p->what) {
    case SAXPY:
    case WAVES:
        p->in[0] = place(c, 1, n, 0, 0), p->in[1] = place(c, 1, n, 0, 0);
        p->out[0] = place(c, 1, n, 0, 0);
        break;
    case ROWS:
        p->in[0] = place(c, 2, rows, 128, 0), p->in[1] = place(c, 1, 128, 0, 0);
        p->in[2] = place(c, 1, 128, 0, 0), p->out[0] = place(c, 2, rows, 128, 0);
        break;
    case SUM:
    case LARGEST:
        p->in[0] = place(c, 1, n, 0, 0), p->out[0] = place(c, 0, 0, 0, 0);
        break;
    case COLUMNS:
        p->in[0] = place(c, 2, n / 256, 256, 0), p->out[0] = place(c, 1, 256, 0, 0);
        break;
    case NORMALIZE:
        p->in[0] = place(c, 2, n / 64, 64, 0), p->out[0] = place(c, 2, n / 64, 64, 0);
        break;
    case SQUARE:
    case FLAT:
    case NARROW:
        p->in[0] = place(c, 2, p->what == FLAT ? 4 : n, n, 0);
        p->in[1] = place(c, 2, n, p->what == NARROW ? 8 : n, 0);
        p->out[0] = place(c, 2, p->what == FLAT ? 4 : n, p->what == NARROW ? 8 : n, 0);
        break;
    case STACK:
        p->in[0] = place(c, 3, n, 32, 32), p->in[1] = place(c, 3, n, 32, 32);
        p->out[0] = place(c, 3, n, 32, 32);
        break;
    default:
        p->in[0] = place(c, 2, n / 64, 64, 0), p->in[1] = place(c, 1, n / 64, 0, 0);
        p->in[2] = place(c, 1, 64, 0, 0), p->out[0] = place(c, 0, 0, 0, 0);
        p->out[1] = place(c, 1, 64, 0, 0);
        break;
    }
}

static clv_status once(point *p)
{
    const clv_map_input in[] = { { "x", p->in[0], 0 },
                                 { p->what == ROWS ? "m" : "y", p->in[1], 0 },
                                 { p->what == ROWS ? "s" : "k", p->in[2], 2.5f } };
    switch (p->what) {
    case SAXPY:
        return clv_map(p->context, "k*x+y", in, 3, p->out[0]);
    case WAVES:
        return clv_map(p->context, "sin(x)*exp(-y)+sqrt(x)", in, 3, p->out[0]);
    case ROWS:
        return clv_map(p->context, "(x-m)/s", in, 3, p->out[0]);
    case SUM:
        return clv_reduce(p->context, CLV_REDUCE_SUM, p->in[0], -1, p->out[0]);
    case LARGEST:
        return clv_reduce(p->context, CLV_REDUCE_MAX, p->in[0], -1, p->out[0]);
    case COLUMNS:
        return clv_reduce(p->context, CLV_REDUCE_MEAN, p->in[0], 0, p->out[0]);
    case NORMALIZE:
        return clv_normalize(p->context, p->in[0], p->out[0], NULL, NULL, NULL);
    case STEP:
        return clv_linear_step(p->context, p->in[0], p->in[1], p->in[2], p->out[0], p->out[1]);
    case TRAIN:
        return clv_linear_train(p->context, p->in[0], p->in[1], p->in[2], 1e-6f, 8, NULL);
    default:
        return clv_product(p->context, p->in[0], p->in[1], NULL, p->out[0]);
    }
}

/* Best of both sides, in turns. */
static clv_status time_sides(point *p, double seconds[2])
{
    const double started = clv_now();
    seconds[0] = seconds[1] = 0;
    for (int turn = 0;
         turn < 200 && (turn < 8 || clv_now() - started < 0.08) && clv_now() - started < 0.6;
         ++turn)
        for (int side = 0; side < 2; ++side) {
            clv_offload_force(side ? CLV_SIDE_DEVICE : CLV_SIDE_HOST);
            const double before = clv_now();
            const clv_status status = once(p);
            const double took = clv_now() - before;
            clv_offload_force(CLV_SIDE_AUTO);
            if (status) return status;
            if (turn > 0 && (seconds[side] == 0 || took < seconds[side])) seconds[side] = took;
        }
    return CLV_OK;
}

typedef struct score {
    int points, right, even;
    double worst;
} score;

static clv_status do_point(point *p, bool verbose, score *s)
{
    double seconds[2];
    clv_offload plan;
    set_up(p);
    const bool dry = clv_offload_dry(true);
    clv_status status = once(p);
    clv_offload_dry(dry);
    if (!status) status = clv_offload_last(&plan);
    if (!status) status = time_sides(p, seconds);
    for (int i = 0; i < 4; ++i)
        clv_array_free(p->in[i]);
    clv_array_free(p->out[0]), clv_array_free(p->out[1]);
    if (status) return status;
    const bool device = plan.side == CLV_SIDE_DEVICE;
    const double lost = seconds[device] / fmin(seconds[0], seconds[1]);
    ++s->points;
    s->right += lost == 1.0;
    s->even += lost > 1.0 && lost < 1.02;
    s->worst = fmax(s->worst, lost);
    if (verbose || lost > 1.02)
        printf("%-30s %9zu  %-6s  host %9.1f us (%9.1f)  device %9.1f us (%9.1f)%s\n",
               grid[p->what].name, p->size, clv_side_name(plan.side), seconds[0] * 1e6,
               plan.host_s * 1e6, seconds[1] * 1e6, plan.device_s * 1e6,
               lost > 1.1    ? "  WRONG"
               : lost > 1.02 ? "  slower"
                             : "");
    return CLV_OK;
}

int main(int argc, char **argv)
{
    const clv_context_options options = { .devices = argc > 1 ? argv[1] : NULL };
    const bool verbose = argc > 2 && strcmp(argv[2], "-v") == 0;
    clv_context *context = NULL;
    score s = { .worst = 1 };
    clv_status status = clv_context_create(&options, &context);
    memory = clv_alloc_pages((size_t)4 * MOST * sizeof *memory);
    for (size_t i = 0; memory && i < (size_t)4 * MOST; ++i)
        memory[i] = 0.25f + (float)(i * 37 % 997) * 0.03f;
    for (int what = 0; memory && what < OPERATIONS && !status; ++what)
        for (int i = 0; i < grid[what].points && !status; ++i) {
            const double t = (double)i / (grid[what].points - 1);
            point p = { .what = (operation)what, .context = context };
            p.size = (size_t)lrint(grid[what].least * pow(grid[what].most / grid[what].least, t));
            status = do_point(&p, verbose, &s);
        }
    if (status) fprintf(stderr, "bench_offload: %s\n", clv_error_message());
    if (!status && memory)
        printf("%d points: the faster side in %d (%.1f %%), within 2 %% of it in %d more; at worst "
               "%.1f %% slower than the better side\n",
               s.points, s.right, 100.0 * s.right / s.points, s.even, 100 * (s.worst - 1));
    clv_free(memory);
    clv_context_free(context);
    return status || !memory;
}
