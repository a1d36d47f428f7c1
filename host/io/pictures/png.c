/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as PNG files, by libpng's simplified interface (no longjmp). */
#include "host/io/pictures/png.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#ifdef CLEAVE_HAVE_PNG

#include <png.h>

clv_status clv_png_write(const char *path, const clv_image *image)
{
    enum { MOST = 1000000 }; /* libpng's own limit */
    if (!image->width || !image->height || image->width > MOST || image->height > MOST)
        return clv_fail(CLV_E_FORMAT, "%s: a picture of %zu x %zu cannot be a PNG file", path,
                        image->width, image->height);

    png_image png = { .version = PNG_IMAGE_VERSION,
                      .width = (png_uint_32)image->width,
                      .height = (png_uint_32)image->height,
                      .format = PNG_FORMAT_RGB };
    /* libpng states the most that its output can take; pages that stay unused cost nothing. */
    png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
    void *memory = clv_alloc(bytes, 1);
    if (!memory) return clv_fail(CLV_E_MEMORY, "%s: no memory for the PNG file", path);

    clv_status status;
    if (png_image_write_to_memory(&png, memory, &bytes, 0, image->rgb, 0, NULL)) {
        const clv_part part = { memory, bytes };
        status = clv_parts_write(path, &part, 1);
    } else {
        status = clv_fail(CLV_E_MEMORY, "%s: cannot make the PNG file: %s", path, png.message);
    }
    png_image_free(&png);
    clv_free(memory);
    return status;
}

#else

clv_status clv_png_write(const char *path, const clv_image *image)
{
    (void)image;
    return clv_fail(CLV_E_FORMAT, "%s: this Cleave was built without PNG", path);
}

#endif
