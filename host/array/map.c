/* SPDX-License-Identifier: Apache-2.0 */
/* clv_map: compiles an expression to one kernel over broadcast arrays. */
#include "host/array/call.h"
#include "host/array/expression.h"
#include "host/array/group.h"
#include "host/array/later.h"
#include "host/array/map.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "runtime/program/texts.h"
#include "runtime/record/context.h"

#include <cleave/array_math.h>

#include <stdio.h>
#include <string.h>

static const size_t item_elements = 4096; /* elements per work-item on a CPU core */

typedef struct map {
    clv_expression expression;
    clv_numbers numbers;
    const char *text;
    const clv_map_input *inputs;
    size_t count;
    clv_array *out;
    clv_spread spread;
    const clv_cl_source *source;
    char kind[64];
} map;

/* ---- the kernel ------------------------------------------------------------------------------ */

static void write_kernel(const map *m, clv_text *t)
{
    const bool flat = m->spread.axes == 1;
    clv_text_add(t,
                 "#include \"array/map.clh\"\n\n__kernel void clv_map(__global float *out, uint n, "
                 "uint cols");
    if (!flat) clv_text_add(t, ", uint outer, uint rows, uint e1, uint e2");
    for (size_t i = 0; i < m->count; ++i) {
        if (!m->inputs[i].array)
            clv_text_add(t, ", float v%zu", i);
        else
            clv_text_add(t, ", __global const float *p%zu", i);
        if (!flat && m->inputs[i].array)
            clv_text_add(t, ", uint a%zu, uint b%zu, uint c%zu", i, i, i);
    }
    for (unsigned i = 0; i < m->numbers.count; ++i)
        clv_text_add(t, ", float k%u", i);
    clv_text_add(
        t, ")\n{\n    const uint from = get_global_id(0) * cols, to = min(n, from + cols);\n");
    clv_text_add(t, "    if (from >= n) return;\n");
    if (flat) {
        clv_text_add(t, "    const size_t base = 0;\n");
    } else {
        clv_text_add(t, "    const size_t first = get_global_id(1) * rows;\n"
                        "    const uint last = min((size_t)outer, first + rows);\n"
                        "    for (uint o = first; o < last; ++o) {\n"
                        "    const uint o2 = o %% e2, o1 = o / e2 %% e1, o0 = o / e2 / e1;\n"
                        "    const size_t base = (size_t)o * n;\n");
    }
    for (size_t i = 0; i < m->count; ++i)
        if (m->inputs[i].array && flat)
            clv_text_add(t, "    __global const float *q%zu = p%zu;\n", i, i);
        else if (m->inputs[i].array)
            clv_text_add(t,
                         "    __global const float *q%zu = p%zu + (size_t)o0 * a%zu + (size_t)o1 * "
                         "b%zu + (size_t)o2 * c%zu;\n",
                         i, i, i, i, i);
    clv_text_add(t, "    for (uint x = from; x < to; x += LANES) {\n"
                    "        const uint room = to - x;\n        (void)room;\n");
    for (size_t i = 0; i < m->count; ++i) {
        if (!m->inputs[i].array)
            clv_text_add(t, "#define IN%zu ((fvec)(v%zu))\n", i, i);
        else if (m->spread.stride[i][3])
            clv_text_add(t, "#define IN%zu LOAD(q%zu, x, room)\n", i, i);
        else
            clv_text_add(t, "#define IN%zu ((fvec)(*q%zu))\n", i, i);
    }
    clv_expression_write(&m->expression, &m->numbers, t);
    clv_text_add(t, "        STORE(t%u, out + base, x, room);\n    }\n", m->expression.result);
    clv_text_add(t, flat ? "}\n" : "    }\n}\n");
}

static clv_status make_source(clv_context *context, map *m)
{
    clv_text text = { 0 };
    write_kernel(m, &text);
    clv_status status = text.failed ? clv_fail(CLV_E_MEMORY, "map: not enough memory for a kernel")
                                    : clv_texts_get(context, "map (generated)", clv_text_get(&text),
                                                    text.length, &m->source);
    clv_text_clear(&text);
    return status;
}

