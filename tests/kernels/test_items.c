/* SPDX-License-Identifier: Apache-2.0 */
/* Tests clv_items_run: every kind of argument, with and without a grid, on every device, on devices with memory of
 * their own, in small chunks and in plain C; and tests which calls it refuses. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/items.h>

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

enum {
    MOST = 1000,
    WIDTH = 3,
    ROWS = 4,
    COLUMNS = 6,
    PIXELS = ROWS * COLUMNS,
    IMAGES = 37,
    ODD = 61
};

/* out = in * factor + shift; where = the item's number */
static const char text[] =
    "__kernel void scale(__global const float *in, float factor, __global const float *shift,\n"
    "                    __local float *room, __global float *out, __global uint *where, uint "
    "first,\n"
    "                    uint count)\n"
    "{\n"
    "    const size_t item = get_global_id(0);\n"
    "    if (item >= count) return;\n"
    "    room[get_local_id(0)] = factor;\n"
    "    for (uint i = 0; i < WIDTH; ++i)\n"
    "        out[item * WIDTH + i] = in[item * WIDTH + i] * room[get_local_id(0)] + shift[i];\n"
    "    where[item] = first + item;\n"
    "}\n"
    "__kernel void turn(__global const int *in, __global int *out)\n"
    "{\n"
    "    const size_t x = get_global_id(0), y = get_global_id(1), item = get_global_id(2);\n"
    "    const size_t w = get_global_size(0), h = get_global_size(1);\n"
    "    out[(item * w + x) * h + y] = in[(item * h + y) * w + x];\n"
    "}\n"
    "__kernel void double_it(__global const int *in, __global int *out, __global int *extent)\n"
    "{\n"
    "    out[get_global_id(0)] = 2 * in[get_global_id(0)];\n"
    "    extent[get_global_id(0)] = get_global_size(0);\n"
    "}\n"
    "__kernel void rows_of_16(__global const int16 *in, __global int16 *out)\n"
    "{\n"
    "    const int16 v = in[get_global_id(0)];\n"
    "    out[get_global_id(0)] = v * v + v; /* more than one use: it is loaded */\n"
    "}\n";
static const clv_cl_source source = { "test_items.cl", text, sizeof text - 1 };

static float in[MOST * WIDTH], out[(MOST + 1) * WIDTH];
static uint32_t where[MOST + 1];
static const float factor = 2.5f, shift[WIDTH] = { 1, 2, 3 };

static clv_status plain(void *const *args, size_t first, size_t count, void *user)
{
    const float *from = args[0], by = *(const float *)args[1], *plus = args[2];
    float *to = args[4];
    uint32_t *place = args[5];
    assert_null(args[3]);
    assert_int_equal(*(uint32_t *)args[6], first);
    assert_int_equal(*(uint32_t *)args[7], count);
    for (size_t i = 0; i < count * WIDTH; ++i)
        to[i] = from[i] * by + plus[i % WIDTH];
    for (size_t i = 0; i < count; ++i)
        place[i] = (uint32_t)(first + i);
    *(atomic_bool *)user = true; /* several threads */
    return CLV_OK;
}

static clv_status scale(clv_context *context, size_t items, atomic_bool *was_plain)
{
    const clv_item_arg args[] = {
        { CLV_ITEM_INPUT, .bytes = WIDTH * sizeof *in, .data = in },
        { CLV_ITEM_VALUE, .bytes = sizeof factor, .data = &factor },
        { CLV_ITEM_SHARED, .bytes = sizeof shift, .data = shift },
        { CLV_ITEM_LOCAL, .bytes = 64 * sizeof *in },
        { CLV_ITEM_OUTPUT, .bytes = WIDTH * sizeof *out, .result = out },
        { CLV_ITEM_OUTPUT, .bytes = sizeof *where, .result = where },
        { CLV_ITEM_FIRST },
        { CLV_ITEM_COUNT },
    };
    const clv_items what = { .size = sizeof what,
                             .source = &source,
                             .kernel = "scale",
                             .defines = { { "WIDTH", WIDTH } },
                             .items = items,
                             .reference = was_plain ? plain : NULL };
    memset(out, 0x5A, sizeof out);
    memset(where, 0x5A, sizeof where);
    return clv_items_run(context, &what, args, CLV_LEN(args), was_plain, NULL);
}

