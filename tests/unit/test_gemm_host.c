/* SPDX-License-Identifier: Apache-2.0 */
/* The host's product: every shape of a tile, with strides, scale and bias, by its definition. */
#include "test.h"

#include "base/alloc.h"
#include "runtime/blas/gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 27, COLUMNS = 67, TERMS = 9, PITCH = COLUMNS + 3, GUARD = -77 };

typedef struct scale {
    float alpha, beta;
    bool bias;
} scale;

/* The chain that gemm_host.c promises, an element at a time. */
static float element(const clv_host_gemm *g, size_t i, size_t j, float before)
{
    float sum = 0;
    for (size_t q = 0; q < g->k; ++q)
        sum = fmaf(g->a[i * g->a_row + q * g->a_col], g->b[q * g->b_row + j * g->b_col], sum);
    float x = g->alpha * sum;
    if (g->bias) x += g->bias[j];
    return g->beta != 0 ? fmaf(g->beta, before, x) : x;
}

static void expect_product(const clv_host_gemm *g, const float *before)
{
    for (size_t i = 0; i <= g->m; ++i) /* a row and a few columns more than are written */
        for (size_t j = 0; j < g->n + 3; ++j) {
            const float old = before[i * PITCH + j], got = g->c[i * PITCH + j];
            const float want = i < g->m && j < g->n ? element(g, i, j, old) : old;
            if (memcmp(&want, &got, sizeof want) != 0)
                fail_msg("%zu x %zu x %zu, alpha %g, beta %g: [%zu,%zu] is %.9g, %.9g expected",
                         g->m, g->n, g->k, (double)g->alpha, (double)g->beta, i, j, (double)got,
                         (double)want);
        }
}

static float a[2 * ROWS * (TERMS + 2)], b[TERMS * PITCH], bias[COLUMNS];
static float c[(ROWS + 1) * PITCH], before[(ROWS + 1) * PITCH];

static void try_shape(size_t m, size_t n, size_t k, scale s, bool turned)
{
    for (size_t i = 0; i < sizeof c / sizeof *c; ++i)
        c[i] = before[i] = i % PITCH < n && i / PITCH < m ? (float)(i % 19) - 9 : GUARD;
    const clv_host_gemm g = { .m = m,
                              .n = n,
                              .k = k,
                              .a = a,
                              .a_row = turned ? 1 : TERMS + 2,
                              .a_col = turned ? ROWS : 1,
                              .b = b,
                              .b_row = PITCH,
                              .b_col = 1,
                              .c = c,
                              .c_row = PITCH,
                              .c_col = 1,
                              .alpha = s.alpha,
                              .beta = s.beta,
                              .bias = s.bias ? bias : NULL };
    clv_gemm_host(&g);
    expect_product(&g, before);
}

static void every_tile_is_the_chain_that_defines_it(void **state)
{
    static const scale scales[] = { { 1, 0, false }, { 0.7f, 0, true }, { -1.3f, 0.4f, true } };
    static const size_t terms[] = { 0, 1, TERMS };
    (void)state;
    uint64_t seed = 11;
    for (size_t i = 0; i < sizeof a / sizeof *a; ++i)
        a[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t i = 0; i < sizeof b / sizeof *b; ++i)
        b[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t i = 0; i < COLUMNS; ++i)
        bias[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t m = 1; m <= ROWS; ++m)
        for (size_t n = 1; n <= COLUMNS; ++n)
            for (size_t t = 0; t < sizeof terms / sizeof *terms; ++t)
                try_shape(m, n, terms[t], scales[(m + n + t) % 3], (m + n) % 2);
}

static void a_team_gives_the_same_bits(void **state)
{
    static const size_t shapes[][3] = { { 81, 81, 81 },    { 130, 141, 128 }, { 6, 16, 512 },
                                        { 300, 300, 300 }, { 50, 333, 512 },  { 97, 500, 127 } };
    (void)state;
    clv_team *team = clv_team_start(3);
    assert_non_null(team);
    for (size_t s = 0; s < CLV_LEN(shapes); ++s) {
        const size_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        float *memory = calloc(m * k + k * n + 3 * m * n, sizeof *memory);
        float *x = memory, *y = x + m * k, *alone = y + k * n, *together = alone + m * n;
        uint64_t seed = s + 1;
        for (size_t i = 0; i < m * k + k * n; ++i)
            memory[i] = (float)test_uniform(&seed, -1, 1);
        clv_host_gemm g = { .m = m, .n = n, .k = k, .a = x, .b = y, .c = alone, .alpha = 1 };
        g.a_row = s % 2 ? 1 : k, g.a_col = s % 2 ? m : 1;
        g.b_row = g.c_row = n, g.b_col = g.c_col = 1;
        clv_gemm_host_by(NULL, &g);
        for (size_t i = 0; i < m; i += 7)
            for (size_t j = 0; j < n; j += 5)
                assert_true(alone[i * n + j] == element(&g, i, j, 0));
        g.c = together;
        clv_gemm_host_by(team, &g);
        assert_memory_equal(alone, together, m * n * sizeof *alone);
        free(memory);
    }
    clv_team_free(team);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_is_the_chain_that_defines_it),
        cmocka_unit_test(a_team_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
