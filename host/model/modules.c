/* SPDX-License-Identifier: Apache-2.0 */
/* Reads modules.json and the files of its modules, sentence-transformers' part of a model folder. */
#include "host/model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/folder.h"

#include <cleave/tensors.h>

#include <string.h>

enum { MODULES_MAX = 32, STEPS_MAX = MODULES_MAX + 2, EXTENT_MAX = 1 << 24 };

/* A module of modules.json, with its own config.json. */
typedef struct module {
    const char *folder; /* the model's folder */
    const char *kind;   /* the last word of the module's type */
    char *inside, *what;
    clv_json *root; /* its config.json; NULL: there is none */
} module;

/* ---- pooling ------------------------------------------------------------------------------- */

static const struct {
    const char *flag, *word;
    clv_model_pooling pooling;
} modes[] = { { "pooling_mode_cls_token", "cls", CLV_MODEL_CLS },
              { "pooling_mode_max_tokens", "max", CLV_MODEL_MAX },
              { "pooling_mode_mean_tokens", "mean", CLV_MODEL_MEAN },
              { "pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", CLV_MODEL_MEAN_SQRT },
              { "pooling_mode_weightedmean_tokens", "weightedmean", CLV_MODEL_WEIGHTED },
              { "pooling_mode_lasttoken", "lasttoken", CLV_MODEL_LAST } };

static clv_status add_pooling(const char *what, size_t mode, clv_model_config *config)
{
    if (config->joined_count == CLV_LEN(config->joined))
        return clv_fail(CLV_E_FORMAT, "%s: pooling_mode has more than %zu poolings", what,
                        CLV_LEN(config->joined));
    config->joined[config->joined_count++] = modes[mode].pooling;
    return CLV_OK;
}

static clv_status add_word(const char *what, const clv_json *value, clv_model_config *config)
{
    const char *word = clv_json_string(value, NULL);
    for (size_t i = 0; word && i < CLV_LEN(modes); ++i)
        if (strcmp(word, modes[i].word) == 0) return add_pooling(what, i, config);
    return clv_fail(CLV_E_FORMAT,
                    "%s: pooling_mode is %.60s, expected mean, cls, max, mean_sqrt_len_tokens, "
                    "weightedmean or lasttoken",
                    what, word ? word : clv_folder_kind(value));
}

/* Fails for members about poolings that sentence-transformers does not have, and for values that are neither true nor
 * false. */
static clv_status check_flags(const char *what, const clv_json *root)
{
    static const char start[] = "pooling_mode_";
    for (const char *key = NULL; (key = clv_json_next_key(root, key));) {
        bool known = strncmp(key, start, sizeof start - 1) != 0;
        const clv_json *value = clv_json_get(root, key);
        if ((!known || strcmp(key, "include_prompt") == 0) && !clv_json_is_bool(value))
            return clv_fail(CLV_E_FORMAT, "%s: %.60s is %s, expected true or false", what, key,
                            clv_folder_kind(value));
        for (size_t i = 0; i < CLV_LEN(modes) && !known; ++i)
            known = strcmp(key, modes[i].flag) == 0;
        if (!known)
            return clv_fail(CLV_E_FORMAT,
                            "%s: there is a member \"%.60s\", but no such pooling; expected "
                            "pooling_mode_mean_tokens, pooling_mode_cls_token, ...",
                            what, key);
    }
    return CLV_OK;
}