static void expect_scaled(size_t items)
{
    for (size_t i = 0; i < items * WIDTH; ++i)
        assert_float_equal(out[i], in[i] * factor + shift[i % WIDTH], 0);
    for (size_t i = 0; i < items; ++i)
        assert_int_equal(where[i], i);
    assert_int_equal(where[items], 0x5A5A5A5A); /* nothing beyond */
}

static void every_item_is_done_once(test_device *device)
{
    static const size_t sizes[] = { 1, 63, 64, 65, MOST };
    for (size_t i = 0; i < CLV_LEN(sizes); ++i) {
        EXPECT_OK(scale(device->context, sizes[i], NULL));
        expect_scaled(sizes[i]);
    }
}

static void all_devices(void **state)
{
    (void)state;
    test_each_device(every_item_is_done_once);
}

static void turn_and_double(test_device *device)
{
    static int images[IMAGES * PIXELS], turned[IMAGES * PIXELS], extent[ODD];
    for (int i = 0; i < IMAGES * PIXELS; ++i)
        images[i] = i;
    const clv_item_arg args[] = { { CLV_ITEM_INPUT, .bytes = PIXELS * sizeof(int), .data = images },
                                  { CLV_ITEM_OUTPUT, .bytes = PIXELS * sizeof(int),
                                    .result = turned } };
    clv_items what = { .size = sizeof(clv_items),
                       .source = &source,
                       .kernel = "turn",
                       .defines = { { "WIDTH", WIDTH } },
                       .items = IMAGES,
                       .grid = { COLUMNS, ROWS } };
    for (int given = 0; given < 2; ++given) {
        memset(turned, 0, sizeof turned);
        if (given) memcpy(what.local, (size_t[]){ 3, 2, 1 }, sizeof what.local);
        EXPECT_OK(clv_items_run(device->context, &what, args, 2, NULL, NULL));
        for (int i = 0; i < IMAGES; ++i)
            for (int y = 0; y < ROWS; ++y)
                for (int x = 0; x < COLUMNS; ++x)
                    assert_int_equal(turned[i * PIXELS + x * ROWS + y],
                                     images[i * PIXELS + y * COLUMNS + x]);
    }
    const clv_item_arg flat[] = { { CLV_ITEM_INPUT, .bytes = sizeof(int), .data = images },
                                  { CLV_ITEM_OUTPUT, .bytes = sizeof(int), .result = turned },
                                  { CLV_ITEM_OUTPUT, .bytes = sizeof(int), .result = extent } };
    what = (clv_items){ .size = sizeof(clv_items),
                        .source = &source,
                        .kernel = "double_it",
                        .defines = { { "WIDTH", WIDTH } },
                        .items = ODD }; /* no COUNT: groups divide the chunk */
    EXPECT_OK(clv_items_run(device->context, &what, flat, 3, NULL, NULL));
    for (int i = 0; i < ODD; ++i) {
        assert_int_equal(turned[i], 2 * i);
        assert_in_range(extent[i], 1, ODD);
    }
}

static void an_item_may_be_an_image(void **state)
{
    (void)state;
    test_each_device(turn_and_double);
}

/* Memory of its own, chunks of at most 100. */
static void chunks_do_not_show(void **state)
{
    (void)state;
    const clv_context_options options = { .size = sizeof(clv_context_options), .batch = 100 };
    for (size_t i = 0; i < test_device_count(); ++i) {
        test_device device;
        test_device_open(i, &options, &device);
        test_device_as_card(&device);
        EXPECT_OK(scale(device.context, MOST, NULL));
        expect_scaled(MOST);
        test_device_close(&device);
    }
}

