/* SPDX-License-Identifier: Apache-2.0 */
/* Reads rules and pieces from tokenizer.json, or from vocab.txt with tokenizer_config.json. An unknown rule is an error
 * that names it, because ignoring it would change ids silently. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* what a BERT tokenizer has, whatever tokenizer.json says */
enum { BERT_WORD_CHARS = 100 };
#define BERT_TAIL_MARK "##"

clv_status clv_tokenizer_finish(clv_tokenizer *t, const char *what, const char *tail_mark)
{
    CLV_TRY(clv_pieces_finish(&t->pieces, what, tail_mark));
    for (size_t i = 0; i < t->special_count; ++i)
        if (t->specials[i].late) { /* the normal form of texts is required only for late tokens */
            t->normal[0] = (clv_normal){ .kind = CLV_NORMAL_BERT, .bert = t->flags };
            t->normal_count = 1;
        }
    CLV_TRY(clv_specials_finish(t, what));
    for (uint32_t c = 0; c < CLV_CHAR_TABLE; ++c)
        t->rules[c] = clv_char_rule(t->flags, c);
    return CLV_OK;
}

/* ---- tokenizer.json ------------------------------------------------------------------------ */

static clv_status take_normalizer(clv_tokenizer *t, const char *what, const clv_json *root)
{
    const clv_json *n = clv_json_get(root, "normalizer"), *type = clv_json_get(n, "type");
    if (strcmp(clv_json_string(type, ""), "BertNormalizer") != 0)
        return clv_tokenizer_refuse(what, "the type of the normalizer", type, "BertNormalizer");
    CLV_TRY(clv_tokenizer_take_bert(what, n, &t->written));
    if (!t->flags_given) t->flags = t->written;
    t->flags.lower |= t->lower_asked;
    const clv_json *split = clv_json_get(clv_json_get(root, "pre_tokenizer"), "type");
    if (strcmp(clv_json_string(split, ""), "BertPreTokenizer") != 0)
        return clv_tokenizer_refuse(what, "the type of the pre_tokenizer", split,
                                    "BertPreTokenizer");
    return CLV_OK;
}

static clv_status take_model(clv_tokenizer *t, const char *what, const clv_json *root,
                             const char **unk)
{
    const clv_json *model = clv_json_get(root, "model"), *type = clv_json_get(model, "type");
    int64_t chars;
    if (!clv_json_is_object(model)) return clv_tokenizer_refuse(what, "model", model, "an object");
    const bool piece =
        clv_json_is_string(type) && strcmp(clv_json_string(type, ""), "WordPiece") == 0;
    const clv_json *prefix = clv_json_get(model, "continuing_subword_prefix");
    if (piece && !clv_json_is_string(prefix))
        return clv_tokenizer_refuse(what, "continuing_subword_prefix of the model", prefix,
                                    "a text");
    if (strcmp(clv_json_string(type, "WordPiece"), "WordPiece") != 0 || !clv_json_is_string(prefix))
        return clv_tokenizer_refuse(what, "the type of the model", type,
                                    "WordPiece, BPE or Unigram");
    CLV_TRY(clv_folder_int(what, model, "max_input_chars_per_word", 1, CLV_WORD_CHARS_MAX,
                           BERT_WORD_CHARS, &chars));
    const char *mark = clv_json_string(clv_json_get(model, "continuing_subword_prefix"), "");
    t->max_word_chars = t->flags_given ? BERT_WORD_CHARS : (size_t)chars;
    if (t->flags_given && (chars != BERT_WORD_CHARS || strcmp(mark, BERT_TAIL_MARK) != 0))
        clv_log(CLV_LOG_WARN,
                "%s: max_input_chars_per_word is %d and continuing_subword_prefix is \"%.20s\"; "
                "Cleave uses %d and \"" BERT_TAIL_MARK
                "\", as transformers does for BERT tokenizers",
                what, (int)chars, mark, BERT_WORD_CHARS);
    *unk = clv_json_string(clv_json_get(model, "unk_token"), NULL);
    if (!*unk)
        return clv_tokenizer_refuse(what, "unk_token", clv_json_get(model, "unk_token"), "text");
    return clv_tokenizer_take_pieces(t, what, clv_json_get(model, "vocab"));
}

