/* SPDX-License-Identifier: Apache-2.0 */
/* Writes pictures as PNG files. */
#ifndef CLEAVE_HOST_IO_PICTURES_PNG_H
#define CLEAVE_HOST_IO_PICTURES_PNG_H

#include "host/io/pictures/image.h"

/* Writes a picture as 8-bit sRGB; the same picture gives the same bytes (the file has no time and no text). The file is
 * complete or absent; "-" is standard output, see clv_parts_write. Returns CLV_OK; CLV_E_IO; CLV_E_MEMORY; CLV_E_FORMAT
 * (Cleave was built without PNG, or a side is 0 or more than 10^6). */
clv_status clv_png_write(const char *path, const clv_image *image);

#endif
