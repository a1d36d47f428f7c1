/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the noise for each scale and position. Differences between neighbouring pixels give a map of the pixels'
 * noise, one value per cell. The map shows where the noise is higher (shot noise under uneven light, the halves of a
 * camera). The scatter of a scale's responses over the whole frame, relative to the map, gives the level of the noise.
 * This level is correct even if the noise of neighbouring pixels is correlated. */
#include "host/blob/blob_noise.h"

#include "base/sort.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Rows sampled per cell: at least so many that a frame has DIFFERENCES differences, if it has that many at all. */
enum { ROWS = 4, MOST_CELL = 32, DIFFERENCES = 16384 };

static const double listed = CLV_BLOB_LISTED, rounding = CLV_BLOB_ROUNDING;
/* Second differences of white noise have six times its variance. Differences larger than `clip` times their mean size
 * are left out; after that, the mean size of Gaussian noise is 0.776 standard deviations. */
static const double deviation_of_mean = 1 / (0.776 * 2.449489742783178), clip = 3.2;

/* ---- the plan ------------------------------------------------------------------------------------ */

clv_blob_sums clv_blob_sums_of(const double *g, size_t g_radius, const double *q, size_t q_radius)
{
    clv_blob_sums s = { 0 };
    for (size_t j = 0; j <= CLV_MAX(g_radius, q_radius); ++j) {
        const double n = j ? 2 : 1, a = j <= g_radius ? g[2 * j] : 0,
                     b = j <= q_radius ? q[2 * j] : 0;
        s.gg += n * a * a, s.qq += n * b * b, s.gq += n * a * b;
        s.ggg += n * a * a * a, s.qqq += n * b * b * b;
        s.qqg += n * b * b * a, s.ggq += n * a * a * b;
    }
    return s;
}

/* Computes what independent pixels of standard deviation 1 contribute to the responses of scale k. */
static void norm_of(clv_blob_plan *plan, size_t k)
{
    const double *first = plan->tap + 2 * plan->first_tap[k];
    if (plan->options.dog) {
        const double c = 1 / (plan->options.sigma_ratio - 1);
        const clv_blob_sums s = clv_blob_sums_of(
            first, plan->radius[k], plan->tap + 2 * plan->first_tap[k + 1], plan->radius[k + 1]);
        plan->norm[k] = c * sqrt(s.gg * s.gg - 2 * s.gq * s.gq + s.qq * s.qq);
        plan->cubes[k] =
            c * c * c * (s.ggg * s.ggg - 3 * s.ggq * s.ggq + 3 * s.qqg * s.qqg - s.qqq * s.qqq);
    } else {
        const clv_blob_sums s =
            clv_blob_sums_of(first, plan->radius[k], first + 1, plan->radius[k]);
        plan->norm[k] = sqrt(2 * (s.qq * s.gg + s.gq * s.gq));
        plan->cubes[k] = 2 * s.qqq * s.ggg + 6 * s.qqg * s.ggq;
    }
}

void clv_blob_noise_plan(clv_blob_plan *plan)
{
    enum { SAMPLES = 5000 };
    const size_t height = plan->shape.height, width = plan->shape.width;
    const double sigmas = plan->options.threshold_sigma;
    plan->cell_shift = plan->by_noise ? CLV_BLOB_CELL_SHIFT : 16;
    const size_t cell = (size_t)1 << plan->cell_shift;
    plan->cells_down = (height + cell - 1) >> plan->cell_shift;
    plan->cells_across = (width + cell - 1) >> plan->cell_shift;
    plan->cells = plan->cells_down * plan->cells_across;
    plan->noise_step = CLV_MAX((size_t)sqrt((double)height * (double)width / SAMPLES), (size_t)1);
    for (size_t k = 0; k < plan->scales; ++k) {
        norm_of(plan, k);
        plan->factor[k] = plan->by_noise ? (float)(listed * sigmas * plan->norm[k]) : plan->floor;
    }
    if (!plan->by_noise) return;
    /* all Laplacians of Gaussians have the same tail at a given skewness, so this uses a scale of two pixels */
    enum { SCALE = 2, RADIUS = 8 };
    double tap[2 * (RADIUS + 1)];
    for (int j = 0; j <= RADIUS; ++j) {
        const double r2 = (double)(j * j) / (SCALE * SCALE);
        tap[2 * j] = exp(-r2 / 2), tap[2 * j + 1] = tap[2 * j] * (1 - r2);
    }
    clv_blob_tail_make(tap, RADIUS, sigmas, &plan->tail);
}

