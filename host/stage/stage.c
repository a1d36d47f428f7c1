/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the drift of a microscope's stage: the shift of each frame against the mean of the frames before it. */
#include "host/stage/shift.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "base/sort.h"

#include <math.h>
#include <string.h>

enum { LEAST_EXTENT = 32, USUAL_MEMORY = 20 };

struct clv_stage {
    clv_blob_frames shape;
    size_t memory;
    stage_shifter shifter;
    clv_transform *forward;
    float *image, *window_y, *window_x; /* image: [shifter.height][shifter.width] */
    float *rows;                        /* of the frame: three as they were, three for sums */
    clv_wave *spectrum,
        *reference;            /* the reference is where the scene was in the last frame found */
    double y, x;               /* the drift of that frame */
    double anchor_y, anchor_x; /* the drift for which the window is in the middle */
    size_t remembered;         /* frames in the reference */
};

bool clv_stage_available(void)
{
    return clv_transform_available();
}

static void take_row(const clv_stage *s, const void *pixels, size_t from, size_t count, float *to)
{
    switch (s->shape.type) {
    case CLV_BLOB_U8:
        for (size_t x = 0; x < count; ++x)
            to[x] = ((const uint8_t *)pixels)[from + x];
        break;
    case CLV_BLOB_U16:
        for (size_t x = 0; x < count; ++x)
            to[x] = ((const uint16_t *)pixels)[from + x];
        break;
    case CLV_BLOB_I16:
        for (size_t x = 0; x < count; ++x)
            to[x] = ((const int16_t *)pixels)[from + x];
        break;
    default:
        memcpy(to, (const float *)pixels + from, count * sizeof *to);
        break;
    }
}

/* How far the window may move from the middle of the frame before it is put back there. */
static double margin_of(size_t size)
{
    return (double)size / 32;
}

/* The window is 1 in the middle and falls to 0 along half a cosine over an eighth of the size. It moves with the scene:
 * if it stood still, spots in its slopes would seem to move less than they do. */
static void make_window(float *window, size_t size, double moved)
{
    const double slope = (double)size / 8, margin = margin_of(size);
    for (size_t i = 0; i < size; ++i) {
        const double at = (double)i + 0.5 - moved;
        const double inside = fmin(at, (double)size - at) - margin;
        window[i] = inside <= 0 ? 0
                    : inside >= slope
                        ? 1
                        : (float)(0.5 - 0.5 * cos(3.141592653589793 * inside / slope));
    }
}

/* Replaces single pixels that stand out from their eight neighbours by more than 2.5 times the range of these: they
 * belong to the camera, and do not move with the stage. Optics blur every object more than that. */
static void clean(clv_stage *s)
{
    const float most_ranges = 2.5f;
    const size_t pitch = s->shifter.width, columns = s->shape.width;
    float *above = s->rows, *row = above + columns, *below = row + columns; /* as they were */
    float *low = below + columns, *high = low + columns, *sum = high + columns;
    memcpy(above, s->image, columns * sizeof *above);
    memcpy(row, s->image + pitch, columns * sizeof *row);
    for (size_t y = 1; y + 1 < s->shape.height; ++y) {
        float *out = s->image + y * pitch;
        memcpy(below, out + pitch, columns * sizeof *below);
        for (size_t x = 0; x < columns; ++x) {
            low[x] = above[x] < below[x] ? above[x] : below[x];
            high[x] = above[x] > below[x] ? above[x] : below[x];
            sum[x] = above[x] + below[x];
        }
        for (size_t x = 1; x + 1 < columns; ++x) {
            const float left = row[x - 1], v = row[x], right = row[x + 1];
            float least = left < right ? left : right, most = left < right ? right : left;
            least = low[x - 1] < least ? low[x - 1] : least;
            least = low[x] < least ? low[x] : least;
            least = low[x + 1] < least ? low[x + 1] : least;
            most = high[x - 1] > most ? high[x - 1] : most;
            most = high[x] > most ? high[x] : most;
            most = high[x + 1] > most ? high[x + 1] : most;
            const float range = most_ranges * (most - least);
            const float mean = (left + right + sum[x - 1] + sum[x] + sum[x + 1]) / 8;
            out[x] = v - most > range || least - v > range ? mean : v;
        }
        float *first = above;
        above = row, row = below, below = first;
    }
}

