/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that calls of a context hand on is large enough, and one caller's at a time. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "runtime/device/spare.h"

#include <string.h>

static void memory_is_handed_on_where_it_is_large_enough(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    size_t small = 5000, large = 90000, again = 4000, huge = (size_t)200 << 20, other = 3000;
    char *first = clv_spare_take(context, &small);
    assert_true(first && small >= 5000);
    memset(first, 1, small);
    clv_spare_give(context, first, small);
    char *second = clv_spare_take(context, &large);
    assert_true(second && second != first && large >= 90000);
    memset(second, 2, large);
    clv_spare_give(context, second, large); /* the larger one stays */
    char *third = clv_spare_take(context, &again);
    assert_true(third == second && again == large);
    char *fourth = clv_spare_take(context, &other); /* it is in use */
    assert_true(fourth && fourth != third);
    clv_spare_give(context, fourth, other);
    clv_spare_give(context, third, again);
    char *fifth = clv_spare_take(context, &huge);
    clv_spare_give(context, fifth, huge); /* too much to keep */
    huge = 1;
    fifth = clv_spare_take(context, &huge);
    assert_true(fifth == third && huge == large);
    clv_spare_give(context, fifth, huge);
    clv_spare_give(context, NULL, 0);
    clv_context_free(context); /* and what it keeps: the leak checker looks */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_handed_on_where_it_is_large_enough),
    };
    return cmocka_run_group_tests_name("spare", tests, NULL, NULL);
}