/* Adds an added token; a `late` one is searched for in the normal form of texts. */
static clv_status add_token(clv_tokenizer *t, const char *what, const char *text, int64_t id,
                            bool late)
{
    CLV_TRY(clv_tokenizer_add_special(t, what, text, id));
    for (size_t k = 0; k < t->special_count && late; ++k)
        if (t->specials[k].id == id) t->specials[k].late = true;
    return CLV_OK;
}

static clv_status take_added(clv_tokenizer *t, const char *what, const clv_json *list)
{
    for (size_t i = 0; i < clv_json_count(list); ++i) {
        const clv_json *token = clv_json_at(list, i);
        const char *text = clv_json_string(clv_json_get(token, "content"), NULL);
        bool single, late;
        int64_t id;
        if (!text)
            return clv_tokenizer_refuse(what, "the content of an added token",
                                        clv_json_get(token, "content"), "text");
        CLV_TRY(clv_folder_int(what, token, "id", 0, CLV_PIECE_ID_MAX, -1, &id));
        CLV_TRY(clv_tokenizer_flag(what, token, "single_word", false, &single));
        CLV_TRY(clv_tokenizer_flag(what, token, "normalized", false, &late));
        if (single)
            return clv_fail(CLV_E_FORMAT,
                            "%s: added token \"%.60s\" has single_word set, which is not supported",
                            what, text);
        /* lstrip and rstrip have no effect: white space beside a token makes no tokens */
        CLV_TRY(add_token(t, what, text, id, late));
    }
    return CLV_OK;
}

/* Reads the names of the tokens in [CLS] text [SEP] from the post_processor `p`, which states them in one of two
 * ways. */
static clv_status take_frame(const char *what, const clv_json *p, const char **cls,
                             const char **sep)
{
    const char *type = clv_json_string(clv_json_get(p, "type"), "");
    *cls = *sep = NULL;
    if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0) {
        *cls = clv_json_string(clv_json_at(clv_json_get(p, "cls"), 0), NULL);
        *sep = clv_json_string(clv_json_at(clv_json_get(p, "sep"), 0), NULL);
    } else if (strcmp(type, "TemplateProcessing") == 0) {
        const clv_json *single = clv_json_get(p, "single");
        const clv_json *first = clv_json_get(clv_json_at(single, 0), "SpecialToken");
        const clv_json *last = clv_json_get(clv_json_at(single, 2), "SpecialToken");
        if (clv_json_count(single) == 3 && clv_json_get(clv_json_at(single, 1), "Sequence")) {
            *cls = clv_json_string(clv_json_get(first, "id"), NULL);
            *sep = clv_json_string(clv_json_get(last, "id"), NULL);
        }
    } else {
        return clv_tokenizer_refuse(what, "the type of the post_processor", clv_json_get(p, "type"),
                                    "TemplateProcessing, BertProcessing or RobertaProcessing");
    }
    if (!*cls || !*sep)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the post_processor does not make [CLS] text [SEP], which is expected",
                        what);
    return CLV_OK;
}

static clv_status find_needed(const clv_tokenizer *t, const char *what, const char *name,
                              int32_t *out)
{
    *out = clv_pieces_find(&t->pieces, name, strlen(name));
    if (*out >= 0) return CLV_OK;
    return clv_fail(CLV_E_FORMAT, "%s: the vocabulary of %zu pieces has no \"%.60s\"", what,
                    t->pieces.ids, name);
}

/* Sets the tokens that are put around every text: [CLS] text [SEP]. */
static void frame(clv_tokenizer *t)
{
    t->before[0] = t->cls, t->after[0] = t->sep;
    t->before_count = t->after_count = 1;
    t->pairs = t->pair_types = true;
    t->bos = t->eos = -1;
}