/* ---- before the responses: the map ------------------------------------------------------------------ */

/* Computes second differences along x at the pixels [x, x + count) of row y. A difference is NaN at the ends of the
 * frame and from index `count` on. */
static void differences(const clv_blob_plan *plan, size_t frame, size_t y, size_t x, size_t count,
                        float *out)
{
    float pixel[MOST_CELL + 2];
    const size_t width = plan->shape.width, first = x ? x - 1 : 0;
    const size_t end = CLV_MIN(x + count + 1, width), before = x ? 0 : 1;
    pixel[0] = NAN;
    clv_blob_pixel_row(plan, frame, y, first, end - first, pixel + before);
    if (end < x + count + 1) pixel[count + 1] = NAN;
    for (size_t i = 0; i < count; ++i)
        out[i] = pixel[i] + pixel[i + 2] - 2 * pixel[i + 1];
    for (; count < MOST_CELL; ++count)
        out[count] = NAN;
}

/* The pixels [x, x + columns) of a cell in some of its rows. */
typedef struct cell_rows {
    size_t x, columns, y, height, rows;
} cell_rows;

static cell_rows rows_of(const clv_blob_plan *plan, size_t cy, size_t cx)
{
    const size_t side = (size_t)1 << plan->cell_shift, y = cy * side, x = cx * side;
    cell_rows c = { .x = x, .y = y };
    c.columns = CLV_MIN(side, plan->shape.width - x);
    c.height = CLV_MIN(side, plan->shape.height - y);
    const size_t wanted = DIFFERENCES / (plan->cells * side) + 1;
    c.rows = CLV_MIN(CLV_MAX((size_t)ROWS, wanted), c.height);
    return c;
}

static size_t row_of(const cell_rows *c, size_t i)
{
    return c->y + (2 * i + 1) * c->height / (2 * c->rows);
}

/* Adds up the columns' values by halving their number down to four, which takes fewer steps than one sum after the
 * other. */
#define ADD_HALF(v, half)               \
    for (size_t j = 0; j < (half); ++j) \
    (v)[j] += (v)[j + (half)]
#define ADD_HALVES(v)           \
    ADD_HALF(v, MOST_CELL / 2); \
    ADD_HALF(v, MOST_CELL / 4); \
    ADD_HALF(v, MOST_CELL / 8)

static float sum_of(float v[MOST_CELL])
{
    ADD_HALVES(v);
    return v[0] + v[2] + (v[1] + v[3]);
}

static int32_t count_of(int32_t v[MOST_CELL])
{
    ADD_HALVES(v);
    return v[0] + v[1] + v[2] + v[3];
}
_Static_assert(MOST_CELL / 8 == 4, "the last step adds four values");

/* Returns the mean of the sizes without outliers and NaN, and sets *used to the number of sizes averaged. `count` is a
 * multiple of MOST_CELL. Each column has its own sum, so that compilers vectorise the loop over columns. */
static double usual_size(const float *size, size_t count, size_t *used)
{
    double mean = 0;
    float limit = INFINITY;
    for (int round = 0; round < 6; ++round) {
        float sum[MOST_CELL] = { 0 };
        int32_t in_column[MOST_CELL] = { 0 };
        for (const float *row = size; row < size + count; row += MOST_CELL)
            for (size_t j = 0; j < MOST_CELL; ++j) {
                const bool in = row[j] <= limit;
                sum[j] += in ? row[j] : 0.0f, in_column[j] += in;
            }
        const float all = sum_of(sum);
        const int32_t n = count_of(in_column);
        *used = (size_t)n;
        if (!n || !isfinite(all)) return 0;
        mean = (double)all / n;
        const float next = (float)(clip * mean);
        if (next == limit) break;
        limit = next;
    }
    return mean;
}

