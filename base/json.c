/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps JSON values of jansson, which only this file includes. A clv_json points to a json_t. */
#include "base/json.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/thread.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *raw(const clv_json *value)
{
    return (json_t *)(uintptr_t)value; /* jansson's readers take const, its writers do not */
}

static clv_json *wrap(json_t *value)
{
    return (clv_json *)value;
}

/* ---- out of memory ------------------------------------------------------------------------------ */

/* Objects and arrays to which something could not be added for lack of memory. A tree that contains one of them gives
 * no text. When the list is full, only its count grows. Then the list is never emptied again, and no tree gives a
 * text any more. */
enum { MOST_LACKING = 64 };
static struct {
    clv_mutex lock;
    atomic_size_t count;
    const json_t *at[MOST_LACKING]; /* the first ones, each of them once */
} lacking = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Returns the node's position in the list, or SIZE_MAX. The lock is held. */
static size_t place_of(const json_t *node)
{
    const size_t count = CLV_MIN(atomic_load(&lacking.count), (size_t)MOST_LACKING);
    size_t i = 0;
    while (i < count && lacking.at[i] != node)
        ++i;
    return i < count ? i : SIZE_MAX;
}

static void note_lack(const json_t *node)
{
    if (!node) return; /* a tree without a root has no text in any case */
    pthread_mutex_lock(&lacking.lock);
    const size_t count = atomic_load(&lacking.count);
    if (place_of(node) == SIZE_MAX) {
        if (count < MOST_LACKING) lacking.at[count] = node;
        atomic_store(&lacking.count, count + 1);
    }
    pthread_mutex_unlock(&lacking.lock);
}

/* Tells whether the tree lacks something; `forget` removes its entries from the list. The lock is held. */
static bool lacks(json_t *tree, bool forget)
{
    const size_t at = place_of(tree), count = atomic_load(&lacking.count);
    bool found = at != SIZE_MAX || count > MOST_LACKING;
    if (at != SIZE_MAX && forget && count <= MOST_LACKING) {
        lacking.at[at] = lacking.at[count - 1];
        atomic_store(&lacking.count, count - 1);
    }
    const char *key;
    size_t i;
    json_t *child;
    json_object_foreach(tree, key, child) found |= lacks(child, forget);
    json_array_foreach(tree, i, child) found |= lacks(child, forget);
    return found;
}

static bool look_for_lack(json_t *tree, bool forget)
{
    if (!tree || !atomic_load(&lacking.count)) return false;
    pthread_mutex_lock(&lacking.lock);
    const bool found = lacks(tree, forget);
    pthread_mutex_unlock(&lacking.lock);
    return found;
}

/* ---- building ------------------------------------------------------------------------------------ */

static clv_json *put(clv_json *parent, const char *key, json_t *child)
{
    errno = child ? 0 : errno;
    const int failed = key ? json_object_set_new(raw(parent), key, child)
                           : json_array_append_new(raw(parent), child);
    if (!failed) return wrap(child);
    if (errno == ENOMEM) note_lack(raw(parent));
    return NULL; /* a failed set has released the child */
}

clv_json *clv_json_object(void)
{
    return wrap(json_object());
}

clv_json *clv_json_array(void)
{
    return wrap(json_array());
}

void clv_json_free(clv_json *root)
{
    look_for_lack(raw(root), true);
    json_decref(raw(root));
}

clv_json *clv_json_add_object(clv_json *parent, const char *key)
{
    return put(parent, key, json_object());
}

clv_json *clv_json_add_array(clv_json *parent, const char *key)
{
    return put(parent, key, json_array());
}

void clv_json_add_string(clv_json *parent, const char *key, const char *value)
{
    if (!value) {
        clv_json_add_null(parent, key);
        return;
    }
    json_t *text = json_string(value);
    if (!text) { /* not UTF-8, from a driver: keep its ASCII characters */
        char *ascii = strdup(value);
        for (char *c = ascii; c && *c; ++c)
            if ((unsigned char)*c >= 0x80) *c = '?';
        text = ascii ? json_string(ascii) : NULL;
        free(ascii);
    }
    put(parent, key, text);
}

void clv_json_add_number(clv_json *parent, const char *key, double value)
{
    put(parent, key, isfinite(value) ? json_real(value) : json_null());
}

void clv_json_add_int(clv_json *parent, const char *key, int64_t value)
{
    put(parent, key, json_integer(value));
}

void clv_json_add_bytes(clv_json *parent, const char *key, uint64_t value)
{
    if (value <= (uint64_t)1 << 53) {
        clv_json_add_int(parent, key, (int64_t)value);
        return;
    }
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    clv_json_add_string(parent, key, digits);
}

void clv_json_add_bool(clv_json *parent, const char *key, bool value)
{
    put(parent, key, json_boolean(value));
}

void clv_json_add_null(clv_json *parent, const char *key)
{
    put(parent, key, json_null());
}

void clv_json_add(clv_json *parent, const char *key, clv_json *child)
{
    if (look_for_lack(raw(child), true)) note_lack(raw(parent)); /* `put` may free the child */
    put(parent, key, raw(child));
}

void clv_json_add_copy(clv_json *parent, const char *key, const clv_json *child)
{
    json_t *copy = child ? json_deep_copy(raw(child)) : json_null();
    if (look_for_lack(raw(child), false) || (child && !json_equal(copy, raw(child))))
        note_lack(raw(parent)); /* jansson leaves out parts for which it has no memory */
    put(parent, key, copy);
}