static clv_status take_wordpiece(clv_tokenizer *t, const char *what, const clv_json *root)
{
    const clv_json *model = clv_json_get(root, "model");
    const char *unk = NULL, *cls, *sep;
    CLV_TRY(take_model(t, what, root, &unk));
    CLV_TRY(take_normalizer(t, what, root));
    CLV_TRY(take_added(t, what, clv_json_get(root, "added_tokens")));
    CLV_TRY(take_frame(what, clv_json_get(root, "post_processor"), &cls, &sep));
    const char *mark = clv_json_string(clv_json_get(model, "continuing_subword_prefix"), "");
    CLV_TRY(clv_tokenizer_finish(t, what, t->flags_given ? BERT_TAIL_MARK : mark));
    CLV_TRY(find_needed(t, what, unk, &t->unk));
    CLV_TRY(find_needed(t, what, cls, &t->cls));
    CLV_TRY(find_needed(t, what, sep, &t->sep));
    const bool bert = clv_pieces_find(&t->pieces, "[PAD]", 5) >= 0;
    t->pad = clv_pieces_find(&t->pieces, bert ? "[PAD]" : "<pad>", 5);
    t->mask = clv_pieces_find(&t->pieces, bert ? "[MASK]" : "<mask>", 6);
    frame(t);
    return CLV_OK;
}

/* Returns whether the model is BPE or Unigram. Old files do not name its type; their merges then decide. */
static bool is_staged(const clv_json *model)
{
    const char *guess = clv_json_get(model, "merges") ? "BPE" : "WordPiece";
    const char *type = clv_json_string(clv_json_get(model, "type"), guess);
    return strcmp(type, "BPE") == 0 || strcmp(type, "Unigram") == 0;
}

clv_status clv_tokenizer_from_json(clv_tokenizer *t, const char *what, const char *text,
                                   size_t length)
{
    clv_json *root;
    CLV_TRY(clv_json_parse(what, text, length, &root));
    const clv_json *cut = clv_json_get(root, "truncation");
    t->keep_end = strcmp(clv_json_string(clv_json_get(cut, "direction"), "Right"), "Left") == 0;
    const clv_json *padding = clv_json_get(root, "padding");
    t->pads_left =
        strcmp(clv_json_string(clv_json_get(padding, "direction"), "Right"), "Left") == 0;
    const clv_status status = is_staged(clv_json_get(root, "model"))
                                  ? clv_tokenizer_from_bpe_json(t, what, root)
                                  : take_wordpiece(t, what, root);
    if (!status) clv_tokenizer_take_pairs(t, clv_json_get(root, "post_processor"));
    clv_json_free(root);
    return status;
}

/* ---- vocab.txt ----------------------------------------------------------------------------- */

static clv_status take_lines(clv_tokenizer *t, const char *what, const char *text, size_t length)
{
    int64_t id = 0;
    for (size_t at = 0; at < length; ++id) {
        const char *line = text + at, *end = memchr(line, '\n', length - at);
        size_t used = end ? (size_t)(end - line) : length - at;
        at += used + 1;
        if (used && line[used - 1] == '\r') --used; /* a line end of Windows */
        CLV_TRY(clv_pieces_add(&t->pieces, what, line, used, id));
    }
    return CLV_OK;
}

/* Returns the text of a special token in tokenizer_config.json, which is a string, or an object that contains it;
 * `fallback` if there is none. */
static const char *named(const clv_json *config, const char *key, const char *fallback)
{
    const clv_json *value = clv_json_get(config, key);
    if (clv_json_is_object(value)) value = clv_json_get(value, "content");
    return clv_json_string(value, fallback);
}

/* Adds the tokens of `added_tokens_decoder`, whose members have ids as keys. Leaves out tokens that include spaces
 * around them, must be whole words or are normalised; open.c warns about them. */
static clv_status add_listed(clv_tokenizer *t, const char *what, const clv_json *list)
{
    for (const char *key = NULL; (key = clv_json_next_key(list, key));) {
        const clv_json *token = clv_json_get(list, key);
        const char *text = clv_json_string(clv_json_get(token, "content"), NULL);
        char *end;
        const long long id = strtoll(key, &end, 10);
        if (!text || *end || end == key || id < 0) continue;
        if (clv_json_bool(clv_json_get(token, "lstrip"), false) ||
            clv_json_bool(clv_json_get(token, "rstrip"), false) ||
            clv_json_bool(clv_json_get(token, "single_word"), false) ||
            clv_json_bool(clv_json_get(token, "normalized"), false))
            continue;
        CLV_TRY(clv_tokenizer_add_special(t, what, text, id));
    }
    return CLV_OK;
}

