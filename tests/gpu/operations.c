/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every operation once at usual sizes, on the first device, so that an OpenCL layer can record the
 * programs, options and launches that a GPU would get. The results are not checked, because the layer may skip large
 * launches.
 *
 * usage: gpu_operations [NAME...]    runs the operations whose names begin with NAME; without NAME, all */
#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"
#include "host/model/minilm.h"
#include "host/synthetic/stars.h"
#include "host/transformer/backward/back.h"
#include "host/transformer/decoder.h"
#include "runtime/blas/gemm.h"
#include "runtime/device/queue.h"
#include "runtime/record/context.h"

#include <cleave/cleave.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static clv_context *context;
static clv_queue *queue;

static void require(clv_status status)
{
    if (!status) return;
    fprintf(stderr, "gpu_operations: %s\n", clv_error_message());
    exit(1);
}

static void *numbers(size_t count)
{
    float *made = clv_zalloc(count, sizeof *made);
    if (!made) exit(1);
    return made;
}

static clv_buffer *room(size_t floats)
{
    clv_buffer *buffer;
    require(clv_buffer_create(clv_queue_device(queue), floats * sizeof(float), CLV_BUFFER_DEVICE,
                              &buffer));
    return buffer;
}

/* ---- planets, spots, stars ------------------------------------------------------------------- */

static void paco_once(size_t side, size_t frames, unsigned radius, unsigned vectors,
                      clv_psf_mode mode)
{
    enum { PSF = 15 };
    float *cube = numbers(frames * side * side), psf[PSF * PSF] = { 0 };
    double *a = clv_alloc(2 * side * side, sizeof *a), *angles = clv_zalloc(frames, sizeof *angles);
    for (size_t i = 0; i < frames * side * side; i += 7)
        cube[i] = (float)(i % 101);
    for (int i = 0; i < PSF * PSF; ++i) {
        const int y = i / PSF - PSF / 2, x = i % PSF - PSF / 2;
        psf[i] = 1.0f / (1.0f + (float)(y * y + x * x));
    }
    for (size_t i = 0; i < frames; ++i)
        angles[i] = (double)i;
    const clv_paco_input in = { .size = sizeof(clv_paco_input),
                                .cube = cube,
                                .frames = frames,
                                .height = side,
                                .width = side,
                                .angles = angles,
                                .psf = psf,
                                .psf_size = PSF };
    const clv_paco_options options = {
        .size = sizeof options, .radius = radius, .psf_mode = mode, .psf_vectors = vectors
    };
    require(clv_paco(context, &in, &options, a, a + side * side, NULL, NULL));
    clv_free(cube), clv_free(a), clv_free(angles);
}

static void paco(void)
{
    paco_once(512, 100, 4, 10, CLV_PSF_SHIFT);
    paco_once(512, 100, 4, 10, CLV_PSF_FIXED);
    paco_once(256, 100, 5, 10, CLV_PSF_SHIFT);
    paco_once(256, 100, 6, 10, CLV_PSF_SHIFT);
    paco_once(128, 40, 2, 5, CLV_PSF_SHIFT);
}

static void blobs_once(size_t side, clv_blob_pixel type, double most, bool dog, bool noise)
{
    static const size_t bytes[] = { 1, 2, 2, 4 };
    const size_t frames = 8;
    void *pixels = clv_zalloc(frames * side * side, bytes[type]);
    clv_spot *spots = NULL;
    size_t count = 0;
    const clv_blob_frames shape = { .size = sizeof(clv_blob_frames),
                                    .type = type,
                                    .frames = frames,
                                    .height = side,
                                    .width = side };
    const clv_blob_options options = { .size = sizeof options,
                                       .max_sigma_px = most,
                                       .dog = dog,
                                       .threshold_sigma_given = noise,
                                       .threshold_sigma = 5,
                                       .threshold_given = !noise,
                                       .threshold = 10 };
    require(clv_blobs(context, &shape, pixels, &options, &spots, &count, NULL, NULL));
    clv_free(spots), clv_free(pixels);
}

static void blobs(void)
{
    for (int type = 0; type < 4; ++type)
        blobs_once(512, (clv_blob_pixel)type, 3, false, false);
    blobs_once(512, CLV_BLOB_U16, 3, true, false);
    blobs_once(512, CLV_BLOB_U16, 3, false, true);
    blobs_once(1024, CLV_BLOB_U16, 10, false, false);
}

