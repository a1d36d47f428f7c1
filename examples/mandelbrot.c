/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a kernel of your own over every device of this machine: it computes rows of the Mandelbrot set. */
#include <cleave/cleave.h>

#include <stdio.h>
#include <string.h>

enum { WIDTH = 600, HEIGHT = 400, TURNS = 500, PIXELS = 0 };

static const char text[] =
    "__kernel void rows(__global uchar *out, uint first, uint width, uint height, uint turns)\n"
    "{\n"
    "    const uint x = get_global_id(0), row = get_global_id(1);\n"
    "    const float cx = 3.0f * x / width - 2.2f, cy = 2.0f * (first + row) / height - 1.0f;\n"
    "    float a = 0.0f, b = 0.0f;\n"
    "    uint n = 0;\n"
    "    for (; n < turns && a * a + b * b < 4.0f; ++n) {\n"
    "        const float t = a * a - b * b + cx;\n"
    "        b = 2.0f * a * b + cy, a = t;\n"
    "    }\n"
    "    out[row * width + x] = n == turns ? 0 : 255 - n % 32 * 7;\n"
    "}\n";
static const clv_cl_source source = { "mandelbrot.cl", text, sizeof text - 1 };

/* Predicts the cost of a range of rows. A rough figure will do, because the balancer measures the speed. */
static clv_cost cost(size_t first, size_t count, void *user)
{
    const double pixels = (double)count * WIDTH;
    (void)first, (void)user;
    return (clv_cost){ .flops = pixels * 10 * TURNS / 4,
                       .transfer_bytes = pixels,
                       .traffic_bytes = pixels,
                       .memory_bytes = count * WIDTH };
}

/* Enqueues one launch for the rows [first, first + count). Called on the device's own thread. */
static clv_status enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_launch launch = { sizeof(clv_launch), &source,          "rows",
                                { { NULL, 0 } },    { WIDTH, count }, { 30, 1 } };
    clv_buffer *out;
    const clv_status status = clv_slot_output(slot, PIXELS, count * WIDTH, &out);
    (void)user;
    if (status) return status;
    const clv_arg args[] = { clv_arg_buffer(out), clv_arg_u32((uint32_t)first), clv_arg_u32(WIDTH),
                             clv_arg_u32(HEIGHT), clv_arg_u32(TURNS) };
    return clv_launch_enqueue(clv_slot_queue(slot), &launch, args, 5, NULL);
}

/* Copies finished rows to the image. Called exactly once for every row, in any order. */
static clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    memcpy((unsigned char *)user + first * WIDTH, clv_slot_result(slot, PIXELS), count * WIDTH);
    return CLV_OK;
}

int main(int argc, char **argv)
{
    static unsigned char image[HEIGHT * WIDTH];
    const clv_job job = { .size = sizeof(clv_job),
                          .name = "mandelbrot",
                          .units = HEIGHT,
                          .cost = cost,
                          .enqueue = enqueue,
                          .commit = commit };
    clv_context *context = NULL;
    clv_report *report = NULL;
    clv_status status = clv_context_create(NULL, &context);
    if (!status) status = clv_report_create(&report);
    if (!status) status = clv_job_run(context, &job, image, report);
    for (size_t i = 0; !status && i < clv_report_share_count(report); ++i)
        printf("%s: %zu rows\n", clv_report_share(report, i).device,
               clv_report_share(report, i).units);
    if (status) fprintf(stderr, "%s\n%s\n", clv_error_message(), clv_error_detail());
    clv_report_free(report), clv_context_free(context);
    FILE *file = status || argc < 2 ? NULL : fopen(argv[1], "wb");
    if (file) {
        fprintf(file, "P5 %d %d 255\n", WIDTH, HEIGHT);
        fwrite(image, 1, sizeof image, file);
        if (fclose(file)) status = CLV_E_IO;
    }
    return status != CLV_OK;
}