static clv_status take_pooling(const char *what, const clv_json *root, clv_model_config *config)
{
    const clv_json *mode = clv_json_get(root, "pooling_mode");
    int64_t width;
    CLV_TRY(check_flags(what, root));
    config->joined_count = 0;
    if (clv_json_is_array(mode))
        for (size_t i = 0; i < clv_json_count(mode); ++i)
            CLV_TRY(add_word(what, clv_json_at(mode, i), config));
    else if (mode)
        CLV_TRY(add_word(what, mode, config));
    else /* the keys of versions before sentence-transformers 6 */
        for (size_t i = 0; i < CLV_LEN(modes); ++i)
            if (clv_json_bool(clv_json_get(root, modes[i].flag), false))
                CLV_TRY(add_pooling(what, i, config));
    for (size_t i = 0; !mode && !config->joined_count; ++i) /* sentence-transformers' default */
        if (modes[i].pooling == CLV_MODEL_MEAN) CLV_TRY(add_pooling(what, i, config));
    if (!config->joined_count)
        return clv_fail(CLV_E_FORMAT, "%s: it has no pooling; expected mean, cls, max, ...", what);
    config->output = config->joined_count * config->width;
    if (config->joined_count == 1 && config->joined[0] != CLV_MODEL_MEAN_SQRT) {
        config->pooling = config->joined[0];
        config->joined_count = 0;
    }
    config->skips_prompt = !clv_json_bool(clv_json_get(root, "include_prompt"), true);
    const int64_t expected = (int64_t)config->width;
    CLV_TRY(
        clv_folder_int(what, root, "embedding_dimension", expected, expected, expected, &width));
    return clv_folder_int(what, root, "word_embedding_dimension", expected, expected, expected,
                          &width); /* the key's name before sentence-transformers 6 */
}

/* ---- modules after the pooling ------------------------------------------------------------- */

/* Reads a tensor of the module as float32 into memory that the caller owns. */
static clv_status read_numbers(const clv_weight_files *files, const char *name, size_t rank,
                               size_t rows, size_t columns, const float **out)
{
    const char *path = clv_weight_files_path(files);
    const clv_tensors *file;
    const clv_tensor *t = clv_weight_files_find(files, name, &file);
    if (!t || t->rank != rank || t->shape[0] != rows || (rank == 2 && t->shape[1] != columns))
        return clv_fail(
            CLV_E_FORMAT,
            "%s: the tensor \"%s\" is %s, but config.json says that it has %zu x %zu numbers", path,
            name, t ? "of another shape" : "missing", rows, columns);
    if (t->type > CLV_TENSOR_BF16)
        return clv_fail(CLV_E_FORMAT, "%s: tensor \"%s\" is %s, expected F32, F16, BF16 or F64",
                        path, name, t->type_name);
    float *numbers = clv_alloc(t->count, sizeof *numbers);
    if (!numbers) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for \"%s\"", path, name);
    *out = numbers;
    CLV_TRY(clv_tensors_read_f32(file, t, 0, t->count, numbers));
    clv_weights_warn(path, name, numbers, t->count);
    return CLV_OK;
}

static clv_status take_function(const char *what, const clv_json *root, clv_model_step *step)
{
    static const struct {
        const char *name;
        clv_step_function function;
    } functions[] = { { "torch.nn.modules.activation.Tanh", CLV_STEP_TANH },
                      { "torch.nn.modules.linear.Identity", CLV_STEP_IDENTITY },
                      { "torch.nn.modules.activation.ReLU", CLV_STEP_RELU },
                      { "torch.nn.modules.activation.GELU", CLV_STEP_GELU },
                      { "torch.nn.modules.activation.Sigmoid", CLV_STEP_SIGMOID },
                      { "torch.nn.modules.activation.SiLU", CLV_STEP_SILU } };
    const clv_json *value = clv_json_get(root, "activation_function");
    const char *name = clv_json_string(value, value ? "" : functions[0].name);
    for (size_t i = 0; i < CLV_LEN(functions); ++i)
        if (strcmp(name, functions[i].name) == 0) {
            step->function = functions[i].function;
            return CLV_OK;
        }
    return clv_fail(CLV_E_FORMAT,
                    "%s: activation_function is %.80s, expected Tanh, Identity, ReLU, GELU, "
                    "Sigmoid or SiLU of torch.nn",
                    what, *name ? name : clv_folder_kind(value));
}

/* Fails for a module that reads or writes something other than the pooled vector. */
static clv_status check_names(const module *m)
{
    static const char *const keys[] = { "module_input_name", "module_output_name" };
    for (size_t i = 0; i < CLV_LEN(keys); ++i) {
        const clv_json *value = clv_json_get(m->root, keys[i]);
        if (!clv_folder_absent(value) &&
            strcmp(clv_json_string(value, ""), "sentence_embedding") != 0)
            return clv_fail(CLV_E_FORMAT, "%s: %s is %.60s, expected sentence_embedding", m->what,
                            keys[i], clv_json_string(value, clv_folder_kind(value)));
    }
    return CLV_OK;
}

