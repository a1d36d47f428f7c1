/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tokenizer.json of models with byte pair encoding or Unigram. An unknown rule is an error that names it, because
 * ignoring it would change ids silently. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static bool is(const clv_json *object, const char *type)
{
    return strcmp(clv_json_string(clv_json_get(object, "type"), ""), type) == 0;
}

static clv_status refuse_type(const char *what, const char *part, const clv_json *object,
                              const char *expected)
{
    return clv_tokenizer_refuse(what, part, clv_json_get(object, "type"), expected);
}

/* ---- words --------------------------------------------------------------------------------------- */

static clv_status take_meta(const char *what, const clv_json *s, clv_split *out)
{
    bool old = true;
    const char *scheme = clv_json_string(clv_json_get(s, "prepend_scheme"), NULL);
    CLV_TRY(clv_tokenizer_take_mark(what, s, "replacement", false, out->mark));
    CLV_TRY(clv_tokenizer_flag(what, s, "add_prefix_space", true, &old));
    CLV_TRY(clv_tokenizer_flag(what, s, "split", true, &out->cuts));
    out->kind = CLV_SPLIT_META;
    out->prefix = scheme ? strcmp(scheme, "never") != 0 : old;
    out->first_only = scheme && strcmp(scheme, "first") == 0;
    return CLV_OK;
}

static clv_status take_pattern(const char *what, const clv_json *s, clv_split *out)
{
    const clv_json *pattern = clv_json_get(clv_json_get(s, "pattern"), "Regex");
    const char *behavior = clv_json_string(clv_json_get(s, "behavior"), "");
    const bool inverts = clv_json_bool(clv_json_get(s, "invert"), false);
    if (clv_json_is_string(pattern) && clv_split_of_pattern(clv_json_string(pattern, ""), out) &&
        (strcmp(behavior, inverts ? "Removed" : "Isolated") == 0))
        return CLV_OK;
    return clv_fail(
        CLV_E_FORMAT,
        "%s: the pre_tokenizer splits texts by \"%.200s\" (%.20s), which is not supported; "
        "supported are the expressions of GPT-2, Llama 3 and Qwen2 (Isolated)",
        what, clv_json_string(pattern, "no regular expression"), behavior);
}

static clv_status add_split(clv_tokenizer *t, const char *what, const clv_json *s)
{
    static const char gpt2[] =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    bool flag = false, prefix = false;
    if (t->split_count == CLV_STAGES_MAX)
        return clv_fail(CLV_E_FORMAT, "%s: there are more than %d pre_tokenizers", what,
                        CLV_STAGES_MAX);
    clv_split *out = &t->split[t->split_count];
    if (is(s, "ByteLevel")) {
        t->byte_level = true;
        CLV_TRY(clv_tokenizer_flag(what, s, "add_prefix_space", true, &prefix));
        CLV_TRY(clv_tokenizer_flag(what, s, "use_regex", true, &flag));
        if (!flag && !prefix) return CLV_OK;
        if (!flag)
            return clv_fail(CLV_E_FORMAT,
                            "%s: ByteLevel with add_prefix_space and without use_regex is not "
                            "supported",
                            what);
        clv_split_of_pattern(gpt2, out);
        out->prefix = prefix;
    } else if (is(s, "Digits")) {
        CLV_TRY(clv_tokenizer_flag(what, s, "individual_digits", false, &flag));
        *out = (clv_split){ .kind = CLV_SPLIT_NUMBERS, .most = flag };
    } else if (is(s, "Split")) {
        CLV_TRY(take_pattern(what, s, out));
    } else if (is(s, "Metaspace")) {
        CLV_TRY(take_meta(what, s, out));
    } else if (is(s, "WhitespaceSplit")) {
        *out = (clv_split){ .kind = CLV_SPLIT_SPACES };
    } else {
        return refuse_type(what, "the type of a pre_tokenizer", s,
                           "ByteLevel, Digits, Metaspace, WhitespaceSplit or Split");
    }
    ++t->split_count;
    return CLV_OK;
}

