/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a picture in memory and draws rectangles, rings and text on it. */
#include "host/io/pictures/image.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/pictures/font.h"

#include <math.h>
#include <string.h>

clv_status clv_image_create(clv_image *image, size_t width, size_t height, clv_colour background)
{
    size_t pixels;
    unsigned char *rgb = NULL;
    *image = (clv_image){ 0 };
    if (clv_size_mul(width, height, &pixels)) rgb = clv_alloc(pixels, 3);
    if (!rgb)
        return clv_fail(CLV_E_MEMORY, "not enough memory for a picture of %zu x %zu", width,
                        height);
    for (size_t i = 0; i < pixels; ++i)
        memcpy(rgb + 3 * i, &background, 3);
    *image = (clv_image){ width, height, rgb };
    return CLV_OK;
}

void clv_image_clear(clv_image *image)
{
    clv_free(image->rgb);
    *image = (clv_image){ 0 };
}

/* Returns the pixel (x, y); NULL if it is outside the picture. A negative coordinate, cast to size_t, is huge. */
static unsigned char *pixel_at(clv_image *image, long x, long y)
{
    if ((size_t)x >= image->width || (size_t)y >= image->height) return NULL;
    return image->rgb + 3 * ((size_t)y * image->width + (size_t)x);
}

void clv_image_set(clv_image *image, long x, long y, clv_colour colour)
{
    unsigned char *pixel = pixel_at(image, x, y);
    if (pixel) memcpy(pixel, &colour, 3);
}

void clv_image_fill(clv_image *image, long x, long y, long width, long height, clv_colour colour)
{
    const long right = CLV_MIN(x + width, (long)image->width);
    const long bottom = CLV_MIN(y + height, (long)image->height);
    for (long v = CLV_MAX(y, 0); v < bottom; ++v)
        for (long u = CLV_MAX(x, 0); u < right; ++u)
            clv_image_set(image, u, v, colour);
}

static void blend(unsigned char *pixel, clv_colour colour, double cover)
{
    const unsigned char channels[3] = { colour.red, colour.green, colour.blue };
    for (int i = 0; i < 3; ++i)
        pixel[i] = (unsigned char)lround(pixel[i] + (channels[i] - pixel[i]) * cover);
}

void clv_image_ring(clv_image *image, double x, double y, double radius, double thickness,
                    clv_colour colour)
{
    const double reach = radius + thickness / 2 + 1;
    if (!(fabs(x) < 1e6 && fabs(y) < 1e6 && reach < 1e6)) return; /* NaN, or far outside */
    const long top = CLV_MAX((long)floor(y - reach), 0), left = CLV_MAX((long)floor(x - reach), 0);
    const long bottom = CLV_MIN((long)ceil(y + reach), (long)image->height - 1);
    const long right = CLV_MIN((long)ceil(x + reach), (long)image->width - 1);
    for (long v = top; v <= bottom; ++v)
        for (long u = left; u <= right; ++u) {
            const double off = fabs(hypot((double)u - x, (double)v - y) - radius);
            const double cover = thickness / 2 + 0.5 - off; /* covered share of the pixel */
            if (cover > 0) blend(pixel_at(image, u, v), colour, fmin(cover, 1));
        }
}

static const unsigned char *glyph_of(char c)
{
    const int index = c >= CLV_FONT_FIRST && c <= CLV_FONT_LAST ? c : '?';
    return clv_font[index - CLV_FONT_FIRST];
}

/* Draws the dots of the text once; `grow` widens each dot on all sides. */
static void draw_text(clv_image *image, long x, long y, int scale, const char *text, int grow,
                      clv_colour colour)
{
    for (; *text; ++text, x += (CLV_FONT_WIDTH + 1) * (long)scale) {
        const unsigned char *rows = glyph_of(*text);
        for (int row = 0; row < CLV_FONT_HEIGHT; ++row)
            for (int column = 0; column < CLV_FONT_WIDTH; ++column)
                if (rows[row] >> (CLV_FONT_WIDTH - 1 - column) & 1)
                    clv_image_fill(image, x + column * scale - grow, y + row * scale - grow,
                                   scale + 2 * grow, scale + 2 * grow, colour);
    }
}

void clv_image_text(clv_image *image, long x, long y, int scale, const char *text,
                    clv_colour colour, const clv_colour *halo)
{
    if (halo) draw_text(image, x, y, scale, text, CLV_MAX(scale / 2, 1), *halo);
    draw_text(image, x, y, scale, text, 0, colour);
}

long clv_text_width(const char *text, int scale)
{
    const long letters = (long)strlen(text);
    return letters ? (letters * (CLV_FONT_WIDTH + 1) - 1) * scale : 0;
}

long clv_text_height(int scale)
{
    return CLV_FONT_HEIGHT * (long)scale;
}
