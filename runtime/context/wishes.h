/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings of a new context: its options, and environment variables where an option is not given. */
#ifndef CLEAVE_RUNTIME_CONTEXT_WISHES_H
#define CLEAVE_RUNTIME_CONTEXT_WISHES_H

#include <cleave/runtime.h>

typedef struct clv_wishes {
    clv_mode mode;
    const char *devices;             /* NULL: no devices were named */
    bool mode_is_set, device_is_set; /* set by a variable, not by the caller */
    clv_schedule schedule;
    uint64_t memory_bytes;  /* 0: memory_fraction applies */
    double memory_fraction; /* 0: the default */
    unsigned compilers;     /* most helper processes; UINT_MAX: as many as cores */
} clv_wishes;

/* Reads the wishes. Error: CLV_E_ARGUMENT. A variable is ignored if its option was given. */
clv_status clv_wishes_read(const clv_context_options *options, clv_wishes *wishes);

/* Calls clv_choose_devices. If an error is due to an environment variable, the message names the variable. */
clv_status clv_wishes_choose(const clv_wishes *wishes, const clv_probe_report *report,
                             size_t *chosen, size_t *count);

#endif
