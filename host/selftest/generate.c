/* SPDX-License-Identifier: Apache-2.0 */
/* Tests language models with random weights on the device under test: writes synthetic GGUF files of two architectures
 * with weights of several types, and compares their scores with plain C. */
#define _GNU_SOURCE /* mkstemp */
#include "host/selftest/selftest.h"
#include "host/synthetic/worse.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/quant.h"

#include <cleave/generate.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WIDTH = 256,
    HEADS = 4,
    GROUPS = 2,
    HEAD = 64,
    INNER = 512,
    WORDS = 96,
    LAYERS = 2,
    TOKENS = 21,
    ALIGN = 32
};

/* ---- a file ---------------------------------------------------------------------------------------- */

typedef struct maker {
    FILE *file;
    const char *architecture;
    const clv_quant *types; /* types of the matrices, which take turns; ends with F32 */
    bool norms;             /* the heads have norms, as in qwen3 */
    size_t turn;
    uint64_t offset; /* offset of the next tensor's data */
    bool data;       /* second pass */
    uint32_t state;
} maker;

static void put(maker *m, const void *bytes, size_t count)
{
    fwrite(bytes, 1, count, m->file);
}

static void put_u32(maker *m, uint32_t v)
{
    put(m, &v, sizeof v);
}

static void put_u64(maker *m, uint64_t v)
{
    put(m, &v, sizeof v);
}

static void put_text(maker *m, const char *text)
{
    put_u64(m, strlen(text));
    put(m, text, strlen(text));
}

static void put_key(maker *m, const char *key, uint32_t type)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", m->architecture, key);
    put_text(m, name);
    put_u32(m, type);
}

static uint32_t next(maker *m)
{
    m->state = m->state * 1664525u + 1013904223u;
    return m->state >> 8;
}

static float number(maker *m, float middle, float span)
{
    return middle + span * ((float)next(m) * 0x1p-23f - 1.0f);
}

/* Writes a block of random bits. Its scales are half-precision numbers from 2^-9 to 2^-8, which keeps the values
 * small. */
static void put_block(maker *m, clv_quant type)
{
    static const struct {
        clv_quant type;
        size_t halves[2], count;
    } scales[] = {
        { CLV_QUANT_Q4_0, { 0 }, 1 },    { CLV_QUANT_Q4_1, { 0, 2 }, 2 },
        { CLV_QUANT_Q8_0, { 0 }, 1 },    { CLV_QUANT_Q5_0, { 0 }, 1 },
        { CLV_QUANT_Q4_K, { 0, 2 }, 2 }, { CLV_QUANT_Q6_K, { 208 }, 1 },
    };
    unsigned char block[256];
    const size_t bytes = clv_quant_get_facts(type)->bytes;
    for (size_t i = 0; i < bytes; ++i)
        block[i] = (unsigned char)next(m);
    for (size_t i = 0; i < CLV_LEN(scales); ++i)
        for (size_t k = 0; scales[i].type == type && k < scales[i].count; ++k) {
            /* the sums of 6-bit scales, and of bytes, are larger */
            const unsigned power = type == CLV_QUANT_Q4_K || type == CLV_QUANT_Q8_0 ? 4
                                   : type == CLV_QUANT_Q6_K                         ? 1
                                                                                    : 7;
            const uint16_t half = (uint16_t)(power << 10 | (next(m) & 0x3ff) | (k ? 0x8000 : 0));
            memcpy(block + scales[i].halves[k], &half, sizeof half);
        }
    put(m, block, bytes);
}

static void put_data(maker *m, clv_quant type, size_t rows, size_t columns)
{
    const clv_quant_facts *facts = clv_quant_get_facts(type);
    const size_t count = rows * columns / facts->count;
    for (size_t i = 0; i < count; ++i) {
        const float value = rows > 1 ? number(m, 0, 0.06f) : number(m, 1, 0.3f);
        if (type == CLV_QUANT_F32)
            put(m, &value, sizeof value);
        else if (type == CLV_QUANT_BF16)
            put(m, (const char *)&value + 2, 2);
        else
            put_block(m, type);
    }
    for (size_t at = count * facts->bytes; at % ALIGN; ++at)
        put(m, "", 1);
}

static void put_tensor(maker *m, const char *name, clv_quant type, size_t rows, size_t columns)
{
    const clv_quant_facts *facts = clv_quant_get_facts(type);
    if (m->data) {
        put_data(m, type, rows, columns);
        return;
    }
    put_text(m, name);
    put_u32(m, rows > 1 ? 2 : 1);
    put_u64(m, columns);
    if (rows > 1) put_u64(m, rows);
    put_u32(m, (uint32_t)type);
    put_u64(m, m->offset);
    m->offset += clv_round_up(rows * columns / facts->count * facts->bytes, ALIGN);
}

static void put_matrix(maker *m, const char *name, size_t rows, size_t columns)
{
    if (m->types[m->turn] == CLV_QUANT_F32) m->turn = 0;
    put_tensor(m, name, m->types[m->turn++], rows, columns);
}

static void put_layer(maker *m, size_t layer)
{
    static const struct {
        const char *name;
        size_t rows, columns;
    } all[] = { { "attn_norm", 1, WIDTH },          { "ffn_norm", 1, WIDTH },
                { "attn_q_norm", 1, HEAD },         { "attn_k_norm", 1, HEAD },
                { "attn_q", HEADS * HEAD, WIDTH },  { "attn_k", GROUPS * HEAD, WIDTH },
                { "attn_v", GROUPS * HEAD, WIDTH }, { "attn_output", WIDTH, HEADS * HEAD },
                { "ffn_gate", INNER, WIDTH },       { "ffn_up", INNER, WIDTH },
                { "ffn_down", WIDTH, INNER } };
    char name[64];
    for (size_t i = 0; i < CLV_LEN(all); ++i) {
        snprintf(name, sizeof name, "blk.%zu.%s.weight", layer, all[i].name);
        if (all[i].rows > 1)
            put_matrix(m, name, all[i].rows, all[i].columns);
        else if (m->norms || all[i].columns == WIDTH)
            put_tensor(m, name, CLV_QUANT_F32, 1, all[i].columns);
    }
}

