/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares kernel source for a driver: resolves includes and inserts #line directives. */
#include "runtime/program/source.h"

#include "base/alloc.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/file.h"
#include "cl_embedded.h"
#include "runtime/program/declare.h"

#include <string.h>

enum { MAX_HEADERS = 32, MAX_DEPTH = 8, MAX_SOURCE_BYTES = 4 << 20 };

/* Some drivers print the number of Clang's warnings on standard error. Clang warns of every vector that a CPU cannot
 * pass in one register, which concerns only binary interfaces, which kernels do not have. It also warns of every loop
 * that it was asked to unroll and did not, which changes no result. */
static const char without_warnings[] = "#if defined(__clang__) && defined(__has_warning)\n"
                                       "#if __has_warning(\"-Wpsabi\")\n"
                                       "#pragma clang diagnostic ignored \"-Wpsabi\"\n"
                                       "#endif\n"
                                       "#if __has_warning(\"-Wpass-failed\")\n"
                                       "#pragma clang diagnostic ignored \"-Wpass-failed\"\n"
                                       "#endif\n"
                                       "#endif\n";

typedef struct expansion {
    clv_text *out;
    const char *seen[MAX_HEADERS]; /* names of the headers included so far */
    size_t seen_count;
    const char *directory; /* CLEAVE_CL_DIR or NULL */
} expansion;

static const char *developer_directory(void)
{
    return clv_environment("CLEAVE_CL_DIR");
}

static const clv_cl_source *find_header(const char *name, size_t length)
{
    for (const clv_cl_source *const *h = clv_cl_headers; *h; ++h)
        if (strlen((*h)->name) == length + 3 && memcmp((*h)->name + 3, name, length) == 0)
            return *h;
    return NULL;
}

/* Returns the quoted name of an include line, or NULL for any other line. */
static const char *included_name(const char *line, size_t length, size_t *name_length)
{
    const char *end = line + length;
    while (line < end && (*line == ' ' || *line == '\t'))
        ++line;
    if ((size_t)(end - line) < 10 || memcmp(line, "#include", 8) != 0) return NULL;
    const char *open = memchr(line, '"', (size_t)(end - line));
    if (!open) return NULL;
    const char *close = memchr(open + 1, '"', (size_t)(end - open - 1));
    if (!close) return NULL;
    *name_length = (size_t)(close - open - 1);
    return open + 1;
}

static clv_status expand(expansion *x, const clv_cl_source *source, int depth);

static clv_status include(expansion *x, const clv_cl_source *from, const char *name, size_t length,
                          int depth)
{
    const clv_cl_source *header = find_header(name, length);
    if (!header)
        return clv_fail(CLV_E_ARGUMENT, "%s: includes \"%.*s\", which the library does not have",
                        from->name, (int)length, name);
    for (size_t i = 0; i < x->seen_count; ++i)
        if (x->seen[i] == header->name) return CLV_OK;
    if (depth >= MAX_DEPTH || x->seen_count == MAX_HEADERS)
        return clv_fail(CLV_E_ARGUMENT, "%s: its includes are nested too deeply", from->name);
    x->seen[x->seen_count++] = header->name;
    return expand(x, header, depth + 1);
}

static clv_status expand(expansion *x, const clv_cl_source *source, int depth)
{
    char *from_disk = NULL;
    const char *text = source->text;
    size_t length = source->length;
    clv_status status = CLV_OK;
    if (x->directory && clv_starts_with(source->name, "cl/")) {
        clv_text path = { 0 };
        clv_text_add(&path, "%s/%s", x->directory, source->name + 3);
        status = clv_file_read_plain(clv_text_get(&path), MAX_SOURCE_BYTES, &from_disk, &length);
        clv_text_clear(&path);
        if (status) return status;
        text = from_disk;
    }

    clv_text_add(x->out, "#line 1 \"%s\"\n", source->name);
    size_t number = 1;
    for (const char *line = text, *end = text + length; line < end && !status; ++number) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const size_t span = newline ? (size_t)(newline - line) : (size_t)(end - line);
        size_t name_length;
        const char *name = included_name(line, span, &name_length);
        if (name) {
            status = include(x, source, name, name_length, depth);
            clv_text_add(x->out, "#line %zu \"%s\"\n", number + 1, source->name);
        } else {
            clv_text_bytes(x->out, line, span);
            clv_text_bytes(x->out, "\n", 1);
        }
        line += span + 1;
    }
    clv_free(from_disk);
    return status;
}

static clv_status declare_builtins(const clv_cl_source *source, const clv_text *program,
                                   clv_text *out)
{
    static const char file[] = "common/builtins.clh";
    const clv_cl_source *header = find_header(file, strlen(file));
    if (program->failed || !header) return CLV_OK;
    clv_declare_uses(header->text, clv_text_get(program), out);
    expansion x = { .out = out, .directory = developer_directory() };
    return include(&x, source, file, strlen(file), 0);
}

clv_status clv_source_resolve(const clv_cl_source *source, bool declare, clv_text *text)
{
    clv_text program = { 0 };
    expansion x = { .out = &program, .directory = developer_directory() };
    clv_text_add(text, "%s", without_warnings);
    clv_status status = expand(&x, source, 0);
    if (!status && declare) status = declare_builtins(source, &program, text);
    if (!status) clv_text_bytes(text, clv_text_get(&program), program.length);
    if (!status && (text->failed || program.failed))
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", source->name);
    clv_text_clear(&program);
    return status;
}