static void plain_c_takes_over(void **state)
{
    (void)state;
    atomic_bool was_plain = false;
    clv_context *context = test_plain_context();
    EXPECT_OK(scale(context, MOST, &was_plain));
    assert_true(was_plain);
    expect_scaled(MOST);
    assert_int_equal(scale(context, MOST, NULL), CLV_E_NO_DEVICE);
    clv_context_free(context);
}

static clv_status twice_in_plain_c(void *const *args, size_t first, size_t count, void *user)
{
    (void)first, (void)user;
    for (size_t i = 0; i < count; ++i)
        ((int *)args[1])[i] = 2 * ((const int *)args[0])[i], ((int *)args[2])[i] = 0;
    return CLV_OK;
}

/* Every chunk reads its own items before it writes them. */
static void an_array_may_be_its_own_result(test_device *device)
{
    static int numbers[ODD], extent[ODD];
    for (int i = 0; i < ODD; ++i)
        numbers[i] = i;
    const clv_item_arg args[] = { { CLV_ITEM_INPUT, .bytes = 4, .data = numbers },
                                  { CLV_ITEM_OUTPUT, .bytes = 4, .result = numbers },
                                  { CLV_ITEM_OUTPUT, .bytes = 4, .result = extent } };
    clv_items items = { .size = sizeof items,
                        .source = &source,
                        .kernel = "double_it",
                        .defines = { { "WIDTH", WIDTH } },
                        .items = ODD,
                        .reference = twice_in_plain_c };
    EXPECT_OK(clv_items_run(device->context, &items, args, 3, NULL, NULL));
    for (int i = 0; i < ODD; ++i)
        assert_int_equal(numbers[i], 2 * i);
}

static void in_place(void **state)
{
    (void)state;
    test_each_device(an_array_may_be_its_own_result);
    test_device host = { 0 };
    host.context = test_plain_context();
    an_array_may_be_its_own_result(&host);
    const clv_item_arg arg = { CLV_ITEM_OUTPUT, .bytes = 4, .result = out };
    const clv_items older = { .size = offsetof(clv_items, reference),
                              .source = &source,
                              .kernel = "double_it",
                              .items = 3,
                              .reference = twice_in_plain_c };
    EXPECT_FAIL(CLV_E_NO_DEVICE, "no plain C path",
                clv_items_run(host.context, &older, &arg, 1, NULL, NULL));
    clv_context_free(host.context);
}

/* Vectors lie at multiples of their size, wherever the caller's memory does. */
static void vectors_anywhere(test_device *device)
{
    enum { ITEMS = 50, LANES = 16 };
    static _Alignas(64) int from[(ITEMS + 1) * LANES], to[(ITEMS + 1) * LANES];
    for (int i = 0; i < (ITEMS + 1) * LANES; ++i)
        from[i] = i;
    for (int off = 0; off <= LANES; off += off ? off : 1) {
        const clv_item_arg args[] = {
            { CLV_ITEM_INPUT, .bytes = LANES * sizeof *from, .data = from + off },
            { CLV_ITEM_OUTPUT, .bytes = LANES * sizeof *to, .result = to + off },
        };
        const clv_items what = { .size = sizeof(clv_items),
                                 .source = &source,
                                 .kernel = "rows_of_16",
                                 .defines = { { "WIDTH", 1 } },
                                 .items = ITEMS };
        EXPECT_OK(clv_items_run(device->context, &what, args, CLV_LEN(args), NULL, NULL));
        for (int i = off; i < off + ITEMS * LANES; ++i)
            assert_int_equal(to[i], i * i + i);
    }
}

static void memory_of_vectors(void **state)
{
    (void)state;
    test_each_device(vectors_anywhere);
}

