/* SPDX-License-Identifier: Apache-2.0 */
/* Launches kernels on a chunk of stars: chooses the form of the kernels for a device, their arguments and their
 * work-groups. */
#include "host/spectra/spectra_pass.h"

#include "base/cpu.h"
#include "cl_embedded.h"

#include <string.h>

clv_pass_form clv_pass_form_of(const clv_device *device)
{
    const clv_probe_device *facts = clv_device_facts(device);
    /* compensated float32 arithmetic takes about 5 operations for each one in float64 */
    const bool doubles = facts->fp64 && !facts->flags.slow_fp64;
    switch (facts->device_class) {
    case CLV_CLASS_CPU:
        return (clv_pass_form){
            clv_cpu_has_avx2_alone() ? 8 : 16, 128, 4, 1, doubles, false, true, false
        };
    case CLV_CLASS_SOFTWARE:
        return (clv_pass_form){ 1, 1, 1, 32, doubles, true, true, false };
    default:
        return (clv_pass_form){ 1, 1, 1, 64, doubles, true, false, facts->max_work_group >= 64 };
    }
}

clv_arg clv_pass_constant(const clv_pass *p, unsigned key)
{
    clv_buffer *buffer = NULL;
    (void)clv_worker_buffer(clv_slot_worker(p->slot), key, 0, &buffer); /* exists since setup */
    return clv_arg_buffer(buffer);
}

clv_arg clv_pass_int(size_t value)
{
    return clv_arg_i32((int32_t)value);
}

clv_arg clv_pass_shift(const clv_spectra_grid *g)
{
    const double points = 1 / (CLV_LIGHT_KMS * g->dln);
    const float parts[2] = { (float)points, (float)(points - (double)(float)points) };
    clv_arg arg = { .kind = CLV_ARG_VALUE, .bytes = sizeof parts };
    memcpy(arg.value, parts, sizeof parts);
    return arg;
}

size_t clv_pass_blocks(const clv_pass *p)
{
    const size_t terms = p->plan->options.terms;
    return p->f.lanes > 1 && !p->f.short_loops ? clv_scan_columns(terms) / (terms + 1u) : 1;
}

clv_status clv_pass_launch(const clv_pass *p, const clv_cl_source *source, const char *kernel,
                           size_t x, size_t y, size_t z, bool tall, const clv_arg *args,
                           size_t count)
{
    clv_launch l = { .size = sizeof(clv_launch),
                     .source = source,
                     .kernel = kernel,
                     .defines = { { "LANES", p->f.lanes },
                                  { "NPOLY", (long)p->plan->options.terms },
                                  { "FP64", p->f.fp64 },
                                  { "RUN", p->f.run },
                                  { "LOOSE", p->f.lanes > 1 } } };
    if (source == &clv_cl_spectra_velocity) {
        l.defines[5] = (clv_define){ "TILE", p->f.lanes > 1 ? p->f.lanes : CLV_SCAN_ROUND_TO };
        l.defines[6] = (clv_define){ "BLOCKS", (long)clv_pass_blocks(p) };
    } else {
        l.defines[5] = (clv_define){ "SPAN", p->f.span };
    }
    l.local[0] = tall ? 1 : p->f.wg, l.local[1] = tall ? p->f.wg : 1, l.local[2] = 1;
    l.global[0] = clv_round_up(x, l.local[0]), l.global[1] = clv_round_up(y, l.local[1]);
    l.global[2] = z;
    return clv_launch_enqueue(clv_slot_queue(p->slot), &l, args, count, NULL);
}

clv_status clv_pass_launch_small(const clv_pass *p, const clv_small_kernel *k, size_t systems,
                                 size_t y, size_t z, const clv_arg *args, size_t count)
{
    if (!p->f.groups)
        return clv_pass_launch(p, k->source, k->kernel, systems, y, z, false, args, count);
    return clv_pass_launch(p, k->group_source, k->in_groups, systems * k->items, y, z, false, args,
                           count);
}
