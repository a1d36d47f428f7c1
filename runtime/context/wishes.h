/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller asks of a context: its options, and the environment where they leave something open. */
#ifndef CLEAVE_RUNTIME_CONTEXT_WISHES_H
#define CLEAVE_RUNTIME_CONTEXT_WISHES_H

#include <cleave/runtime.h>

typedef struct clv_wishes {
    clv_mode mode;
    const char *devices;             /* NULL: no selection */
    bool mode_is_set, device_is_set; /* by a variable, not by the caller */
    clv_schedule schedule;
    uint64_t memory_bytes;  /* 0: memory_fraction */
    double memory_fraction; /* 0: the default */
    unsigned compilers;     /* processes at most; UINT_MAX: as many as cores */
} clv_wishes;

/* CLV_E_ARGUMENT; a variable whose option was given is not looked at. */
clv_status clv_wishes_read(const clv_context_options *options, clv_wishes *wishes);

/* clv_choose_devices, with the variable in the message where that is to blame. */
clv_status clv_wishes_choose(const clv_wishes *wishes, const clv_probe_report *report,
                             size_t *chosen, size_t *count);

#endif
