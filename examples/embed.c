/* SPDX-License-Identifier: Apache-2.0 */
/* Computes vectors of texts with a BERT encoder. The encoder's weights are random here; clv_model_open reads those of a
 * real model. */
#include <cleave/cleave.h>
#include <cleave/model.h>
#include <cleave/transformer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 32, TEXTS = 3 };

int main(void)
{
    static const clv_model_config config = { .size = sizeof(clv_model_config),
                                             .width = WIDTH,
                                             .heads = 4,
                                             .layers = 2,
                                             .ffn = 64,
                                             .vocabulary = 100,
                                             .positions = 16,
                                             .types = 2,
                                             .eps = 1e-12f,
                                             .act = CLV_ACTIVATION_GELU,
                                             .pooling = CLV_MODEL_MEAN,
                                             .normalize = true,
                                             .max_length = 16 };
    /* token numbers of three texts of 4, 2 and 4 tokens; the third text is the same as the first */
    static const int32_t ids[] = { 2, 17, 40, 3, 2, 3, 2, 17, 40, 3 };
    static const size_t offsets[TEXTS + 1] = { 0, 4, 6, 10 };
    float vectors[TEXTS][WIDTH] = { { 0 } };
    clv_context *context = NULL;
    clv_model *model = NULL;
    clv_encoder *encoder = NULL;
    clv_status status = clv_context_create(NULL, &context);
    if (!status) status = clv_model_create_random(&config, 1, &model);
    if (!status)
        status = clv_encoder_open(context, clv_model_get_config(model),
                                  clv_model_get_weights(model), NULL, &encoder);
    if (!status) status = clv_encode(encoder, ids, offsets, TEXTS, vectors[0], NULL);
    float same = 0, other = 0;
    for (size_t i = 0; i < WIDTH; ++i)
        same += vectors[0][i] * vectors[2][i], other += vectors[0][i] * vectors[1][i];
    printf("likeness of the first and the third text %.3f, of the first and the second %.3f\n",
           (double)same, (double)other);
    if (status) fprintf(stderr, "%s\n%s\n", clv_error_message(), clv_error_detail());
    clv_encoder_close(encoder), clv_model_close(model), clv_context_free(context);
    return !status && fabsf(same - 1) < 1e-5f && other < same ? EXIT_SUCCESS : EXIT_FAILURE;
}