/* The median of pixels spread over the image; 0 if none of them is finite. The mean would leave a pedestal in the shape
 * of the fade between the spots, which does not move. */
static float background_of(const clv_stage *s)
{
    enum { MOST = 4096 };
    float sample[MOST];
    const size_t pixels = s->shape.height * s->shape.width, wanted = CLV_MIN(pixels, (size_t)MOST);
    size_t taken = 0;
    for (size_t i = 0; i < wanted; ++i) {
        const size_t at = (size_t)((double)i * (double)pixels / (double)wanted);
        const float v = s->image[at / s->shape.width * s->shifter.width + at % s->shape.width];
        if (isfinite(v)) sample[taken++] = v;
    }
    return taken ? clv_nth_float(sample, taken, taken / 2) : 0;
}

/* Fills the image with a frame less its background, times the window for a scene that drifted by dy, dx. */
static void take_frame(clv_stage *s, const void *pixels, size_t frame, double dy, double dx)
{
    const size_t height = s->shape.height, width = s->shape.width, pitch = s->shifter.width;
    for (size_t y = 0; y < height; ++y)
        take_row(s, pixels, frame * s->shape.frame_stride + y * s->shape.row_stride, width,
                 s->image + y * pitch);
    clean(s);
    const float background = background_of(s);
    make_window(s->window_y, height, dy - s->anchor_y);
    make_window(s->window_x, width, dx - s->anchor_x);
    for (size_t y = 0; y < height; ++y) {
        float *row = s->image + y * pitch;
        for (size_t x = 0; x < width; ++x) {
            const bool finite = fabsf(row[x]) <= 3.402823466e38f;
            row[x] = finite ? (row[x] - background) * s->window_y[y] * s->window_x[x] : 0;
        }
    }
}

clv_status clv_stage_open(const clv_blob_frames *frames, const clv_stage_options *options,
                          clv_stage **out)
{
    clv_blob_frames f;
    clv_stage_options o;
    if (!frames || !out)
        return clv_fail(CLV_E_ARGUMENT, "stage: %s is NULL", frames ? "stage" : "frames");
    *out = NULL;
    CLV_TRY(clv_take_struct(&f, sizeof f, frames, "clv_stage_open", "clv_blob_frames"));
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_stage_open", "clv_stage_options"));
    if ((unsigned)f.type > CLV_BLOB_F32)
        return clv_fail(CLV_E_ARGUMENT, "stage: type %d is not one of clv_blob_pixel", (int)f.type);
    if (f.height < LEAST_EXTENT || f.width < LEAST_EXTENT || f.height > 65535 || f.width > 65535)
        return clv_fail(CLV_E_SHAPE,
                        "stage: the frames are [%zu,%zu]; expected at least %d and at most 65535 "
                        "rows and columns",
                        f.height, f.width, LEAST_EXTENT);
    if (!f.row_stride) f.row_stride = f.width;
    if (!f.frame_stride) f.frame_stride = f.height * f.row_stride;
    if (f.row_stride < f.width)
        return clv_fail(CLV_E_SHAPE, "stage: the row stride is %zu, but it must be at least %zu",
                        f.row_stride, f.width);
    clv_stage *s = clv_zalloc(1, sizeof *s);
    if (!s) return clv_fail(CLV_E_MEMORY, "stage: out of memory");
    s->shape = f, s->memory = o.memory ? o.memory : USUAL_MEMORY;
    const size_t height = clv_transform_size(f.height), width = clv_transform_size(f.width);
    const size_t waves = height * (width / 2 + 1);
    clv_status status = stage_shifter_open(&s->shifter, height, width);
    if (!status) status = clv_transform_create(height, width, false, &s->forward);
    s->image = clv_zalloc(height * width, sizeof *s->image);
    s->rows = clv_alloc(6 * f.width, sizeof *s->rows);
    s->window_y = clv_alloc(f.height, sizeof *s->window_y);
    s->window_x = clv_alloc(f.width, sizeof *s->window_x);
    s->spectrum = clv_alloc(waves, sizeof *s->spectrum);
    s->reference = clv_alloc(waves, sizeof *s->reference);
    if (!status &&
        (!s->image || !s->rows || !s->window_y || !s->window_x || !s->spectrum || !s->reference))
        status = clv_fail(CLV_E_MEMORY, "stage: not enough memory for frames of [%zu,%zu]",
                          f.height, f.width);
    if (status) {
        clv_stage_close(s);
        return status;
    }
    *out = s;
    return CLV_OK;
}

