/* SPDX-License-Identifier: Apache-2.0 */
/* Finds spots in a camera's frames, which arrive one by one: those of a frame are found before the next frame
 * arrives. */
#include <cleave/cleave.h>

#include <math.h>
#include <stdio.h>

enum { SIDE = 128, FRAMES = 20, SPOTS = 64 };

/* Simulates what a camera would deliver: a spot that moves across a dark, noisy field. */
static void expose(int number, uint16_t *pixels)
{
    static uint32_t state = 1;
    const double cy = 30 + 3.3 * number, cx = 40 + 2.1 * number;
    for (int y = 0; y < SIDE; ++y)
        for (int x = 0; x < SIDE; ++x) {
            state = state * 1664525u + 1013904223u;
            const double d2 = (y - cy) * (y - cy) + (x - cx) * (x - cx);
            pixels[y * SIDE + x] =
                (uint16_t)(100 + (state >> 27) + 900 * exp(-d2 / (2 * 1.5 * 1.5)));
        }
}

int main(void)
{
    static uint16_t pixels[SIDE * SIDE];
    const clv_blob_frames shape = { .size = sizeof(clv_blob_frames),
                                    .type = CLV_BLOB_U16,
                                    .frames = 1,
                                    .height = SIDE,
                                    .width = SIDE };
    const clv_blob_options options = { .size = sizeof options,
                                       .threshold_sigma_given = true,
                                       .threshold_sigma = 10 };
    clv_context *context = NULL;
    clv_blob_stream *stream = NULL;
    clv_status status = clv_context_create(NULL, &context);
    if (!status) status = clv_blobs_open(context, &shape, &options, &stream);
    if (!status) status = clv_blobs_warm(stream, 1); /* builds kernels and allocates memory now */
    size_t right = 0;
    for (int number = 0; number < FRAMES && !status; ++number) {
        clv_spot spots[SPOTS];
        size_t count = 0;
        expose(number, pixels);
        status = clv_blobs_push(stream, pixels, 1, NULL);
        if (!status) status = clv_blobs_pull(stream, spots, SPOTS, &count);
        for (size_t i = 0; i < count; ++i) {
            printf("frame %2u: y %6.2f x %6.2f sigma %4.2f\n", spots[i].frame, (double)spots[i].y,
                   (double)spots[i].x, (double)spots[i].sigma);
            right += fabs((double)spots[i].y - (30 + 3.3 * number)) < 0.2;
        }
    }
    if (status) fprintf(stderr, "camera: %s\n", clv_error_message());
    clv_blobs_close(stream);
    clv_context_free(context);
    return status || right != FRAMES;
}
