/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of one's own through Cleave: squares on the first device of this machine. */
#include <cleave/cleave.h>

#include <stdio.h>

static const char text[] = "__kernel void square(__global float *x)\n"
                           "{ const size_t i = get_global_id(0); x[i] *= x[i]; }\n";

/* The way out: prints what went wrong, frees everything. */
static int done(clv_context *context, clv_queue *queue, clv_buffer *buffer, clv_status status)
{
    if (status) fprintf(stderr, "%s\n%s\n", clv_error_message(), clv_error_detail());
    clv_buffer_free(buffer), clv_queue_free(queue), clv_context_free(context);
    return status != CLV_OK;
}

int main(void)
{
    const clv_cl_source source = { "square.cl", text, sizeof text - 1 };
    clv_launch launch = CLV_INIT(clv_launch);
    launch.source = &source, launch.kernel = "square";
    launch.global[0] = 8, launch.local[0] = 1;
    float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    clv_context *context = NULL;
    clv_queue *queue = NULL;
    clv_buffer *buffer = NULL;

    clv_status status = clv_context_create(NULL, &context);
    if (status || !clv_context_device_count(context)) {
        if (!status) puts("this machine has no OpenCL device");
        return done(context, NULL, NULL, status);
    }
    clv_device *device = clv_context_device(context, 0);
    if (!status) status = clv_queue_create(device, &queue);
    if (!status) status = clv_buffer_create(device, sizeof x, CLV_BUFFER_DEVICE, &buffer);
    if (!status) status = clv_write(queue, buffer, 0, x, sizeof x);
    const clv_arg args[] = { clv_arg_buffer(buffer) };
    if (!status) status = clv_launch_enqueue(queue, &launch, args, 1, NULL);
    if (!status) status = clv_read(queue, buffer, 0, x, sizeof x);
    if (!status) printf("%s: 8 squared is %g\n", clv_device_label(device), (double)x[7]);
    return done(context, queue, buffer, status);
}