static void volumes(void)
{
    static const size_t bytes[] = { 1, 2, 2, 4 };
    const size_t depth = 24, side = 128;
    for (int i = 0; i < 5; ++i) {
        const clv_blob_pixel type = (clv_blob_pixel)(i % 4);
        void *voxels = clv_zalloc(depth * side * side, bytes[type]);
        clv_volume_spot *spots = NULL;
        size_t count = 0;
        const clv_volume_stacks shape = { .size = sizeof shape,
                                          .type = type,
                                          .stacks = 1,
                                          .depth = depth,
                                          .height = side,
                                          .width = side };
        const clv_blob_options options = { .size = sizeof options, .dog = i == 4 };
        require(clv_volumes(context, &shape, voxels, &options, &spots, &count, NULL, NULL));
        clv_free(spots), clv_free(voxels);
    }
}

static void search_once(size_t queries, clv_similarity similarity, clv_codes first_pass)
{
    enum { ROWS = 20000, WIDTH = 384 };
    float *q = clv_zalloc(queries * WIDTH, sizeof *q);
    void *x = clv_zalloc((size_t)ROWS * WIDTH, sizeof(float));
    const clv_search_options options = { .size = sizeof options,
                                         .similarity = similarity,
                                         .first_pass = first_pass };
    clv_search *search;
    require(q && x ? CLV_OK : CLV_E_MEMORY);
    require(clv_search_create(context, q, queries, WIDTH, &options, &search));
    require(first_pass ? clv_search_add_codes(search, x, ROWS, NULL)
                       : clv_search_add(search, x, ROWS, 0, NULL));
    clv_search_free(search);
    clv_free(q), clv_free(x);
}

static void searches(void)
{
    search_once(1, CLV_SIMILARITY_DOT, CLV_CODES_NONE);
    search_once(8, CLV_SIMILARITY_COSINE, CLV_CODES_NONE);
    search_once(100, CLV_SIMILARITY_COSINE, CLV_CODES_NONE);
    search_once(100, CLV_SIMILARITY_COSINE, CLV_CODES_INT8);
    search_once(100, CLV_SIMILARITY_COSINE, CLV_CODES_BINARY);
}

static void stars_once(bool resolution, unsigned terms)
{
    synthetic_stars s;
    const size_t count = 2;
    clv_specfit_result *results = clv_zalloc(count, sizeof *results);
    require(synthetic_stars_create_like(&synthetic_stars_desi, count, 1, resolution, &s));
    const clv_specfit_options options = { .size = sizeof options, .terms = terms };
    require(clv_specfit(context, &s.library, &s.stars, &options, results, NULL));
    synthetic_stars_clear(&s);
    clv_free(results);
}

static void specfit(void)
{
    stars_once(false, 10);
    stars_once(true, 10);
    stars_once(false, 15);
}

static void templates(void)
{
    enum { POINTS = 20000, SPECTRA = 20 };
    double *wave = clv_alloc(POINTS, sizeof *wave);
    float *flux = clv_alloc((size_t)SPECTRA * POINTS, sizeof *flux);
    for (size_t i = 0; i < POINTS; ++i)
        wave[i] = 5000 + 0.02 * (double)i;
    for (size_t i = 0; i < (size_t)SPECTRA * POINTS; ++i)
        flux[i] = 1;
    const clv_template_source source = { sizeof source, POINTS, wave, 0 };
    const clv_template_arm arm = {
        .size = sizeof arm, .first = 5050, .last = 5350, .step = 0.4, .sigma = 0.5
    };
    clv_template_maker *maker;
    require(clv_template_maker_create(&source, &arm, &maker));
    float *out = numbers(SPECTRA * clv_template_maker_grid(maker).points);
    require(clv_template_maker_run(maker, context, flux, SPECTRA, out, NULL));
    clv_template_maker_free(maker);
    clv_free(wave), clv_free(flux), clv_free(out);
}

/* ---- products and transformers --------------------------------------------------------------- */

/* Multiplies matrices once by a form. B is [k,n], or [n,k] as in decoders if `turned` is true; its elements are halves
 * if `half` is true. */
