/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the points at which the choice of a side is judged, and their calls. */
#include "bench/offload/grid.h"

#include "base/alloc.h"

#include <cleave/array.h>
#include <cleave/blas.h>

#include <math.h>

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
    CONVOLVE,
    GAUSSIAN,
    EIGEN,
    COUNT,
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
    [CONVOLVE] = { "convolve n x n by 5 x 5", 12, 16, 1448 },
    [GAUSSIAN] = { "convolve n x n, gaussian of 13 x 13", 10, 16, 1024 },
    [EIGEN] = { "eigvalsh 16 x 16, stacks", 10, 1, 4000 },
    [COUNT] = { "monte carlo", 10, 1 << 18, 1 << 28 },
};

int grid_points(void)
{
    int points = 0;
    for (int what = 0; what < OPERATIONS; ++what)
        points += grid[what].points;
    return points;
}

void grid_at(int index, grid_point *point)
{
    int what = 0;
    while (index >= grid[what].points)
        index -= grid[what++].points;
    const double t = (double)index / (grid[what].points - 1);
    point->what = what;
    point->size = (size_t)lrint(grid[what].least * pow(grid[what].most / grid[what].least, t));
}

const char *grid_name(int what)
{
    return grid[what].name;
}

size_t grid_room(void)
{
    return (size_t)4 * MOST;
}

static clv_array *place(grid_point *p, size_t rank, size_t a, size_t b, size_t c)
{
    const size_t shape[3] = { a, b, c };
    size_t count = 1;
    for (size_t i = 0; i < rank; ++i)
        count *= shape[i];
    clv_array *array = NULL;
    for (size_t i = 0; i < count; ++i) /* earlier points left their results there */
        p->memory[p->used + i] = 0.25f + (float)(i * 37 % 997) * 0.03f;
    if (clv_array_wrap(p->context, p->memory + p->used, rank, shape, &array)) return NULL;
    p->at[p->places++] = p->memory + p->used;
    p->used += clv_round_up(count, 1024) + 64;
    return array;
}

bool grid_set_up(grid_point *p)
{
    const size_t n = p->size, rows = CLV_MAX(n / 128, (size_t)1);
    p->used = 0, p->places = 0;
    switch (p->what) {
    case SAXPY:
    case WAVES:
        p->in[0] = place(p, 1, n, 0, 0), p->in[1] = place(p, 1, n, 0, 0);
        p->out[0] = place(p, 1, n, 0, 0);
        break;
    case ROWS:
        p->in[0] = place(p, 2, rows, 128, 0), p->in[1] = place(p, 1, 128, 0, 0);
        p->in[2] = place(p, 1, 128, 0, 0), p->out[0] = place(p, 2, rows, 128, 0);
        break;
    case SUM:
    case LARGEST:
        p->in[0] = place(p, 1, n, 0, 0), p->out[0] = place(p, 0, 0, 0, 0);
        break;
    case COLUMNS:
        p->in[0] = place(p, 2, n / 256, 256, 0), p->out[0] = place(p, 1, 256, 0, 0);
        break;
    case NORMALIZE:
        p->in[0] = place(p, 2, n / 64, 64, 0), p->out[0] = place(p, 2, n / 64, 64, 0);
        break;
    case SQUARE:
    case FLAT:
    case NARROW:
        p->in[0] = place(p, 2, p->what == FLAT ? 4 : n, n, 0);
        p->in[1] = place(p, 2, n, p->what == NARROW ? 8 : n, 0);
        p->out[0] = place(p, 2, p->what == FLAT ? 4 : n, p->what == NARROW ? 8 : n, 0);
        break;
    case STACK:
        p->in[0] = place(p, 3, n, 32, 32), p->in[1] = place(p, 3, n, 32, 32);
        p->out[0] = place(p, 3, n, 32, 32);
        break;
    case CONVOLVE:
    case GAUSSIAN:
        p->in[0] = place(p, 2, n, n, 0), p->in[1] = place(p, 1, 13 * 13, 0, 0);
        p->out[0] = place(p, 2, n, n, 0);
        if (p->what == GAUSSIAN) clv_gaussian_2d(2, 6, p->at[1]);
        break;
    case EIGEN:
        p->in[0] = place(p, 3, n, 16, 16), p->out[0] = place(p, 2, n, 16, 0);
        break;
    case COUNT:
        p->in[0] = p->out[0] = NULL;
        return true;
    default:
        p->in[0] = place(p, 2, n / 64, 64, 0), p->in[1] = place(p, 1, n / 64, 0, 0);
        p->in[2] = place(p, 1, 64, 0, 0), p->out[0] = place(p, 0, 0, 0, 0);
        p->out[1] = place(p, 1, 64, 0, 0);
        break;
    }
    return p->in[0] && p->out[0];
}

clv_status grid_call(grid_point *p)
{
    uint64_t inside;
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
    case CONVOLVE:
    case GAUSSIAN:
        return clv_convolve_2d(p->context, p->at[0], p->size, p->size, p->at[1],
                               p->what == GAUSSIAN ? 13 : 5, p->what == GAUSSIAN ? 13 : 5, NULL,
                               p->at[2], NULL);
    case EIGEN:
        return clv_eigvalsh(p->context, p->at[0], p->size, 16, NULL, p->at[1], NULL);
    case COUNT:
        return clv_monte_carlo_pi(p->context, p->size, NULL, &inside, NULL);
    default:
        return clv_product(p->context, p->in[0], p->in[1], NULL, p->out[0]);
    }
}

void grid_clean_up(grid_point *p)
{
    for (int i = 0; i < 4; ++i)
        clv_array_free(p->in[i]);
    clv_array_free(p->out[0]), clv_array_free(p->out[1]);
}
