/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the balancer's rules have in common. */
#ifndef CLEAVE_TESTS_BALANCE_TEST_H
#define CLEAVE_TESTS_BALANCE_TEST_H

#include "test.h"

#include "runtime/job/balance/balance.h"

#include <string.h>

/* A device whose speed is known: `units_per_s`, and 10 us a chunk. */
static inline clv_balance_device known(double units_per_s)
{
    return (
        clv_balance_device){ .units_per_s = units_per_s, .chunk_s = 1e-5, .depth = 1, .pool = -1 };
}

static inline clv_balance *make(const clv_balance_job *job, const clv_balance_device *devices,
                                size_t count)
{
    clv_balance *balance;
    EXPECT_OK(clv_balance_create(job, devices, count, 0, &balance));
    return balance;
}

static inline clv_balance_lease expect_act(clv_balance_act act, clv_balance_lease lease)
{
    assert_int_equal(act, lease.act);
    return lease;
}
#define EXPECT_WORK(call) expect_act(CLV_BALANCE_WORK, (call))
#define EXPECT_WAIT(call) expect_act(CLV_BALANCE_WAIT, (call))
#define EXPECT_LEAVE(call) expect_act(CLV_BALANCE_LEAVE, (call))

static inline void expect_reason(const clv_balance *balance, size_t device, const char *part)
{
    clv_text text = { 0 };
    clv_balance_explain(balance, device, &text);
    if (!strstr(clv_text_get(&text), part))
        fail_msg("device %zu: \"%s\", expected \"%s\"", device, clv_text_get(&text), part);
    clv_text_clear(&text);
}

#endif
