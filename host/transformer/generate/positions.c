/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the angular frequencies of rotary positions, and implements the rules by which models adapt the frequencies
 * to longer texts. */
#include "host/transformer/generate/model.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>

static const double two_pi = 6.28318530717958647693;

static double plain_speed(const clv_lm_config *c, size_t t)
{
    return pow(c->base, -2.0 * (double)t / (double)c->turned);
}

double clv_lm_speed(const clv_lm_model *m, size_t t)
{
    const double factor = m->factors ? m->factors[t] : 1;
    return plain_speed(&m->config, t) / factor / m->config.stretch;
}

static clv_status take_room(clv_lm_model *m, const char *path)
{
    clv_free(m->factors);
    m->factors = clv_alloc(m->config.turned / 2, sizeof *m->factors);
    return m->factors ? CLV_OK : clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
}

clv_status clv_lm_scale_llama3(clv_lm_model *m, const char *path, const char *where,
                               const clv_lm_llama3 *by)
{
    const double original = by->original;
    if (!(by->factor >= 1 && by->factor < 1e6 && by->low > 0 && by->high > by->low &&
          original >= 1 && original < 1e12))
        return clv_fail(CLV_E_FORMAT,
                        "%s: %s has factor %g, low_freq_factor %g, high_freq_factor %g and "
                        "original_max_position_embeddings %g; expected a factor of at least 1, "
                        "0 < low_freq_factor < high_freq_factor, and at least 1 position",
                        path, where, by->factor, by->low, by->high, original);
    CLV_TRY(take_room(m, path));
    for (size_t t = 0; t < m->config.turned / 2; ++t) {
        const double wave = two_pi / plain_speed(&m->config, t);
        const double smooth = (original / wave - by->low) / (by->high - by->low);
        m->factors[t] = wave < original / by->high  ? 1
                        : wave > original / by->low ? by->factor
                                                    : 1 / ((1 - smooth) / by->factor + smooth);
    }
    return CLV_OK;
}

double clv_lm_yarn_swell(double factor, double scale)
{
    return factor > 1 ? 0.1 * scale * log(factor) + 1 : 1;
}

/* Returns the index, not necessarily a whole number, of the pair that makes `turns` turns within by->original
 * positions. */
static double pair_of(const clv_lm_config *c, const clv_lm_yarn *by, double turns)
{
    return (double)c->turned * log(by->original / (turns * two_pi)) / (2 * log(c->base));
}

clv_status clv_lm_scale_yarn(clv_lm_model *m, const char *path, const char *where,
                             const clv_lm_yarn *by)
{
    clv_lm_config *c = &m->config;
    if (!(by->factor >= 1 && by->factor < 1e6 && by->original >= 1 && by->original < 1e12 &&
          by->slow > 0 && by->fast > by->slow && by->fast < 1e9 && by->swell >= 0 &&
          by->swell < 1e3 && c->base > 1))
        return clv_fail(
            CLV_E_FORMAT,
            "%s: %s has factor %g, original_max_position_embeddings %g, beta_slow %g, beta_fast %g "
            "and attention_factor %g; expected a factor and positions of at least 1, "
            "0 < beta_slow < beta_fast, and an attention_factor from 0 to 1000",
            path, where, by->factor, by->original, by->slow, by->fast, by->swell);
    double first = pair_of(c, by, by->fast), last = pair_of(c, by, by->slow);
    if (by->whole) first = floor(first), last = ceil(last);
    first = CLV_MAX(first, 0.0), last = CLV_MIN(last, (double)(c->turned - 1));
    const double width = CLV_MAX(last - first, 0.001);
    CLV_TRY(take_room(m, path));
    for (size_t t = 0; t < c->turned / 2; ++t) {
        const double divided = CLV_MIN(CLV_MAX(((double)t - first) / width, 0.0), 1.0);
        m->factors[t] = 1 / (divided / by->factor + (1 - divided));
    }
    c->swell = by->swell > 0 ? by->swell : clv_lm_yarn_swell(by->factor, 1);
    const double reach = by->original * by->factor; /* positions to which the model is extended */
    if (reach > (double)c->context) c->context = (size_t)CLV_MIN(reach, (double)CLV_LM_MOST);
    return CLV_OK;
}
