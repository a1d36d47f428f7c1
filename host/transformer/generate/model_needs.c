/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the tensors that a model consists of, and checks the range of its configuration's values. */
#include "host/transformer/generate/model.h"

#include "base/alloc.h"
#include "base/error.h"

clv_lm_need clv_lm_needed(const clv_lm_config *c, clv_lm_role role)
{
    const size_t q = c->heads * c->head, kv = c->kv_heads * c->head, d = c->width;
    const bool norms = c->head_norm;
    const clv_lm_need all[CLV_LM_ROLES] = {
        [CLV_LM_WORDS] = { "token_embd.weight", "model.embed_tokens.weight", c->vocabulary, d,
                           false },
        [CLV_LM_OUT_NORM] = { "output_norm.weight", "model.norm.weight", 1, d, false },
        [CLV_LM_OUT] = { "output.weight", "lm_head.weight", c->vocabulary, d, c->tied },
        [CLV_LM_FACTORS] = { "rope_freqs.weight", NULL, 1, c->turned / 2, true },
        [CLV_LM_ATTN_NORM] = { "attn_norm.weight", "input_layernorm.weight", 1, d, false },
        [CLV_LM_Q] = { "attn_q.weight", "self_attn.q_proj.weight", q, d, false },
        [CLV_LM_K] = { "attn_k.weight", "self_attn.k_proj.weight", kv, d, false },
        [CLV_LM_V] = { "attn_v.weight", "self_attn.v_proj.weight", kv, d, false },
        [CLV_LM_O] = { "attn_output.weight", "self_attn.o_proj.weight", d, q, false },
        [CLV_LM_Q_BIAS] = { "attn_q.bias", "self_attn.q_proj.bias", 1, q, true },
        [CLV_LM_K_BIAS] = { "attn_k.bias", "self_attn.k_proj.bias", 1, kv, true },
        [CLV_LM_V_BIAS] = { "attn_v.bias", "self_attn.v_proj.bias", 1, kv, true },
        [CLV_LM_O_BIAS] = { "attn_output.bias", "self_attn.o_proj.bias", 1, d, true },
        [CLV_LM_Q_NORM] = { "attn_q_norm.weight", "self_attn.q_norm.weight", 1, c->head, !norms },
        [CLV_LM_K_NORM] = { "attn_k_norm.weight", "self_attn.k_norm.weight", 1, c->head, !norms },
        [CLV_LM_FFN_NORM] = { "ffn_norm.weight", "post_attention_layernorm.weight", 1, d, false },
        [CLV_LM_GATE] = { "ffn_gate.weight", "mlp.gate_proj.weight", c->ffn, d, false },
        [CLV_LM_UP] = { "ffn_up.weight", "mlp.up_proj.weight", c->ffn, d, false },
        [CLV_LM_DOWN] = { "ffn_down.weight", "mlp.down_proj.weight", d, c->ffn, false },
    };
    return all[role];
}

clv_status clv_lm_check_config(const char *path, const clv_lm_config *c)
{
    if (c->heads % c->kv_heads)
        return clv_fail(CLV_E_FORMAT,
                        "%s: there are %zu key heads for %zu heads; expected a divisor", path,
                        c->kv_heads, c->heads);
    if (!c->head || c->head > CLV_LM_HEAD_MOST || c->head % 2)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the heads have the width %zu; expected an even number up to %d", path,
                        c->head, CLV_LM_HEAD_MOST);
    if (!c->turned || c->turned > c->head || c->turned % 2)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: the rotary positions have %zu terms; expected an even number up to %zu", path,
            c->turned, c->head);
    if (!(c->eps > 0 && c->eps < 1))
        return clv_fail(CLV_E_FORMAT,
                        "%s: the epsilon of the norms is %g, expected a number above 0 and "
                        "below 1",
                        path, (double)c->eps);
    if (!(c->base >= 1 && c->base < 1e12))
        return clv_fail(CLV_E_FORMAT,
                        "%s: the base of rotary positions is %g, expected 1 to less than 1e12",
                        path, c->base);
    if (!(c->stretch >= 1 && c->stretch < 1e6))
        return clv_fail(CLV_E_FORMAT,
                        "%s: the factor of rotary positions is %g, expected 1 to less than 1e6",
                        path, c->stretch);
    return CLV_OK;
}

clv_status clv_lm_add_end(clv_lm_model *m, int64_t id)
{
    if (id < 0) return CLV_OK;
    if ((uint64_t)id >= m->config.vocabulary)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the token that ends a text is %lld; expected an id below %zu", m->path,
                        (long long)id, m->config.vocabulary);
    for (size_t i = 0; i < m->end_count; ++i)
        if (m->ends[i] == id) return CLV_OK;
    if (m->end_count < CLV_LM_ENDS_MOST) m->ends[m->end_count++] = (int32_t)id;
    return CLV_OK;
}
