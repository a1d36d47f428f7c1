/* SPDX-License-Identifier: Apache-2.0 */
/* Writes pictures as PNG files. */
#include "host/io/pictures/png.h"

#include "host/io/png.h"

clv_status clv_png_write(const char *path, const clv_image *image)
{
    return clv_png_write_rgb(path, image->rgb, image->width, image->height);
}
