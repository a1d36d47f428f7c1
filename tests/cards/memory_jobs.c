/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of usual large sizes, on data that are never read, or all zero. */
#define _GNU_SOURCE /* MAP_NORESERVE */
#include "memory.h"

#include "base/alloc.h"
#include "host/blob/blob_job.h"
#include "host/blob/volume_plan.h"
#include "host/patch/paco_job.h"
#include "host/spectra/spectra_job.h"
#include "host/synthetic/stars.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Address space full of zeros, which takes no memory as long as it is only read. */
static void *zeros(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) return memory;
    perror("card_memory: mmap");
    exit(1);
}

static clv_status nothing(const clv_slot *slot, size_t first, size_t count, void *user)
{
    (void)slot, (void)first, (void)count, (void)user;
    return CLV_OK;
}

static void plan_paco(clv_context *context, unsigned radius, clv_psf_mode mode)
{
    enum { FRAMES = 100, SIDE = 2048, PSF = 15 };
    const size_t bytes = (size_t)FRAMES * SIDE * SIDE * sizeof(float);
    float *cube = zeros(bytes), psf[PSF * PSF];
    double angles[FRAMES];
    for (int i = 0; i < PSF * PSF; ++i) {
        const int y = i / PSF - PSF / 2, x = i % PSF - PSF / 2;
        psf[i] = (float)exp(-(y * y + x * x) / 8.0);
    }
    for (int i = 0; i < FRAMES; ++i)
        angles[i] = 0.6 * i;
    const clv_paco_input input = { .size = sizeof input,
                                   .cube = cube,
                                   .frames = FRAMES,
                                   .height = SIDE,
                                   .width = SIDE,
                                   .angles = angles,
                                   .psf = psf,
                                   .psf_size = PSF };
    const clv_paco_options options = { .size = sizeof options, .radius = radius, .psf_mode = mode };
    clv_paco_plan *plan;
    memory_name("paco, radius %u%s", radius, mode == CLV_PSF_SHIFT ? ", shifted" : "");
    memory_require(clv_paco_plan_create(&input, &options, &plan));
    const clv_job job = { .size = sizeof job,
                          .name = "paco",
                          .units = clv_paco_units(plan),
                          .cost = clv_paco_cost,
                          .setup = clv_paco_setup,
                          .enqueue = clv_paco_enqueue_rows,
                          .commit = nothing };
    memory_require(clv_job_run(context, &job, plan, NULL));
    clv_paco_plan_free(plan);
    munmap(cube, bytes);
}

static void plan_blobs(clv_context *context, double sigma, clv_blob_pixel type, bool dog)
{
    const clv_blob_frames shape = {
        .size = sizeof shape, .type = type, .frames = 8000, .height = 2048, .width = 2048
    };
    const clv_blob_options options = { .size = sizeof options,
                                       .min_sigma_px = 1,
                                       .max_sigma_px = sigma,
                                       .dog = dog,
                                       .threshold_sigma = 5 };
    clv_blob_plan *plan;
    memory_name("blobs, sigma to %g, pixels of type %d%s", sigma, (int)type, dog ? ", DoG" : "");
    memory_require(clv_blob_plan_create(&shape, &options, &plan));
    const size_t bytes = shape.frames * shape.height * shape.width * plan->pixel_bytes;
    void *pixels = zeros(bytes);
    plan->pixels = pixels, plan->frames = shape.frames;
    const clv_job job = { .size = sizeof job,
                          .name = "blobs",
                          .units = shape.frames,
                          .cost = clv_blob_cost,
                          .setup = clv_blob_setup,
                          .enqueue = clv_blob_enqueue,
                          .commit = nothing };
    memory_require(clv_job_run(context, &job, plan, NULL));
    clv_blob_plan_free(plan);
    munmap(pixels, bytes);
}

static void plan_volumes(clv_context *context, size_t side, size_t depth, double sigma)
{
    const clv_volume_stacks shape = { .size = sizeof shape,
                                      .type = CLV_BLOB_U16,
                                      .stacks = 1,
                                      .depth = depth,
                                      .height = side,
                                      .width = side };
    const clv_blob_options options = {
        .size = sizeof options, .min_sigma_px = 1, .max_sigma_px = sigma, .threshold_sigma = 5
    };
    const size_t bytes = depth * side * side * 2;
    void *voxels = zeros(bytes);
    clv_volume_plan *plan;
    memory_name("volumes of %zu x %zu x %zu, sigma to %g", depth, side, side, sigma);
    memory_require(clv_volume_plan_create(&shape, &options, 1, 0, &plan));
    plan->voxels = voxels;
    const clv_job job = { .size = sizeof job,
                          .name = "volumes",
                          .units = plan->slabs,
                          .cost = clv_volume_cost,
                          .setup = clv_volume_setup,
                          .enqueue = clv_volume_enqueue,
                          .commit = nothing };
    memory_require(clv_job_run(context, &job, plan, NULL));
    clv_volume_plan_free(plan);
    munmap(voxels, bytes);
}

