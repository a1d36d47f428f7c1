/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime learnt and a person may read and edit: lines "key = value" in the cache
 * directory. speeds.txt (how fast jobs ran), tuning.txt (which kernel variant won). */
#ifndef CLEAVE_RUNTIME_RECORD_NOTES_H
#define CLEAVE_RUNTIME_RECORD_NOTES_H

#include "base/text.h"
#include "base/thread.h"

typedef struct clv_notes {
    clv_mutex lock;
    char path[1200]; /* "": memory only */
    const char *title;
    struct clv_note *items;
    size_t count, capacity;
    bool changed;
} clv_notes;

/* Reads the file when there is one; lines that are not understood are skipped. `title` is the
 * file's first comment. */
void clv_notes_open(clv_notes *notes, const char *directory, const char *name, const char *title);
/* Merges with what other processes wrote meanwhile, and writes. */
void clv_notes_save(clv_notes *notes);
/* Saves and frees. */
void clv_notes_close(clv_notes *notes);

/* Value of the key into `out`; false when there is none. Keys have no '=' and no newline. */
bool clv_notes_get(clv_notes *notes, const char *key, char *out, size_t capacity);
void clv_notes_set(clv_notes *notes, const char *key, const char *value);
/* Whether a note of today is there tomorrow. */
bool clv_notes_are_kept(const clv_notes *notes);

#endif
