/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what a program may ask beside its results: which device a chunk runs on and what memory it has, how much
 * memory a device may take, how busy it is, what a report says, and how an array is laid out. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/array_data.h>
#include <cleave/job.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- inside a job ------------------------------------------------------------------------------ */

enum { UNITS = 4096, CHUNK = 256, SLOTS = 8, IN = 0, OUT = 1, FIRST = 2, SECOND = 9 };

typedef struct work {
    test_device *device;
    uint32_t in[UNITS], out[UNITS];
    struct {
        clv_slot *slot;
        clv_buffer *first, *second;
    } seen[SLOTS];
    size_t slots, wrong;
} work;

/* A slot has the same two buffers at every chunk, and shares them with no other slot. */
static void remember(work *w, clv_slot *slot, clv_buffer *first, clv_buffer *second)
{
    size_t at = 0;
    while (at < w->slots && w->seen[at].slot != slot)
        ++at;
    if (at == SLOTS) return;
    if (at == w->slots) {
        for (size_t i = 0; i < w->slots; ++i)
            w->wrong += w->seen[i].first == first || w->seen[i].second == second;
        w->seen[w->slots].slot = slot, w->seen[w->slots].first = first;
        w->seen[w->slots++].second = second;
    }
    w->wrong += w->seen[at].first != first || w->seen[at].second != second || first == second;
}

static clv_status enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    static const char text[] =
        "__kernel void twice(__global const uint *in, uint more, __global uint *out, uint count)\n"
        "{\n"
        "    const size_t i = get_global_id(0);\n"
        "    if (i < count) out[i] = 2 * in[i] + more;\n"
        "}\n";
    static const clv_cl_source source = { "twice", text, sizeof text - 1 };
    work *w = user;
    clv_worker *worker = clv_slot_worker(slot);
    w->wrong += clv_worker_device(worker) != w->device->device || clv_worker_index(worker) != 0;
    const clv_box box = { .host = w->in + first,
                          .element_bytes = sizeof *w->in,
                          .extent = { 1, 1, count },
                          .stride = { 0, 0, 1 } };
    clv_place in;
    clv_box repeated = box;
    repeated.extent[1] = 2;
    w->wrong += clv_slot_input(slot, IN, &repeated, &in) != CLV_E_SHAPE;
    clv_buffer *one, *two, *again, *out;
    CLV_TRY(clv_slot_input(slot, IN, &box, &in));
    CLV_TRY(clv_slot_buffer(slot, FIRST, CHUNK * sizeof *w->in, &one));
    CLV_TRY(clv_slot_buffer(slot, SECOND, CHUNK * sizeof *w->in, &two));
    CLV_TRY(clv_slot_buffer(slot, FIRST, 0, &again));
    CLV_TRY(clv_slot_output(slot, OUT, count * sizeof *w->out, &out));
    w->wrong += one != again || clv_buffer_bytes(one) < CHUNK * sizeof *w->in;
    remember(w, slot, one, two);
    clv_buffer *const way[] = { in.buffer, one, two, out };
    const clv_launch launch = { .size = sizeof(clv_launch),
                                .source = &source,
                                .kernel = "twice",
                                .global = { count },
                                .local = { 1 } };
    for (uint32_t i = 0; i < 3; ++i) {
        const clv_arg args[] = { clv_arg_buffer(way[i]), clv_arg_u32(i), clv_arg_buffer(way[i + 1]),
                                 clv_arg_u32((uint32_t)count) };
        CLV_TRY(clv_launch_enqueue(clv_slot_queue(slot), &launch, args, CLV_LEN(args), NULL));
    }
    return CLV_OK;
}

static clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    work *w = user;
    memcpy(w->out + first, clv_slot_result(slot, OUT), count * sizeof *w->out);
    return CLV_OK;
}

static void run_job(test_device *device)
{
    static work w;
    w = (work){ .device = device };
    const clv_job job = { .size = sizeof(clv_job),
                          .name = "accounts",
                          .units = UNITS,
                          .align = CHUNK,
                          .min_chunk = CHUNK,
                          .unit_cost = { .flops = 1, .memory_bytes = 16, .buffer_bytes = 4 },
                          .enqueue = enqueue,
                          .commit = commit };
    test_device_as_card(device); /* two chunks in flight, copies */
    for (uint32_t i = 0; i < UNITS; ++i)
        w.in[i] = i * 2654435761u;
    EXPECT_OK(clv_job_run(device->context, &job, &w, NULL));
    for (uint32_t i = 0; i < UNITS; ++i)
        assert_int_equal(w.out[i], 8 * w.in[i] + 4);
    assert_int_equal(w.wrong, 0);
    assert_true(w.slots >= 1);
}