static clv_status open_weights(const module *m, clv_weight_files **files)
{
    if (!clv_folder_has(m->inside, "model.safetensors") &&
        clv_folder_has(m->inside, "pytorch_model.bin"))
        return clv_fail(
            CLV_E_FORMAT,
            "%s/pytorch_model.bin is a pickle, which is not supported; expected model.safetensors. "
            "To convert it: python3 -c 'import sys, sentence_transformers as s; "
            "s.SentenceTransformer(sys.argv[1]).save(sys.argv[1])' %s",
            m->inside, m->folder);
    return clv_weight_files_open(m->inside, files);
}

static clv_status take_dense(const module *m, clv_model_config *config, clv_model_step *step)
{
    int64_t in, out;
    const int64_t width = (int64_t)config->output;
    CLV_TRY(clv_folder_int(m->what, m->root, "in_features", width, width, -1, &in));
    CLV_TRY(clv_folder_int(m->what, m->root, "out_features", 1, EXTENT_MAX, -1, &out));
    if (clv_json_bool(clv_json_get(m->root, "use_residual"), false))
        return clv_fail(CLV_E_FORMAT, "%s: use_residual is true, expected false", m->what);
    *step = (clv_model_step){ .kind = CLV_STEP_DENSE, .in = (size_t)in, .out = (size_t)out };
    CLV_TRY(take_function(m->what, m->root, step));
    clv_weight_files *files;
    CLV_TRY(open_weights(m, &files));
    clv_status status = read_numbers(files, "linear.weight", 2, step->out, step->in, &step->weight);
    if (!status && clv_json_bool(clv_json_get(m->root, "bias"), true))
        status = read_numbers(files, "linear.bias", 1, step->out, 1, &step->bias);
    clv_weight_files_close(files);
    config->output = step->out;
    return status;
}

static clv_status take_norm(const module *m, clv_model_config *config, clv_model_step *step)
{
    int64_t value;
    const int64_t width = (int64_t)config->output;
    CLV_TRY(clv_folder_int(m->what, m->root, "dimension", width, width, -1, &value));
    *step = (clv_model_step){
        .kind = CLV_STEP_NORM, .in = config->output, .out = config->output, .eps = 1e-5f
    }; /* `eps` is PyTorch's default, which no file changes */
    clv_weight_files *files;
    CLV_TRY(open_weights(m, &files));
    clv_status status = read_numbers(files, "norm.weight", 1, step->out, 1, &step->weight);
    if (!status) status = read_numbers(files, "norm.bias", 1, step->out, 1, &step->bias);
    clv_weight_files_close(files);
    return status;
}

/* ---- the list ------------------------------------------------------------------------------ */

static clv_status open_module(const char *folder, const clv_json *entry, module *m)
{
    const char *type = clv_json_string(clv_json_get(entry, "type"), "");
    const char *path = clv_json_string(clv_json_get(entry, "path"), "");
    const char *dot = strrchr(type, '.');
    m->folder = folder;
    m->kind = dot ? dot + 1 : type;
    if (strcmp(m->kind, "Transformer") == 0) return CLV_OK; /* clv_folder_transformer found it */
    if (!clv_folder_is_inside(path))
        return clv_fail(CLV_E_FORMAT,
                        "%s/modules.json: the %.20s module lies in \"%.60s\"; expected a subfolder "
                        "of the model folder",
                        folder, m->kind, path);
    m->inside = clv_folder_path(folder, path);
    m->what = m->inside ? clv_folder_path(m->inside, "config.json") : NULL;
    if (!m->what) return clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    return *path ? clv_folder_json(m->inside, "config.json", false, &m->root) : CLV_OK;
}

