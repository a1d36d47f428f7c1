/* SPDX-License-Identifier: Apache-2.0 */
/* Declares a language model as its files describe it: its configuration, and the place of every weight in the files.
 * Nothing here uses a device. */
#ifndef CLEAVE_HOST_TRANSFORMER_GENERATE_MODEL_H
#define CLEAVE_HOST_TRANSFORMER_GENERATE_MODEL_H

#include <cleave/gguf.h>
#include <cleave/tensors.h>
#include <cleave/tokenizer.h>

enum {
    CLV_LM_MOST = 1 << 24, /* largest accepted value of a size */
    CLV_LM_LAYERS_MOST = 4096,
    CLV_LM_HEAD_MOST = 256,
    CLV_LM_ENDS_MOST = 32,
    CLV_LM_PAD = 32,   /* floats in a block of unquantised weights */
    CLV_LM_LANES = 16, /* rows that are interleaved on devices */
};

typedef struct clv_lm_config {
    char architecture[16]; /* "llama", "mistral", "qwen2", "qwen3" */
    char name[64];         /* the name that the file states; "" if it states none */
    size_t layers, width, ffn;
    size_t heads, kv_heads, head; /* head: width of a head */
    size_t turned;                /* terms of a head that rotary positions turn */
    size_t vocabulary;            /* rows of the word table */
    size_t context;               /* positions for which the model was trained */
    size_t window;                /* tokens that attention sees, which limits the context; 0: all */
    float eps;
    double base;     /* base of the rotary frequencies */
    double stretch;  /* divisor of positions; 1: unchanged */
    double swell;    /* factor of the turned terms; 1: unchanged */
    bool neighbours; /* pairs of rotary positions are (2t, 2t + 1) */
    bool head_norm;  /* queries and keys are normalised head by head */
    bool tied;       /* the word table makes the scores */
} clv_lm_config;

/* The roles of weights: first those that a model has once, then those that each layer has. */
typedef enum clv_lm_role {
    CLV_LM_WORDS,
    CLV_LM_OUT_NORM,
    CLV_LM_OUT,     /* absent if tied */
    CLV_LM_FACTORS, /* divisors of rotary frequencies; optional */
    CLV_LM_MODEL_ROLES,

    CLV_LM_ATTN_NORM = CLV_LM_MODEL_ROLES,
    CLV_LM_Q,
    CLV_LM_K,
    CLV_LM_V,
    CLV_LM_O,
    CLV_LM_Q_BIAS, /* this and the following roles are optional */
    CLV_LM_K_BIAS,
    CLV_LM_V_BIAS,
    CLV_LM_O_BIAS,
    CLV_LM_Q_NORM,
    CLV_LM_K_NORM,
    CLV_LM_FFN_NORM,
    CLV_LM_GATE,
    CLV_LM_UP,
    CLV_LM_DOWN,
    CLV_LM_ROLES,
} clv_lm_role;

/* A matrix [rows, columns] or a vector [columns] (rows 1). */
typedef struct clv_lm_tensor {
    const char *name; /* NULL: the model has none */
    clv_quant type;
    size_t rows, columns;
    uint64_t bytes;
    const clv_gguf_tensor *block; /* the tensor in the GGUF file; NULL: the model is a folder */
    const clv_tensor *plain;      /* in a folder: the tensor in shard number `file` */
    size_t file;
} clv_lm_tensor;

typedef struct clv_lm_model {
    char *path;
    clv_lm_config config;
    clv_gguf *gguf;       /* NULL: the model is a folder */
    clv_tensors **shards; /* [shard_count] */
    size_t shard_count;
    clv_lm_tensor top[CLV_LM_MODEL_ROLES];
    clv_lm_tensor (*layers)[CLV_LM_ROLES]; /* uses the roles from CLV_LM_MODEL_ROLES on */
    double *factors; /* [turned / 2]: divisors of the frequencies; NULL: none */
    clv_tokenizer *tokenizer;
    int32_t ends[CLV_LM_ENDS_MOST]; /* tokens that end a text */
    size_t end_count;
    char *chat_template; /* NULL: none */
    bool texts;          /* tokenizer and template are loaded */
    uint64_t bytes, parameters;
    char types[256]; /* "210 Q4_1, 1 Q8_0, 61 F32" */
} clv_lm_model;

