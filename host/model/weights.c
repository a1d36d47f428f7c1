/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the weights of each family of models: their names in the transformers library, and their shapes. */
#include "host/model/model.h"

#include "base/alloc.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

/* Shapes of weights. D is the width of a layer, E of the tables, F of the layer between up and down; V, P and T are the
 * rows of the tables of words, positions and token types; B x H are buckets x heads. */
enum { ONE_D, ONE_E, ONE_F, D_D, F_D, D_F, D_E, V_E, P_E, T_E, B_H };

static const struct {
    int shape;
    size_t slot; /* offset of the pointer in clv_model_weights */
} fixed[CLV_WEIGHTS_FIXED] = {
#define OF_ALL(member) offsetof(clv_model_weights, member)
    { V_E, OF_ALL(word) },           { P_E, OF_ALL(position) },
    { T_E, OF_ALL(type) },           { ONE_E, OF_ALL(norm_weight) },
    { ONE_E, OF_ALL(norm_bias) },    { D_D, OF_ALL(pooler_weight) },
    { ONE_D, OF_ALL(pooler_bias) },  { D_E, OF_ALL(project_weight) },
    { ONE_D, OF_ALL(project_bias) }, { B_H, OF_ALL(relative) },
#undef OF_ALL
};
enum { TYPE = 2, POOLER = 5, PROJECT = 7, RELATIVE = 9 };

/* The weights of a layer in their order in memory, which puts q, k and v side by side. */
static const struct {
    int shape, part; /* part: index into family_names.parts */
    bool bias;
    size_t slot;
} layered[CLV_WEIGHTS_A_LAYER] = {
#define OF_LAYER(member) offsetof(clv_model_layer, member)
    { D_D, 0, false, OF_LAYER(q_weight) },       { D_D, 1, false, OF_LAYER(k_weight) },
    { D_D, 2, false, OF_LAYER(v_weight) },       { ONE_D, 0, true, OF_LAYER(q_bias) },
    { ONE_D, 1, true, OF_LAYER(k_bias) },        { ONE_D, 2, true, OF_LAYER(v_bias) },
    { D_D, 3, false, OF_LAYER(out_weight) },     { ONE_D, 3, true, OF_LAYER(out_bias) },
    { ONE_D, 4, false, OF_LAYER(norm1_weight) }, { ONE_D, 4, true, OF_LAYER(norm1_bias) },
    { F_D, 5, false, OF_LAYER(up_weight) },      { ONE_F, 5, true, OF_LAYER(up_bias) },
    { D_F, 6, false, OF_LAYER(down_weight) },    { ONE_D, 6, true, OF_LAYER(down_bias) },
    { ONE_D, 7, false, OF_LAYER(norm2_weight) }, { ONE_D, 7, true, OF_LAYER(norm2_bias) },
#undef OF_LAYER
};

typedef struct family_names {
    const char *prefix;
    const char *pooler;                      /* NULL: the family has none */
    const char *project;                     /* NULL: the family has none */
    bool types;                              /* the family has a table of token types */
    const char *layer_before, *layer_behind; /* parts of a name before and after a layer's number */
    const char *parts[8];                    /* q, k, v, out, norm 1, up, down, norm 2 */
} family_names;

#define OF_BERT                                                                       \
    "attention.self.query", "attention.self.key", "attention.self.value",             \
        "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", \
        "output.dense", "output.LayerNorm"

static const family_names families[] = {
    [CLV_MODEL_BERT] = { .prefix = "bert.",
                         .pooler = "pooler.dense",
                         .types = true,
                         .layer_before = "encoder.layer.",
                         .layer_behind = ".",
                         .parts = { OF_BERT } },
    [CLV_MODEL_DISTILBERT] = { .prefix = "distilbert.",
                               .layer_before = "transformer.layer.",
                               .layer_behind = ".",
                               .parts = { "attention.q_lin", "attention.k_lin", "attention.v_lin",
                                          "attention.out_lin", "sa_layer_norm", "ffn.lin1",
                                          "ffn.lin2", "output_layer_norm" } },
    [CLV_MODEL_ELECTRA] = { .prefix = "electra.",
                            .project = "embeddings_project",
                            .types = true,
                            .layer_before = "encoder.layer.",
                            .layer_behind = ".",
                            .parts = { OF_BERT } },
    [CLV_MODEL_ROBERTA] = { .prefix = "roberta.",
                            .pooler = "pooler.dense",
                            .types = true,
                            .layer_before = "encoder.layer.",
                            .layer_behind = ".",
                            .parts = { OF_BERT } },
    [CLV_MODEL_MPNET] = { .prefix = "mpnet.",
                          .pooler = "pooler.dense",
                          .layer_before = "encoder.layer.",
                          .layer_behind = ".",
                          .parts = { "attention.attn.q", "attention.attn.k", "attention.attn.v",
                                     "attention.attn.o", "attention.LayerNorm",
                                     "intermediate.dense", "output.dense", "output.LayerNorm" } },
    [CLV_MODEL_ALBERT] = { .prefix = "albert.",
                           .pooler = "pooler",
                           .project = "encoder.embedding_hidden_mapping_in",
                           .types = true,
                           .layer_before = "encoder.albert_layer_groups.",
                           .layer_behind = ".albert_layers.0.",
                           .parts = { "attention.query", "attention.key", "attention.value",
                                      "attention.dense", "attention.LayerNorm", "ffn", "ffn_output",
                                      "full_layer_layer_norm" } },
};

