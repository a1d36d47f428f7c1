/* SPDX-License-Identifier: Apache-2.0 */
/* Removes units from the balancer for the plain C path, which the balancer does not count among its devices. */
#include "runtime/job/balance/state.h"

bool clv_balance_take(clv_balance *balance, size_t most, size_t *first, size_t *count)
{
    const clv_segment *lowest = clv_book_lowest(&balance->book);
    if (!lowest || !most) return false;
    const clv_segment units = *lowest;
    *first = units.first;
    *count = units.count < most ? units.count : most;
    if (!clv_book_take(&balance->book, *first, *count)) return false;
    clv_book_commit(&balance->book, *first, *count);
    return true;
}