static void wrong_use_says_what_is_wrong(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    const clv_item_arg good = { CLV_ITEM_OUTPUT, .bytes = 4, .result = out };
    const clv_items fine = {
        .size = sizeof(clv_items), .source = &source, .kernel = "k", .items = 9
    };
    const struct {
        clv_items items;
        clv_item_arg arg;
        const char *why;
    } cases[] = {
        { fine, { CLV_ITEM_INPUT, .bytes = 4 }, "argument 1: expected data" },
        { fine, { CLV_ITEM_SHARED, .data = in }, "argument 1: expected data" },
        { fine, { CLV_ITEM_OUTPUT, .bytes = 4 }, "argument 1: expected memory for" },
        { fine, { CLV_ITEM_OUTPUT, .bytes = SIZE_MAX / 2, .result = out }, "more bytes than" },
        { fine, { CLV_ITEM_VALUE, .bytes = 17, .data = in }, "1 to 16 bytes" },
        { fine, { CLV_ITEM_LOCAL }, "0 bytes of local" },
        { fine, { (clv_item_kind)99 }, "no such kind" },
        { fine, { CLV_ITEM_OUTPUT, .bytes = 4, .result = out + 8 }, "arguments 0 and 1 share" },
        { fine, { CLV_ITEM_INPUT, .bytes = 4, .data = out + 1 }, "arguments 0 and 1 share" },
        { fine, { CLV_ITEM_INPUT, .bytes = 8, .data = out }, "arguments 0 and 1 share" },
        { fine, { CLV_ITEM_SHARED, .bytes = 4, .data = out }, "arguments 0 and 1 share" },
        { { .source = &source, .kernel = "k", .items = 9, .local = { 8 } },
          { CLV_ITEM_FIRST },
          "must include COUNT" },
        { { .source = &source, .kernel = "k", .items = 9, .grid = { 10 }, .local = { 4, 1 } },
          { CLV_ITEM_FIRST },
          "not a multiple of 4" },
        { { .source = &source, .kernel = "k", .items = 9, .grid = { 10 }, .local = { 5 } },
          { CLV_ITEM_FIRST },
          "2 positive extents" },
        { { .source = &source, .kernel = "k", .items = 9, .grid = { 0, 4 } },
          { CLV_ITEM_FIRST },
          "the grid is 0 x 4" },
        { { .kernel = "k", .items = 9 }, { CLV_ITEM_FIRST }, "argument list is NULL" },
        { { .source = &source, .kernel = "k", .items = (size_t)UINT32_MAX + 1 },
          { CLV_ITEM_FIRST },
          "2^32 - 1" },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        const clv_item_arg args[] = { good, cases[i].arg };
        clv_items items = cases[i].items;
        items.size = sizeof items;
        EXPECT_FAIL(CLV_E_ARGUMENT, cases[i].why,
                    clv_items_run(context, &items, args, 2, NULL, NULL));
    }
    EXPECT_FAIL(CLV_E_ARGUMENT, "the call would have no result",
                clv_items_run(context, &fine, NULL, 0, NULL, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "description is NULL",
                clv_items_run(NULL, &fine, &good, 1, NULL, NULL));
    clv_item_arg many[33];
    for (size_t i = 0; i < CLV_LEN(many); ++i)
        many[i] = (clv_item_arg){ CLV_ITEM_OUTPUT, .bytes = 4, .result = out + 9 * i };
    EXPECT_FAIL(CLV_E_ARGUMENT, "33 inputs and outputs and 0 shared arrays, but at most 32 of each",
                clv_items_run(context, &fine, many, CLV_LEN(many), NULL, NULL));
    clv_items nothing = fine;
    nothing.items = 0;
    EXPECT_OK(clv_items_run(context, &nothing, &good, 1, NULL, NULL));
    clv_context_free(context);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    for (size_t i = 0; i < MOST * WIDTH; ++i)
        in[i] = (float)(i % 991) * 0.5f;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_devices),
        cmocka_unit_test(an_item_may_be_an_image),
        cmocka_unit_test(chunks_do_not_show),
        cmocka_unit_test(plain_c_takes_over),
        cmocka_unit_test(in_place),
        cmocka_unit_test(memory_of_vectors),
        cmocka_unit_test(wrong_use_says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
