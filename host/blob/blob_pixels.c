/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the pixels of a push as floats and computes the median of a frame. */
#include "host/blob/blob_plan.h"

#include "base/sort.h"

#include <math.h>
#include <string.h>

void clv_blob_pixel_row(const clv_blob_plan *plan, size_t frame, size_t y, size_t x, size_t count,
                        float *out)
{
    const size_t at = frame * plan->shape.frame_stride + y * plan->shape.row_stride + x;
    switch (plan->shape.type) {
    case CLV_BLOB_U8: {
        const uint8_t *p = (const uint8_t *)plan->pixels + at;
        for (size_t i = 0; i < count; ++i)
            out[i] = p[i];
        break;
    }
    case CLV_BLOB_U16: {
        const uint16_t *p = (const uint16_t *)plan->pixels + at;
        for (size_t i = 0; i < count; ++i)
            out[i] = p[i];
        break;
    }
    case CLV_BLOB_I16: {
        const int16_t *p = (const int16_t *)plan->pixels + at;
        for (size_t i = 0; i < count; ++i)
            out[i] = p[i];
        break;
    }
    default:
        memcpy(out, (const float *)plan->pixels + at, count * sizeof *out);
    }
}

float clv_blob_median(const clv_blob_plan *plan, size_t frame, size_t *bad)
{
    enum { MOST = 1024 };
    float sample[MOST];
    const size_t height = plan->shape.height, width = plan->shape.width;
    const size_t pixels = height * width;
    *bad = 0;
    if (plan->shape.type == CLV_BLOB_F32) {
        const float *row = (const float *)plan->pixels + frame * plan->shape.frame_stride;
        for (size_t y = 0; y < height; ++y, row += plan->shape.row_stride) {
            uint32_t in_row = 0; /* has the pixels' width, so that compilers vectorise the sum */
            for (size_t x = 0; x < width; ++x)
                in_row += !(fabsf(row[x]) <= 3.402823466e38f);
            *bad += in_row;
        }
    }
    size_t taken = 0;
    /* samples positions spread over the frame; if all of them are bad pixels, every pixel is read */
    for (size_t i = 0; i < MOST && i < pixels; ++i) {
        const size_t at = pixels <= MOST ? i : (size_t)((double)i * (double)pixels / MOST);
        const float v = (float)clv_blob_pixel_at(plan, frame, at / width, at % width);
        if (isfinite(v)) sample[taken++] = v;
    }
    for (size_t at = 0; !taken && at < pixels; ++at) {
        const float v = (float)clv_blob_pixel_at(plan, frame, at / width, at % width);
        if (isfinite(v)) sample[taken++] = v;
    }
    if (!taken) return 0;
    return clv_nth_float(sample, taken, taken / 2);
}