static clv_status take_splits(clv_tokenizer *t, const char *what, const clv_json *s)
{
    if (clv_folder_absent(s)) return CLV_OK;
    const clv_json *list = clv_json_get(s, "pretokenizers");
    if (!is(s, "Sequence")) CLV_TRY(add_split(t, what, s));
    for (size_t i = 0; is(s, "Sequence") && i < clv_json_count(list); ++i)
        CLV_TRY(add_split(t, what, clv_json_at(list, i)));
    /* stages that rewrite their text; only one is allowed, since all share one buffer */
    size_t writers = 0;
    for (size_t i = 0; i < t->split_count; ++i)
        writers += t->split[i].kind == CLV_SPLIT_META || t->split[i].prefix;
    if (writers > 1)
        return clv_fail(CLV_E_FORMAT, "%s: two pre_tokenizers add spaces to texts; only one may",
                        what);
    return CLV_OK;
}

/* ---- the model ----------------------------------------------------------------------------------- */

static clv_status take_merge(clv_tokenizer *t, const char *what, const clv_json *merge, size_t i,
                             size_t *skipped)
{
    const char *left =
        clv_json_string(clv_json_is_array(merge) ? clv_json_at(merge, 0) : merge, NULL);
    const char *right = clv_json_string(clv_json_at(merge, 1), NULL);
    size_t length = left ? strlen(left) : 0;
    if (clv_json_is_string(merge)) {
        const char *space = length ? strchr(left + 1, ' ') : NULL;
        if (space) length = (size_t)(space - left), right = space + 1;
    }
    if (!left || !right || !length || !*right)
        return clv_fail(CLV_E_FORMAT,
                        "%s: merge %zu is \"%.60s\", expected two pieces with a space between",
                        what, i, left ? left : clv_folder_kind(merge));
    return clv_bpe_merge_line(t, what, left, length, right, strlen(right), (uint32_t)i, skipped);
}

static clv_status take_merges(clv_tokenizer *t, const char *what, const clv_json *merges)
{
    const size_t count = clv_json_count(merges);
    size_t skipped = 0;
    if (!clv_json_is_array(merges) || count > CLV_PIECE_ID_MAX)
        return clv_tokenizer_refuse(what, "merges", merges, "a list of pairs");
    CLV_TRY(clv_bpe_make_merges(t, what, count));
    for (size_t i = 0; i < count; ++i)
        CLV_TRY(take_merge(t, what, clv_json_at(merges, i), i, &skipped));
    if (skipped)
        return clv_fail(CLV_E_FORMAT,
                        "%s: %zu of %zu merges name pieces that are not in the vocabulary", what,
                        skipped, count);
    return CLV_OK;
}

/* Fails if the model has options that change ids and are not supported. */
static clv_status refuse_more(const char *what, const clv_json *model)
{
    static const char *const texts[] = { "continuing_subword_prefix", "end_of_word_suffix" };
    for (size_t i = 0; i < CLV_LEN(texts); ++i) {
        const clv_json *value = clv_json_get(model, texts[i]);
        if (*clv_json_string(value, "")) return clv_tokenizer_refuse(what, texts[i], value, "none");
    }
    if (clv_json_number(clv_json_get(model, "dropout"), 0) > 0)
        return clv_fail(CLV_E_FORMAT, "%s: dropout is not 0, which is not supported", what);
    return CLV_OK;
}

static clv_status take_model(clv_tokenizer *t, const char *what, const clv_json *model)
{
    bool bytes;
    if (is(model, "Unigram")) return clv_tokenizer_take_unigram(t, what, model);
    CLV_TRY(refuse_more(what, model));
    CLV_TRY(clv_tokenizer_take_pieces(t, what, clv_json_get(model, "vocab")));
    CLV_TRY(clv_tokenizer_flag(what, model, "ignore_merges", false, &t->whole_words));
    CLV_TRY(clv_tokenizer_flag(what, model, "fuse_unk", false, &t->fuse_unknown));
    CLV_TRY(clv_tokenizer_flag(what, model, "byte_fallback", false, &bytes));
    t->bytes_as_hex = bytes;
    return CLV_OK;
}

/* ---- added tokens -------------------------------------------------------------------------------- */

