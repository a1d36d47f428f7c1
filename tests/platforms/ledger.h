/* SPDX-License-Identifier: Apache-2.0 */
/* Which units were committed, kept by the tests apart from the balancer's own book. */
#ifndef CLEAVE_TESTS_LEDGER_H
#define CLEAVE_TESTS_LEDGER_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise; ascending, disjoint, and no two that touch. */
typedef struct ledger {
    struct ledger_range {
        size_t first, end;
    } * ranges;
    size_t count, capacity;
} ledger;

bool ledger_has_any(const ledger *ledger, size_t first, size_t count);
bool ledger_add(ledger *ledger, size_t first,
                size_t count);                            /* false: some of it is there already */
bool ledger_is_whole(const ledger *ledger, size_t units); /* exactly [0, units) */
void ledger_clear(ledger *ledger);

#endif
