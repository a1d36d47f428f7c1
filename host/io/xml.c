/* SPDX-License-Identifier: Apache-2.0 */
/* Removes what is no element from XML, and decodes the values of attributes. */
#include "host/io/xml.h"

#include "base/alloc.h"
#include "base/unicode.h"

#include <string.h>

static bool begins(const char *at, const char *end, const char *with)
{
    const size_t length = strlen(with);
    return (size_t)(end - at) >= length && memcmp(at, with, length) == 0;
}

void clv_xml_blank(char *text, size_t length)
{
    static const char *const parts[][2] = { { "<!--", "-->" }, { "<![CDATA[", "]]>" } };
    char *at = text, *const end = text + length;
    while ((at = memchr(at, '<', (size_t)(end - at)))) {
        const char *close = NULL;
        for (size_t i = 0; i < CLV_LEN(parts) && !close; ++i)
            if (begins(at, end, parts[i][0])) close = parts[i][1];
        if (!close) {
            ++at;
            continue;
        }
        while (at < end && !begins(at, end, close)) {
            if (*at != '\n') *at = ' ';
            ++at;
        }
        for (size_t i = 0; at < end && i < strlen(close); ++i)
            *at++ = ' ';
    }
}

/* Reads the reference to a character at `at`; returns its length, or 0 if it is none that XML allows. */
static size_t read_reference(const char *at, const char *end, uint32_t *c)
{
    const char *const begin = at;
    if (!begins(at, end, "&#")) return 0;
    at += 2;
    const uint32_t base = at < end && *at == 'x' ? 16 : 10;
    at += base == 16;
    const char *const digits = at;
    *c = 0;
    for (; at < end && *at != ';'; ++at) {
        static const char known[] = "0123456789abcdef";
        const char *digit = memchr(known, *at >= 'A' && *at <= 'F' ? *at | 0x20 : *at, base);
        if (!digit || *c > 0x10FFFF) return 0;
        *c = *c * base + (uint32_t)(digit - known);
    }
    if (at == digits || at == end || !*c || *c > 0x10FFFF || (*c >= 0xD800 && *c <= 0xDFFF))
        return 0;
    return (size_t)(at + 1 - begin);
}

void clv_xml_decode(const char *value, size_t length, clv_text *out)
{
    static const struct {
        const char *name, *text;
    } entities[] = {
        { "&amp;", "&" }, { "&lt;", "<" }, { "&gt;", ">" }, { "&quot;", "\"" }, { "&apos;", "'" }
    };
    const char *const end = value + length;
    for (const char *at = value; at < end;) {
        uint32_t c;
        char bytes[4];
        size_t step = read_reference(at, end, &c);
        if (step) clv_text_bytes(out, bytes, clv_utf8_encode(c, bytes));
        for (size_t e = 0; e < CLV_LEN(entities) && !step; ++e)
            if (begins(at, end, entities[e].name)) {
                clv_text_bytes(out, entities[e].text, 1);
                step = strlen(entities[e].name);
            }
        if (!step) clv_text_bytes(out, at, step = 1);
        at += step;
    }
}