static clv_status take_token(clv_tokenizer *t, const char *what, const clv_json *token)
{
    int64_t id;
    bool special, single, left, right, late;
    const char *text = clv_json_string(clv_json_get(token, "content"), NULL);
    if (!text || !*text)
        return clv_tokenizer_refuse(what, "the content of an added token",
                                    clv_json_get(token, "content"), "text");
    CLV_TRY(clv_folder_int(what, token, "id", 0, CLV_PIECE_ID_MAX, -1, &id));
    CLV_TRY(clv_tokenizer_flag(what, token, "special", false, &special));
    CLV_TRY(clv_tokenizer_flag(what, token, "single_word", false, &single));
    CLV_TRY(clv_tokenizer_flag(what, token, "lstrip", false, &left));
    CLV_TRY(clv_tokenizer_flag(what, token, "rstrip", false, &right));
    CLV_TRY(clv_tokenizer_flag(what, token, "normalized", false, &late));
    if (t->kind == CLV_TOKENIZER_UNIGRAM && (size_t)id >= t->pieces.ids)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the added token \"%.60s\" has the id %lld, but the vocabulary of a "
                        "Unigram model must "
                        "have every token, and this one has only %zu pieces",
                        what, text, (long long)id, t->pieces.ids);
    CLV_TRY(clv_tokenizer_add_special(t, what, text, id));
    for (size_t i = 0; i < t->special_count; ++i) {
        clv_special *s = &t->specials[i];
        if (s->id != id) continue;
        s->plain = !special, s->single_word = single, s->left = left, s->right = right;
        s->late = late;
    }
    return CLV_OK;
}

static clv_status take_types(clv_tokenizer *t, const char *what)
{
    t->types = clv_alloc(t->pieces.ids, 1);
    if (!t->types) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the vocabulary", what);
    for (size_t i = 0; i < t->pieces.ids; ++i)
        t->types[i] = clv_pieces_text(&t->pieces, (int32_t)i) ? CLV_TOKEN_NORMAL : CLV_TOKEN_NONE;
    for (size_t i = 0; i < t->special_count; ++i)
        t->types[t->specials[i].id] = t->specials[i].plain ? CLV_TOKEN_USER : CLV_TOKEN_CONTROL;
    return CLV_OK;
}

/* ---- what is put around a text ------------------------------------------------------------------- */

static clv_status add_id(const char *what, const clv_json *id, int32_t *out, size_t *count)
{
    const int64_t wanted = clv_json_int(id, -1);
    if (wanted < 0 || wanted > CLV_PIECE_ID_MAX)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the post_processor adds the id %lld, which the vocabulary does not "
                        "have",
                        what, (long long)wanted);
    out[(*count)++] = (int32_t)wanted;
    return CLV_OK;
}

static clv_status add_frame(const char *what, const clv_json *ids, int32_t *out, size_t *count)
{
    for (size_t i = 0; i < clv_json_count(ids); ++i) {
        if (*count == CLV_FRAME_MAX || !clv_json_is_int(clv_json_at(ids, i)))
            return clv_fail(
                CLV_E_FORMAT,
                "%s: the post_processor adds more than %d tokens, or something other than ids",
                what, CLV_FRAME_MAX);
        CLV_TRY(add_id(what, clv_json_at(ids, i), out, count));
    }
    return CLV_OK;
}

static clv_status take_template(clv_tokenizer *t, const char *what, const clv_json *p)
{
    const clv_json *single = clv_json_get(p, "single"), *tokens = clv_json_get(p, "special_tokens");
    bool behind = false;
    for (size_t i = 0; i < clv_json_count(single); ++i) {
        const clv_json *part = clv_json_at(single, i), *token = clv_json_get(part, "SpecialToken");
        if (clv_json_get(part, "Sequence")) {
            behind = true;
            continue;
        }
        const char *name = clv_json_string(clv_json_get(token, "id"), "");
        const clv_json *ids = clv_json_get(clv_json_get(tokens, name), "ids");
        if (!clv_json_count(ids))
            return clv_fail(CLV_E_FORMAT, "%s: the post_processor has no ids of \"%.60s\"", what,
                            name);
        CLV_TRY(add_frame(what, ids, behind ? t->after : t->before,
                          behind ? &t->after_count : &t->before_count));
    }
    return CLV_OK;
}

