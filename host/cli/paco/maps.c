/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates, checks and frees the maps of `cleave paco` and the list of detections in these maps. */
#include "host/cli/paco/files.h"

#include "base/alloc.h"

int paco_maps_create(const paco_args *a, const paco_inputs *in, paco_maps *m)
{
    const size_t count = in->channels_used * in->height * in->width;
    m->channels = in->channels_used;
    m->together = a->wavelengths != NULL;
    const size_t searched = m->together ? in->height * in->width : count;
    m->a = clv_alloc(count, sizeof *m->a), m->b = clv_alloc(count, sizeof *m->b);
    m->snr = clv_alloc(searched, sizeof *m->snr), m->flux = clv_alloc(count, sizeof *m->flux);
    m->sigma = clv_alloc(count, sizeof *m->sigma);
    if (!a->snr) m->raw = clv_alloc(searched, sizeof *m->raw);
    if ((!a->snr && !m->raw) || !m->a || !m->b || !m->snr || !m->flux || !m->sigma)
        return cli_error(cli_running(), CLI_FAILED, "not enough memory for maps of %zux%zu",
                         in->width, in->height);
    return CLI_OK;
}

void paco_maps_clear(paco_maps *m)
{
    clv_free(m->a), clv_free(m->b), clv_free(m->snr), clv_free(m->flux), clv_free(m->sigma),
        clv_free(m->detections), clv_free(m->raw), clv_free(m->at);
    clv_free(m->limits), clv_free(m->limit_map);
    clv_asdi_companions_clear(&m->companions);
    *m = (paco_maps){ 0 };
}

bool paco_add_detections(paco_maps *m, size_t channel, const clv_companion *found, size_t count)
{
    if (!clv_reserve(&m->detections, &m->detection_capacity, m->detection_count + count,
                     sizeof *m->detections))
        return false;
    for (size_t i = 0; i < count; ++i)
        m->detections[m->detection_count++] = (paco_found){ channel, found[i] };
    return true;
}

int paco_check_maps(const paco_inputs *in, const paco_maps *m)
{
    const clv_paco_counts *n = &m->counts;
    if (!n->valid) {
        const bool has_gaps = n->not_finite >= n->outside && n->not_finite >= n->constant,
                   is_constant =
                       !has_gaps && n->constant > 0; /* else arcs inside would have values */
        const char *why = has_gaps      ? "patches with NaN or inf"
                          : is_constant ? "patches with pixels that never change"
                                        : "arcs that leave the frame";
        return cli_error(
            cli_running(), is_constant ? CLI_USAGE : CLI_FAILED,
            "%s: no position of the map has a value: %zu positions have arcs that leave "
            "the frame, %zu have patches with NaN or infinity, %zu have pixels that "
            "never change; mask less, or use a smaller --radius (main cause: %s)",
            in->cube_path, n->outside, n->not_finite, n->constant, why);
    }
    return CLI_OK;
}
