/* SPDX-License-Identifier: Apache-2.0 */
/* Golden cases of the blocks of transformers. */
#include "golden.h"

#include "data.h"
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/json.h"

#include <cleave/tensors.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARRAYS = 512 };

static clv_tensors *file;
static clv_json *facts;
static struct {
    char name[64];
    void *data;
} held[MOST_ARRAYS];
static size_t held_count;

void golden_open(void)
{
    size_t length;
    char *text = test_data_read("transformer/blocks.json", &length);
    EXPECT_OK(clv_json_parse("blocks.json", text, length, &facts));
    EXPECT_OK(clv_tensors_open(test_data("transformer/blocks.safetensors"), &file));
    clv_free(text);
}

void golden_close(void)
{
    while (held_count)
        clv_free(held[--held_count].data);
    clv_tensors_close(file);
    clv_json_free(facts);
}

int golden_setup(void **state)
{
    (void)state;
    test_isolate();
    golden_open();
    return 0;
}

int golden_teardown(void **state)
{
    (void)state;
    golden_close();
    return 0;
}

static const clv_tensor *find(const char *name, const char *role, char full[64])
{
    snprintf(full, 64, "%s.%s", name, role);
    return clv_tensors_find(file, full);
}

bool golden_has(const char *name, const char *role)
{
    char full[64];
    return find(name, role, full) != NULL;
}

static void *data_of(const clv_tensor *tensor, const char *full)
{
    for (size_t i = 0; i < held_count; ++i)
        if (strcmp(held[i].name, full) == 0) return held[i].data;
    assert_true(held_count < MOST_ARRAYS);
    void *data = clv_alloc((size_t)tensor->bytes + 1, 1);
    assert_non_null(data);
    EXPECT_OK(clv_tensors_read(file, tensor, data, (size_t)tensor->bytes));
    snprintf(held[held_count].name, sizeof held[0].name, "%s", full);
    held[held_count++].data = data;
    return data;
}

golden_array golden_get(const char *name, const char *role)
{
    char full[64];
    const clv_tensor *tensor = find(name, role, full);
    if (!tensor) fail_msg("no golden %s", full);
    golden_array out = { .rank = tensor->rank, .count = tensor->count };
    for (size_t i = 0; i < tensor->rank && i < 4; ++i)
        out.shape[i] = tensor->shape[i];
    if (tensor->type == CLV_TENSOR_F32)
        out.f32 = data_of(tensor, full);
    else
        out.i32 = data_of(tensor, full);
    return out;
}

double golden_number(const char *name, const char *parameter, double fallback)
{
    const clv_json *params = clv_json_get(clv_json_get(facts, name), "params");
    return clv_json_number(clv_json_get(params, parameter), fallback);
}

void golden_expect(const char *name, const char *role, const float *got)
{
    const golden_array want = golden_get(name, role);
    const clv_json *tolerances = clv_json_get(clv_json_get(facts, name), "tol");
    const double allowed = clv_json_number(clv_json_get(tolerances, role), -1);
    double worst = 0;
    size_t at = 0;
    assert_true(allowed >= 0);
    for (size_t i = 0; i < want.count; ++i) {
        const double error = fabs((double)got[i] - (double)want.f32[i]);
        if (!(error <= worst)) worst = isnan(error) ? INFINITY : error, at = i;
    }
    if (!(worst <= allowed))
        fail_msg("%s.%s[%zu] is %.9g, expected %.9g: %.2f of the tolerance", name, role, at,
                 (double)got[at], (double)want.f32[at], worst / allowed);
}
