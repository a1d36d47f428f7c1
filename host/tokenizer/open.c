/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the files of a model's tokenizer, reads them, and determines how many tokens a text may have. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/options.h"
#include "base/text.h"
#include "base/folder.h"

#include <errno.h>
#include <stdio.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns whether a file is GGUF, by its ending or its first bytes: files from hubs often have no ending. */
static bool is_gguf(const char *path)
{
    char start[4] = { 0 };
    struct stat info;
    /* without O_NONBLOCK, opening a pipe would block */
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool good = file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
                      read(file, start, sizeof start) == (ssize_t)sizeof start;
    if (file >= 0) close(file);
    return clv_ends_with(path, ".gguf") || (good && memcmp(start, "GGUF", sizeof start) == 0);
}

/* Determines from the caller's path the model's folder and the tokenizer's file in it. The caller frees *folder. */
static clv_status locate(const char *path, char **folder, const char **file)
{
    struct stat info;
    const int missing = stat(path, &info) ? errno : 0;
    const char *slash = strrchr(path, '/');
    *file = NULL;
    if (!missing && S_ISDIR(info.st_mode)) {
        CLV_TRY(clv_folder_transformer(path, folder));
        if (clv_folder_has(*folder, "tokenizer.json"))
            *file = "tokenizer.json";
        else if (clv_folder_has(*folder, "vocab.txt"))
            *file = "vocab.txt";
        else
            return clv_fail(CLV_E_IO,
                            "%s: not a model folder: it has neither tokenizer.json nor vocab.txt",
                            path);
    } else {
        const char *name = slash ? slash + 1 : path;
        clv_text text = { 0 };
        clv_text_add(&text, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
        *folder = text.data;
        *file = clv_ends_with(name, ".json") ? "tokenizer.json" : "vocab.txt";
        if (strcmp(name, *file) != 0)
            return missing
                       ? clv_fail(CLV_E_IO,
                                  "%s: there is no such model folder (%s). To download a model: "
                                  "hf download sentence-transformers/all-MiniLM-L6-v2 "
                                  "--local-dir %s",
                                  path, strerror(missing), path)
                       : clv_fail(CLV_E_ARGUMENT,
                                  "%s: expected a GGUF file, or a model folder, its "
                                  "tokenizer.json or its vocab.txt",
                                  path);
    }
    return *folder ? CLV_OK : clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
}

/* Fails if the settings of sentence-transformers have arguments for the tokenizer, which may change ids. */
static clv_status refuse_arguments(const char *folder, const clv_json *sentence)
{
    static const char *const keys[] = { "tokenizer_args", "tokenizer_kwargs", "processor_kwargs",
                                        "processing_kwargs" };
    for (size_t i = 0; i < CLV_LEN(keys); ++i)
        if (clv_json_next_key(clv_json_get(sentence, keys[i]), NULL))
            return clv_fail(CLV_E_FORMAT,
                            "%s/%s: %s has members, but arguments for the tokenizer are not "
                            "supported",
                            folder, clv_folder_sentence_config(folder), keys[i]);
    return CLV_OK;
}

/* Reads tokenizer_config.json into *out. If it has no added_tokens_decoder, members of special_tokens_map.json take the
 * place of its own, as in transformers. *out is NULL if neither file exists. */
static clv_status read_config(const char *folder, clv_json **out)
{
    clv_json *config = NULL, *map = NULL, *both = NULL;
    *out = NULL;
    clv_status status = clv_folder_json(folder, "tokenizer_config.json", false, &config);
    const bool legacy = !clv_json_get(config, "added_tokens_decoder");
    if (!status && legacy) status = clv_folder_json(folder, "special_tokens_map.json", false, &map);
    if (!status && map && !clv_json_is_object(map))
        status = clv_fail(CLV_E_FORMAT, "%s/special_tokens_map.json is not a JSON object", folder);
    if (!status && map && !(both = clv_json_object()))
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    for (const char *key = NULL; both && (key = clv_json_next_key(map, key));)
        clv_json_add_copy(both, key, clv_json_get(map, key));
    for (const char *key = NULL; both && (key = clv_json_next_key(config, key));)
        if (!clv_json_get(map, key)) clv_json_add_copy(both, key, clv_json_get(config, key));
    if (both) {
        char *complete = clv_json_text(both, true);
        if (!complete) status = clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
        clv_json_text_free(complete);
        clv_json_free(config);
        config = both;
    }
    clv_json_free(map);
    if (status)
        clv_json_free(config);
    else
        *out = config;
    return status;
}

/* Determines the rules of a WordPiece tokenizer. The transformers library builds a BERT tokenizer from
 * tokenizer_config.json, with BERT's defaults, and ignores the rules of tokenizer.json. Cleave does the same, so that
 * the ids agree. If there is no tokenizer_class, a model_type in config.json makes the tokenizer a BERT tokenizer.
 * Without both, the rules of tokenizer.json apply. */
static clv_status take_rules(clv_tokenizer *t, const char *folder)
{
    clv_json *config = NULL, *sentence = NULL, *model = NULL;
    CLV_TRY(clv_folder_json(folder, "config.json", false, &model));
    const bool typed = clv_json_is_string(clv_json_get(model, "model_type"));
    clv_status status = read_config(folder, &config);
    if (!status) clv_tokenizer_find_class(t, model, config);
    clv_json_free(model);
    if (!status)
        status = clv_folder_json(folder, clv_folder_sentence_config(folder), false, &sentence);
    if (status) {
        clv_json_free(config);
        return status;
    }
    t->lower_asked = clv_json_bool(clv_json_get(sentence, "do_lower_case"), false);
    status = refuse_arguments(folder, sentence);
    clv_json_free(sentence);
    const bool lower = clv_json_bool(clv_json_get(config, "do_lower_case"), true);
    const bool named = clv_json_is_string(clv_json_get(config, "tokenizer_class"));
    t->flags_given = t->class == CLV_CLASS_BERT || (t->class == CLV_CLASS_OTHER && typed && !named);
    t->flags = (clv_char_flags){
        .lower = lower,
        .strip = clv_json_bool(clv_json_get(config, "strip_accents"), lower),
        .cjk = clv_json_bool(clv_json_get(config, "tokenize_chinese_chars"), true),
    };
    clv_json_free(config);
    return status;
}

static clv_status read_rules(clv_tokenizer *t, const char *folder, const char *file)
{
    char *path = clv_folder_path(folder, file), *text = NULL;
    char *config_path = clv_folder_path(folder, "tokenizer_config.json");
    size_t length = 0;
    clv_json *config = NULL, *added = NULL;
    const bool json = strcmp(file, "tokenizer.json") == 0;
    clv_status status =
        path && config_path ? CLV_OK : clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    if (!status) status = clv_file_read_plain(path, CLV_FOLDER_FILE_MAX, &text, &length);
    if (!status && !json) status = read_config(folder, &config);
    if (!status) status = take_rules(t, folder);
    if (!status && json) status = clv_tokenizer_from_json(t, path, text, length);
    if (!status && !json) status = clv_folder_json(folder, "added_tokens.json", false, &added);
    if (!status && !json)
        status = clv_tokenizer_from_vocabulary(t, path, text, length, config_path, config, added);
    clv_json_free(added), clv_json_free(config);
    clv_free(text), clv_free(path), clv_free(config_path);
    return status;
}

/* Returns the limit that the member `key` states; SIZE_MAX if it is missing, below 2, or so large that it means no
 * limit. */
static size_t limit_in(const clv_json *object, const char *key)
{
    const double value = clv_json_number(clv_json_get(object, key), 0);
    return value >= 2 && value <= 1e9 ? (size_t)value : SIZE_MAX;
}

/* Warns about each rule for which tokenizer_config.json and tokenizer.json differ. */
static void compare_rules(const clv_tokenizer *t, const char *folder, const clv_json *config)
{
    const bool lower = clv_json_bool(clv_json_get(config, "do_lower_case"), true);
    const struct {
        const char *key;
        bool written, obeyed;
    } rules[] = { { "do_lower_case", t->written.lower, lower },
                  { "strip_accents", t->written.strip, t->flags.strip },
                  { "tokenize_chinese_chars", t->written.cjk, t->flags.cjk } };
    for (size_t i = 0; t->flags_given && i < CLV_LEN(rules); ++i) {
        const clv_json *given = clv_json_get(config, rules[i].key);
        if (rules[i].written == rules[i].obeyed) continue;
        if (i == 1 && !clv_json_is_bool(given) && rules[0].written != rules[0].obeyed)
            continue; /* its difference follows from that of do_lower_case */
        clv_log(CLV_LOG_WARN,
                "%s: %s is %s%s in tokenizer_config.json, but %s in tokenizer.json; Cleave follows "
                "tokenizer_config.json, as transformers does",
                folder, rules[i].key, clv_json_is_bool(given) ? "" : "not there, so ",
                rules[i].obeyed ? "true" : "false", rules[i].obeyed ? "false" : "true");
    }
}

/* Warns if a token that transformers finds in texts is not an added token of this tokenizer, which then splits it like
 * any word. */
static void look_for_text(const clv_tokenizer *t, const char *folder, const char *file,
                          const char *text)
{
    for (size_t i = 0; text && i < t->special_count; ++i)
        if (strcmp(clv_pieces_text(&t->pieces, t->specials[i].id), text) == 0)
            return; /* compared by id, since specials[i].text may be a normal form */
    if (text)
        clv_log(CLV_LOG_WARN,
                "%s: %s adds the token \"%.60s\", which transformers recognises in texts; Cleave "
                "splits it like any word",
                folder, file, text);
}

static void look_for_token(const clv_tokenizer *t, const char *folder, const clv_json *token)
{
    const clv_json *content = clv_json_is_object(token) ? clv_json_get(token, "content") : token;
    look_for_text(t, folder, "tokenizer_config.json", clv_json_string(content, NULL));
}

/* Warns about tokens of added_tokens.json, which older versions of transformers wrote beside vocab.txt, that this
 * tokenizer lacks. */
static clv_status look_for_file(const clv_tokenizer *t, const char *folder)
{
    static const char name[] = "added_tokens.json";
    clv_json *list = NULL;
    CLV_TRY(clv_folder_json(folder, name, false, &list));
    for (const char *key = NULL; (key = clv_json_next_key(list, key));)
        look_for_text(t, folder, name, key);
    clv_json_free(list);
    return CLV_OK;
}

static void look_for_tokens(const clv_tokenizer *t, const char *folder, const clv_json *config)
{
    static const char *const lists[] = { "additional_special_tokens", "extra_special_tokens",
                                         "added_tokens_decoder" };
    for (size_t k = 0; k < CLV_LEN(lists); ++k) {
        const clv_json *list = clv_json_get(config, lists[k]);
        for (size_t i = 0; clv_json_is_array(list) && i < clv_json_count(list); ++i)
            look_for_token(t, folder, clv_json_at(list, i));
        for (const char *key = NULL; (key = clv_json_next_key(list, key));)
            look_for_token(t, folder, clv_json_get(list, key));
    }
}

/* Returns whether config.json describes an encoder; folders of encoders limit the number of tokens, whatever their
 * tokenizer is. *positions is the number of tokens that the model accepts; SIZE_MAX: unknown. */
static bool is_encoder(const clv_json *model, size_t *positions)
{
    static const struct {
        const char *type;
        bool behind_padding; /* positions start after the padding token's position */
    } types[] = { { "bert", false },   { "distilbert", false }, { "electra", false },
                  { "roberta", true }, { "xlm-roberta", true }, { "mpnet", true },
                  { "albert", false } };
    const char *type = clv_json_string(clv_json_get(model, "model_type"), "");
    *positions = limit_in(model, "max_position_embeddings");
    for (size_t i = 0; i < CLV_LEN(types); ++i) {
        if (strcmp(types[i].type, type) != 0) continue;
        const bool padded = types[i].behind_padding && strcmp(type, "mpnet") != 0;
        const int64_t pad = padded ? clv_json_int(clv_json_get(model, "pad_token_id"), 1) : 1;
        if (types[i].behind_padding && *positions != SIZE_MAX && pad >= 0)
            *positions = *positions > (size_t)pad + 3 ? *positions - (size_t)pad - 1 : 2;
        return true;
    }
    return false;
}

/* Warns if the tokenizer pads on the left. Cleave does not pad; with absolute positions, padding before a text moves
 * its tokens to other positions. */
static void look_for_padding(const clv_tokenizer *t, const char *folder, const clv_json *config)
{
    const char *side =
        clv_json_string(clv_json_get(config, "padding_side"), t->pads_left ? "left" : "right");
    if (strcmp(side, "left") != 0) return;
    clv_log(CLV_LOG_WARN,
            "%s: the tokenizer pads on the left, so that with sentence-transformers a vector may "
            "depend on the other texts of its batch; Cleave computes the vector of each text alone",
            folder);
}

static clv_status take_limits(clv_tokenizer *t, const char *folder,
                              const clv_tokenizer_options *options)
{
    clv_json *sentence = NULL, *tokenizer = NULL, *model = NULL;
    const char *name = clv_folder_sentence_config(folder);
    clv_status status = clv_folder_json(folder, name, false, &sentence);
    if (!status) status = read_config(folder, &tokenizer);
    if (!status) status = clv_folder_json(folder, "config.json", false, &model);
    size_t positions;
    const bool encoder = is_encoder(model, &positions);
    if (!status && t->kind == CLV_TOKENIZER_WORDPIECE && clv_folder_has(folder, "tokenizer.json"))
        compare_rules(t, folder, tokenizer);
    if (!status && encoder) look_for_padding(t, folder, tokenizer);
    if (!status) look_for_tokens(t, folder, tokenizer);
    if (!status) status = look_for_file(t, folder);
    const char *side =
        clv_json_string(clv_json_get(tokenizer, "truncation_side"), t->keep_end ? "left" : "right");
    t->keep_end = strcmp(side, "left") == 0;
    if (!status && !t->keep_end && strcmp(side, "right") != 0)
        status = clv_fail(CLV_E_FORMAT,
                          "%s/tokenizer_config.json: truncation_side is \"%s\", expected right or "
                          "left",
                          folder, side);
    const size_t wanted = options->unlimited ? 0 : options->max_length;
    if (!status && wanted && wanted < 2)
        status = clv_fail(CLV_E_ARGUMENT, "%s: max_length is %zu, but it must be at least 2",
                          folder, wanted);
    if (!status && wanted > positions)
        status = clv_fail(CLV_E_ARGUMENT,
                          "%s: max_length is %zu, but it must be 2 to %zu, the number of positions "
                          "of the model",
                          folder, wanted, positions);
    if (!status && t->kind != CLV_TOKENIZER_WORDPIECE)
        status = clv_bpe_take_config(t, folder, tokenizer);
    if (!status) status = clv_tokenizer_check_class(t, folder, model, tokenizer);
    if (t->kind != CLV_TOKENIZER_WORDPIECE && !encoder) {
        t->max_length = wanted ? wanted : SIZE_MAX;
        clv_json_free(sentence), clv_json_free(tokenizer), clv_json_free(model);
        return status;
    }
    t->max_length = limit_in(sentence, "max_seq_length");
    const bool old = !clv_json_get(tokenizer, "model_max_length"); /* old files call it max_len */
    if (t->max_length == SIZE_MAX)
        t->max_length = limit_in(tokenizer, old ? "max_len" : "model_max_length");
    t->max_length = CLV_MIN(t->max_length, positions);
    if (options->max_length) t->max_length = options->max_length;
    if (options->unlimited) t->max_length = SIZE_MAX;
    clv_json_free(sentence), clv_json_free(tokenizer), clv_json_free(model);
    return status;
}

static clv_status open_folder(clv_tokenizer *t, const char *path, const clv_tokenizer_options *o)
{
    char *folder = NULL;
    const char *file;
    clv_status status = locate(path, &folder, &file);
    if (!status) status = read_rules(t, folder, file);
    if (!status) status = take_limits(t, folder, o);
    clv_free(folder);
    return status;
}

static clv_status open_file(clv_tokenizer *t, const char *path, const clv_tokenizer_options *o)
{
    clv_gguf *file;
    CLV_TRY(clv_gguf_open(path, &file));
    const clv_status status = clv_tokenizer_from_gguf(t, file);
    clv_gguf_close(file);
    if (o->max_length && !o->unlimited) t->max_length = o->max_length;
    return status;
}

/* Makes a tokenizer from the GGUF file `file`; if it is NULL, from the files that `path` names. */
static clv_status make(const char *path, const clv_gguf *file, const clv_tokenizer_options *options,
                       clv_tokenizer **out)
{
    clv_tokenizer_options o;
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_tokenizer_open", "clv_tokenizer_options"));
    clv_tokenizer *t = clv_zalloc(1, sizeof *t);
    if (!t) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    const clv_status status = file            ? clv_tokenizer_from_gguf(t, file)
                              : is_gguf(path) ? open_file(t, path, &o)
                                              : open_folder(t, path, &o);
    if (file && o.max_length && !o.unlimited) t->max_length = o.max_length;
    if (status) {
        clv_tokenizer_close(t);
        return status;
    }
    t->replace_invalid = o.replace_invalid;
    t->drop_invalid = o.drop_invalid;
    *out = t;
    return CLV_OK;
}

clv_status clv_tokenizer_open(const char *path, const clv_tokenizer_options *options,
                              clv_tokenizer **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "clv_tokenizer_open: out is NULL");
    *out = NULL;
    if (!path) return clv_fail(CLV_E_ARGUMENT, "clv_tokenizer_open: path is NULL");
    return make(path, NULL, options, out);
}

clv_status clv_tokenizer_open_gguf(const clv_gguf *file, const clv_tokenizer_options *options,
                                   clv_tokenizer **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "clv_tokenizer_open_gguf: out is NULL");
    *out = NULL;
    if (!file) return clv_fail(CLV_E_ARGUMENT, "clv_tokenizer_open_gguf: file is NULL");
    return make(clv_gguf_path(file), file, options, out);
}
