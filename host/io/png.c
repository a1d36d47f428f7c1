/* SPDX-License-Identifier: Apache-2.0 */
/* Writes PNG files with libpng's simplified interface, and reads them with its full interface, which leaves the stored
 * numbers unchanged. */
#include "host/io/png.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "host/io/room.h"
#include "host/io/stream.h"

#ifdef CLEAVE_HAVE_PNG

#include <png.h>
#include <setjmp.h>
#include <string.h>

clv_status clv_png_write_rgb(const char *path, const uint8_t *rgb, size_t width, size_t height)
{
    enum { MOST = 1000000 }; /* libpng's own limit */
    if (!width || !height || width > MOST || height > MOST)
        return clv_fail(CLV_E_FORMAT,
                        "%s: an image of %zu x %zu pixels cannot be stored in a PNG file", path,
                        width, height);

    png_image png = { .version = PNG_IMAGE_VERSION,
                      .width = (png_uint_32)width,
                      .height = (png_uint_32)height,
                      .format = PNG_FORMAT_RGB };
    /* libpng states an upper bound of its output; pages that stay unused cost nothing. */
    png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
    void *memory = clv_alloc(bytes, 1);
    if (!memory) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the PNG file", path);

    clv_status status;
    if (png_image_write_to_memory(&png, memory, &bytes, 0, rgb, 0, NULL)) {
        const clv_part part = { memory, bytes };
        status = clv_parts_write(path, &part, 1);
    } else {
        status = clv_fail(CLV_E_MEMORY, "%s: cannot write the PNG file: %s", path, png.message);
    }
    png_image_free(&png);
    clv_free(memory);
    return status;
}

typedef struct reading {
    clv_input input;
    clv_png_pixels *to;
    bool only_sizes;
    png_structp png;
    png_infop info;
    png_bytep *row;
    char error[100];
    clv_status status; /* set if a failure does not come from libpng */
    jmp_buf back;
} reading;

static void fail_png(png_structp png, png_const_charp text)
{
    reading *r = png_get_error_ptr(png);
    clv_copy_string(r->error, sizeof r->error, text);
    longjmp(r->back, 1);
}

static void ignore(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void read_bytes(png_structp png, png_bytep out, size_t length)
{
    reading *r = png_get_io_ptr(png);
    r->status = clv_input_read(&r->input, out, length);
    if (r->status) longjmp(r->back, 1);
}

static clv_status take_header(reading *r)
{
    const uint16_t one = 1;
    png_read_info(r->png, r->info);
    const int colour = png_get_color_type(r->png, r->info),
              bits = png_get_bit_depth(r->png, r->info);
    if (colour & PNG_COLOR_MASK_PALETTE)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the image has a palette, so its pixel values are not intensities; "
                        "convert it to greyscale",
                        r->input.path);
    if (bits < 8) png_set_packing(r->png);
    if (bits == 16 && *(const unsigned char *)&one) png_set_swap(r->png);
    if (colour & PNG_COLOR_MASK_ALPHA) png_set_strip_alpha(r->png);
    (void)png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    *r->to = (clv_png_pixels){ .height = png_get_image_height(r->png, r->info),
                               .width = png_get_image_width(r->png, r->info),
                               .samples = png_get_channels(r->png, r->info),
                               .wide = bits == 16 };
    return CLV_OK;
}

static clv_status take_pixels(reading *r)
{
    clv_png_pixels *to = r->to;
    const size_t bytes = png_get_rowbytes(r->png, r->info);
    size_t all = 0;
    if (!clv_size_mul(bytes, to->height, &all)) all = SIZE_MAX;
    CLV_TRY(clv_io_need(r->input.path, "for its pixels", all));
    to->data = clv_alloc(bytes, to->height), r->row = clv_alloc(to->height, sizeof *r->row);
    if (!to->data || !r->row) return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->input.path);
    for (size_t y = 0; y < to->height; ++y)
        r->row[y] = (png_bytep)to->data + y * bytes;
    png_read_image(r->png, r->row);
    png_read_end(r->png, NULL);
    return CLV_OK;
}

/* Reads the picture. libpng jumps back here after an error; *r holds what must be freed. */
static clv_status read_picture(reading *r)
{
    if (setjmp(r->back)) {
        if (r->status) return r->status;
        return clv_fail(CLV_E_FORMAT, "%s: the PNG file is damaged: %s", r->input.path, r->error);
    }
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, fail_png, ignore);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    if (!r->info) return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->input.path);
    png_set_read_fn(r->png, r, read_bytes);
    CLV_TRY(take_header(r));
    return r->only_sizes ? CLV_OK : take_pixels(r);
}

clv_status clv_png_read(const char *path, bool only_sizes, clv_png_pixels *pixels)
{
    *pixels = (clv_png_pixels){ 0 };
    reading *r = clv_zalloc(1, sizeof *r);
    if (!r) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    r->to = pixels, r->only_sizes = only_sizes;
    clv_status status = clv_input_open(&r->input, path);
    if (!status) {
        status = read_picture(r);
        clv_input_close(&r->input);
    }
    if (r->png) png_destroy_read_struct(&r->png, &r->info, NULL);
    clv_free(r->row);
    clv_free(r);
    if (status) {
        clv_free(pixels->data);
        pixels->data = NULL;
    }
    return status;
}

#else

clv_status clv_png_write_rgb(const char *path, const uint8_t *rgb, size_t width, size_t height)
{
    (void)rgb, (void)width, (void)height;
    return clv_fail(CLV_E_FORMAT, "%s: this Cleave was built without PNG support", path);
}

clv_status clv_png_read(const char *path, bool only_sizes, clv_png_pixels *pixels)
{
    (void)only_sizes;
    *pixels = (clv_png_pixels){ 0 };
    return clv_fail(CLV_E_FORMAT, "%s is a PNG file, but this Cleave was built without PNG support",
                    path);
}

#endif
