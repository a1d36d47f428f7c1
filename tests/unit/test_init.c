/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of options from older and newer callers: what clv_take_struct accepts and refuses. */
#include "base/alloc.h"
#include "base/options.h"
#include "test.h"

#include <cleave/cleave.h>

typedef struct known {
    size_t size;
    unsigned radius;
    double limit;
} known;

typedef struct older {
    size_t size;
    unsigned radius;
} older;

typedef struct newer {
    size_t size;
    unsigned radius;
    double limit, added;
} newer;

static clv_status take(known *own, const void *given)
{
    return clv_take_struct(own, sizeof *own, given, "clv_thing", "clv_thing_options");
}

static void takes_its_own_version(void **state)
{
    (void)state;
    known own, given = CLV_INIT(known);
    given.radius = 5;
    assert_int_equal(take(&own, &given), CLV_OK);
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.radius, 5);
    assert_true(own.limit == 0);
    assert_int_equal(take(&own, NULL), CLV_OK);
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.radius, 0);
}

/* Garbage behind an older struct must not be read as the fields that it lacks. */
static void takes_an_older_version(void **state)
{
    (void)state;
    known own;
    struct {
        older given;
        double garbage;
    } caller = { { .size = offsetof(known, limit), .radius = 3 }, 7 };
    assert_int_equal(take(&own, &caller), CLV_OK);
    assert_int_equal(own.radius, 3);
    assert_true(own.limit == 0);
}

static void takes_a_newer_version_whose_new_fields_are_zero(void **state)
{
    (void)state;
    known own;
    newer given = CLV_INIT(newer);
    given.limit = 2;
    assert_int_equal(take(&own, &given), CLV_OK);
    assert_true(own.limit == 2);
    given.added = 1;
    assert_int_equal(take(&own, &given), CLV_E_UNSUPPORTED);
    assert_non_null(strstr(clv_error_message(), "clv_thing_options"));
}

static void refuses_a_size_of_zero(void **state)
{
    (void)state;
    known own, given = { 0 };
    assert_int_equal(take(&own, &given), CLV_E_ARGUMENT);
    assert_non_null(strstr(clv_error_message(), "CLV_INIT(clv_thing_options)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_its_own_version),
        cmocka_unit_test(takes_an_older_version),
        cmocka_unit_test(takes_a_newer_version_whose_new_fields_are_zero),
        cmocka_unit_test(refuses_a_size_of_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