/* Reads module `index` into *config or *step; `poolings` is the number of pooling modules before it. */
static clv_status take_module(const module *m, const char *type, size_t index, size_t poolings,
                              clv_model_config *config, clv_model_step *step)
{
    static const char *const known[] = { "Transformer", "Pooling",   "Dense",
                                         "LayerNorm",   "Normalize", "Dropout" };
    static const char library[] = "sentence_transformers.";
    size_t kind = 0;
    while (kind < CLV_LEN(known) && strcmp(m->kind, known[kind]) != 0)
        ++kind;
    if (strncmp(type, library, sizeof library - 1) != 0) kind = CLV_LEN(known); /* own code */
    if (kind == CLV_LEN(known))
        return clv_fail(CLV_E_FORMAT,
                        "%s/modules.json: there is a module of type \"%.80s\"; expected "
                        "Transformer, Pooling, Dense, LayerNorm, Normalize or Dropout of "
                        "sentence_transformers",
                        m->folder, type);
    if (kind < 2 ? kind != index : !poolings)
        return clv_fail(CLV_E_FORMAT,
                        "%s/modules.json: module %zu is %s, expected first a Transformer, then a "
                        "Pooling, and then the other modules",
                        m->folder, index, m->kind);
    if (kind > 0 && kind < 4 && !m->root)
        return clv_fail(CLV_E_FORMAT, "%s: this file is missing, but the %s module needs it",
                        m->what, m->kind);
    CLV_TRY(check_names(m));
    switch (kind) {
    case 1:
        return take_pooling(m->what, m->root, config);
    case 2:
        return take_dense(m, config, step);
    case 3:
        return take_norm(m, config, step);
    case 4:
        *step = (clv_model_step){ .kind = CLV_STEP_NORMALIZE,
                                  .in = config->output,
                                  .out = config->output };
        return CLV_OK;
    default: /* Dropout has no effect outside training */
        return CLV_OK;
    }
}

static clv_status take_modules(const char *folder, const clv_json *list, clv_model_config *config,
                               clv_model_step *steps)
{
    size_t poolings = 0;
    if (!clv_json_is_array(list) || !clv_json_count(list) || clv_json_count(list) > MODULES_MAX)
        return clv_fail(CLV_E_FORMAT, "%s/modules.json: expected a list of 1 to %d modules", folder,
                        MODULES_MAX);
    for (size_t i = 0; i < clv_json_count(list); ++i) {
        const clv_json *entry = clv_json_at(list, i);
        module m = { 0 };
        clv_model_step *step = &steps[config->step_count];
        clv_status status = open_module(folder, entry, &m);
        if (!status)
            status = take_module(&m, clv_json_string(clv_json_get(entry, "type"), ""), i, poolings,
                                 config, step);
        poolings += strcmp(m.kind, "Pooling") == 0;
        /* also counted after a failure, so that the step is freed */
        config->step_count += step->out > 0;
        clv_json_free(m.root);
        clv_free(m.inside), clv_free(m.what);
        CLV_TRY(status);
    }
    if (!poolings)
        return clv_fail(CLV_E_FORMAT, "%s/modules.json: there is no Pooling module; expected one",
                        folder);
    while (config->step_count && steps[config->step_count - 1].kind == CLV_STEP_NORMALIZE) {
        --config->step_count;
        config->normalize = true;
    }
    config->steps = config->step_count ? steps : NULL;
    return CLV_OK;
}

/* ---- fewer numbers ------------------------------------------------------------------------- */

/* Shortens vectors to their first `width` numbers after the last module, even after Normalize. The cut is a dense step
 * whose matrix holds the first rows of the identity. */
static clv_status cut(const char *folder, size_t width, clv_model_config *config,
                      clv_model_step *steps)
{
    float *rows = clv_zalloc(width, config->output * sizeof *rows);
    if (!rows)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu x %zu numbers", folder, width,
                        config->output);
    for (size_t i = 0; i < width; ++i)
        rows[i * config->output + i] = 1;
    if (config->normalize)
        steps[config->step_count++] = (clv_model_step){ .kind = CLV_STEP_NORMALIZE,
                                                        .in = config->output,
                                                        .out = config->output };
    steps[config->step_count++] = (clv_model_step){
        .kind = CLV_STEP_DENSE, .in = config->output, .out = width, .weight = rows
    };
    config->normalize = false;
    config->output = width;
    config->steps = steps;
    return CLV_OK;
}

