/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what the runtime has learnt, so that a person may read and edit it: lines "key = value" in files of the cache
 * directory. speeds.txt records how fast jobs ran, tuning.txt which kernel variant won. */
#ifndef CLEAVE_RUNTIME_RECORD_NOTES_H
#define CLEAVE_RUNTIME_RECORD_NOTES_H

#include "base/text.h"
#include "base/thread.h"

typedef struct clv_notes {
    clv_mutex lock;
    char path[1200]; /* "": the notes are in memory only */
    const char *title;
    struct clv_note *items;
    size_t count, capacity;
    bool changed;
} clv_notes;

/* Reads the file if there is one; skips lines that it does not understand. `title` is the file's first
 * comment. */
void clv_notes_open(clv_notes *notes, const char *directory, const char *name, const char *title);
/* Merges the notes with what other processes have written meanwhile, and writes them. */
void clv_notes_save(clv_notes *notes);
/* Saves the notes and frees them. */
void clv_notes_close(clv_notes *notes);

/* Copies the key's value into `out`; returns false when there is no such key. Keys contain no '=' and no newline. */
bool clv_notes_get(clv_notes *notes, const char *key, char *out, size_t capacity);
void clv_notes_set(clv_notes *notes, const char *key, const char *value);
/* Sets a value for this process: it is read before that of the file, and never written. */
void clv_notes_set_here(clv_notes *notes, const char *key, const char *value);
/* Tells whether notes are kept on disk, so that later processes find them. */
bool clv_notes_are_kept(const clv_notes *notes);

#endif