static clv_status on_device(clv_engine *engine, void *user)
{
    map *m = user;
    CLV_TRY(make_source(engine->context, m));
    const clv_spread *s = &m->spread;
    const clv_device *device = clv_queue_device(engine->queue);
    const bool core = clv_array_lanes(device) > 1;
    const size_t n = s->extent[3], outer = s->extent[0] * s->extent[1] * s->extent[2];
    const bool by_items = clv_array_lanes(device) == 1;
    size_t cols = by_items ? 1 : CLV_MIN(clv_round_up(n, 16), item_elements);
    size_t rows = by_items ? 1 : CLV_MAX(item_elements / n, (size_t)1);
    clv_launch launch = { .size = sizeof(clv_launch),
                          .source = m->source,
                          .kernel = "clv_map",
                          .defines = { { "LANES", (long)clv_array_lanes(device) } },
                          .global = { (n + cols - 1) / cols, (outer + rows - 1) / rows },
                          .local = { 1, 1 } };
    if (!core) {
        const clv_array_grid grid = clv_array_grid_of(clv_device_facts(device), n, outer);
        launch.local[0] = grid.local[0], launch.local[1] = grid.local[1];
        launch.global[0] = grid.global[0], launch.global[1] = grid.global[1];
        rows = grid.each;
    }
    clv_arg args[7 + 4 * CLV_MAP_INPUTS + EXPRESSION_NUMBERS];
    size_t used = 0;
    args[used++] = clv_arg_buffer(m->out->at);
    args[used++] = clv_arg_u32((uint32_t)n);
    args[used++] = clv_arg_u32((uint32_t)cols);
    if (s->axes > 1) {
        args[used++] = clv_arg_u32((uint32_t)outer);
        args[used++] = clv_arg_u32((uint32_t)rows);
        args[used++] = clv_arg_u32((uint32_t)s->extent[1]);
        args[used++] = clv_arg_u32((uint32_t)s->extent[2]);
    }
    for (size_t i = 0; i < m->count; ++i) {
        if (!m->inputs[i].array) {
            args[used++] = clv_arg_f32(m->inputs[i].value);
            continue;
        }
        args[used++] = clv_arg_buffer(m->inputs[i].array->at);
        for (int axis = 0; axis < 3 && s->axes > 1; ++axis)
            args[used++] = clv_arg_u32((uint32_t)s->stride[i][axis]);
    }
    for (unsigned i = 0; i < m->numbers.count; ++i)
        args[used++] = clv_arg_f32(m->expression.step[m->numbers.step[i]].number);
    return clv_launch_enqueue(engine->queue, &launch, args, used, NULL);
}

/* ---- the host -------------------------------------------------------------------------------- */

static clv_status on_host(void *user)
{
    map *m = user;
    const clv_spread *s = &m->spread;
    const float *at[CLV_MAP_INPUTS];
    size_t stride[CLV_MAP_INPUTS];
    float *room = clv_alloc(clv_expression_room(&m->expression), sizeof *room);
    if (!room) return clv_fail(CLV_E_MEMORY, "map: out of memory");
    float *out = m->out->host;
    for (size_t o0 = 0; o0 < s->extent[0]; ++o0)
        for (size_t o1 = 0; o1 < s->extent[1]; ++o1)
            for (size_t o2 = 0; o2 < s->extent[2]; ++o2) {
                for (size_t i = 0; i < m->count; ++i) {
                    const clv_map_input *in = &m->inputs[i];
                    at[i] = in->array ? in->array->host + o0 * s->stride[i][0] +
                                            o1 * s->stride[i][1] + o2 * s->stride[i][2]
                                      : &in->value;
                    stride[i] = s->stride[i][3];
                }
                clv_expression_compute(&m->expression, at, stride, s->extent[3], out, room);
                out += s->extent[3];
            }
    clv_free(room);
    return CLV_OK;
}

/* ---- the public function --------------------------------------------------------------------- */

