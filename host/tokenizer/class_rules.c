/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of tokenizer classes. The transformers library makes some tokenizers from the vocabulary in tokenizer.json
 * and from tokenizer_config.json, and ignores the normalizer and the pre_tokenizer of tokenizer.json. Cleave does the
 * same, so that the ids agree. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/log.h"

#include <string.h>

enum { ANY = -1 };

/* The classes that transformers has for the supported families, and the kind of model that each of them needs. */
static const struct {
    const char *name, *model_type; /* model_type: the family that uses the class by default */
    clv_tokenizer_class class;
    int kind; /* clv_tokenizer_kind, or ANY */
} classes[] = {
    { "BertTokenizer", "bert", CLV_CLASS_BERT, CLV_TOKENIZER_WORDPIECE },
    { "DistilBertTokenizer", "distilbert", CLV_CLASS_BERT, CLV_TOKENIZER_WORDPIECE },
    { "ElectraTokenizer", "electra", CLV_CLASS_BERT, CLV_TOKENIZER_WORDPIECE },
    { "MPNetTokenizer", "mpnet", CLV_CLASS_BERT, CLV_TOKENIZER_WORDPIECE },
    { "RobertaTokenizer", "roberta", CLV_CLASS_ROBERTA, CLV_TOKENIZER_BPE },
    { "XLMRobertaTokenizer", "xlm-roberta", CLV_CLASS_XLM_ROBERTA, CLV_TOKENIZER_UNIGRAM },
    { "AlbertTokenizer", "albert", CLV_CLASS_ALBERT, CLV_TOKENIZER_UNIGRAM },
    { "PreTrainedTokenizer", "", CLV_CLASS_FILE, ANY },
    { "TokenizersBackend", "", CLV_CLASS_FILE, ANY },
};

/* Returns whether `name` is the class `class`, or the old name of the same class, which ends in "Fast". */
static bool is_class(const char *name, const char *class)
{
    const size_t length = strlen(class);
    return strncmp(name, class, length) == 0 &&
           (!name[length] || strcmp(name + length, "Fast") == 0);
}

/* Returns the class that the folder's files name; NULL: none. */
static const char *class_named(const clv_json *model, const clv_json *config)
{
    const char *name = clv_json_string(clv_json_get(model, "tokenizer_class"), NULL);
    return clv_json_string(clv_json_get(config, "tokenizer_class"), name);
}

void clv_tokenizer_find_class(clv_tokenizer *t, const clv_json *model, const clv_json *config)
{
    const char *type = clv_json_string(clv_json_get(model, "model_type"), "");
    const char *name = class_named(model, config);
    t->class = CLV_CLASS_OTHER;
    for (size_t i = 0; i < CLV_LEN(classes); ++i)
        if (name ? is_class(name, classes[i].name)
                 : *type && strcmp(type, classes[i].model_type) == 0)
            t->class = classes[i].class;
    const bool prefix = t->class != CLV_CLASS_ROBERTA;
    t->class_prefix = clv_json_bool(clv_json_get(config, "add_prefix_space"), prefix);
    t->class_lower = clv_json_bool(clv_json_get(config, "do_lower_case"), true);
    t->class_accents = clv_json_bool(clv_json_get(config, "keep_accents"), false);
}

/* Sets *id to the token that `config` names as `key`; transformers uses it in place of that in tokenizer.json. */
static clv_status take_token(const clv_tokenizer *t, const char *folder, const clv_json *config,
                             const char *key, int32_t *id)
{
    const clv_json *value = clv_json_get(config, key);
    if (clv_json_is_object(value)) value = clv_json_get(value, "content");
    const char *text = clv_json_string(value, NULL);
    if (!text) return CLV_OK;
    *id = clv_pieces_find(&t->pieces, text, strlen(text));
    if (*id >= 0) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "%s/tokenizer_config.json: %s is \"%.60s\", which the vocabulary does not have",
                    folder, key, text);
}

/* Sets the tokens around a text to those that `config` names. */
static clv_status take_frame(clv_tokenizer *t, const char *folder, const clv_json *config)
{
    const bool bert = t->class == CLV_CLASS_BERT, albert = t->class == CLV_CLASS_ALBERT;
    const bool begins = t->class == CLV_CLASS_XLM_ROBERTA;
    if (t->class < CLV_CLASS_BERT || (albert && t->before_count + t->after_count)) return CLV_OK;
    if (!bert) { /* what the class puts around a text if no file names the tokens */
        t->before[0] = clv_pieces_find(&t->pieces, albert ? "[CLS]" : "<s>", albert ? 5 : 3);
        t->after[0] = clv_pieces_find(&t->pieces, albert ? "[SEP]" : "</s>", albert ? 5 : 4);
        t->before_count = t->after_count = 1;
        t->double_pairs = !albert, t->pairs = t->pair_types = albert;
    }
    CLV_TRY(take_token(t, folder, config, begins ? "bos_token" : "cls_token", t->before));
    CLV_TRY(take_token(t, folder, config, begins ? "eos_token" : "sep_token", t->after));
    if (t->before[0] < 0 || t->after[0] < 0)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the vocabulary does not have the tokens that begin and end a text",
                        folder);
    if (!bert) return CLV_OK;
    t->cls = t->before[0], t->sep = t->after[0];
    return take_token(t, folder, config, "unk_token", &t->unk);
}

