/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of models share: a tiny model, and folders with its files that a test may then change. */
#ifndef CLEAVE_TESTS_IO_MODEL_TEST_H
#define CLEAVE_TESTS_IO_MODEL_TEST_H

#include "io_test.h"

#include "host/model/model.h"

extern const clv_model_config model_tiny;
extern const char model_config_text[]; /* the config.json of that model */

/* Returns the path of a file in a folder (static buffer). */
const char *model_path(const char *folder, const char *name);
/* Writes a text to a file of a folder. */
void model_put(const char *folder, const char *name, const char *text);
/* Makes a whole model folder, and returns its path (static buffer). Its weights are those of
 * clv_model_create_random(&model_tiny, 7). */
const char *model_make(const char *name);
void model_expect_same(const clv_model *got, const clv_model *want);

#endif