/* Names the class of calls that cost the same per element: the same kernel and layout, and rows of equal length within
 * a factor of two. */
static void name_kind(map *m)
{
    uint64_t h = clv_expression_hash(&m->expression, &m->numbers);
    for (size_t i = 0; i < m->count; ++i) {
        const size_t *s = m->spread.stride[i];
        const unsigned char form =
            m->inputs[i].array ? (unsigned char)(1 + (s[3] != 0) + 2 * (s[0] + s[1] + s[2] != 0))
                               : 0;
        h = clv_fnv1a(h, &form, 1);
    }
    const unsigned octave = m->spread.axes > 1 ? clv_call_octave(m->spread.extent[3]) : 0;
    snprintf(m->kind, sizeof m->kind, "map %016llx r%u", (unsigned long long)h, octave);
}

clv_status clv_map_check(const char *expression, const char *const *names, size_t count,
                         size_t *position)
{
    clv_expression *made = clv_alloc(1, sizeof *made);
    if (!made) return clv_fail(CLV_E_MEMORY, "expression: out of memory");
    const clv_status status = clv_expression_parse(expression, names, count, made, position);
    clv_free(made);
    return status;
}

static clv_status prepare(clv_context *context, map *m)
{
    const char *names[CLV_MAP_INPUTS];
    const clv_array *arrays[CLV_MAP_INPUTS];
    for (size_t i = 0; i < m->count; ++i) {
        names[i] = m->inputs[i].name;
        arrays[i] = m->inputs[i].array;
        if (arrays[i]) CLV_TRY(clv_array_check("map", context, arrays[i]));
    }
    CLV_TRY(clv_array_check("map", context, m->out));
    CLV_TRY(clv_expression_parse(m->text, names, m->count, &m->expression, NULL));
    m->numbers = clv_expression_numbers(&m->expression);
    CLV_TRY(clv_spread_make("map", m->out, arrays, names, m->count, &m->spread));
    for (size_t i = 0; i < m->count; ++i)
        if (arrays[i] == m->out && arrays[i]->elements != m->out->elements)
            return clv_fail(
                CLV_E_SHAPE,
                "map: the result cannot be an input that is repeated to fill the result's shape");
    return CLV_OK;
}

static clv_status sample(clv_context *context, const clv_call *like, double amount,
                         clv_sample *out);

static void describe(map *m, clv_array_call *c)
{
    const double elements = (double)m->out->elements;
    name_kind(m);
    c->call = (clv_call){ .operation = "map",
                          .work = { .kind = m->kind,
                                    .amount = elements,
                                    .flops = CLV_MAX(m->expression.flops, 1.0) * elements,
                                    .host_flops = 2e9,
                                    .least = 1024,
                                    .most = 1 << 23 },
                          .sample = sample };
    c->device = on_device;
    c->host = on_host;
    c->user = m;
    for (size_t i = 0; i < m->count; ++i)
        if (m->inputs[i].array) clv_array_call_add(c, m->inputs[i].array, true, false);
    clv_array_call_add(c, m->out, false, true);
}

/* The map of a sample and the sample's inputs. */
typedef struct sampled {
    map map;
    clv_map_input inputs[CLV_MAP_INPUTS];
} sampled;

/* Makes a sample: the same expression on arrays of about `amount` elements with the same layout. Results are not
 * compared, because the expression may cancel to zero. */
