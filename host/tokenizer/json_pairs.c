/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from the post_processor of tokenizer.json how a pair of texts becomes one row of tokens. */
#include "host/tokenizer/tokenizer.h"

#include "base/json.h"

#include <string.h>

/* Returns whether a part of a template is the special token `name`, or, if `name` is NULL, the sequence `letter`. *type
 * is the part's type_id. */
static bool is_part(const clv_json *part, const char *name, char letter, int64_t *type)
{
    const char sequence[2] = { letter, '\0' };
    const clv_json *is = clv_json_get(part, name ? "SpecialToken" : "Sequence");
    *type = clv_json_int(clv_json_get(is, "type_id"), -1);
    return strcmp(clv_json_string(clv_json_get(is, "id"), ""), name ? name : sequence) == 0;
}

/* Returns whether a template has the given form, such as "CASBS": C and S stand for the tokens that begin and end a
 * text, A and B for the texts. *typed is whether B and the parts after it are of type 1, and the parts before B of type
 * 0. */
static bool has_form(const clv_json *pair, const char *form, const char *cls, const char *sep,
                     bool *typed)
{
    int64_t wanted = 0, type;
    *typed = true;
    if (clv_json_count(pair) != strlen(form)) return false;
    for (size_t i = 0; form[i]; ++i) {
        const char *name = form[i] == 'C' ? cls : form[i] == 'S' ? sep : NULL;
        if (form[i] == 'B') wanted = 1;
        if (!is_part(clv_json_at(pair, i), name, form[i], &type)) return false;
        *typed &= type == wanted;
    }
    return true;
}

void clv_tokenizer_take_pairs(clv_tokenizer *t, const clv_json *p)
{
    const char *type = clv_json_string(clv_json_get(p, "type"), "");
    const clv_json *list = clv_json_get(p, "processors"), *pair = clv_json_get(p, "pair");
    bool typed;
    t->pairs = t->pair_types = t->double_pairs = false;
    if (t->before_count != 1 || t->after_count != 1) return;
    for (size_t i = 0; !strcmp(type, "Sequence") && i < clv_json_count(list); ++i) {
        /* only one of the processors adds tokens; see json_bpe.c */
        const clv_json *part = clv_json_at(list, i);
        const char *kind = clv_json_string(clv_json_get(part, "type"), "");
        if (strcmp(kind, "ByteLevel") != 0 && strcmp(kind, "Sequence") != 0) {
            clv_tokenizer_take_pairs(t, part);
            return;
        }
    }
    const char *cls = clv_pieces_text(&t->pieces, t->before[0]);
    const char *sep = clv_pieces_text(&t->pieces, t->after[0]);
    if (!cls || !sep) return;
    if (strcmp(type, "BertProcessing") == 0) {
        t->pairs = t->pair_types = true;
    } else if (strcmp(type, "RobertaProcessing") == 0) {
        t->double_pairs = true;
    } else if (strcmp(type, "TemplateProcessing") == 0) {
        t->double_pairs = has_form(pair, "CASSBS", cls, sep, &typed);
        t->pairs = has_form(pair, "CASBS", cls, sep, &typed);
        t->pair_types = t->pairs && typed;
    }
}
