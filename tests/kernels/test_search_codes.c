/* SPDX-License-Identifier: Apache-2.0 */
/* Search in two passes: candidates by codes, then exact similarities, on every device and in both families of
 * kernels. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/search.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct codes_case {
    size_t queries, rows, width, top, rescore;
    float *q, *x;
    uint8_t *codes;
    int64_t *found;
    float *scores;
} codes_case;

static void case_make(codes_case *c, clv_codes kind, uint64_t seed)
{
    const size_t bytes = clv_codes_bytes(kind, c->width);
    c->q = clv_zalloc(c->queries * c->width, sizeof(float));
    c->x = clv_zalloc(c->rows * c->width, sizeof(float));
    c->codes = clv_zalloc(c->rows * bytes, 1);
    c->found = clv_zalloc(c->queries * c->top, sizeof(int64_t));
    c->scores = clv_zalloc(c->queries * c->top, sizeof(float));
    assert_true(c->q && c->x && c->codes && c->found && c->scores);
    for (size_t i = 0; i < c->queries * c->width; ++i)
        c->q[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t r = 0; r < c->rows; ++r) {
        const double scale = test_uniform(&seed, 0.1, 10);
        for (size_t i = 0; i < c->width; ++i)
            c->x[r * c->width + i] = (float)(scale * test_uniform(&seed, -1, 1));
    }
    EXPECT_OK(clv_codes_make(kind, c->x, c->rows, c->width, 0, c->codes));
}

static void case_free(codes_case *c)
{
    clv_free(c->q), clv_free(c->x), clv_free(c->codes), clv_free(c->found), clv_free(c->scores);
}

/* A number of a code as the search takes it. */
static double number_of(const codes_case *c, clv_codes kind, size_t r, size_t i)
{
    if (kind == CLV_CODES_INT8) return ((const int8_t *)c->codes)[r * c->width + i];
    const uint8_t *row = c->codes + r * clv_codes_bytes(kind, c->width);
    return row[i / 8] >> (7 - i % 8) & 1 ? 1 : -1;
}

/* The cosine of a query and a row, or of the query and a code; bits are compared with the query's signs. */
static double similarity_of(const codes_case *c, clv_codes kind, size_t q, size_t r)
{
    double product = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < c->width; ++i) {
        const double given = (double)c->q[q * c->width + i];
        const double a = kind != CLV_CODES_BINARY ? given : given > 0 ? 1 : -1;
        const double b = kind ? number_of(c, kind, r, i) : (double)c->x[r * c->width + i];
        product += a * b, aa += a * a, bb += b * b;
    }
    return aa == 0 || bb == 0 ? 0 : product / (sqrt(aa) * sqrt(bb));
}

typedef struct ranked {
    double score;
    size_t row;
} ranked;