static void product_once(const clv_gemm_form *form, size_t m, size_t n, size_t k, bool turned,
                         bool half)
{
    clv_buffer *a = room(m * k), *b = room(n * k), *c = room(m * n), *bias = room(n);
    clv_gemm g = { .m = m,
                   .n = n,
                   .k = k,
                   .batch = 1,
                   .a = { a, 0, k, 1, 0 },
                   .b = { b, 0, turned ? 1 : n, turned ? k : 1, 0 },
                   .c = { c, 0, n, 1, 0 },
                   .b_half = half,
                   .any_order = m <= CLV_GEMM_FEW, /* decoders set this for few rows */
                   .alpha = 1,
                   .bias = bias,
                   .activation = CLV_ACTIVATION_GELU };
    clv_buffer *scratch = room(clv_gemm_scratch(form, &g));
    require(clv_gemm_enqueue(queue, form, &g, scratch, NULL));
    require(clv_queue_wait(queue));
    clv_buffer_free(a), clv_buffer_free(b), clv_buffer_free(c), clv_buffer_free(bias);
    clv_buffer_free(scratch);
}

/* Products of halves. The layer reports only extensions that PoCL has, and the drivers of the cards in cards.json do
 * not list the one for matrix units, so this function says what the cards offer. PoCL has no matrix units either: the
 * kernels are built with their emulation, which farm.py replaces. */
static void products_of_halves(void)
{
    clv_device *device = clv_queue_device(queue);
    const clv_probe_device *const told = device->facts;
    clv_probe_device facts = *told;
    clv_gemm_form forms[CLV_GEMM_MOST_HALVES];
    facts.fp16 = told->vendor_norm == CLV_VENDOR_INTEL || told->vendor_norm == CLV_VENDOR_AMD;
    if (told->vendor_norm == CLV_VENDOR_INTEL && told->device_class == CLV_CLASS_DISCRETE_GPU) {
        facts.extensions =
            "cl_intel_required_subgroup_size cl_intel_subgroup_matrix_multiply_accumulate";
        facts.subgroup_sizes = "8 16 32";
    }
    device->facts = &facts;
    const size_t count = clv_gemm_halves_forms(device, forms);
    device->facts = told;
    for (size_t f = 0; f < count; ++f) {
        forms[f].emulated = true;
        if (forms[f].halves) product_once(&forms[f], 4096, 1536, 384, true, true);
    }
}

static void products(void)
{
    static const size_t sizes[][3] = {
        { 1, 2048, 2048 }, { 8, 4096, 4096 },    { 64, 1536, 384 },
        { 512, 512, 512 }, { 2048, 2048, 2048 }, { 4096, 1536, 384 }
    };
    for (size_t f = 0; f < clv_gemm_form_count(clv_queue_device(queue)); ++f) {
        const clv_gemm_form form = clv_gemm_form_of(clv_queue_device(queue), f);
        if (form.provider == CLV_GEMM_CLBLAST) continue;
        for (size_t i = 0; i < CLV_LEN(sizes); ++i)
            for (int kind = 0; kind < 4; ++kind)
                product_once(&form, sizes[i][0], sizes[i][1], sizes[i][2], kind & 1, kind & 2);
    }
    products_of_halves();
    float *a = numbers(256 * 256), *c = numbers(256 * 256);
    clv_offload_force(CLV_SIDE_DEVICE);
    require(clv_matmul_f32(context, 256, 256, 256, a, a, c));
    clv_offload_force(CLV_SIDE_AUTO);
    clv_free(a), clv_free(c);
}

static void attention_once(size_t width, size_t queries, size_t keys, bool causal, size_t kv_heads)
{
    const clv_attention_shape shape = { .size = sizeof(clv_attention_shape),
                                        .batch = 2,
                                        .heads = 8,
                                        .kv_heads = kv_heads,
                                        .queries = queries,
                                        .keys = keys,
                                        .width = width,
                                        .causal = causal };
    float *q = numbers(2 * 8 * queries * width), *k = numbers(2 * 8 * keys * width);
    int32_t *mask = clv_zalloc(2 * keys, sizeof *mask);
    clv_offload_force(CLV_SIDE_DEVICE);
    require(clv_attention_f32(context, &shape, q, k, k, causal ? NULL : mask, q));
    clv_offload_force(CLV_SIDE_AUTO);
    clv_free(q), clv_free(k), clv_free(mask);
}