/* Opens the model at `path`. With `texts`, also loads its chat template and its tokenizer, which must then exist.
 * Returns CLV_OK, CLV_E_IO, CLV_E_MEMORY, or CLV_E_FORMAT or CLV_E_UNSUPPORTED with a message that names the key or the
 * tensor. */
clv_status clv_lm_open(const char *path, bool texts, clv_lm_model **out);
void clv_lm_close(clv_lm_model *model); /* accepts NULL */

/* Reads rows [first, first + count) of a tensor without changing its type, except that F64 becomes F32. */
clv_status clv_lm_read(const clv_lm_model *model, const clv_lm_tensor *tensor, size_t first,
                       size_t count, void *out);
/* Reads a vector as floats. */
clv_status clv_lm_read_vector(const clv_lm_model *model, const clv_lm_tensor *tensor, float *out);
/* Called when the scores of the model are no numbers (CLV_E_WRONG_RESULT): if a weight is not finite, the file is to
 * blame, and not a device. Then sets an error that names the tensor, and returns CLV_E_FORMAT. Returns other statuses
 * unchanged. */
clv_status clv_lm_blame(const clv_lm_model *model, clv_status status);
size_t clv_lm_row_bytes(const clv_lm_tensor *tensor);

/* ---- rotary positions ----------------------------------------------------------------------------- */

/* Returns the angle in radians by which pair t (below turned / 2) turns from one position to the next. */
double clv_lm_speed(const clv_lm_model *model, size_t t);

/* The scaling of Llama 3.1 and later: frequencies whose wavelength exceeds original / low positions are divided by
 * `factor`, those whose wavelength is below original / high positions do not change, and those in between are
 * interpolated. */
typedef struct clv_lm_llama3 {
    double factor, low, high, original;
} clv_lm_llama3;
/* The scaling of YaRN (arXiv 2309.00071): frequencies with at least `fast` turns within `original` positions do not
 * change, those with at most `slow` turns are divided by `factor`, and those in between are interpolated. With `whole`,
 * the indices of the first and last pair of this interpolation are rounded outwards to whole numbers. `swell`
 * multiplies the turned terms; 0 stands for the paper's 0.1 ln(factor) + 1. */
typedef struct clv_lm_yarn {
    double factor, original, fast, slow, swell;
    bool whole;
} clv_lm_yarn;
/* Both functions set the model's factors. Call them after the model's sizes and base are set. Return CLV_OK,
 * CLV_E_MEMORY, or CLV_E_FORMAT for numbers outside their range, with a message that names `path` and `where`. */
clv_status clv_lm_scale_llama3(clv_lm_model *model, const char *path, const char *where,
                               const clv_lm_llama3 *by);
clv_status clv_lm_scale_yarn(clv_lm_model *model, const char *path, const char *where,
                             const clv_lm_yarn *by);
/* Returns 0.1 scale ln(factor) + 1, by which YaRN multiplies queries and keys; 1 for a factor up to 1. */
double clv_lm_yarn_swell(double factor, double scale);

/* ---- for model.c --------------------------------------------------------------------------------- */

/* A tensor that a model consists of: its names in both kinds of files, the shape that the configuration prescribes, and
 * whether the tensor may be absent. */
typedef struct clv_lm_need {
    const char *gguf, *folder;
    size_t rows, columns; /* rows 1: a vector */
    bool optional;
} clv_lm_need;
clv_lm_need clv_lm_needed(const clv_lm_config *config, clv_lm_role role);

clv_status clv_lm_read_gguf(clv_lm_model *model);   /* reads the configuration, lists the tensors */
clv_status clv_lm_read_folder(clv_lm_model *model); /* does the same for a folder */
clv_status clv_lm_check_config(const char *path, const clv_lm_config *config);
/* Adds `id` to the tokens that end a text, unless it is already among them or negative. */
clv_status clv_lm_add_end(clv_lm_model *model, int64_t id);

#endif