static void smooth(const clv_blob_plan *plan, const float *raw, const float *weight, float *map)
{
    static const float part[3] = { 1, 2, 1 };
    const int64_t down = (int64_t)plan->cells_down, across = (int64_t)plan->cells_across;
    for (int64_t y = 0; y < down; ++y)
        for (int64_t x = 0; x < across; ++x) {
            float sum = 0, all = 0;
            for (int64_t i = 0; i < 9; ++i) {
                const int64_t yy = y + i / 3 - 1, xx = x + i % 3 - 1;
                if (yy < 0 || xx < 0 || yy >= down || xx >= across) continue;
                const float w = part[i / 3] * part[i % 3] * weight[yy * across + xx];
                sum += w * raw[yy * across + xx], all += w;
            }
            map[y * across + x] = all > 0 ? sum / all : 0;
        }
}

void clv_blob_noise_map(clv_blob_plan *plan, size_t frame, float *work)
{
    float *map = plan->map + frame * plan->cells, *raw = work, *weight = raw + plan->cells;
    const bool whole = plan->shape.type != CLV_BLOB_F32;
    float size[MOST_CELL * MOST_CELL];
    float largest = 0;
    if (!plan->by_noise) return;
    for (size_t cy = 0; cy < plan->cells_down; ++cy)
        for (size_t cx = 0; cx < plan->cells_across; ++cx) {
            const cell_rows c = rows_of(plan, cy, cx);
            size_t count = 0, used = 0;
            for (size_t i = 0; i < c.rows; ++i, count += MOST_CELL)
                differences(plan, frame, row_of(&c, i), c.x, c.columns, size + count);
            for (size_t i = 0; i < count; ++i)
                size[i] = fabsf(size[i]);
            const double mean = usual_size(size, count, &used);
            raw[cy * plan->cells_across + cx] = (float)(mean * deviation_of_mean);
            weight[cy * plan->cells_across + cx] = (float)used;
            for (size_t i = 0; i < count && !whole; ++i)
                if (size[i] > largest && size[i] < INFINITY) largest = size[i];
        }
    smooth(plan, raw, weight, map);
    memcpy(raw, map, plan->cells * sizeof *raw);
    const float usual = clv_nth_float(raw, plan->cells, plan->cells / 2);
    /* without noise, the map of a float frame would be 0; this is the smallest value for which thresholds stay
     * meaningful */
    const float least = whole ? (float)rounding : fmaxf(1e-6f * largest, 1e-30f);
    for (size_t i = 0; i < plan->cells; ++i)
        map[i] = fmaxf(map[i], fmaxf(usual / 16, least));
    plan->noiseless[frame] = !whole && !(usual > 1e-5f * largest);
}

/* ---- after the responses ----------------------------------------------------------------------------- */

float clv_blob_spread(const uint32_t *bins)
{
    double samples = 0, before = 0;
    for (size_t i = 0; i < CLV_BLOB_NOISE_BINS; ++i)
        samples += bins[i];
    size_t bin = 0;
    while (bin + 1 < CLV_BLOB_NOISE_BINS && before + bins[bin] < 0.5 * samples)
        before += bins[bin++];
    if (!bin) return 0;
    const uint32_t edges[2] = { (uint32_t)(bin + CLV_BLOB_NOISE_FIRST) << CLV_BLOB_NOISE_SHIFT,
                                (uint32_t)(bin + 1 + CLV_BLOB_NOISE_FIRST)
                                    << CLV_BLOB_NOISE_SHIFT };
    float low, high;
    memcpy(&low, &edges[0], sizeof low), memcpy(&high, &edges[1], sizeof high);
    const double part = (0.5 * samples - before) / (bins[bin] ? bins[bin] : 1);
    return (float)(1.4826 * (low + (high - low) * part));
}

/* Finds the two cells between whose centres a position lies, for linear interpolation. Beyond the outermost centres,
 * the interpolation extrapolates. */
static void between(double at, unsigned shift, size_t cells, size_t *first, size_t *second,
                    double *part)
{
    const double place = (at + 0.5) / (double)((size_t)1 << shift) - 0.5;
    *first = *second = 0, *part = 0;
    if (cells < 2) return;
    *first = (size_t)fmin(fmax(floor(place), 0), (double)(cells - 2));
    *second = *first + 1;
    *part = fmin(fmax(place - (double)*first, -0.5), 1.5);
}