static void attention(void)
{
    static const size_t widths[] = { 32, 64, 80, 96, 128, 256 };
    for (size_t i = 0; i < CLV_LEN(widths); ++i) {
        attention_once(widths[i], 512, 512, false, 8);
        attention_once(widths[i], 1024, 1024, true, 8);
        attention_once(widths[i], 1, 1024, true, 2);
    }
}

/* The usual shapes, except for a small vocabulary: it changes no kernel, and random weights take time. */
static const clv_model_config models[] = {
    { .size = sizeof(clv_model_config),
      .width = 384,
      .heads = 12,
      .layers = 2,
      .ffn = 1536,
      .vocabulary = 2000,
      .positions = 512,
      .types = 2,
      .eps = 1e-12f,
      .act = CLV_ACTIVATION_GELU,
      .pooling = CLV_MODEL_MEAN,
      .normalize = true,
      .max_length = 256 },
    { .size = sizeof(clv_model_config),
      .width = 768,
      .heads = 12,
      .layers = 2,
      .ffn = 3072,
      .vocabulary = 2000,
      .positions = 512,
      .types = 2,
      .eps = 1e-12f,
      .act = CLV_ACTIVATION_GELU,
      .pooling = CLV_MODEL_CLS,
      .normalize = true,
      .max_length = 256 },
    { .size = sizeof(clv_model_config),
      .width = 1024,
      .heads = 8,
      .layers = 1,
      .ffn = 4096,
      .vocabulary = 2000,
      .positions = 512,
      .types = 2,
      .eps = 1e-12f,
      .act = CLV_ACTIVATION_GELU,
      .pooling = CLV_MODEL_MAX,
      .max_length = 256 },
};

/* The tokens of eight texts of 128 tokens each, for encoders and trainers. */
enum { TEXTS = 8, LENGTH = 128 };
static int32_t ids[TEXTS * LENGTH];
static size_t offsets[TEXTS + 1];

static void make_texts(void)
{
    for (size_t i = 0; i < CLV_LEN(ids); ++i)
        ids[i] = (int32_t)(i * 7919 % 2000);
    for (size_t i = 0; i <= TEXTS; ++i)
        offsets[i] = i * LENGTH;
}

static void encoders(void)
{
    make_texts();
    for (size_t i = 0; i < CLV_LEN(models); ++i)
        for (int half = 0; half < 2; ++half) {
            clv_model *model;
            clv_encoder *encoder;
            float *out = numbers(TEXTS * models[i].width);
            const clv_encoder_options options = { .size = sizeof options, .half = half };
            require(clv_model_create_random(&models[i], 1, &model));
            require(clv_encoder_open(context, clv_model_get_config(model),
                                     clv_model_get_weights(model), &options, &encoder));
            require(clv_encode(encoder, ids, offsets, TEXTS, out, NULL));
            clv_encoder_close(encoder);
            clv_model_close(model);
            clv_free(out);
        }
}

static void trainers(void)
{
    make_texts();
    for (size_t i = 0; i < CLV_LEN(models); ++i)
        for (int pairs = 0; pairs < 2; ++pairs) {
            clv_model *model;
            clv_trainer *trainer;
            int32_t labels[TEXTS] = { 0 };
            const clv_trainer_options options = {
                .size = sizeof options,
                .classes = 4,
                .decay = 0.01,
                .clip = 1,
                .task = pairs ? CLV_TRAIN_PAIRS : CLV_TRAIN_CLASSES,
                .optimizer = pairs ? CLV_OPTIMIZER_SGD : CLV_OPTIMIZER_ADAMW,
                .momentum = pairs ? 0.9 : 0,
                .check_every_given = true /* no checks: few launches are executed */
            };
            require(clv_model_create_random(&models[i], 1, &model));
            require(clv_trainer_open(context, model, &options, &trainer));
            require(
                clv_trainer_step(trainer, ids, offsets, TEXTS, pairs ? NULL : labels, 1e-5, NULL));
            clv_trainer_close(trainer);
            clv_model_close(model);
        }
}

