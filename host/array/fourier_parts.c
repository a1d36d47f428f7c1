/* SPDX-License-Identifier: Apache-2.0 */
/* Divides a transform into calls of the caller's function that several threads make.
 *
 * A transform of n = n0 n1 elements takes two steps. The elements are a matrix of n0 rows. Step one transforms its
 * columns, eight at a time: they are copied to rows of a buffer that stays in a core's cache, transformed, multiplied
 * by powers of the root of unity, and become rows of a second matrix. Step two does the same with the columns of that
 * matrix, whose results go to the columns of the output. So every element is read and written twice, in pieces of one
 * cache line; the buffers' rows have gaps, because rows at a distance of a power of two share few lines of a cache.
 *
 * A transform along several axes takes two steps, too: one along all axes but the first, in blocks that are contiguous,
 * and one along the first axis, in place. Libraries transform rows faster than columns, so the columns become rows of a
 * buffer, unless they are so short that a library transforms them in one go, side by side. */
#include "host/array/fourier.h"

#include "base/alloc.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { ROWS = CLV_FOURIER_ROWS, GAP = CLV_FOURIER_GAP, WIDE = CLV_FOURIER_COLUMNS };
enum { AHEAD = 8, MOST_WORKERS = 8 };

/* Two elements, at any address of elements. */
typedef double pair __attribute__((vector_size(16), aligned(4), may_alias));
typedef float parts __attribute__((vector_size(16), aligned(4), may_alias));

/* One piece of work that threads share: they take blocks of rows or columns until none is left. */
typedef struct piece {
    const clv_fourier *t;
    char *in, *out;
    clv_c64 *between, *buffers;
    size_t blocks;
    atomic_size_t next, workers;
} piece;

static const double pi = 3.14159265358979323846;

/* ---- memory ------------------------------------------------------------------------------------- */

static size_t pitch(const clv_fourier *t, int step)
{
    return t->o.length[step] + GAP;
}

static bool is_short(const clv_fourier *t)
{
    return t->o.length[0] <= CLV_FOURIER_SHORT;
}

/* Returns the elements of one worker's buffer: rows for the input of a plan, and as many for its output; or columns,
 * which are transformed in place. */
static size_t buffer_elements(const clv_fourier *t)
{
    if (clv_fourier_has_steps(t)) return 2 * ROWS * CLV_MAX(pitch(t, 0), pitch(t, 1));
    return is_short(t) ? WIDE * t->o.length[0] : 2 * ROWS * pitch(t, 0);
}

/* The second matrix has rows in multiples of a cache line. */
static size_t between_elements(const clv_fourier *t)
{
    if (!clv_fourier_has_steps(t)) return 0;
    return clv_round_up(t->o.length[1] * pitch(t, 0), ROWS);
}

size_t clv_fourier_room(const clv_fourier *t)
{
    if (t->o.form < CLV_FOURIER_BY_STEPS) return 0;
    return (between_elements(t) + MOST_WORKERS * buffer_elements(t)) * sizeof(clv_c64);
}

static clv_c64 power(const clv_fourier *t, size_t exponent, double scale)
{
    const size_t n = t->o.length[0] * t->o.length[1];
    const bool inverse = t->o.inverse && t->o.form != CLV_FOURIER_BY_PRIME;
    const double angle = (inverse ? 2 : -2) * pi * (double)(exponent % n) / (double)n;
    return (clv_c64){ (float)(scale * cos(angle)), (float)(scale * sin(angle)) };
}

bool clv_fourier_make_powers(clv_fourier *t)
{
    const double scale = t->o.scale != 0 && t->o.form == CLV_FOURIER_BY_STEPS ? t->o.scale : 1;
    const size_t columns = t->o.length[1];
    const size_t groups = (t->o.length[0] + FOURIER_LOW - 1) / FOURIER_LOW;
    t->low = clv_alloc(columns * FOURIER_LOW, 4 * sizeof *t->low);
    t->high = clv_alloc(columns * groups, sizeof *t->high);
    if (!t->low || !t->high) return false;
    for (size_t j = 0; j < columns; ++j) {
        for (size_t k = 0; k < FOURIER_LOW; ++k) {
            float *low = t->low + 4 * (j * FOURIER_LOW + k);
            const clv_c64 w = power(t, j * k, 1);
            low[0] = low[1] = w.re, low[2] = -w.im, low[3] = w.im;
        }
        for (size_t g = 0; g < groups; ++g)
            t->high[j * groups + g] = power(t, j * g * FOURIER_LOW, scale);
    }
    return true;
}

static void run_second(const clv_fourier *t, void *in, void *out)
{
    (t->o.run_second ? t->o.run_second : t->o.run)(t->o.plan[1], in, out);
}

/* ---- two steps ---------------------------------------------------------------------------------- */

