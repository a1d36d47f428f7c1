/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the pictures of `cleave blobs`: the overlay, and the preview of thresholds. */
#include "host/cli/blobs/blobs.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/pictures/png.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Adds one frame, shifted back by dy, dx, to the projection. */
static void project_frame(blobs_projection *p, const clv_movie_facts *facts, const void *pixels,
                          size_t frame, long dy, long dx, bool invert)
{
    const long height = (long)p->height, width = (long)p->width;
    for (long y = CLV_MAX(0L, dy); y < CLV_MIN(height, height + dy); ++y)
        for (long x = CLV_MAX(0L, dx); x < CLV_MIN(width, width + dx); ++x) {
            const float v = blobs_value_at(facts, pixels,
                                           (frame * p->height + (size_t)y) * p->width + (size_t)x);
            float *most = &p->values[(size_t)(y - dy) * p->width + (size_t)(x - dx)];
            if (invert ? v < *most : v > *most) *most = v;
        }
}

bool blobs_project(blobs_projection *p, const clv_movie_facts *facts, const void *pixels,
                   size_t count, const clv_stage_shift *moved, bool invert)
{
    const size_t plane = facts->height * facts->width;
    const bool first = !p->values;
    if (first) {
        *p = (blobs_projection){ facts->height, facts->width, clv_alloc(plane, sizeof(float)) };
        if (!p->values) return false;
        for (size_t i = 0; i < plane; ++i)
            p->values[i] = blobs_value_at(facts, pixels, i);
    }
    const double most = (double)(facts->height + facts->width);
    for (size_t f = first; f < count; ++f)
        project_frame(p, facts, pixels, f, moved ? lround(fmax(fmin(moved[f].y, most), -most)) : 0,
                      moved ? lround(fmax(fmin(moved[f].x, most), -most)) : 0, invert);
    return true;
}

