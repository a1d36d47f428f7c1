/* SPDX-License-Identifier: Apache-2.0 */
/* Has one table per structure, with the names and forms of its members in schema "cleave.probe/1". The same rows serve
 * to write reports and to read them from helpers and files. */
#ifndef CLEAVE_PROBE_FIELDS_H
#define CLEAVE_PROBE_FIELDS_H

#include "base/json.h"
#include "probe/machine.h"

typedef enum clv_field_kind {
    CLV_FIELD_TEXT,     /* const char *; NULL is null */
    CLV_FIELD_WORDS,    /* const char *, words separated by blanks; written as a list of strings */
    CLV_FIELD_NUMBERS,  /* const char *, numbers separated by blanks; written as a list */
    CLV_FIELD_TYPES,    /* const char *, words separated by '|'; written as a list */
    CLV_FIELD_UNSIGNED, /* unsigned */
    CLV_FIELD_COUNT,    /* unsigned; 0 is null */
    CLV_FIELD_INT,      /* int; 0 is null */
    CLV_FIELD_SIZE,     /* size_t; 0 is null */
    CLV_FIELD_SIZES3,   /* size_t[3] */
    CLV_FIELD_INDEX,    /* size_t; SIZE_MAX is null */
    CLV_FIELD_BYTES,    /* uint64_t; CLV_UNKNOWN is null */
    CLV_FIELD_LIMIT,    /* uint64_t; 0 is null */
    CLV_FIELD_REAL,     /* double; negative is null */
    CLV_FIELD_BOOL,
    CLV_FIELD_MAYBE,  /* clv_tristate; MAYBE is null */
    CLV_FIELD_LOCAL,  /* bool: "global" or "local" memory */
    CLV_FIELD_CACHE,  /* char: the type of a cache */
    CLV_FIELD_CLASS,  /* clv_device_class */
    CLV_FIELD_VENDOR, /* clv_vendor */
    CLV_FIELD_MODE,   /* clv_mode */
} clv_field_kind;

typedef struct clv_field {
    const char *group; /* inner object, such as "pci" or "pci.link"; NULL: no inner object */
    const char *key;
    clv_field_kind kind;
    bool fact; /* true for facts; other members are judgements, which readers compute again */
    size_t offset;
} clv_field;

typedef struct clv_fields {
    const clv_field *rows;
    size_t count;
} clv_fields;

extern const clv_fields clv_host_fields, clv_cache_fields, clv_pci_gpu_fields, clv_icd_fields,
    clv_platform_fields, clv_device_fields, clv_check_fields, clv_rate_fields, clv_mode_fields,
    clv_warning_fields;

void clv_fields_write(clv_json *object, clv_fields fields, const void *record, bool facts_only);

/* Reads the facts of one record. Missing members leave their fields unchanged; unknown keys are ignored. Messages begin
 * with `where`, such as "devices[3]". CLV_E_FORMAT, CLV_E_MEMORY. */
clv_status clv_fields_read(clv_machine *machine, const clv_json *object, clv_fields fields,
                           const char *where, void *record);

#endif