/* Copies eight columns of two rows, `step` elements apart, to two columns of eight rows. */
static inline void turn_pairs(const clv_c64 *from, size_t step, clv_c64 *to, size_t to_step)
{
    for (size_t i = 0; i < ROWS; i += 2) {
        const pair one = *(const pair *)(from + i), two = *(const pair *)(from + step + i);
        *(pair *)(to + i * to_step) = (pair){ one[0], two[0] };
        *(pair *)(to + (i + 1) * to_step) = (pair){ one[1], two[1] };
    }
}

/* The opposite. */
static inline void turn_pairs_back(const clv_c64 *from, size_t from_step, clv_c64 *to, size_t step)
{
    for (size_t i = 0; i < ROWS; i += 2) {
        const pair one = *(const pair *)(from + i * from_step);
        const pair two = *(const pair *)(from + (i + 1) * from_step);
        *(pair *)(to + i) = (pair){ one[0], two[0] };
        *(pair *)(to + step + i) = (pair){ one[1], two[1] };
    }
}

/* Copies eight columns of a matrix of `rows` rows to rows; a matrix's last block may have fewer: the last column then
 * stands for those that are missing. */
static void gather(const clv_c64 *from, size_t step, size_t rows, size_t columns, clv_c64 *to,
                   size_t to_step)
{
    size_t r = 0;
    for (; columns == ROWS && r + 2 <= rows; r += 2, from += 2 * step) {
        if (r + AHEAD + 1 < rows) {
            __builtin_prefetch(from + AHEAD * step);
            __builtin_prefetch(from + (AHEAD + 1) * step);
        }
        turn_pairs(from, step, to + r, to_step);
    }
    for (; r < rows; ++r, from += step)
        for (size_t i = 0; i < ROWS; ++i)
            to[i * to_step + r] = from[CLV_MIN(i, columns - 1)];
}

static void scatter(const clv_c64 *from, size_t from_step, size_t rows, size_t columns, clv_c64 *to,
                    size_t step)
{
    size_t r = 0;
    for (; columns == ROWS && r + 2 <= rows; r += 2, to += 2 * step) {
        if (r + AHEAD + 1 < rows) {
            __builtin_prefetch(to + AHEAD * step, 1);
            __builtin_prefetch(to + (AHEAD + 1) * step, 1);
        }
        turn_pairs_back(from + r, from_step, to, step);
    }
    for (; r < rows; ++r, to += step)
        for (size_t i = 0; i < columns; ++i)
            to[i] = from[i * from_step + r];
}

/* Returns two elements, each multiplied by a number: `re` is its real part, twice, and `im` its imaginary part with
 * minus and with plus. */
static inline parts times(parts x, parts re, parts im)
{
    return x * re + (parts){ x[1], x[0], x[3], x[2] } * im;
}

/* Writes a transformed column j, multiplied by its powers, as row j of the second matrix. */
static void turn(const clv_fourier *t, size_t j, const clv_c64 *from, clv_c64 *to)
{
    const size_t rows = t->o.length[0], groups = (rows + FOURIER_LOW - 1) / FOURIER_LOW;
    for (size_t g = 0; g < groups; ++g) {
        const clv_c64 h = t->high[j * groups + g];
        const parts re = { h.re, h.re, h.re, h.re }, im = { -h.im, h.im, -h.im, h.im };
        const size_t first = g * FOURIER_LOW, count = CLV_MIN((size_t)FOURIER_LOW, rows - first);
        const float *low = t->low + 4 * j * FOURIER_LOW;
        size_t k = 0;
        for (; k + 2 <= count; k += 2, low += 8) {
            const parts a = *(const parts *)low, b = *(const parts *)(low + 4);
            const parts x = times(*(const parts *)(from + first + k), re, im);
            *(parts *)(to + first + k) =
                times(x, (parts){ a[0], a[1], b[0], b[1] }, (parts){ a[2], a[3], b[2], b[3] });
        }
        if (k == count) continue;
        const clv_c64 x = from[first + k];
        const parts y = times(times((parts){ x.re, x.im, 0, 0 }, re, im),
                              (parts){ low[0], low[1], 0, 0 }, (parts){ low[2], low[3], 0, 0 });
        to[first + k] = (clv_c64){ y[0], y[1] };
    }
}

static void first_step(const piece *p, size_t block, clv_c64 *buffer)
{
    const clv_fourier *t = p->t;
    const size_t rows = t->o.length[0], columns = t->o.length[1], j = block * ROWS;
    const size_t count = CLV_MIN((size_t)ROWS, columns - j), step = pitch(t, 0);
    clv_c64 *after = buffer + ROWS * step;
    gather((const clv_c64 *)p->in + j, columns, rows, count, buffer, step);
    t->o.run(t->o.plan[0], buffer, after);
    for (size_t i = 0; i < count; ++i)
        turn(t, j + i, after + i * step, p->between + (j + i) * step);
}

static void second_step(const piece *p, size_t block, clv_c64 *buffer)
{
    const clv_fourier *t = p->t;
    const size_t rows = t->o.length[1], columns = t->o.length[0], k = block * ROWS;
    const size_t count = CLV_MIN((size_t)ROWS, columns - k), step = pitch(t, 1);
    clv_c64 *after = buffer + ROWS * step;
    gather(p->between + k, pitch(t, 0), rows, count, buffer, step);
    run_second(t, buffer, after);
    scatter(after, step, rows, count, (clv_c64 *)p->out + k, columns);
}