static int compare(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The rows are those of sorting all similarities, and the scores are within `off`; rows that are closer than that may
 * have changed places. */
static void check_result(const codes_case *c, clv_codes kind, double off, const char *name)
{
    ranked *all = clv_alloc(c->rows, sizeof *all);
    assert_non_null(all);
    for (size_t q = 0; q < c->queries; ++q) {
        for (size_t r = 0; r < c->rows; ++r)
            all[r] = (ranked){ similarity_of(c, kind, q, r), r };
        qsort(all, c->rows, sizeof *all, compare);
        for (size_t i = 0; i < c->top; ++i) {
            const size_t at = q * c->top + i;
            const bool there = i < c->rows;
            const double want = there ? all[i].score : -(double)INFINITY;
            bool good = there ? fabs((double)c->scores[at] - want) <= off
                              : c->found[at] == -1 && c->scores[at] == -INFINITY;
            if (good && there && (size_t)c->found[at] != all[i].row)
                good = off > 0 && c->found[at] >= 0 &&
                       fabs(similarity_of(c, kind, q, (size_t)c->found[at]) - want) <= off;
            if (!good)
                fail_msg("%s, codes %d: %zu queries, %zu rows of %zu, query %zu, rank %zu: row "
                         "%lld, %.9g; expected %zu, %.9g",
                         name, (int)kind, c->queries, c->rows, c->width, q, i,
                         (long long)c->found[at], (double)c->scores[at], there ? all[i].row : 0,
                         want);
        }
    }
    clv_free(all);
}

/* Begins a search and adds all codes in pieces of so many rows. */
static clv_search *first_pass(clv_context *context, const codes_case *c, clv_codes kind,
                              size_t piece)
{
    clv_search *search;
    const size_t bytes = clv_codes_bytes(kind, c->width);
    const clv_search_options o = {
        .size = sizeof o, .top = c->top, .first_pass = kind, .rescore = c->rescore
    };
    EXPECT_OK(clv_search_create(context, c->q, c->queries, c->width, &o, &search));
    for (size_t at = 0; at < c->rows; at += piece)
        EXPECT_OK(clv_search_add_codes(search, c->codes + at * bytes, CLV_MIN(piece, c->rows - at),
                                       NULL));
    assert_int_equal(clv_search_rows(search), c->rows);
    return search;
}

/* Gives the search the vectors of its candidates, `piece` at a time. Returns how many there were. */
static size_t second_pass(clv_search *search, const codes_case *c, size_t piece)
{
    size_t count;
    EXPECT_OK(clv_search_candidates(search, NULL, &count));
    int64_t *rows = clv_alloc(count + 1, sizeof *rows);
    float *vectors = clv_alloc(piece * c->width, sizeof *vectors);
    assert_true(rows && vectors);
    EXPECT_OK(clv_search_candidates(search, rows, &count));
    for (size_t at = 0; at < count; at += piece) {
        const size_t here = CLV_MIN(piece, count - at);
        for (size_t i = 0; i < here; ++i) {
            assert_true(at + i == 0 || rows[at + i] > rows[at + i - 1]);
            memcpy(vectors + i * c->width, c->x + (size_t)rows[at + i] * c->width,
                   c->width * sizeof *vectors);
        }
        EXPECT_OK(clv_search_rescore(search, vectors, here, 0));
    }
    clv_free(rows), clv_free(vectors);
    return count;
}

/* Both passes. All rows are candidates if `rescore` is large enough: the result is then that of an exact search. */
static void run(clv_context *context, codes_case *c, clv_codes kind, size_t piece, const char *name)
{
    clv_search *search = first_pass(context, c, kind, piece);
    EXPECT_OK(clv_search_result(search, c->found, c->scores));
    check_result(c, kind, kind == CLV_CODES_BINARY ? 1e-7 : 2e-6, name);
    second_pass(search, c, CLV_MAX(piece / 3, (size_t)1));
    EXPECT_OK(clv_search_result(search, c->found, c->scores));
    if (c->top * c->rescore >= c->rows) check_result(c, CLV_CODES_NONE, 1e-7, name);
    clv_search_free(search);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static const codes_case sizes[] = {
    { .queries = 1, .rows = 1, .width = 1, .top = 1, .rescore = 1 },
    { .queries = 1, .rows = 50, .width = 64, .top = 60, .rescore = 1 },
    { .queries = 5, .rows = 37, .width = 71, .top = 4, .rescore = 10 },
    { .queries = 3, .rows = 333, .width = 71, .top = 10, .rescore = 40 },
    { .queries = 4, .rows = 100, .width = 384, .top = 10, .rescore = 2 },
    { .queries = 9, .rows = 257, .width = 129, .top = 30, .rescore = 9 },
    { .queries = 30, .rows = 600, .width = 450, .top = 7, .rescore = 4 }, /* two blocks of int8 */
    { .queries = 261, .rows = 97, .width = 40, .top = 5, .rescore = 20 }, /* two blocks of bits */
    { .queries = 2, .rows = 9000, .width = 31, .top = 50, .rescore = 3 },
};

static void every_size(test_device *device)
{
    for (size_t i = 0; i < CLV_LEN(sizes); ++i)
        for (int kind = CLV_CODES_INT8; kind <= CLV_CODES_BINARY; ++kind) {
            codes_case c = sizes[i];
            if (test_left_out(device, device->tiny && c.queries * c.rows * c.width > 30000,
                              "%zu rows of %zu: minutes", c.rows, c.width))
                continue;
            if (test_left_out(device, test_brief() && i % 2, "one case of each kind")) continue;
            case_make(&c, (clv_codes)kind, 7 + i);
            run(device->context, &c, (clv_codes)kind, c.rows, device->name);
            case_free(&c);
        }
}

static void sizes_match_float64(void **state)
{
    (void)state;
    test_each_device(every_size);
}

static void every_size_of_a_card(test_device *device)
{
    test_device_as_card(device);
    every_size(device);
}

static void sizes_match_in_the_forms_of_cards(void **state)
{
    (void)state;
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, every_size_of_a_card);
}

static void sizes_and_pieces_match_in_plain_c(void **state)
{
    (void)state;
    clv_context *plain = test_plain_context();
    for (size_t i = 0; i < CLV_LEN(sizes); ++i)
        for (int kind = CLV_CODES_INT8; kind <= CLV_CODES_BINARY; ++kind) {
            codes_case c = sizes[i];
            case_make(&c, (clv_codes)kind, 70 + i);
            run(plain, &c, (clv_codes)kind, CLV_MAX(c.rows / 3, (size_t)1), "plain C");
            case_free(&c);
        }
    clv_context_free(plain);
}

/* ---- codes ------------------------------------------------------------------------------------ */

static void codes_are_what_the_header_says(void **state)
{
    (void)state;
    const float rows[2][12] = { { 1, -2, 0.5F, 0, -0.0F, 2, 3e-3F, -1e-30F, 0.25F, -4, 4, 0.016F },
                                { 0, 0, 0, NAN, 0, 0, 0, 0, 0, 0, 1, 0 } };
    const int8_t bytes[10] = {
        32, -64, 16, 0, 0, 64, 0, 0, 8, -127
    }; /* 31.75, 63.5, 15.875, 7.94 */
    int8_t out[24];
    uint8_t bits[4];
    assert_int_equal(clv_codes_bytes(CLV_CODES_INT8, 12), 12);
    assert_int_equal(clv_codes_bytes(CLV_CODES_BINARY, 12), 2);
    assert_int_equal(clv_codes_bytes(CLV_CODES_BINARY, 16), 2);
    assert_int_equal(clv_codes_bytes(CLV_CODES_NONE, 16), 0);
    EXPECT_OK(clv_codes_make(CLV_CODES_INT8, rows[0], 2, 12, 0, out));
    assert_memory_equal(out, bytes, sizeof bytes);
    assert_true(out[10] == 127 && out[11] == 1);
    for (size_t i = 12; i < 24; ++i)
        assert_int_equal(out[i], 0);
    EXPECT_OK(clv_codes_make(CLV_CODES_BINARY, rows[0], 2, 12, 0, bits));
    assert_true(bits[0] == 0xA6 && bits[1] == 0xB0 && bits[2] == 0 && bits[3] == 0x20);
    EXPECT_OK(clv_codes_make(CLV_CODES_BINARY, rows[0], 2, 9, 12, bits)); /* rows that lie apart */
    assert_true(bits[0] == 0xA6 && bits[1] == 0x80 && bits[2] == 0 && bits[3] == 0);
    EXPECT_FAIL(CLV_E_ARGUMENT, "codes: 0", clv_codes_make(CLV_CODES_NONE, rows[0], 1, 12, 0, out));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_codes_make(CLV_CODES_INT8, NULL, 1, 12, 0, out));
    EXPECT_FAIL(CLV_E_SHAPE, "stride 3", clv_codes_make(CLV_CODES_INT8, rows[0], 1, 12, 3, out));
}