/* Runs one layer of a decoder with `heads` heads, for a prompt and for the token that follows. */
static void decoder_once(size_t heads, size_t kv_heads, size_t head, size_t ffn)
{
    enum { POSITIONS = 512 };
    const size_t width = heads * head, kv = kv_heads * head;
    const size_t weights = 2 * width + 2 * width * width + 2 * kv * width + 3 * ffn * width;
    const clv_gemm_form form = clv_gemm_form_of(clv_queue_device(queue), 0);
    const clv_block_form blocks_of = clv_block_form_of(clv_queue_device(queue));
    clv_decoder_layer l = { .width = width,
                            .heads = heads,
                            .kv_heads = kv_heads,
                            .ffn = ffn,
                            .eps = 1e-5f,
                            .form = &form,
                            .weights = room(weights) };
    l.q = width, l.k = l.q + width * width, l.v = l.k + kv * width, l.out = l.v + kv * width;
    l.norm2 = l.out + width * width, l.gate_up = l.norm2 + width;
    l.down = l.gate_up + 2 * ffn * width;
    clv_buffer *turns = room(POSITIONS * head);
    l.turns = turns, l.keys = room(POSITIONS * kv), l.values = room(POSITIONS * kv);
    for (size_t rows = 256; rows; rows = rows > 1) {
        const size_t first = rows > 1 ? 0 : 256;
        const clv_attention_block text = { .queries = (int32_t)rows,
                                           .keys = (int32_t)(first + rows) };
        const size_t count = clv_attention_block_count(&blocks_of, rows);
        clv_attention_block *made = clv_zalloc(count, sizeof *made);
        clv_buffer *blocks = room(count * sizeof *made / sizeof(float)), *x = room(rows * width);
        const clv_decoder_room space = {
            .h = room(rows * width),
            .q = room(rows * width),
            .seen = room(rows * width),
            .inner = room(rows * 2 * ffn),
            .gated = room(rows * ffn),
            .scratch = room(clv_decoder_scratch(&l, rows)),
            .parts = room(clv_decoder_parts(clv_queue_device(queue), &l, rows, POSITIONS)),
        };
        clv_attention_fill(&blocks_of, text, made);
        require(clv_write(queue, blocks, 0, made, count * sizeof *made));
        require(clv_decoder_layer_enqueue(queue, &l, &space, blocks, first, rows, x));
        require(clv_queue_wait(queue));
        clv_buffer_free(space.h), clv_buffer_free(space.q), clv_buffer_free(space.seen);
        clv_buffer_free(space.inner), clv_buffer_free(space.gated), clv_buffer_free(space.scratch);
        clv_buffer_free(space.parts);
        clv_buffer_free(blocks), clv_buffer_free(x);
        clv_free(made);
    }
    clv_buffer_free(l.weights), clv_buffer_free(turns);
    clv_buffer_free(l.keys), clv_buffer_free(l.values);
}

/* Runs the gradients that only decoders have, for `rows` tokens. */
static void decoder_back_once(size_t rows, size_t heads, size_t head, size_t ffn)
{
    const size_t width = heads * head;
    const clv_rows x = { room(rows * width), 0, width };
    clv_buffer *turns = room(rows * head), *inner = room(rows * 2 * ffn), *g = room(rows * ffn);
    clv_buffer *dx = room(rows * 2 * ffn), *moments = room(rows * 2), *weight = room(width);
    const clv_norm_back norm = { .g = x,
                                 .x = x,
                                 .dx = x,
                                 .moments = moments,
                                 .weight = { weight, 0 },
                                 .rows = rows,
                                 .width = width,
                                 .rms = true };
    require(clv_rope_back_enqueue(queue, &x, turns, 0, rows, heads, head / 2));
    require(clv_gate_back_enqueue(queue, inner, g, dx, rows, ffn, CLV_ACTIVATION_SILU));
    require(clv_norm_back_enqueue(queue, &norm));
    require(clv_queue_wait(queue));
    clv_buffer *const all[] = { x.buffer, turns, inner, g, dx, moments, weight };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        clv_buffer_free(all[i]);
}

