/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a FITS file of images row by row: first all headers, then each row at its place in a temporary file. */
#include "host/io/formats/fits_rows.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 2880 };

static size_t width_of(const clv_fits_image *image)
{
    return image->bitpix == -64 ? 8 : 4;
}

static clv_status cannot_write(const clv_fits_rows *r)
{
    return clv_fail(CLV_E_IO, "%s: cannot write: %s", r->path, strerror(errno));
}

static clv_status put_bytes(clv_fits_rows *r, size_t at, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        const ssize_t n =
            pwrite(r->file, (const char *)bytes + done, count - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return cannot_write(r);
        done += (size_t)n;
    }
    return CLV_OK;
}

clv_status clv_fits_rows_begin(const char *path, clv_fits_table *head, const clv_fits_image *images,
                               size_t count, clv_fits_rows *r)
{
    *r = (clv_fits_rows){ .path = path, .file = -1, .count = count };
    if (count > CLV_FITS_MOST_IMAGES)
        return clv_fail(CLV_E_ARGUMENT, "%s: %zu images are more than a FITS file can hold", path,
                        count);
    CLV_TRY(clv_file_begin(path, &r->temporary));
    clv_status status = CLV_OK;
    r->file = open(r->temporary, O_WRONLY | O_CLOEXEC);
    if (r->file < 0) status = cannot_write(r);
    /* `head` collects the header texts; the images' data are only counted */
    size_t at = 0, written = 0;
    for (size_t i = 0; i < count && !status; ++i) {
        r->image[i] = images[i];
        clv_fits_table_image(head, images[i].name, images[i].bitpix, images[i].rank,
                             images[i].shape);
        if (head->bytes.failed) status = clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
        const size_t length = head->bytes.length - written;
        if (!status) status = put_bytes(r, at, head->bytes.data + written, length);
        written += length, at += length;
        size_t numbers = 1;
        for (size_t k = 0; k < images[i].rank; ++k)
            numbers *= images[i].shape[k];
        r->start[i] = at;
        r->row_length[i] =
            images[i].rank > 1 && images[i].shape[0] ? numbers / images[i].shape[0] : numbers;
        at += (numbers * width_of(&images[i]) + BLOCK - 1) / BLOCK * BLOCK;
    }
    r->end = at;
    if (!status && !clv_outputs_discarded() && ftruncate(r->file, (off_t)at))
        status = cannot_write(r);
    if (status) clv_fits_rows_abandon(r);
    return status;
}

clv_status clv_fits_rows_put(clv_fits_rows *r, size_t image, size_t row, const void *numbers)
{
    const size_t width = width_of(&r->image[image]), length = r->row_length[image] * width;
    unsigned char chunk[8192];
    const unsigned char *from = numbers;
    for (size_t done = 0; done < length;) {
        const size_t n = CLV_MIN(length - done, sizeof chunk);
        for (size_t i = 0; i < n; i += width) /* little-endian to big-endian */
            for (size_t k = 0; k < width; ++k)
                chunk[i + k] = from[done + i + width - 1 - k];
        CLV_TRY(put_bytes(r, r->start[image] + row * length + done, chunk, n));
        done += n;
    }
    return CLV_OK;
}

clv_status clv_fits_rows_append(clv_fits_rows *r, clv_fits_table *tail)
{
    clv_fits_table_finish(tail);
    if (tail->bytes.failed) return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->path);
    CLV_TRY(put_bytes(r, r->end, tail->bytes.data, tail->bytes.length));
    r->end += tail->bytes.length;
    return CLV_OK;
}

clv_status clv_fits_rows_end(clv_fits_rows *r, const char *path)
{
    if (close(r->file)) {
        const clv_status status = cannot_write(r);
        r->file = -1;
        clv_fits_rows_abandon(r);
        return status;
    }
    char *temporary = r->temporary;
    r->file = -1, r->temporary = NULL;
    return clv_file_publish(temporary, path);
}

void clv_fits_rows_abandon(clv_fits_rows *r)
{
    if (r->file >= 0) (void)close(r->file);
    clv_file_abandon(r->temporary);
    r->file = -1, r->temporary = NULL;
}