/* Measures the frame in a window that is right for a drift of dy, dx, against the reference. */
static void measure(clv_stage *s, const void *pixels, size_t frame, double dy, double dx,
                    clv_stage_shift *shift)
{
    stage_rings of_frame, of_reference;
    take_frame(s, pixels, frame, dy, dx);
    clv_transform_forward(s->forward, s->image, s->spectrum);
    stage_measure_rings(&s->shifter, s->spectrum, &of_frame);
    stage_measure_rings(&s->shifter, s->reference, &of_reference);
    stage_find_shift(&s->shifter, s->spectrum, &of_frame, s->reference, &of_reference, shift);
}

static bool fits(const clv_stage *s, double dy, double dx)
{
    return fabs(dy - s->anchor_y) <= margin_of(s->shape.height) &&
           fabs(dx - s->anchor_x) <= margin_of(s->shape.width);
}

/* Begins a reference with this frame alone, and the window in the middle. */
static void begin(clv_stage *s, const void *pixels, size_t frame)
{
    s->anchor_y = s->y, s->anchor_x = s->x;
    take_frame(s, pixels, frame, s->y, s->x);
    clv_transform_forward(s->forward, s->image, s->reference);
    s->remembered = 1;
}

static void push_frame(clv_stage *s, const void *pixels, size_t frame, clv_stage_shift *shift)
{
    const double far =
        0.1; /* pixels: from here on, the frame is measured again in a moved window */
    if (!s->remembered) {
        begin(s, pixels, frame);
        *shift = (clv_stage_shift){ .found = true };
        return;
    }
    measure(s, pixels, frame, s->y, s->x, shift);
    double y = s->y + shift->y, x = s->x + shift->x;
    if (shift->found && fmax(fabs(shift->y), fabs(shift->x)) > far && fits(s, y, x)) {
        clv_stage_shift again;
        measure(s, pixels, frame, y, x, &again);
        if (again.found) *shift = again, y = s->y + again.y, x = s->x + again.x;
    }
    if (shift->found) {
        const size_t count = CLV_MIN(s->remembered, s->memory);
        stage_follow(&s->shifter, s->spectrum, shift->y, shift->x, 1 / (float)(count + 1),
                     s->reference);
        ++s->remembered;
        s->y = y, s->x = x;
        if (!fits(s, y, x)) begin(s, pixels, frame);
    }
    shift->y = s->y, shift->x = s->x;
}

clv_status clv_stage_push(clv_stage *s, const void *pixels, size_t count, clv_stage_shift *shifts)
{
    if (!s || (count && (!pixels || !shifts)))
        return clv_fail(CLV_E_ARGUMENT, "stage_push: %s is NULL",
                        !s        ? "stage"
                        : !pixels ? "pixels"
                                  : "shifts");
    for (size_t i = 0; i < count; ++i)
        push_frame(s, pixels, i, &shifts[i]);
    return CLV_OK;
}

void clv_stage_close(clv_stage *s)
{
    if (!s) return;
    stage_shifter_close(&s->shifter);
    clv_transform_free(s->forward);
    clv_free(s->image), clv_free(s->rows), clv_free(s->window_y), clv_free(s->window_x);
    clv_free(s->spectrum), clv_free(s->reference);
    clv_free(s);
}