void blobs_projection_clear(blobs_projection *p)
{
    clv_free(p->values);
    *p = (blobs_projection){ 0 };
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Finds the grey range: percentiles 1 and 99.95 of a sample, because spots are few and the noise should stay dark
 * beside them. */
static clv_status ends_of(const blobs_projection *p, float *low, float *high)
{
    const size_t plane = p->height * p->width, step = plane / 65536 + 1;
    float *sample = clv_alloc(plane / step + 1, sizeof *sample);
    size_t n = 0;
    if (!sample) return clv_fail(CLV_E_MEMORY, "not enough memory for the overlay");
    for (size_t i = 0; i < plane; i += step)
        if (isfinite(p->values[i])) sample[n++] = p->values[i];
    qsort(sample, n, sizeof *sample, by_value);
    *low = n ? sample[n / 100] : 0, *high = n ? sample[n - 1 - n / 2000] : 1;
    if (!(*high > *low)) *high = *low + 1;
    clv_free(sample);
    return CLV_OK;
}

/* Returns the colour of a time, from the first frame (blue) to the last (orange); all colours are visible on black and
 * on white. */
static clv_colour colour_at(double frame, double first, double last)
{
    static const double ramp[][3] = { { 0, 150, 255 }, { 220, 50, 230 }, { 255, 100, 0 } };
    const double part = last > first ? fmin(fmax((frame - first) / (last - first), 0), 1) : 0;
    const size_t from = part < 0.5 ? 0 : 1;
    const double rest = 2 * part - (double)from;
    unsigned char mixed[3];
    for (int i = 0; i < 3; ++i)
        mixed[i] =
            (unsigned char)lround(ramp[from][i] + rest * (ramp[from + 1][i] - ramp[from][i]));
    return (clv_colour){ mixed[0], mixed[1], mixed[2] };
}

static void draw_line(clv_image *image, double x0, double y0, double x1, double y1,
                      clv_colour colour)
{
    const double length = fmax(fabs(x1 - x0), fabs(y1 - y0));
    const long steps = (long)ceil(length) + 1;
    for (long i = 0; i <= steps; ++i) {
        const double part = (double)i / (double)steps;
        clv_image_fill(image, lround(x0 + (x1 - x0) * part), lround(y0 + (y1 - y0) * part), 2, 2,
                       colour);
    }
}

/* Draws a line from each spot to the next of its track, in the colour of that time; spots are sorted by frame. */
static clv_status draw_tracks(clv_image *image, double scale, const clv_spot *spots,
                              const int64_t *particle, size_t count)
{
    int64_t most = -1;
    for (size_t i = 0; i < count; ++i)
        most = CLV_MAX(most, particle[i]);
    size_t *last = clv_zalloc((size_t)(most + 1) + 1, sizeof *last);
    const double first = count ? spots[0].frame : 0, end = count ? spots[count - 1].frame : 0;
    if (!last) return clv_fail(CLV_E_MEMORY, "not enough memory for the overlay");
    for (size_t i = 0; i < count; ++i) {
        if (particle[i] < 0) continue;
        size_t *before = &last[particle[i]]; /* index + 1 */
        if (*before) {
            const clv_spot *a = &spots[*before - 1], *b = &spots[i];
            draw_line(image, ((double)a->x + 0.5) * scale, ((double)a->y + 0.5) * scale,
                      ((double)b->x + 0.5) * scale, ((double)b->y + 0.5) * scale,
                      colour_at(((double)a->frame + b->frame) / 2, first, end));
        }
        *before = i + 1;
    }
    clv_free(last);
    return CLV_OK;
}

/* Returns the largest of 1, 2, 5, 10, ... that is at most `most`. */
static double round_length(double most)
{
    const double power = pow(10, floor(log10(most)));
    return power * (most >= 5 * power ? 5 : most >= 2 * power ? 2 : 1);
}

static const clv_colour white = { 255, 255, 255 }, black = { 0, 0, 0 };
enum { MARGIN = 12, BAR = 4 };

/* Draws a scale bar of a round length in the lower left corner, at most a quarter of the width. */
static void draw_scale(clv_image *image, double pixels_per_unit, const char *unit)
{
    const double length = round_length((double)image->width / 4 / pixels_per_unit);
    if (!isfinite(pixels_per_unit) || !(length > 0)) return; /* a pixel of 1e-320 um has none */
    const long width = lround(length * pixels_per_unit), y = (long)image->height - MARGIN - BAR;
    char text[40];
    snprintf(text, sizeof text, "%g %s", length, unit);
    clv_image_fill(image, MARGIN - 1, y - 1, width + 2, BAR + 2, black);
    clv_image_fill(image, MARGIN, y, width, BAR, white);
    clv_image_text(image, MARGIN, y - 4 - clv_text_height(2), 2, text, white, &black);
}

/* Draws the legend of the tracks' colours in the lower right corner. */
static void draw_times(clv_image *image, uint32_t first, uint32_t last, double interval)
{
    enum { WIDTH = 120 };
    const long y = (long)image->height - MARGIN - BAR, x = (long)image->width - MARGIN - WIDTH;
    char text[2][40];
    if (x < WIDTH || last <= first) return;
    for (int end = 0; end < 2; ++end) {
        const double frame = end ? last : first;
        if (interval > 0)
            snprintf(text[end], sizeof *text, "%.4g s", frame * interval);
        else
            snprintf(text[end], sizeof *text, end ? "%.0f" : "frame %.0f", frame);
    }
    for (long i = 0; i < WIDTH; ++i)
        clv_image_fill(image, x + i, y, 1, BAR, colour_at((double)i, 0, WIDTH - 1));
    const long up = y - 4 - clv_text_height(1);
    clv_image_text(image, x, up, 1, text[0], white, &black);
    clv_image_text(image, x + WIDTH - clv_text_width(text[1], 1), up, 1, text[1], white, &black);
}

clv_status blobs_draw(const blobs_projection *p, const blobs_units *units, const clv_spot *spots,
                      const int64_t *particle, size_t count, const char *path)
{
    enum { SMALL = 800, MOST_CIRCLES = 20000 };
    const size_t longer = CLV_MAX(p->height, p->width);
    const size_t scale = longer >= SMALL ? 1 : CLV_MIN((SMALL + longer - 1) / longer, (size_t)8);
    const double s = (double)scale;
    float low = 0, high = 1;
    clv_image image = { 0 };
    CLV_TRY(ends_of(p, &low, &high));
    CLV_TRY(clv_image_create(&image, p->width * scale, p->height * scale, (clv_colour){ 0, 0, 0 }));
    for (size_t y = 0; y < image.height; ++y)
        for (size_t x = 0; x < image.width; ++x) {
            const float v = p->values[y / scale * p->width + x / scale];
            const double part = isfinite(v) ? fmin(fmax((v - low) / (high - low), 0), 1) : 0;
            const unsigned char grey = (unsigned char)lround(255 * sqrt(part));
            memset(image.rgb + 3 * (y * image.width + x), grey, 3);
        }
    clv_status status = CLV_OK;
    if (particle) status = draw_tracks(&image, s, spots, particle, count);
    /* for a linked movie, circle only the spots of the first frame, where the tracks begin */
    for (size_t i = 0, drawn = 0; i < count && drawn < MOST_CIRCLES && !status; ++i) {
        if (particle && spots[i].frame != spots[0].frame) break;
        const clv_colour colour = particle ? colour_at(0, 0, 1) : (clv_colour){ 255, 90, 60 };
        clv_image_ring(&image, ((double)spots[i].x + 0.5) * s - 0.5,
                       ((double)spots[i].y + 0.5) * s - 0.5, sqrt(2) * (double)spots[i].sigma * s,
                       1.3, colour);
        ++drawn;
    }
    if (units && blobs_has_unit(units)) draw_scale(&image, s / units->pixel_size, units->space);
    if (particle && count)
        draw_times(&image, spots[0].frame, spots[count - 1].frame, units ? units->interval : 0);
    if (!status) status = clv_png_write(path, &image);
    clv_image_clear(&image);
    return status;
}

/* ---- preview --------------------------------------------------------------------------------- */

static clv_status count_at(clv_context *context, const clv_blob_frames *shape, const void *pixels,
                           const clv_blob_options *options, clv_spot **spots, size_t *count,
                           double *largest)
{
    clv_blob_summary summary;
    CLV_TRY(clv_blobs(context, shape, pixels, options, spots, count, &summary, NULL));
    *largest = summary.max_response;
    return CLV_OK;
}

/* Counts the spots above each edge; the count between two edges is the difference. */
static clv_status histogram(const blobs_args *a, clv_context *context, const clv_blob_frames *shape,
                            const void *pixels)
{
    clv_blob_options o = blobs_options(a);
    const double threshold = a->threshold_sigma_given ? a->threshold_sigma : 6;
    size_t count, above = 0, more[BLOBS_BINS + 1], counts[BLOBS_BINS];
    double largest;
    char title[120];
    o.threshold_given = o.threshold_rel_given = false, o.threshold_sigma_given = true;
    for (size_t i = 0; i <= BLOBS_BINS + 1; ++i) {
        clv_spot *spots = NULL;
        o.threshold_sigma = i <= BLOBS_BINS ? blobs_histogram_edge(i) : threshold;
        const clv_status status = count_at(context, shape, pixels, &o, &spots, &count, &largest);
        clv_free(spots);
        if (status) return status;
        *(i <= BLOBS_BINS ? &more[i] : &above) = count;
    }
    for (size_t i = 0; i < BLOBS_BINS; ++i)
        counts[i] = more[i] > more[i + 1] ? more[i] - more[i + 1] : 0;
    counts[BLOBS_BINS - 1] += more[BLOBS_BINS];
    snprintf(title, sizeof title, "frame %llu: %zu spots above %g", (unsigned long long)a->preview,
             above, threshold);
    return blobs_histogram_draw(counts, threshold, title, a->histogram);
}

static clv_status preview(const blobs_args *a, clv_movie *movie, clv_context *context)
{
    static const double noise[] = { 3.5, 4, 4.5, 5, 6, 8 };
    static const double part[] = { 0.05, 0.1, 0.15, 0.2, 0.3, 0.5 };
    static const clv_blob_pixel kinds[] = { [CLV_U8] = CLV_BLOB_U8,
                                            [CLV_U16] = CLV_BLOB_U16,
                                            [CLV_I16] = CLV_BLOB_I16,
                                            [CLV_F32] = CLV_BLOB_F32 };
    const clv_movie_facts *f = clv_movie_look(movie);
    const clv_blob_frames shape = {
        sizeof(clv_blob_frames), kinds[f->type], 1, f->height, f->width, 0, 0
    };
    clv_blob_options o = blobs_options(a);
    clv_spot *spots = NULL;
    size_t count = 0;
    double largest = 0;
    void *pixels = clv_alloc_pages(f->height * f->width * clv_type_size(f->type));
    if (!pixels) return clv_fail(CLV_E_MEMORY, "not enough memory for a frame");
    clv_status status = clv_movie_read(movie, (size_t)a->preview, 1, pixels);
    for (size_t i = 0; i < CLV_LEN(noise) + CLV_LEN(part) && !status; ++i) {
        const bool by_noise = i < CLV_LEN(noise);
        o.threshold_given = false;
        o.threshold_sigma_given = by_noise, o.threshold_rel_given = !by_noise;
        o.threshold_sigma = by_noise ? noise[i] : 0;
        o.threshold_rel = by_noise ? 0 : part[i - CLV_LEN(noise)];
        clv_free(spots), spots = NULL;
        status = count_at(context, &shape, pixels, &o, &spots, &count, &largest);
        if (status) break;
        if (by_noise)
            cli_say(stdout, "--threshold-sigma %-5g %7zu spots\n", noise[i], count);
        else
            cli_say(stdout, "--threshold-rel   %-5g %7zu spots   (--threshold %.4g)\n",
                    o.threshold_rel, count, o.threshold_rel * largest);
    }
    if (!status && a->histogram) status = histogram(a, context, &shape, pixels);
    if (!status && a->overlay) {
        blobs_projection p = { 0 };
        clv_free(spots), spots = NULL;
        o = blobs_options(a);
        status = count_at(context, &shape, pixels, &o, &spots, &count, &largest);
        if (!status && !blobs_project(&p, f, pixels, 1, NULL, a->invert))
            status = clv_fail(CLV_E_MEMORY, "not enough memory for the overlay");
        if (!status) status = blobs_draw(&p, NULL, spots, NULL, count, a->overlay);
        blobs_projection_clear(&p);
    }
    clv_free(spots);
    clv_free(pixels);
    return status;
}

int blobs_preview(const blobs_args *a, clv_movie *movie, clv_context *context)
{
    const clv_movie_facts *f = clv_movie_look(movie);
    if (a->preview >= f->frames)
        return cli_error(cli_running(), CLI_USAGE,
                         "--preview is frame %llu, but the movie has %zu frames, counted from 0",
                         (unsigned long long)a->preview, f->frames);
    return cli_input_status(cli_running(), preview(a, movie, context));
}