const char *clv_family_prefix(clv_model_family family)
{
    return families[family].prefix;
}

size_t clv_layers_own(const clv_model_config *config)
{
    return config->groups ? config->groups : config->layers;
}

size_t clv_layer_of(const clv_model_config *config, size_t index)
{
    if (!config->groups) return index;
    /* computed in floating point, as in transformers */
    const double size = (double)config->layers / (double)config->groups;
    return (size_t)((double)index / size);
}

size_t clv_weights_count(const clv_model_config *config)
{
    return CLV_WEIGHTS_FIXED + clv_layers_own(config) * CLV_WEIGHTS_A_LAYER;
}

static void name_fixed(const family_names *f, size_t index, clv_weight *out)
{
    static const char *const words[] = { "word_embeddings.weight", "position_embeddings.weight",
                                         "token_type_embeddings.weight", "LayerNorm.weight",
                                         "LayerNorm.bias" };
    if (index < POOLER)
        snprintf(out->name, sizeof out->name, "embeddings.%s", words[index]);
    else if (index < RELATIVE)
        snprintf(out->name, sizeof out->name, "%s.%s", index < PROJECT ? f->pooler : f->project,
                 (index - POOLER) % 2 ? "bias" : "weight");
    else
        snprintf(out->name, sizeof out->name, "encoder.relative_attention_bias.weight");
}

bool clv_weights_at(const clv_model_config *c, clv_model_weights *weights, clv_model_layer *layers,
                    size_t index, clv_weight *out)
{
    const family_names *f = &families[c->family];
    const size_t e = c->embedding ? c->embedding : c->width;
    const size_t shapes[][3] = { [ONE_D] = { 1, c->width, 0 },
                                 [ONE_E] = { 1, e, 0 },
                                 [ONE_F] = { 1, c->ffn, 0 },
                                 [D_D] = { 2, c->width, c->width },
                                 [F_D] = { 2, c->ffn, c->width },
                                 [D_F] = { 2, c->width, c->ffn },
                                 [D_E] = { 2, c->width, e },
                                 [V_E] = { 2, c->vocabulary, e },
                                 [P_E] = { 2, c->positions + c->first_position, e },
                                 [T_E] = { 2, c->types, e },
                                 [B_H] = { 2, c->buckets, c->heads } };
    int shape;
    if (index < CLV_WEIGHTS_FIXED) {
        const bool pooler = index >= POOLER && index < PROJECT;
        if ((pooler && !f->pooler) || (index >= PROJECT && index < RELATIVE && !c->embedding) ||
            (index == RELATIVE && !c->buckets))
            return false;
        shape = fixed[index].shape;
        name_fixed(f, index, out);
        out->optional = pooler;
        out->made = index == TYPE && !f->types;
        out->slot = (const float **)(void *)((char *)weights + fixed[index].slot);
    } else {
        const size_t behind = index - CLV_WEIGHTS_FIXED;
        const size_t part = behind % CLV_WEIGHTS_A_LAYER, layer = behind / CLV_WEIGHTS_A_LAYER;
        shape = layered[part].shape;
        snprintf(out->name, sizeof out->name, "%s%zu%s%s.%s", f->layer_before, layer,
                 f->layer_behind, f->parts[layered[part].part],
                 layered[part].bias ? "bias" : "weight");
        out->optional = out->made = false;
        out->slot = (const float **)(void *)((char *)&layers[layer] + layered[part].slot);
    }
    out->rank = shapes[shape][0];
    out->shape[0] = shapes[shape][1];
    out->shape[1] = shapes[shape][2];
    return true;
}

size_t clv_weight_elements(const clv_weight *w) /* cannot overflow: extents are below 2^24 */
{
    return w->rank == 2 ? w->shape[0] * w->shape[1] : w->shape[0];
}

void clv_weights_warn(const char *path, const char *name, const float *values, size_t count)
{
    uint32_t found = 0;
    for (size_t i = 0; i < count; ++i) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        found |= (bits & 0x7F800000) == 0x7F800000;
    }
    if (found)
        clv_log(CLV_LOG_WARN, "%s: tensor \"%s\" holds values that are not finite", path, name);
}