static int add_part(const char *part, size_t length, void *text)
{
    clv_text_bytes(text, part, length);
    return ((clv_text *)text)->failed ? -1 : 0;
}

/* Jansson does not notice when there is no memory for the quote after a key, and reports success; `text.failed` shows
 * this case. */
char *clv_json_text(const clv_json *root, bool compact)
{
    clv_text text = { 0 };
    if (look_for_lack(raw(root), false)) return NULL;
    /* 12 digits: more would print the binary tail of every measured time */
    const size_t how =
        (compact ? JSON_COMPACT : JSON_INDENT(2)) | JSON_REAL_PRECISION(12) | JSON_ENCODE_ANY;
    if (json_dump_callback(raw(root), add_part, &text, how) || text.failed) clv_text_clear(&text);
    return text.data;
}

void clv_json_text_free(char *text)
{
    free(text);
}

clv_status clv_json_write(const clv_json *root, const char *path)
{
    char *text = clv_json_text(root, false);
    if (!text) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the JSON text", path);
    const size_t length = strlen(text);
    text[length] = '\n'; /* replaces the terminator: the text is written by length */
    const clv_status status = clv_file_write(path, text, length + 1);
    free(text);
    return status;
}

clv_status clv_json_parse(const char *what, const char *text, size_t length, clv_json **root)
{
    json_error_t error;
    *root = NULL;
    json_t *value = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    /* the parser has no text for an allocation that failed within it */
    if (!value && (json_error_code(&error) == json_error_out_of_memory || !*error.text))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory to read its JSON", what);
    if (!value)
        return clv_fail(CLV_E_FORMAT, "%s is not valid JSON: line %d, column %d: %s", what,
                        error.line, error.column, error.text);
    *root = wrap(value);
    return CLV_OK;
}

/* Appends ".0" to every whole number of 18 digits or more, which makes it a floating-point number. */
static void spell_as_real(const char *text, size_t length, clv_text *out)
{
    enum { MANY = 18 };
    bool quoted = false;
    size_t digits = 0;
    char before = ' '; /* what stands in front of the digits */
    for (size_t i = 0; i < length; ++i) {
        const char c = text[i];
        const bool digit = !quoted && c >= '0' && c <= '9';
        const bool goes_on = c == '.' || c == 'e' || c == 'E';
        const bool part = before == '.' || before == 'e' || before == 'E' || before == '+';
        if (digits >= MANY && !digit && !goes_on && !part) clv_text_add(out, ".0");
        clv_text_bytes(out, &c, 1);
        if (quoted && c == '\\' && i + 1 < length)
            clv_text_bytes(out, &text[++i], 1);
        else if (c == '"')
            quoted = !quoted;
        digits = digit ? digits + 1 : 0;
        if (!digit && c != '-') before = c;
    }
}

clv_status clv_json_parse_large(const char *what, const char *text, size_t length, clv_json **root)
{
    json_error_t error;
    json_t *value = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    *root = wrap(value);
    if (value) return CLV_OK;
    if (json_error_code(&error) != json_error_numeric_overflow)
        return clv_json_parse(what, text, length, root);
    clv_text real = { 0 };
    spell_as_real(text, length, &real);
    const clv_status status =
        real.failed ? clv_fail(CLV_E_MEMORY, "%s: not enough memory for its text", what)
                    : clv_json_parse(what, clv_text_get(&real), real.length, root);
    clv_text_clear(&real);
    return status;
}

const clv_json *clv_json_get(const clv_json *object, const char *key)
{
    return wrap(json_object_get(raw(object), key));
}

size_t clv_json_count(const clv_json *value)
{
    return json_is_object(raw(value)) ? json_object_size(raw(value)) : json_array_size(raw(value));
}

const clv_json *clv_json_at(const clv_json *array, size_t index)
{
    return wrap(json_array_get(raw(array), index));
}

const char *clv_json_next_key(const clv_json *object, const char *previous)
{
    json_t *o = raw(object);
    if (!json_is_object(o)) return NULL;
    void *it = previous ? json_object_iter_next(o, json_object_key_to_iter(previous))
                        : json_object_iter(o);
    return it ? json_object_iter_key(it) : NULL;
}

bool clv_json_is_object(const clv_json *value)
{
    return json_is_object(raw(value));
}

bool clv_json_is_array(const clv_json *value)
{
    return json_is_array(raw(value));
}

bool clv_json_is_string(const clv_json *value)
{
    return json_is_string(raw(value));
}

bool clv_json_is_number(const clv_json *value)
{
    return json_is_number(raw(value));
}

bool clv_json_is_int(const clv_json *value)
{
    return json_is_integer(raw(value));
}

bool clv_json_is_bool(const clv_json *value)
{
    return json_is_boolean(raw(value));
}

const char *clv_json_string(const clv_json *value, const char *fallback)
{
    return json_is_string(raw(value)) ? json_string_value(raw(value)) : fallback;
}

double clv_json_number(const clv_json *value, double fallback)
{
    return json_is_number(raw(value)) ? json_number_value(raw(value)) : fallback;
}

int64_t clv_json_int(const clv_json *value, int64_t fallback)
{
    return json_is_integer(raw(value)) ? json_integer_value(raw(value)) : fallback;
}

bool clv_json_bool(const clv_json *value, bool fallback)
{
    return json_is_boolean(raw(value)) ? json_is_true(raw(value)) : fallback;
}
