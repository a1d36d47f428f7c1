/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out which built-in functions a program uses. */
#include "runtime/program/declare.h"

#include "base/alloc.h"

#include <string.h>

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Returns a copy with blanks in place of comments; NULL: no memory. */
static char *without_comments(const char *program)
{
    const size_t length = strlen(program);
    char *copy = clv_alloc(length + 1, 1);
    if (!copy) return NULL;
    memcpy(copy, program, length + 1);
    for (char *at = copy; *at;) {
        const bool line = at[0] == '/' && at[1] == '/', block = at[0] == '/' && at[1] == '*';
        const char *end = line ? strchr(at, '\n') : block ? strstr(at + 2, "*/") : at;
        if (!end) end = copy + length;
        if (block && *end) end += 2;
        for (; at < end; ++at)
            *at = ' ';
        if (!line && !block) ++at;
    }
    return copy;
}

static bool has_word(const char *program, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = program; (at = strstr(at, name)); at += length) {
        if (at > program && in_word(at[-1])) continue;
        const char *after = at + length;
        if (!in_word(*after) || !in_word(after[strspn(after, "0123456789")])) return true;
    }
    return false;
}

static void define_each(const char *header, const char *kind,
                        bool (*has)(const char *program, const char *name), const char *program,
                        clv_text *out)
{
    char begin[32] = "#ifdef ", name[64];
    strcat(begin, kind);
    for (const char *at = header; (at = strstr(at, begin));) {
        at += strlen(begin);
        const size_t length = strcspn(at, " \n");
        if (length >= sizeof name) continue;
        memcpy(name, at, length);
        name[length] = '\0';
        if (has(program, name)) clv_text_add(out, "#define %s%s\n", kind, name);
    }
}

static bool has_part(const char *program, const char *name)
{
    return strstr(program, name) != NULL;
}

void clv_declare_uses(const char *header, const char *program, clv_text *out)
{
    char *bare = without_comments(program);
    const char *text = bare ? bare : program;
    define_each(header, "CLV_USES_", has_word, text, out);
    define_each(header, "CLV_HAS_", has_part, text, out);
    clv_free(bare);
}
