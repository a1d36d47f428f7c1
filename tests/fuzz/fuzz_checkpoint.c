/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as the state of a training. An input that begins with '=' is a list of changes to a valid state
 * (place, 2 bytes; value, 1 byte), so that mutations get past its head. A state that is refused does not change the
 * trainer. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/file.h"

#include <cleave/train.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static clv_context *context;
static clv_model *model;
static clv_trainer *trainer;
static char *state;
static size_t state_bytes;

static void begin(void)
{
    const clv_model_config config = { .size = sizeof(clv_model_config),
                                      .width = 4,
                                      .heads = 1,
                                      .layers = 1,
                                      .ffn = 4,
                                      .vocabulary = 8,
                                      .positions = 4,
                                      .types = 1,
                                      .eps = 1e-12f,
                                      .act = CLV_ACTIVATION_GELU,
                                      .max_length = 4 };
    const clv_context_options options = { .size = sizeof options,
                                          .mode = CLV_MODE_REFERENCE,
                                          .cache_dir = "" };
    const clv_trainer_options wishes = { .size = sizeof wishes,
                                         .task = CLV_TRAIN_CLASSES,
                                         .classes = 2 };
    const int32_t ids[] = { 1, 2, 3, 4 }, labels[] = { 0, 1 };
    const size_t offsets[] = { 0, 2, 4 };
    char path[] = "/dev/shm/cleave-fuzz-state-XXXXXX";
    const int file = mkstemp(path);
    if (file < 0) abort();
    close(file);
    if (clv_context_create(&options, &context) || clv_model_create_random(&config, 1, &model) ||
        clv_trainer_open(context, model, &wishes, &trainer) ||
        clv_trainer_step(trainer, ids, offsets, 2, labels, 1e-3, NULL) ||
        clv_trainer_save(trainer, path, NULL) ||
        clv_file_read(path, 1 << 24, &state, &state_bytes)) {
        fprintf(stderr, "%s\n", clv_error_message());
        abort();
    }
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!trainer) begin();
    char *changed = NULL;
    if (size && *data == '=') {
        changed = fuzz_alloc(state_bytes, 1);
        if (!changed) abort();
        memcpy(changed, state, state_bytes);
        for (size_t i = 1; i + 3 <= size; i += 3)
            changed[(size_t)(data[i] << 8 | data[i + 1]) % state_bytes] = (char)data[i + 2];
        data = (const uint8_t *)changed, size = state_bytes;
    }
    const uint64_t before = clv_trainer_steps(trainer);
    const clv_status status = clv_trainer_restore(trainer, fuzz_file(data, size));
    FUZZ_CHECK(status == CLV_OK || clv_trainer_steps(trainer) == before);
    if (!status) { /* the valid state can be restored again */
        const clv_status back =
            clv_trainer_restore(trainer, fuzz_file((const uint8_t *)state, state_bytes));
        FUZZ_CHECK(fuzz_poor || back == CLV_OK);
        FUZZ_CHECK(back || clv_trainer_steps(trainer) == 1);
    }
    clv_free(changed);
    return 0;
}