/* ---- the interface ---------------------------------------------------------------------------- */

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    clv_context *plain = test_plain_context();
    clv_search *search = NULL, *exact = NULL;
    codes_case c = { .queries = 2, .rows = 20, .width = 9, .top = 2, .rescore = 2 };
    case_make(&c, CLV_CODES_INT8, 5);
    clv_search_options o = CLV_INIT(clv_search_options);
    size_t count;
    o.first_pass = (clv_codes)3;
    EXPECT_FAIL(CLV_E_ARGUMENT, "first_pass 3", clv_search_create(plain, c.q, 2, 9, &o, &search));
    o.first_pass = CLV_CODES_BINARY, o.similarity = CLV_SIMILARITY_DOT;
    EXPECT_FAIL(CLV_E_ARGUMENT, "cosine", clv_search_create(plain, c.q, 2, 9, &o, &search));
    o.similarity = CLV_SIMILARITY_COSINE, o.rescore = 1639;
    EXPECT_FAIL(CLV_E_ARGUMENT, "top is 10 and rescore 1639",
                clv_search_create(plain, c.q, 2, 9, &o, &search));
    EXPECT_OK(clv_search_create(plain, c.q, 2, 9, NULL, &exact));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no first pass", clv_search_add_codes(exact, c.codes, 20, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no first pass", clv_search_candidates(exact, NULL, &count));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no first pass", clv_search_rescore(exact, c.x, 1, 0));
    search = first_pass(plain, &c, CLV_CODES_INT8, 7);
    EXPECT_FAIL(CLV_E_ARGUMENT, "has a first pass", clv_search_add(search, c.x, 1, 0, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_search_add_codes(search, NULL, 1, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_search_candidates(search, NULL, NULL));
    EXPECT_FAIL(CLV_E_SHAPE, "stride 8", clv_search_rescore(search, c.x, 1, 8));
    EXPECT_OK(clv_search_candidates(search, NULL, &count));
    assert_in_range(count, 4, 8);
    EXPECT_OK(clv_search_add_codes(search, c.codes, 3, NULL)); /* the list is made anew */
    EXPECT_FAIL(CLV_E_SHAPE, "got 20 rows", clv_search_rescore(search, c.x, 20, 0));
    EXPECT_OK(clv_search_rescore(search, c.x, 1, 0));
    EXPECT_FAIL(CLV_E_ARGUMENT, "rescored", clv_search_add_codes(search, c.codes, 3, NULL));
    clv_search_free(search), clv_search_free(exact);
    case_free(&c);
    clv_context_free(plain);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_match_float64),
        cmocka_unit_test(sizes_match_in_the_forms_of_cards),
        cmocka_unit_test(sizes_and_pieces_match_in_plain_c),
        cmocka_unit_test(codes_are_what_the_header_says),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    test_choose(argc, argv);
    test_share_compiled();
    return cmocka_run_group_tests_name("search_codes", tests, NULL, NULL);
}
