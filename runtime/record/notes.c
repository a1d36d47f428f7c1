/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what the runtime has learnt, as lines "key = value". */
#include "runtime/record/notes.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

enum { MAX_NOTES = 10000, MAX_FILE_BYTES = 4 << 20, USUAL_BYTES = 64 };

typedef struct clv_note {
    char *key, *value;
    size_t room; /* bytes that `value` has room for */
    bool mine;   /* set by this process: wins over the file */
    bool here;   /* never written; another note may have the same key in the file */
} clv_note;

static clv_note *find(clv_notes *notes, const char *key, bool here)
{
    for (size_t i = 0; i < notes->count; ++i)
        if (notes->items[i].here == here && strcmp(notes->items[i].key, key) == 0)
            return &notes->items[i];
    return NULL;
}

/* Adds a note with room for a value; returns NULL without memory. */
static clv_note *add(clv_notes *notes, const char *key, bool here, size_t bytes)
{
    clv_note note = { .key = clv_strdup(key), .here = here };
    if (!note.key || notes->count >= MAX_NOTES ||
        !clv_reserve(&note.value, &note.room, CLV_MAX(bytes, (size_t)USUAL_BYTES), 1) ||
        !clv_reserve(&notes->items, &notes->capacity, notes->count + 1, sizeof *notes->items)) {
        clv_free(note.key);
        clv_free(note.value);
        return NULL;
    }
    notes->items[notes->count] = note;
    return &notes->items[notes->count++];
}

static void put(clv_notes *notes, const char *key, const char *value, bool mine, bool here)
{
    clv_note *note = find(notes, key, here);
    if (note && note->mine && !mine) return;
    const size_t bytes = strlen(value) + 1; /* failing to keep a note is no error */
    if (!note) note = add(notes, key, here, bytes);
    if (!note || !clv_reserve(&note->value, &note->room, bytes, 1)) return;
    memcpy(note->value, value, bytes);
    note->mine = note->mine || mine;
}

static void read_file(clv_notes *notes)
{
    char *text;
    size_t length;
    if (!*notes->path || clv_file_read_plain(notes->path, MAX_FILE_BYTES, &text, &length)) return;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        char *equals = strstr(line, " = ");
        if (*line == '#' || !equals || equals == line) continue;
        *equals = '\0';
        put(notes, line, equals + 3, false, false);
    }
    clv_free(text);
}

void clv_notes_open(clv_notes *notes, const char *directory, const char *name, const char *title)
{
    *notes = (clv_notes){ .title = title };
    clv_mutex_init(&notes->lock);
    if (*directory && (size_t)snprintf(notes->path, sizeof notes->path, "%s/%s", directory, name) >=
                          sizeof notes->path)
        notes->path[0] = '\0';
    read_file(notes);
}

static void write_file(clv_notes *notes)
{
    clv_text text = { 0 };
    read_file(notes); /* other processes may have written since */
    clv_text_add(&text, "# %s\n", notes->title);
    for (size_t i = 0; i < notes->count; ++i)
        if (!notes->items[i].here)
            clv_text_add(&text, "%s = %s\n", notes->items[i].key, notes->items[i].value);
    if (!text.failed && clv_file_write_private(notes->path, clv_text_get(&text), text.length))
        clv_log(CLV_LOG_WARN, "not noted: %s", clv_error_message());
    clv_text_clear(&text);
}

void clv_notes_save(clv_notes *notes)
{
    pthread_mutex_lock(&notes->lock);
    if (notes->changed && *notes->path) write_file(notes);
    notes->changed = false;
    pthread_mutex_unlock(&notes->lock);
}

void clv_notes_close(clv_notes *notes)
{
    clv_notes_save(notes);
    for (size_t i = 0; i < notes->count; ++i) {
        clv_free(notes->items[i].key);
        clv_free(notes->items[i].value);
    }
    clv_free(notes->items);
    pthread_mutex_destroy(&notes->lock);
    *notes = (clv_notes){ 0 };
}

bool clv_notes_get(clv_notes *notes, const char *key, char *out, size_t capacity)
{
    pthread_mutex_lock(&notes->lock);
    const clv_note *note = find(notes, key, true);
    if (!note) note = find(notes, key, false);
    if (note) clv_copy_string(out, capacity, note->value);
    pthread_mutex_unlock(&notes->lock);
    return note != NULL;
}

void clv_notes_set(clv_notes *notes, const char *key, const char *value)
{
    pthread_mutex_lock(&notes->lock);
    put(notes, key, value, true, false);
    notes->changed = true;
    pthread_mutex_unlock(&notes->lock);
}

void clv_notes_set_here(clv_notes *notes, const char *key, const char *value)
{
    pthread_mutex_lock(&notes->lock);
    put(notes, key, value, true, true);
    pthread_mutex_unlock(&notes->lock);
}

bool clv_notes_are_kept(const clv_notes *notes)
{
    return *notes->path != '\0';
}