clv_status clv_model_cut(const char *folder, const clv_json *sentence, clv_model_config *config,
                         clv_model_step **steps)
{
    int64_t width;
    const int64_t whole = (int64_t)config->output;
    CLV_TRY(clv_folder_int("config_sentence_transformers.json", sentence, "truncate_dim", 1,
                           (int64_t)1 << 40, whole, &width));
    if (width >= whole) return CLV_OK;
    if (!*steps) *steps = clv_zalloc(STEPS_MAX, sizeof **steps);
    if (!*steps) return clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    return cut(folder, (size_t)width, config, *steps);
}

void clv_model_steps_free(clv_model_step *steps, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        clv_free((void *)(uintptr_t)steps[i].weight);
        clv_free((void *)(uintptr_t)steps[i].bias);
    }
    clv_free(steps);
}

/* Fails if the settings of sentence-transformers change what the transformer computes. */
static clv_status check_settings(const char *folder, const char *name, const clv_json *sentence)
{
    static const char *const lists[] = { "model_args", "model_kwargs", "config_args",
                                         "config_kwargs" };
    static const char *const harmless[] = { "attn_implementation", "dtype",
                                            "torch_dtype",         "trust_remote_code",
                                            "add_pooling_layer",   "use_safetensors" };
    static const char *const words[][2] = { { "transformer_task", "feature-extraction" },
                                            { "module_output_name", "token_embeddings" } };
    for (size_t k = 0; k < CLV_LEN(lists); ++k) {
        const clv_json *list = clv_json_get(sentence, lists[k]);
        for (const char *key = NULL; (key = clv_json_next_key(list, key));) {
            bool known = false;
            for (size_t i = 0; i < CLV_LEN(harmless) && !known; ++i)
                known = strcmp(key, harmless[i]) == 0;
            if (!known)
                return clv_fail(CLV_E_FORMAT,
                                "%s/%s: %s sets %.60s, which is not supported; set it in "
                                "config.json instead",
                                folder, name, lists[k], key);
        }
    }
    for (size_t i = 0; i < CLV_LEN(words); ++i) {
        const clv_json *value = clv_json_get(sentence, words[i][0]);
        const char *word = clv_json_string(value, clv_folder_kind(value));
        if (!clv_folder_absent(value) && strcmp(word, words[i][1]) != 0)
            return clv_fail(CLV_E_FORMAT, "%s/%s: %s is %.60s, expected %s", folder, name,
                            words[i][0], word, words[i][1]);
    }
    const clv_json *text = clv_json_get(clv_json_get(sentence, "modality_config"), "text");
    const char *method = clv_json_string(clv_json_get(text, "method"), "forward");
    const clv_json *output = clv_json_get(text, "method_output_name");
    if (strcmp(method, "forward") != 0 ||
        strcmp(clv_json_string(output, "last_hidden_state"), "last_hidden_state") != 0)
        return clv_fail(CLV_E_FORMAT,
                        "%s/%s: modality_config does not take last_hidden_state from forward, "
                        "which is expected",
                        folder, name);
    return CLV_OK;
}

clv_status clv_model_modules(const char *folder, const char *inside, clv_model_config *config,
                             clv_model_step **steps)
{
    clv_json *modules = NULL, *sentence = NULL;
    config->output = config->width;
    *steps = NULL;
    clv_status status = clv_folder_json(folder, "modules.json", false, &modules);
    if (!status && modules) {
        *steps = clv_zalloc(STEPS_MAX, sizeof **steps);
        status = *steps ? take_modules(folder, modules, config, *steps)
                        : clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    }
    const char *name = clv_folder_sentence_config(inside);
    if (!status) status = clv_folder_json(inside, name, false, &sentence);
    if (!status) status = check_settings(inside, name, sentence);
    if (!status) {
        int64_t length;
        status = clv_folder_int(name, sentence, "max_seq_length", 2, (int64_t)1 << 40,
                                (int64_t)config->positions, &length);
        if (!status) config->max_length = CLV_MIN((size_t)length, config->positions);
    }
    clv_json_free(modules), clv_json_free(sentence);
    return status;
}