static void run_on(size_t nth)
{
    test_device device;
    const clv_context_options options = { .size = sizeof(clv_context_options), .batch = CHUNK };
    test_device_open(nth, &options, &device);
    run_job(&device);
    test_device_close(&device);
}

static void a_chunk_knows_its_device_and_has_memory_of_its_own(void **state)
{
    (void)state;
    if (!test_device_count()) test_skip_without_device();
    for (size_t i = 0; i < test_device_count(); ++i)
        run_on(i);
}

/* Asks for a larger buffer at every chunk, as chunks that grow step by step do. */
static clv_status enqueue_more(clv_slot *slot, size_t first, size_t count, void *user)
{
    clv_buffer *more;
    CLV_TRY(clv_slot_buffer(slot, SECOND + 1, (first / CHUNK + 1) << 16, &more));
    return enqueue(slot, first, count, user);
}

static void outgrown_buffers_are_not_kept(void **state)
{
    (void)state;
    if (!test_device_count()) test_skip_without_device();
    test_device device;
    static work w;
    const clv_context_options options = { .size = sizeof(clv_context_options), .batch = CHUNK };
    test_device_open(0, &options, &device);
    w = (work){ .device = &device };
    const clv_job job = { .size = sizeof(clv_job),
                          .name = "growing",
                          .units = UNITS,
                          .align = CHUNK,
                          .min_chunk = CHUNK,
                          .unit_cost = { .flops = 1, .memory_bytes = 16, .buffer_bytes = 4 },
                          .enqueue = enqueue_more,
                          .commit = commit };
    EXPECT_OK(clv_job_run(device.context, &job, &w, NULL));
    /* 16 sizes of 64 KiB to 1 MiB make 8.5 MiB; a slot holds the largest alone */
    const clv_memory_stats memory = clv_device_memory(device.device);
    assert_true(memory.peak_bytes >= (1 << 20) && memory.peak_bytes < (4 << 20));
    test_device_close(&device);
}

/* ---- a report ---------------------------------------------------------------------------------- */

static void facts_of_the_caller_are_in_the_report(void **state)
{
    (void)state;
    clv_report *report;
    EXPECT_OK(clv_report_create(&report));
    clv_report_note(report, "seeing", 0.75);
    clv_report_note_text(report, "target", "HD \"95086\"");
    clv_report_note(report, "seeing", 1.25); /* the latest counts */
    char *text = clv_report_json(report);
    assert_non_null(text);
    const char *operation = strstr(text, "\"operation\"");
    assert_non_null(operation);
    const char *seeing = strstr(operation, "\"seeing\"");
    assert_non_null(seeing);
    assert_true(strtod(strchr(seeing, ':') + 1, NULL) == 1.25);
    assert_null(strstr(text, "0.75"));
    assert_non_null(strstr(operation, "\"HD \\\"95086\\\"\""));
    free(text);
    clv_report_free(report);
}

/* ---- memory ------------------------------------------------------------------------------------ */

static clv_memory_room room_with(const clv_context_options *options)
{
    test_device device;
    test_device_open(0, options, &device);
    const clv_memory_room room = clv_device_room(device.device);
    assert_int_equal(clv_device_memory(device.device).used_bytes, 0);
    assert_true(room.free_bytes == room.limit_bytes && room.largest_bytes <= room.limit_bytes);
    test_device_close(&device);
    return room;
}