/* ---- the first axis ----------------------------------------------------------------------------- */

/* Transforms a block of columns of one of the arrays that lie one behind the other, in place. */
static void columns_step(const piece *p, size_t block, clv_c64 *buffer)
{
    const clv_fourier *t = p->t;
    const size_t rows = t->o.length[0], columns = t->o.length[1], wide = is_short(t) ? WIDE : ROWS;
    const size_t blocks = (columns + wide - 1) / wide, j = block % blocks * wide;
    const size_t count = CLV_MIN(wide, columns - j), bytes = count * sizeof(clv_c64);
    clv_c64 *from = (clv_c64 *)p->out + block / blocks * rows * columns + j;
    if (!is_short(t)) {
        const size_t step = pitch(t, 0);
        clv_c64 *after = buffer + ROWS * step;
        gather(from, columns, rows, count, buffer, step);
        run_second(t, buffer, after);
        scatter(after, step, rows, count, from, columns);
        return;
    }
    if (count < wide) memset(buffer, 0, rows * wide * sizeof *buffer);
    for (size_t r = 0; r < rows; ++r)
        memcpy(buffer + r * wide, from + r * columns, bytes);
    run_second(t, buffer, buffer);
    for (size_t r = 0; r < rows; ++r)
        memcpy(from + r * columns, buffer + r * wide, bytes);
}

static size_t column_blocks(const clv_fourier *t)
{
    const size_t wide = is_short(t) ? WIDE : ROWS, columns = t->o.length[1];
    const size_t arrays = t->result_bytes / sizeof(clv_c64) / (t->o.length[0] * columns);
    return arrays * ((columns + wide - 1) / wide);
}

static void work_on(void *user, void (*step)(const piece *, size_t, clv_c64 *))
{
    piece *p = user;
    const size_t me = atomic_fetch_add(&p->workers, 1);
    if (me >= MOST_WORKERS) return;
    clv_c64 *buffer = p->buffers + me * buffer_elements(p->t);
    for (size_t block; (block = atomic_fetch_add(&p->next, 1)) < p->blocks;)
        step(p, block, buffer);
}

static void work_on_first(void *user)
{
    work_on(user, first_step);
}

static void work_on_second(void *user)
{
    work_on(user, second_step);
}

static void work_on_columns(void *user)
{
    work_on(user, columns_step);
}

static void share(piece *p, clv_team *team, size_t blocks, void (*body)(void *user))
{
    p->blocks = blocks;
    atomic_store(&p->next, 0);
    atomic_store(&p->workers, 0);
    clv_team_run(team, body, p);
}

/* ---- rows, and the whole ------------------------------------------------------------------------ */

static void multiply(clv_dtype type, double by, void *elements, size_t bytes)
{
    if (by == 0 || by == 1) return;
    if (type == CLV_F32 || type == CLV_C64) {
        float *x = elements;
        for (size_t i = 0; i < bytes / sizeof *x; ++i)
            x[i] *= (float)by;
    } else {
        double *x = elements;
        for (size_t i = 0; i < bytes / sizeof *x; ++i)
            x[i] *= by;
    }
}

static void work_on_rows(void *user)
{
    piece *p = user;
    const clv_fourier *t = p->t;
    const size_t in = t->bytes / p->blocks, out = t->result_bytes / p->blocks;
    for (size_t block; (block = atomic_fetch_add(&p->next, 1)) < p->blocks;) {
        t->o.run(t->o.plan[0], p->in + block * in, p->out + block * out);
        multiply(t->o.to, t->o.scale, p->out + block * out, out);
    }
}

void clv_fourier_compute(const clv_fourier *t, clv_team *team, void *in, void *out, void *room)
{
    piece p = { .t = t, .in = in, .out = out, .buffers = room };
    switch (t->o.form) {
    case CLV_FOURIER_BY_PRIME:
    case CLV_FOURIER_BY_STEPS:
        p.between = room, p.buffers = p.between + between_elements(t);
        share(&p, team, (t->o.length[1] + ROWS - 1) / ROWS, work_on_first);
        share(&p, team, (t->o.length[0] + ROWS - 1) / ROWS, work_on_second);
        break;
    case CLV_FOURIER_BY_ROWS:
        share(&p, team, t->bytes / clv_dtype_bytes(t->o.from) / t->o.shape[t->o.rank - 1] / ROWS,
              work_on_rows);
        break;
    case CLV_FOURIER_BY_AXES:
        share(&p, team, t->bytes / clv_dtype_bytes(t->o.from) / t->o.block, work_on_rows);
        share(&p, team, column_blocks(t), work_on_columns);
        break;
    case CLV_FOURIER_BY_WHOLE:
        t->o.run(t->o.plan[0], in, out);
        multiply(t->o.to, t->o.scale, out, t->result_bytes);
        break;
    }
}