/* Slabs of large planes are thick: a thin one would compute the planes around it again and again. */
static void plan_large_planes(clv_context *context)
{
    enum { DEPTH = 24, SIDE = 2048 };
    const clv_volume_stacks shape = { .size = sizeof shape,
                                      .type = CLV_BLOB_U8,
                                      .stacks = 1,
                                      .depth = DEPTH,
                                      .height = SIDE,
                                      .width = SIDE };
    const clv_blob_options options = { .size = sizeof options, .threshold_given = true };
    clv_volume_spot *spots;
    size_t count;
    void *voxels = zeros((size_t)DEPTH * SIDE * SIDE);
    memory_name("volumes of large planes");
    memory_last_card(true); /* the context knows the memory of this card alone */
    memory_require(clv_volumes(context, &shape, voxels, &options, &spots, &count, NULL, NULL));
    memory_last_card(false);
    if (memory_units() > DEPTH / 4) {
        fprintf(stderr, "card_memory: %d planes are cut into %zu slabs\n", (int)DEPTH,
                memory_units());
        exit(1);
    }
    munmap(voxels, (size_t)DEPTH * SIDE * SIDE);
}

static void plan_specfit(clv_context *context, const synthetic_stars_shape *shape, unsigned starts,
                         bool resolution, bool models)
{
    const size_t count = 40000;
    synthetic_stars made;
    memory_name("specfit, %zu pixels, %u starts%s%s", shape->pixels[0], starts,
                resolution ? ", resolution matrices" : "", models ? ", models" : "");
    memory_require(synthetic_stars_create_like(shape, 1, 7, resolution, &made));
    const size_t spectra = made.stars.spectra;
    clv_spectrum *items = clv_alloc(count * spectra, sizeof *items);
    clv_specfit_result *results = clv_zalloc(count, sizeof *results);
    if (!items || !results) exit(1);
    for (size_t i = 0; i < count * spectra; ++i)
        items[i] = made.stars.items[i % spectra];
    const clv_spectra_stars stars = {
        .size = sizeof stars, .count = count, .spectra = spectra, .items = items
    };
    const clv_specfit_options options = { .size = sizeof options,
                                          .starts = starts,
                                          .models = models };
    memory_require(clv_specfit(context, &made.library, &stars, &options, results, NULL));
    clv_free(items), clv_free(results);
    synthetic_stars_clear(&made);
}

/* The layers of a model use the same buffers one after the other, so that one layer is enough. */
static void plan_encoder(clv_context *context, size_t width, size_t texts, bool hidden)
{
    const size_t length = 128, vocabulary = 30522,
                 weight_bytes = vocabulary * width * sizeof(float);
    const size_t id_bytes = texts * length * sizeof(int32_t),
                 out_bytes = (hidden ? texts * length : texts) * width * sizeof(float);
    float *w = zeros(weight_bytes), *out = zeros(out_bytes);
    int32_t *ids = zeros(id_bytes);
    size_t *offsets = clv_alloc(texts + 1, sizeof *offsets);
    const clv_model_layer layer = { w,
                                    w + width * width,
                                    w + 2 * width * width,
                                    w,
                                    w + width,
                                    w + 2 * width,
                                    w,
                                    w,
                                    w,
                                    w,
                                    w,
                                    w,
                                    w,
                                    w,
                                    w,
                                    w };
    const clv_model_config config = { .size = sizeof config,
                                      .width = width,
                                      .heads = width / 64,
                                      .layers = 1,
                                      .ffn = 4 * width,
                                      .vocabulary = vocabulary,
                                      .positions = 512,
                                      .types = 2,
                                      .eps = 1e-12f,
                                      .act = CLV_ACTIVATION_GELU,
                                      .max_length = 512 };
    if (!offsets) exit(1);
    for (size_t i = 0; i <= texts; ++i)
        offsets[i] = i * length;
    const clv_model_weights weights = { .size = sizeof weights,
                                        .word = w,
                                        .position = w,
                                        .type = w,
                                        .norm_weight = w,
                                        .norm_bias = w,
                                        .layer = &layer };
    const clv_encoder_options options = { .size = sizeof options, .hidden = hidden };
    clv_encoder *encoder;
    memory_name("embeddings of width %zu%s", width, hidden ? ", rows of tokens" : "");
    memory_require(clv_encoder_open(context, &config, &weights, &options, &encoder));
    memory_require(clv_encode(encoder, ids, offsets, texts, out, NULL));
    clv_encoder_close(encoder);
    clv_free(offsets);
    munmap(w, weight_bytes), munmap(ids, id_bytes), munmap(out, out_bytes);
}

static void plan_search(clv_context *context, size_t count, size_t top)
{
    const size_t rows = 8000000, width = 768;
    float *queries = zeros(count * width * sizeof *queries), *all = zeros(rows * width * 4);
    const clv_search_options options = { .size = sizeof options, .top = top };
    clv_search *search;
    memory_name("search of %zu queries, top %zu", count, top);
    memory_require(clv_search_create(context, queries, count, width, &options, &search));
    memory_require(clv_search_add(search, all, rows, 0, NULL));
    clv_search_free(search);
    munmap(queries, count * width * sizeof *queries), munmap(all, rows * width * 4);
}

void memory_plan_jobs(clv_context *context)
{
    for (unsigned radius = 2; radius <= 6; ++radius)
        plan_paco(context, radius, CLV_PSF_SHIFT);
    plan_paco(context, 4, CLV_PSF_FIXED);
    plan_blobs(context, 3, CLV_BLOB_U16, false);
    plan_blobs(context, 20, CLV_BLOB_F32, false);
    plan_blobs(context, 10, CLV_BLOB_U8, true);
    plan_volumes(context, 2048, 400, 3);
    plan_volumes(context, 1024, 1000, 5);
    plan_large_planes(context);
    plan_specfit(context, &synthetic_stars_desi, 1, true, true);
    plan_specfit(context, &synthetic_stars_small, 4, false, false);
    plan_encoder(context, 384, 10000, false);
    plan_encoder(context, 1024, 15000, true);
    plan_search(context, 1000, 10);
    plan_search(context, 100, 1000);
}