static void limits_are_bytes_or_parts(void **state)
{
    (void)state;
    if (!test_device_count()) test_skip_without_device();
    const clv_context_options none = { .size = sizeof(clv_context_options) },
                              bytes = { .size = sizeof(clv_context_options),
                                        .memory_bytes = 48000000 },
                              quarter = { .size = sizeof(clv_context_options),
                                          .memory_fraction = 0.25 },
                              half = { .size = sizeof(clv_context_options),
                                       .memory_fraction = 0.5 },
                              both = { .size = sizeof(clv_context_options),
                                       .memory_bytes = 48000000,
                                       .memory_fraction = 0.5 };
    assert_int_equal(room_with(&bytes).limit_bytes, 48000000);
    assert_int_equal(room_with(&both).limit_bytes, 48000000);
    const clv_memory_room a = room_with(&quarter), b = room_with(&half);
    assert_true(a.limit_bytes > 0 && b.limit_bytes - 2 * a.limit_bytes <= 1);
    assert_true(a.total_bytes == b.total_bytes && a.total_bytes > 0);
    assert_int_equal(setenv("CLEAVE_MEM_LIMIT", "32000000", 1), 0);
    assert_int_equal(room_with(&none).limit_bytes, 32000000);
    assert_int_equal(room_with(&bytes).limit_bytes, 48000000); /* the option wins */
    assert_int_equal(room_with(&quarter).limit_bytes, a.limit_bytes);
    assert_int_equal(setenv("CLEAVE_MEM_LIMIT", "25%", 1), 0);
    assert_int_equal(room_with(&none).limit_bytes, a.limit_bytes);
    clv_context *context;
    assert_int_equal(setenv("CLEAVE_MEM_LIMIT", "plenty", 1), 0);
    EXPECT_FAIL(CLV_E_ARGUMENT, "CLEAVE_MEM_LIMIT is \"plenty\"",
                clv_context_create(&none, &context));
    assert_int_equal(unsetenv("CLEAVE_MEM_LIMIT"), 0);
    const clv_context_options more = { .size = sizeof(clv_context_options),
                                       .memory_fraction = 1.5 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "memory fraction is 1.5", clv_context_create(&more, &context));
    assert_null(context);
}

static void a_device_may_tell_how_busy_it_is(void **state)
{
    (void)state;
    if (!test_device_count()) test_skip_without_device();
    test_device device;
    double percent = 5;
    test_device_open(0, NULL, &device);
    test_device_as_card(&device);
    clv_probe_device facts = *clv_device_facts(device.device);
    device.device->facts = &facts;
    facts.pci_address = NULL;
    facts.utilisation_percent = -1;
    EXPECT_FAIL(CLV_E_DEVICE, "does not report how busy",
                clv_device_utilisation(device.device, &percent));
    assert_true(percent == -1);
    facts.utilisation_percent = 37.5;
    EXPECT_OK(clv_device_utilisation(device.device, &percent));
    assert_true(percent == 37.5);
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_device_utilisation(device.device, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_device_utilisation(NULL, &percent));
    device.device->facts = &device.disguise;
    test_device_close(&device);
}

/* ---- contexts and arrays ------------------------------------------------------------------------- */

static void a_context_tells_its_mode_and_what_it_was_chosen_from(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    assert_int_equal(clv_context_mode(context), CLV_MODE_REFERENCE);
    assert_non_null(clv_context_probe(context));
    assert_int_equal(clv_context_device_count(context), 0);
    clv_context_free(context);
    if (!test_device_count()) return;
    EXPECT_OK(clv_context_create(NULL, &context));
    assert_true(clv_context_mode(context) != CLV_MODE_AUTO);
    const clv_probe_report *probe = clv_context_probe(context);
    const clv_probe_device *facts = clv_device_facts(clv_context_device(context, 0));
    assert_true(facts >= probe->devices && facts < probe->devices + probe->device_count);
    clv_context_free(context);
}

static void an_array_tells_its_shape(void **state)
{
    (void)state;
    clv_array *array;
    const size_t shape[] = { 3, 1, 4, 5 }, flat[] = { 12, 5 };
    clv_context *context = test_plain_context();
    EXPECT_OK(clv_array_create(context, 4, shape, &array));
    assert_int_equal(clv_array_rank(array), 4);
    assert_int_equal(clv_array_elements(array), 60);
    assert_memory_equal(clv_array_shape(array), shape, sizeof shape);
    EXPECT_OK(clv_array_reshape(array, 2, flat));
    assert_int_equal(clv_array_rank(array), 2);
    assert_memory_equal(clv_array_shape(array), flat, sizeof flat);
    assert_int_equal(clv_array_elements(array), 60);
    clv_array_free(array);
    EXPECT_OK(clv_array_create(context, 0, NULL, &array));
    assert_int_equal(clv_array_rank(array), 0);
    assert_int_equal(clv_array_elements(array), 1);
    clv_array_free(array);
    clv_context_free(context);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_knows_its_device_and_has_memory_of_its_own),
        cmocka_unit_test(outgrown_buffers_are_not_kept),
        cmocka_unit_test(facts_of_the_caller_are_in_the_report),
        cmocka_unit_test(limits_are_bytes_or_parts),
        cmocka_unit_test(a_device_may_tell_how_busy_it_is),
        cmocka_unit_test(a_context_tells_its_mode_and_what_it_was_chosen_from),
        cmocka_unit_test(an_array_tells_its_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
