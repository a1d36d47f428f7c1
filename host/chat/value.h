/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the values of a template, and the memory that holds all of them until the template is rendered. */
#ifndef CLEAVE_HOST_CHAT_VALUE_H
#define CLEAVE_HOST_CHAT_VALUE_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum chat_kind {
    CHAT_UNDEFINED,
    CHAT_NONE,
    CHAT_BOOL,
    CHAT_INT,
    CHAT_FLOAT,
    CHAT_STRING,
    CHAT_LIST,
    CHAT_DICT,  /* also namespaces and the variable "loop" */
    CHAT_MACRO, /* a macro, which is a node of the template */
} chat_kind;

/* A text that never changes, with a mark for each byte that tells whether the byte came from a message; marks NULL:
 * none did. */
typedef struct chat_string {
    const char *data;
    const unsigned char *marks;
    size_t length;
} chat_string;

struct chat_list;
struct chat_dict;
struct chat_node;

typedef struct chat_value {
    chat_kind kind;
    union {
        bool truth;
        int64_t whole;
        double number;
        chat_string text;
        struct chat_list *list;
        struct chat_dict *dict;
        const struct chat_node *macro;
    } as;
} chat_value;

typedef struct chat_list {
    chat_value *items;
    size_t count, room;
} chat_list;

typedef struct chat_pair {
    chat_value key, value;
} chat_pair;

typedef struct chat_dict {
    chat_pair *pairs; /* in order of insertion */
    size_t count, room;
    bool changes; /* the dictionary is a namespace, whose members may be set */
} chat_dict;

/* Memory that is allocated in blocks, and released all at once. */
typedef struct chat_memory {
    struct chat_block *latest;
    size_t used; /* bytes in all blocks */
} chat_memory;

enum { CHAT_MEMORY_MOST = 256 << 20, CHAT_STEPS_MOST = 2000000, CHAT_DEPTH_MOST = 100 };

/* The execution of a template. After a failure `status` is set, the message is this thread's error message, and all new
 * values are undefined; loops check `status` before they continue. */
typedef struct chat_run {
    chat_memory memory;
    clv_status status;
    const char *source; /* the template's text */
    unsigned line;      /* line of the template that is being executed */
    unsigned depth;
    uint64_t steps;
    int64_t now;
} chat_run;

/* Allocates memory that belongs to the run. Returns NULL, and the run fails, if memory runs out or the run's limit is
 * reached. */
void *chat_take(chat_run *run, size_t bytes);
void chat_release(chat_memory *memory);

/* Lets the run fail with a message that names the template's line; always returns an undefined value. */
chat_value chat_fail(chat_run *run, clv_status status, const char *format, ...) CLV_PRINTF(3, 4);
/* Counts a step, and one more step for every 64 of the `bytes` that it processes. Returns false if the run has failed,
 * or fails now because it took too many steps. */
bool chat_step(chat_run *run, size_t bytes);

extern const chat_value chat_undefined, chat_none;
chat_value chat_bool(bool truth);
chat_value chat_int(int64_t whole);
chat_value chat_float(double number);
chat_value chat_text(const char *text); /* borrowed, without marks */
chat_value chat_string_of(chat_string text);
/* Returns a text with a copy of the bytes at `data`; `marked` says that all of them came from a message. */
chat_value chat_copy(chat_run *run, const char *data, size_t length, bool marked);
chat_string chat_part(chat_string text, size_t from, size_t to);
chat_string chat_join(chat_run *run, chat_string a, chat_string b);

chat_value chat_list_new(chat_run *run);
void chat_list_add(chat_run *run, chat_value list, chat_value item);
chat_value chat_dict_new(chat_run *run);
void chat_dict_set(chat_run *run, chat_value dict, chat_value key, chat_value value);
/* Returns the value of a key; an undefined value if the dictionary lacks the key. */
chat_value chat_dict_get(const chat_dict *dict, chat_value key);

bool chat_truth(chat_value value);
bool chat_is_number(chat_value value); /* true for a bool, too, as in Python */
double chat_number(chat_value value);
bool chat_equals(chat_run *run, chat_value a, chat_value b);
/* Returns -1, 0 or 1, as `a` is less than, equal to or greater than `b`; the run fails for values that have no
 * order. */
int chat_compare(chat_run *run, chat_value a, chat_value b);
bool chat_contains(chat_run *run, chat_value all, chat_value one);
const char *chat_kind_name(chat_value value);
bool chat_is_text(chat_value value, const char *text);

/* chat_written writes a value like Python's str(), chat_json like json.dumps(ensure_ascii=False); indent < 0: on one
 * line. */
chat_string chat_written(chat_run *run, chat_value value);
chat_string chat_json(chat_run *run, chat_value value, int indent);

/* A text to which more can be appended. */
typedef struct chat_out {
    char *data;
    unsigned char *marks;
    size_t length, room;
} chat_out;
void chat_put(chat_run *run, chat_out *out, chat_string text);
void chat_put_text(chat_run *run, chat_out *out, const char *text);
chat_string chat_put_end(const chat_out *out);

#endif