/* Adds the tokens of added_tokens.json, which old versions of transformers wrote. Like transformers, uses the ids in
 * the file only as an order: a token that is no piece of the vocabulary gets the next free id. */
static clv_status add_file(clv_tokenizer *t, const char *what, const clv_json *list)
{
    for (int64_t last = -1;;) { /* in the order of the ids in the file */
        const char *text = NULL;
        int64_t least = INT64_MAX;
        for (const char *key = NULL; (key = clv_json_next_key(list, key));) {
            const int64_t id = clv_json_int(clv_json_get(list, key), -1);
            if (id > last && id < least) text = key, least = id;
        }
        if (!text) return CLV_OK;
        last = least;
        bool known = false;
        for (size_t i = 0; i < t->special_count && !known; ++i)
            known = strcmp(t->specials[i].text, text) == 0;
        const int32_t id = clv_pieces_find(&t->pieces, text, strlen(text));
        if (!known) CLV_TRY(add_token(t, what, text, id < 0 ? (int64_t)t->pieces.ids : id, true));
    }
}

static clv_status apply_config(clv_tokenizer *t, const char *what, const char *config_name,
                               const clv_json *config, const clv_json *added)
{
    static const char *const keys[5] = { "unk_token", "cls_token", "sep_token", "pad_token",
                                         "mask_token" };
    static const char *const defaults[5] = { "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]" };
    int32_t *const ids[5] = { &t->unk, &t->cls, &t->sep, &t->pad, &t->mask };
    const char *kind = clv_json_string(clv_json_get(config, "tokenizer_class"), NULL);
    if (kind && t->class != CLV_CLASS_BERT)
        return clv_fail(CLV_E_FORMAT, "%s: tokenizer_class is %.60s, expected BertTokenizer",
                        config_name, kind);
    CLV_TRY(clv_tokenizer_flag(config_name, config, "do_lower_case", true, &t->flags.lower));
    CLV_TRY(clv_tokenizer_flag(config_name, config, "tokenize_chinese_chars", true, &t->flags.cjk));
    CLV_TRY(
        clv_tokenizer_flag(config_name, config, "strip_accents", t->flags.lower, &t->flags.strip));
    t->flags.lower |= t->lower_asked;
    CLV_TRY(clv_pieces_finish(&t->pieces, what, BERT_TAIL_MARK));
    for (int i = 0; i < 5; ++i) {
        const char *name = named(config, keys[i], defaults[i]);
        *ids[i] = clv_pieces_find(&t->pieces, name, strlen(name));
        if (*ids[i] >= 0)
            CLV_TRY(clv_tokenizer_add_special(t, what, name, *ids[i]));
        else if (i < 3)
            return clv_fail(CLV_E_FORMAT, "%s: the vocabulary of %zu pieces has no \"%.60s\"", what,
                            t->pieces.ids, name);
    }
    const clv_json *listed = clv_json_get(config, "added_tokens_decoder");
    CLV_TRY(listed ? add_listed(t, config_name, listed) : add_file(t, "added_tokens.json", added));
    clv_free(t->pieces.slots); /* clv_tokenizer_finish rebuilds it */
    t->pieces.slots = NULL;
    return clv_tokenizer_finish(t, what, BERT_TAIL_MARK);
}

clv_status clv_tokenizer_from_vocabulary(clv_tokenizer *t, const char *what, const char *text,
                                         size_t length, const char *config_name,
                                         const clv_json *config, const clv_json *added)
{
    t->max_word_chars = BERT_WORD_CHARS;
    clv_status status = take_lines(t, what, text, length);
    if (!status) status = apply_config(t, what, config_name ? config_name : what, config, added);
    frame(t);
    return status;
}