static void put_tensors(maker *m, bool data)
{
    m->data = data, m->turn = 0;
    put_tensor(m, "token_embd.weight", m->types[0], WORDS, WIDTH);
    put_tensor(m, "output_norm.weight", CLV_QUANT_F32, 1, WIDTH);
    for (size_t i = 0; i < LAYERS; ++i)
        put_layer(m, i);
}

static void put_all(maker *m)
{
    static const struct {
        const char *key;
        uint32_t value;
    } sizes[] = { { "block_count", LAYERS },         { "context_length", 64 },
                  { "embedding_length", WIDTH },     { "feed_forward_length", INNER },
                  { "attention.head_count", HEADS }, { "attention.head_count_kv", GROUPS } };
    enum { U32 = 4, F32 = 6, TEXT = 8 };
    const float eps = 1e-5f;
    put(m, "GGUF", 4), put_u32(m, 3);
    put_u64(m, 2 + LAYERS * (m->norms ? 11 : 9));
    put_u64(m, CLV_LEN(sizes) + 2);
    put_text(m, "general.architecture"), put_u32(m, TEXT), put_text(m, m->architecture);
    for (size_t i = 0; i < CLV_LEN(sizes); ++i)
        put_key(m, sizes[i].key, U32), put_u32(m, sizes[i].value);
    put_key(m, "attention.layer_norm_rms_epsilon", F32), put(m, &eps, sizeof eps);
    put_tensors(m, false);
    for (long at = ftell(m->file); at % ALIGN; ++at)
        put(m, "", 1);
    put_tensors(m, true);
}

static clv_status make_file(maker *m, char path[], size_t room)
{
    const char *base = getenv("TMPDIR");
    snprintf(path, room, "%.200s/cleave-selftest-XXXXXX", base && *base ? base : "/tmp");
    const int descriptor = mkstemp(path);
    m->file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    if (!m->file) return clv_fail(CLV_E_IO, "%s: cannot create a model in this folder", path);
    put_all(m);
    const bool bad = ferror(m->file) != 0;
    return fclose(m->file) || bad ? clv_fail(CLV_E_IO, "%s: cannot write a model", path) : CLV_OK;
}

/* ---- checks ---------------------------------------------------------------------------------------- */

/* Computes the scores after a prompt, then after three tokens that follow one by one. */
static clv_status score(clv_context *context, const char *path, float *out)
{
    int32_t ids[TOKENS + 3];
    clv_decoder *d;
    for (size_t i = 0; i < CLV_LEN(ids); ++i)
        ids[i] = (int32_t)(i * 37 % WORDS);
    CLV_TRY(clv_decoder_open(context, path, 0, &d));
    clv_status status = clv_decoder_feed(d, 0, ids, TOKENS, out);
    for (size_t i = 0; i < 3 && !status; ++i)
        status = clv_decoder_feed(d, TOKENS + i, &ids[TOKENS + i], 1, out + (i + 1) * WORDS);
    clv_decoder_close(d);
    return status;
}

static void run_model(selftest *test, clv_context *plain, maker m, const char *what)
{
    char path[256];
    float want[4 * WORDS], got[4 * WORDS];
    double worst = 0, largest = 0;
    selftest_begin(test, "language model %s", what);
    clv_status status = make_file(&m, path, sizeof path);
    if (!status) status = score(plain, path, want);
    if (!status) status = score(test->context, path, got);
    unlink(path);
    for (size_t i = 0; i < CLV_LEN(want) && !status; ++i) {
        worst = cli_worse(worst, fabs((double)want[i] - (double)got[i]));
        largest = fmax(largest, fabs((double)want[i]));
    }
    if (!status && !(largest > 0.1))
        status = clv_fail(CLV_E_INTERNAL,
                          "the synthetic model gives a score of %g, which is not usable", largest);
    selftest_end(test, status, worst / fmax(largest, 1e-30), 1e-5);
}

void selftest_generate(selftest *test)
{
    static const clv_quant small[] = { CLV_QUANT_Q4_1, CLV_QUANT_Q4_1, CLV_QUANT_Q8_0,
                                       CLV_QUANT_Q4_0, CLV_QUANT_Q5_0, CLV_QUANT_Q5_0,
                                       CLV_QUANT_F32 };
    static const clv_quant large[] = { CLV_QUANT_Q4_K, CLV_QUANT_Q4_K, CLV_QUANT_Q6_K,
                                       CLV_QUANT_BF16, CLV_QUANT_F32 };
    clv_context *plain = NULL;
    const clv_context_options reference = { .size = sizeof(clv_context_options),
                                            .mode = CLV_MODE_REFERENCE,
                                            .cache_dir = "" };
    if (clv_context_create(&reference, &plain)) {
        selftest_begin(test, "language models");
        selftest_end(test, CLV_E_INTERNAL, 0, 0);
        return;
    }
    run_model(test, plain, (maker){ .architecture = "llama", .types = small, .state = 3 },
              "llama, Q4_1 to Q8_0");
    run_model(test, plain,
              (maker){ .architecture = "qwen3", .types = large, .norms = true, .state = 5 },
              "qwen3, Q4_K, Q6_K");
    clv_context_free(plain);
}
