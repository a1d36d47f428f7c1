/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as config.json. The result is sizes that fit together and may be multiplied, or an error. */
#include "fuzz.h"

#include "base/json.h"
#include "host/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    clv_json *root;
    clv_model_config c;
    if (clv_json_parse("config.json", (const char *)data, size, &root)) return 0;
    if (!clv_model_config_parse("config.json", root, &c)) {
        FUZZ_CHECK(c.heads && c.width % c.heads == 0);
        FUZZ_CHECK(c.width <= 1 << 24 && c.ffn <= 1 << 24 && c.vocabulary <= 1 << 24);
        FUZZ_CHECK(c.layers && c.layers <= 4096 && c.types && c.positions);
        FUZZ_CHECK(c.eps >= 0 && c.eps < 1 && c.max_length == c.positions);
        FUZZ_CHECK(c.positions + c.first_position <= 1 << 24 && c.embedding <= 1 << 24);
        FUZZ_CHECK(c.positions >= 1 && c.groups <= c.layers && (!c.buckets || c.buckets == 32));
        const size_t own = c.groups ? c.groups : c.layers;
        FUZZ_CHECK(clv_weights_count(&c) == CLV_WEIGHTS_FIXED + own * CLV_WEIGHTS_A_LAYER);
        for (size_t i = 0; i < c.layers; ++i)
            FUZZ_CHECK(clv_layer_of(&c, i) < own && clv_layer_of(&c, i) <= i);
    }
    clv_json_free(root);
    return 0;
}