static clv_status sample(clv_context *context, const clv_call *like, double amount, clv_sample *out)
{
    const map *m = ((const clv_array_call *)like->user)->user;
    const clv_spread *spread = &m->spread;
    const size_t inner = spread->axes == 1 ? (size_t)amount : spread->extent[3];
    const size_t rows =
        spread->axes == 1 ? 1 : CLV_MAX((size_t)(amount / (double)inner), (size_t)1);
    const size_t shape[2] = { rows, inner };
    sampled *like_it = clv_zalloc(1, sizeof *like_it);
    if (like_it)
        like_it->map = *m, memcpy(like_it->inputs, m->inputs, m->count * sizeof *m->inputs);
    clv_array_sample *s =
        like_it ? clv_array_sample_begin(context, like_it, sizeof *like_it) : NULL;
    clv_free(like_it);
    if (!s) return clv_fail(CLV_E_MEMORY, "map: not enough memory for a trial run");
    sampled *mine = (sampled *)s->user;
    mine->map.inputs = mine->inputs;
    clv_status status = CLV_OK;
    for (size_t i = 0; i < m->count && !status; ++i) {
        const size_t *stride = spread->stride[i];
        const size_t has[2] = { stride[0] || stride[1] || stride[2] ? rows : 1,
                                stride[3] ? inner : 1 };
        if (m->inputs[i].array)
            status = clv_array_sample_add(s, 2, has, 0.25f, 0.03f, &mine->inputs[i].array);
    }
    if (!status) status = clv_array_sample_add(s, 2, shape, 0, 0, &mine->map.out);
    if (!status) status = prepare(context, &mine->map);
    if (!status) describe(&mine->map, &s->call);
    *out = (clv_sample){ 0 };
    return clv_array_sample_end(s, status, out);
}

/* ---- asynchronous calls ------------------------------------------------------------------------ */

/* The call's numbers; its expression and the names of its inputs follow in `texts`, each with its NUL. */
typedef struct arguments {
    clv_context *context;
    size_t count;
    float value[CLV_MAP_INPUTS];
    char texts[];
} arguments;

static clv_status run_later(const clv_later *call)
{
    const arguments *a = call->arguments;
    clv_map_input inputs[CLV_MAP_INPUTS];
    const char *name = a->texts;
    for (size_t i = 0; i < a->count; ++i) {
        name += strlen(name) + 1;
        inputs[i] = (clv_map_input){ name, call->array[i], a->value[i] };
    }
    return clv_map(a->context, a->texts, inputs, a->count, call->array[a->count]);
}

static clv_status enqueue(clv_context *context, const map *m, bool *added)
{
    clv_array *arrays[CLV_MAP_INPUTS + 1];
    *added = false;
    if (!clv_later_is_on(context)) return CLV_OK;
    size_t bytes = sizeof(arguments) + strlen(m->text) + 1;
    for (size_t i = 0; i < m->count; ++i)
        bytes += strlen(m->inputs[i].name) + 1;
    arguments *a = clv_zalloc(1, bytes);
    if (!a) return clv_fail(CLV_E_MEMORY, "map: out of memory");
    a->context = context;
    a->count = m->count;
    char *to = stpcpy(a->texts, m->text) + 1;
    for (size_t i = 0; i < m->count; ++i) {
        to = stpcpy(to, m->inputs[i].name) + 1;
        a->value[i] = m->inputs[i].value;
        arrays[i] = m->inputs[i].array;
    }
    arrays[m->count] = m->out;
    const clv_later_call call = { "map", run_later, arrays, m->count + 1, a, bytes };
    const clv_status status = clv_later_add(context, &call, added);
    clv_free(a);
    return status;
}

clv_status clv_map(clv_context *context, const char *expression, const clv_map_input *inputs,
                   size_t count, clv_array *out)
{
    if (!context || !expression || (!inputs && count) || !out)
        return clv_fail(CLV_E_ARGUMENT, "map: context, expression, input or result is NULL");
    if (count > CLV_MAP_INPUTS)
        return clv_fail(CLV_E_ARGUMENT, "map: got %zu inputs, but at most %d are possible", count,
                        CLV_MAP_INPUTS);
    map *m = clv_alloc(1, sizeof *m);
    if (!m) return clv_fail(CLV_E_MEMORY, "map: out of memory");
    m->text = expression, m->inputs = inputs, m->count = count, m->out = out;
    bool added = false;
    clv_status status = prepare(context, m);
    if (!status) status = enqueue(context, m, &added);
    if (!status && !added) {
        clv_array_call call = { .count = 0 };
        describe(m, &call);
        status = clv_array_call_run(context, &call);
    }
    clv_free(m);
    return status;
}