double clv_blob_pixel_noise(const clv_blob_plan *plan, size_t frame, double y, double x)
{
    const float *map = plan->map + frame * plan->cells;
    size_t y0, y1, x0, x1;
    double fy, fx;
    between(y, plan->cell_shift, plan->cells_down, &y0, &y1, &fy);
    between(x, plan->cell_shift, plan->cells_across, &x0, &x1, &fx);
    const double a = (double)map[y0 * plan->cells_across + x0],
                 b = (double)map[y0 * plan->cells_across + x1],
                 c = (double)map[y1 * plan->cells_across + x0],
                 d = (double)map[y1 * plan->cells_across + x1];
    const double here = (double)
        map[((size_t)y >> plan->cell_shift) * plan->cells_across + ((size_t)x >> plan->cell_shift)];
    const double up = a + fx * (b - a), low = c + fx * (d - c);
    return fmax(up + fy * (low - up), here / 2);
}

double clv_blob_noise(const clv_blob_plan *plan, size_t frame, size_t k, double pixel)
{
    const double spread = (double)plan->spread[frame * plan->scales + k];
    const double noise = spread * (double)plan->factor[k] * pixel;
    const double least = plan->shape.type == CLV_BLOB_F32 ? 0 : rounding * plan->norm[k];
    return fmax(noise, least);
}

bool clv_blob_noiseless(const clv_blob_plan *plan, size_t frame)
{
    return plan->noiseless[frame];
}

clv_blob_skew clv_blob_find_skew(const clv_blob_plan *plan, size_t frame, const uint8_t *mask)
{
    enum {
        MASKED = 1 << CLV_BLOB_MASK_SHIFT
    }; /* pixels per part of a row; the rows of a cell consist of whole parts */
    _Static_assert(MOST_CELL % MASKED == 0, "parts of a row");
    const size_t across = (plan->shape.width >> CLV_BLOB_MASK_SHIFT) + 1;
    const float *map = plan->map + frame * plan->cells;
    double squares = 0, cubes = 0, model = 0, count = 0;
    for (size_t cy = 0; cy < plan->cells_down; ++cy)
        for (size_t cx = 0; cx < plan->cells_across; ++cx) {
            const cell_rows c = rows_of(plan, cy, cx);
            const float noise = map[cy * plan->cells_across + cx];
            float two[MOST_CELL] = { 0 }, three[MOST_CELL] = { 0 };
            int32_t in_column[MOST_CELL] = { 0 };
            for (size_t i = 0; i < c.rows; ++i) {
                float line[MOST_CELL];
                const size_t y = row_of(&c, i);
                const uint8_t *seen = mask + (y >> CLV_BLOB_MASK_SHIFT) * across;
                differences(plan, frame, y, c.x, c.columns, line);
                for (size_t j = 0; j < c.columns; j += MASKED)
                    for (size_t m = 0; m < MASKED && seen[(c.x + j) / MASKED]; ++m)
                        line[j + m] = NAN;
                /* two loops, because compilers vectorise each of them */
                for (size_t j = 0; j < MOST_CELL; ++j) {
                    const bool in = fabsf(line[j]) <= FLT_MAX;
                    line[j] = in ? line[j] : 0.0f, in_column[j] += in;
                }
                for (size_t j = 0; j < MOST_CELL; ++j) {
                    const float square = line[j] * line[j];
                    two[j] += square, three[j] += square * line[j];
                }
            }
            const int32_t used = count_of(in_column);
            squares += (double)sum_of(two), cubes += (double)sum_of(three);
            count += used, model += (double)((float)used * noise * noise);
        }
    clv_blob_skew skew = { 0, 1 };
    if (!(squares > 0) || !(model > 0)) return skew;
    /* subtracts two standard deviations of the skewness that Gaussian noise has by chance, 9.5 / sqrt(count) */
    const double pixel = sqrt(squares / 6 / count);
    const double third = -(double)plan->gain * cubes / squares - 2 * 9.5 / sqrt(count) * pixel;
    skew.third = fmax(third, 0), skew.variance = squares / 6 / model;
    return skew;
}

double clv_blob_threshold(const clv_blob_plan *plan, size_t frame, size_t k, double pixel,
                          const clv_blob_skew *skew)
{
    const double noise = clv_blob_noise(plan, frame, k, pixel);
    const double third = skew->third * skew->variance * pixel * pixel * plan->cubes[k];
    return clv_blob_tail_at(&plan->tail, third / (noise * noise * noise));
}
