/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplies the rows of a table by weights, split over every device, as a complete job: with an input that is split
 * into chunks, an input that all chunks share, a fallback in plain C, and a report. */
#include <cleave/cleave.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 20000,
    WIDTH = 64,
    TABLE = 0,
    SUMS = 1,
    WEIGHTS = 0 /* a worker's key: workers and slots have separate keys */
};

typedef struct task {
    float table[ROWS][WIDTH], weights[WIDTH], sums[ROWS];
} task;

static const char text[] =
    "__kernel void weigh(__global const float *table, ulong at, ulong pitch,\n"
    "                    __global const float *weights, uint width, __global float *sums)\n"
    "{\n"
    "    __global const float *row = table + at + get_global_id(0) * pitch;\n"
    "    float sum = 0.0f;\n"
    "    for (uint i = 0; i < width; ++i)\n"
    "        sum += row[i] * weights[i];\n"
    "    sums[get_global_id(0)] = sum;\n"
    "}\n";
static const clv_cl_source source = { "weights.cl", text, sizeof text - 1 };

static clv_status setup(clv_worker *worker, void *user) /* once per device */
{
    const task *t = user;
    clv_buffer *weights;
    const clv_status status = clv_worker_buffer(worker, WEIGHTS, sizeof t->weights, &weights);
    if (status) return status;
    return clv_write(clv_worker_queue(worker), weights, 0, t->weights, sizeof t->weights);
}

static clv_status enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    task *t = user;
    const clv_box rows = { t->table[first], sizeof(float), { 1, count, WIDTH }, { 0, WIDTH, 1 } };
    clv_place in;
    clv_buffer *weights, *sums;
    clv_status status = clv_slot_input(slot, TABLE, &rows, &in);
    if (!status) status = clv_worker_buffer(clv_slot_worker(slot), WEIGHTS, 0, &weights);
    if (!status) status = clv_slot_output(slot, SUMS, count * sizeof(float), &sums);
    if (status) return status;
    const clv_launch launch = { sizeof(clv_launch), &source,   "weigh",
                                { { NULL, 0 } },    { count }, { 1 } };
    const clv_arg args[] = { clv_arg_buffer(in.buffer), clv_arg_u64(in.offset),
                             clv_arg_u64(in.stride[1]), clv_arg_buffer(weights),
                             clv_arg_u32(WIDTH),        clv_arg_buffer(sums) };
    return clv_launch_enqueue(clv_slot_queue(slot), &launch, args, 6, NULL);
}

static clv_status reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const task *t = user;
    void *sums;
    const clv_status status = clv_slot_result_create(slot, SUMS, count * sizeof(float), &sums);
    for (size_t r = 0; !status && r < count; ++r) {
        float sum = 0;
        for (size_t i = 0; i < WIDTH; ++i)
            sum += t->table[first + r][i] * t->weights[i];
        ((float *)sums)[r] = sum;
    }
    return status;
}

static clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    memcpy(((task *)user)->sums + first, clv_slot_result(slot, SUMS), count * sizeof(float));
    return CLV_OK;
}

int main(void)
{
    task *t = calloc(1, sizeof *t);
    clv_context *context = NULL;
    clv_report *report = NULL;
    const clv_job job = { .size = sizeof(clv_job),
                          .name = "weights",
                          .units = ROWS,
                          .setup = setup,
                          .enqueue = enqueue,
                          .commit = commit,
                          .reference = reference,
                          .unit_cost = { .flops = 2 * WIDTH, .memory_bytes = 4 * WIDTH + 4 } };
    for (size_t i = 0; t && i < (size_t)ROWS * WIDTH; ++i)
        t->table[i / WIDTH][i % WIDTH] = (float)(i / WIDTH), t->weights[i % WIDTH] = 0.5f;
    clv_status status = t ? clv_context_create(NULL, &context) : CLV_E_MEMORY;
    if (!status) status = clv_report_create(&report);
    if (!status) status = clv_job_run(context, &job, t, report);
    bool right = !status;
    for (size_t r = 0; right && r < ROWS; ++r)
        right = t->sums[r] == 0.5f * WIDTH * (float)r;
    for (size_t i = 0; right && i < clv_report_share_count(report); ++i)
        printf("%s: %zu rows\n", clv_report_share(report, i).device,
               clv_report_share(report, i).units);
    if (status) fprintf(stderr, "%s\n%s\n", clv_error_message(), clv_error_detail());
    clv_report_free(report), clv_context_free(context), free(t);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
