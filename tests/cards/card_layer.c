/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what the simulated card is to be, and puts its answers before the driver's. */
#include "card.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

card_state card;
const char layer_name[] = "simulated card of Cleave's tests";

static double number(const char *variable)
{
    const char *text = getenv(variable);
    return text ? strtod(text, NULL) : 0;
}

bool layer_install(cl_icd_dispatch *own)
{
    const char *where = getenv("CLEAVE_CARD"), *most = getenv("CLEAVE_CARD_RUN_UP_TO");
    if (!where) {
        fprintf(stderr, "simulated card: CLEAVE_CARD names no card\n");
        return false;
    }
    if (!card_read(where, &card.facts)) return false;
    card.clock = (card_clock){ .bytes_per_s = 1e9 * number("CLEAVE_CARD_GBPS"),
                               .launch_s = 1e-6 * number("CLEAVE_CARD_LAUNCH_US"),
                               .item_s = 1e-9 * number("CLEAVE_CARD_ITEM_NS"),
                               .watchdog_s = number("CLEAVE_CARD_WATCHDOG_S") };
    card.record = getenv("CLEAVE_CARD_RECORD");
    card.launches = getenv("CLEAVE_CARD_LAUNCHES");
    FILE *file = card.launches ? fopen(card.launches, "a") : NULL;
    if (file) fclose(file);
    card.hollow = getenv("CLEAVE_CARD_HOLLOW") != NULL;
    card.run_up_to = most ? strtod(most, NULL) : INFINITY;
    card_info_install(own);
    card_objects_install(own);
    card_commands_install(own);
    if (card.record) card_record_install(own);
    return true;
}