/* Appends to `out` the id in the member `key` of the post_processor `p`, a pair of a token and its id. */
static clv_status take_pair(const char *what, const clv_json *p, const char *key, int32_t *out,
                            size_t *count)
{
    const clv_json *pair = clv_json_get(p, key), *id = clv_json_at(pair, 1);
    if (*count == CLV_FRAME_MAX || !clv_json_is_int(id))
        return clv_fail(CLV_E_FORMAT,
                        "%s: the post_processor's %s is not a pair of a token and its id", what,
                        key);
    return add_id(what, id, out, count);
}

static clv_status take_frame(clv_tokenizer *t, const char *what, const clv_json *p)
{
    if (clv_folder_absent(p) || is(p, "ByteLevel")) return CLV_OK;
    if (is(p, "TemplateProcessing")) return take_template(t, what, p);
    if (is(p, "RobertaProcessing") || is(p, "BertProcessing")) {
        CLV_TRY(take_pair(what, p, "cls", t->before, &t->before_count));
        return take_pair(what, p, "sep", t->after, &t->after_count);
    }
    if (!is(p, "Sequence"))
        return refuse_type(what, "the type of the post_processor", p,
                           "ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing or "
                           "a Sequence of them");
    const clv_json *list = clv_json_get(p, "processors");
    for (size_t i = 0; i < clv_json_count(list); ++i) {
        const clv_json *part = clv_json_at(list, i);
        if (is(part, "Sequence")) return refuse_type(what, "a post_processor", part, "no Sequence");
        CLV_TRY(take_frame(t, what, part));
    }
    return CLV_OK;
}

static clv_status check_frame(const clv_tokenizer *t, const char *what)
{
    for (size_t i = 0; i < t->before_count + t->after_count; ++i) {
        const int32_t id = i < t->before_count ? t->before[i] : t->after[i - t->before_count];
        if (!clv_pieces_text(&t->pieces, id))
            return clv_fail(CLV_E_FORMAT,
                            "%s: the post_processor adds the id %d, which the vocabulary does not "
                            "have",
                            what, (int)id);
    }
    return CLV_OK;
}

/* Returns whether decoding removes a leading space from a text. */
static bool strips_first(const clv_json *decoder)
{
    const clv_json *list = clv_json_get(decoder, "decoders");
    if (is(decoder, "Metaspace")) return true;
    for (size_t i = 0; i < clv_json_count(list); ++i)
        if (is(clv_json_at(list, i), "Strip")) return true;
    return false;
}

clv_status clv_tokenizer_from_bpe_json(clv_tokenizer *t, const char *what, const clv_json *root)
{
    const clv_json *model = clv_json_get(root, "model"),
                   *added = clv_json_get(root, "added_tokens");
    t->kind = CLV_TOKENIZER_BPE;
    t->unk = t->cls = t->sep = t->pad = t->mask = t->bos = t->eos = -1;
    CLV_TRY(take_model(t, what, model));
    CLV_TRY(clv_tokenizer_take_normalizer(t, what, clv_json_get(root, "normalizer")));
    CLV_TRY(take_splits(t, what, clv_json_get(root, "pre_tokenizer")));
    clv_tokenizer_apply_class(t, what);
    for (size_t i = 0; i < clv_json_count(added); ++i)
        CLV_TRY(take_token(t, what, clv_json_at(added, i)));
    CLV_TRY(take_types(t, what));
    CLV_TRY(clv_bpe_finish(t, what));
    if (t->kind == CLV_TOKENIZER_BPE) CLV_TRY(take_merges(t, what, clv_json_get(model, "merges")));
    CLV_TRY(take_frame(t, what, clv_json_get(root, "post_processor")));
    CLV_TRY(check_frame(t, what));
    const char *unk = clv_json_string(clv_json_get(model, "unk_token"), NULL);
    if (unk && t->kind == CLV_TOKENIZER_BPE) t->unk = clv_pieces_find(&t->pieces, unk, strlen(unk));
    t->strip_first = strips_first(clv_json_get(root, "decoder"));
    return CLV_OK;
}