clv_status clv_tokenizer_check_class(clv_tokenizer *t, const char *folder, const clv_json *model,
                                     const clv_json *config)
{
    const char *type = clv_json_string(clv_json_get(model, "model_type"), "");
    const char *name = class_named(model, config);
    bool encoder = false, known = !name;
    for (size_t i = 0; i < CLV_LEN(classes); ++i)
        encoder = encoder || (*type && strcmp(type, classes[i].model_type) == 0);
    if (!encoder) return CLV_OK; /* language models have classes of their own */
    for (size_t i = 0; i < CLV_LEN(classes) && !known; ++i) {
        known = is_class(name, classes[i].name);
        if (known && classes[i].kind != ANY && classes[i].kind != (int)t->kind)
            return clv_fail(CLV_E_FORMAT,
                            "%s: the files name the tokenizer class %.60s, but the tokenizer's "
                            "model is %s, which this class does not read",
                            folder, name,
                            t->kind == CLV_TOKENIZER_WORDPIECE ? "WordPiece"
                            : t->kind == CLV_TOKENIZER_BPE     ? "BPE"
                                                               : "Unigram");
    }
    if (!known && !clv_folder_has(folder, "tokenizer.json"))
        return clv_fail(CLV_E_FORMAT,
                        "%s: the files name the tokenizer class %.60s, which Cleave does not know",
                        folder, name);
    if (!known)
        clv_log(CLV_LOG_WARN,
                "%s: Cleave does not know the tokenizer class %.60s, and follows tokenizer.json; "
                "if transformers has a class of this name, it may split texts otherwise",
                folder, name);
    return take_frame(t, folder, config);
}

/* ---- applying the rules -------------------------------------------------------------------------- */

static void add_normal(clv_tokenizer *t, clv_normal_kind kind, const char *from, const char *to)
{
    clv_normal *n = &t->normal[t->normal_count++];
    *n = (clv_normal){ .kind = kind };
    memcpy(n->from, from, strlen(from) + 1);
    memcpy(n->to, to, strlen(to) + 1);
}

static void set_normals(clv_tokenizer *t)
{
    t->normal_count = 0;
    if (t->lower_asked) add_normal(t, CLV_NORMAL_LOWER, "", "");
    if (t->class == CLV_CLASS_ALBERT) {
        add_normal(t, CLV_NORMAL_REPLACE, "``", "\"");
        add_normal(t, CLV_NORMAL_REPLACE, "''", "\"");
        if (!t->class_accents) {
            add_normal(t, CLV_NORMAL_NFKD, "", "");
            add_normal(t, CLV_NORMAL_ACCENTS, "", "");
        }
        if (t->class_lower) add_normal(t, CLV_NORMAL_LOWER, "", "");
    }
    if (t->charsmap.units) add_normal(t, CLV_NORMAL_CHARSMAP, "", "");
}

static void set_splits(clv_tokenizer *t)
{
    if (t->class == CLV_CLASS_ROBERTA) {
        t->split[0] =
            (clv_split){ .kind = CLV_SPLIT_WORDS, .contractions = true, .prefix = t->class_prefix };
        t->split_count = 1;
        t->byte_level = true;
        return;
    }
    t->split[0] = (clv_split){ .kind = CLV_SPLIT_SPACES };
    t->split[1] = (clv_split){
        .kind = CLV_SPLIT_META, .prefix = t->class_prefix, .cuts = true, .mark = "\xE2\x96\x81"
    };
    t->split_count = 2;
}

/* Copies to `out` the normalizers that have an effect; returns their number. Runs of spaces need no replacement if
 * texts are split at spaces. */
static size_t effective(const clv_tokenizer *t, clv_normal out[CLV_STAGES_MAX])
{
    size_t count = 0;
    const bool splits = t->split_count && t->split[0].kind == CLV_SPLIT_SPACES;
    for (size_t i = 0; i < t->normal_count; ++i)
        if (!splits || t->normal[i].kind != CLV_NORMAL_SPACES || strcmp(t->normal[i].to, " ") != 0)
            out[count++] = t->normal[i];
    return count;
}

/* Returns whether two tokenizers have the same normalizers and the same pre_tokenizers. */
static bool same_rules(const clv_tokenizer *a, const clv_tokenizer *b)
{
    clv_normal left[CLV_STAGES_MAX], right[CLV_STAGES_MAX];
    const size_t count = effective(a, left);
    bool same = count == effective(b, right) && a->split_count == b->split_count &&
                a->byte_level == b->byte_level;
    for (size_t i = 0; same && i < count; ++i)
        same = left[i].kind == right[i].kind && strcmp(left[i].from, right[i].from) == 0 &&
               strcmp(left[i].to, right[i].to) == 0;
    for (size_t i = 0; same && i < a->split_count; ++i) {
        const clv_split *x = &a->split[i], *y = &b->split[i];
        same = x->kind == y->kind && x->prefix == y->prefix && x->first_only == y->first_only &&
               x->cuts == y->cuts && x->contractions == y->contractions && x->most == y->most &&
               x->any_case == y->any_case && x->any_lead == y->any_lead && x->lines == y->lines &&
               strcmp(x->mark, y->mark) == 0;
    }
    return same;
}

void clv_tokenizer_apply_class(clv_tokenizer *t, const char *what)
{
    const bool bytes = t->class == CLV_CLASS_ROBERTA;
    const clv_tokenizer_kind kind = bytes ? CLV_TOKENIZER_BPE : CLV_TOKENIZER_UNIGRAM;
    const clv_tokenizer file = *t;
    if (t->class < CLV_CLASS_ROBERTA || t->kind != kind) return;
    set_normals(t);
    set_splits(t);
    t->whole_words = t->bytes_as_hex = false;
    if (!bytes) t->unk = t->class == CLV_CLASS_ALBERT ? 1 : 3;
    for (size_t i = 0; i < CLV_LEN(classes) && !same_rules(t, &file); ++i)
        if (classes[i].class == t->class)
            clv_log(CLV_LOG_WARN,
                    "%s: the normalizer or the pre_tokenizer differs from that of %s; Cleave "
                    "follows the class, as transformers does",
                    what, classes[i].name);
}