static void decoders(void)
{
    decoder_once(32, 4, 64, 5632);
    decoder_once(32, 8, 128, 8192);
    decoder_back_once(256, 12, 64, 1024);
    decoder_back_once(256, 32, 64, 5632);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void convolutions(void)
{
    static const size_t sides[][2] = { { 3, 3 }, { 5, 3 }, { 9, 9 }, { 17, 17 } };
    const size_t side = 1024;
    float *in = numbers(side * side), *kernel = numbers(17 * 17);
    for (size_t i = 0; i < CLV_LEN(sides); ++i)
        require(clv_convolve_2d(context, in, side, side, kernel, sides[i][0], sides[i][1], NULL, in,
                                NULL));
    clv_free(in), clv_free(kernel);
}

static void eigenvalues(void)
{
    static const size_t sides[] = { 12, 24, 32, 64 };
    for (size_t i = 0; i < CLV_LEN(sides); ++i) {
        const size_t n = sides[i], count = 1000;
        float *in = numbers(count * n * n), *values = numbers(count * n);
        require(clv_eigvalsh(context, in, count, n, NULL, values, NULL));
        clv_free(in), clv_free(values);
    }
    uint64_t inside;
    require(clv_monte_carlo_pi(context, 100000000, NULL, &inside, NULL));
}

static void arrays(void)
{
    const size_t rows = 4096, columns = 512, shape[2] = { rows, columns };
    float *data = numbers(rows * columns);
    clv_array *x, *y, *w, *z, *gram, *line, *column, *one, *gradient;
    const size_t square[2] = { 256, 256 }, few[2] = { 256, columns };
    clv_array *small, *few_z;
    require(clv_array_create(context, 2, shape, &x));
    require(clv_array_create(context, 2, shape, &z));
    require(clv_array_create(context, 2, few, &small));
    require(clv_array_create(context, 2, few, &few_z));
    require(clv_array_create(context, 2, square, &gram));
    require(clv_array_create(context, 1, &shape[1], &line));
    require(clv_array_create(context, 1, &shape[1], &w));
    require(clv_array_create(context, 1, &shape[1], &gradient));
    require(clv_array_create(context, 1, &shape[0], &column));
    require(clv_array_create(context, 1, &shape[0], &y));
    require(clv_array_create(context, 0, NULL, &one));
    require(clv_array_put(x, data));
    require(clv_array_put(small, data));
    require(clv_array_put(y, data));
    require(clv_array_put(w, data));
    require(clv_array_put(line, data));
    clv_offload_force(CLV_SIDE_DEVICE);
    const clv_map_input inputs[] = { { "x", x, 0 }, { "l", line, 0 } };
    require(clv_map(context, "exp(-x * x) + l", inputs, 2, z));
    for (int what = CLV_REDUCE_SUM; what <= CLV_REDUCE_ARGMAX; ++what) {
        require(clv_reduce(context, (clv_reduction)what, x, -1, one));
        require(clv_reduce(context, (clv_reduction)what, x, 0, line));
        require(clv_reduce(context, (clv_reduction)what, x, 1, column));
    }
    require(clv_normalize(context, small, few_z, gram, NULL, NULL));
    require(clv_linear_step(context, x, y, w, one, gradient));
    require(clv_linear_train(context, x, y, w, 1e-3f, 2, NULL));
    clv_offload_force(CLV_SIDE_AUTO);
    clv_array *const all[] = { x, y, w, z, gram, line, column, one, gradient, small, few_z };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        clv_array_free(all[i]);
    clv_free(data);
}

static const struct {
    const char *name;
    void (*run)(void);
} operations[] = {
    { "paco", paco },
    { "blobs", blobs },
    { "volumes", volumes },
    { "specfit", specfit },
    { "templates", templates },
    { "products", products },
    { "attention", attention },
    { "encoders", encoders },
    { "trainers", trainers },
    { "decoders", decoders },
    { "convolutions", convolutions },
    { "eigenvalues", eigenvalues },
    { "arrays", arrays },
    { "searches", searches },
};

int main(int argc, char **argv)
{
    const clv_context_options options = { .size = sizeof options,
                                          .mode = CLV_MODE_GPU,
                                          .no_qualification = true };
    require(clv_context_create(&options, &context));
    require(clv_queue_create(clv_context_device(context, 0), &queue));
    for (size_t i = 0; i < CLV_LEN(operations); ++i) {
        bool wanted = argc < 2;
        for (int a = 1; a < argc; ++a)
            wanted |= strncmp(operations[i].name, argv[a], strlen(argv[a])) == 0;
        if (!wanted) continue;
        printf("%s\n", operations[i].name);
        fflush(stdout);
        operations[i].run();
    }
    clv_queue_free(queue);
    clv_context_free(context);
    return 0;
}
