/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes NumPy's .npy files. The reader checks the whole header before it allocates memory.
 *
 * Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include "host/io/formats/npy.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/half.h"
#include "base/text.h"
#include "host/io/formats/npy_header.h"
#include "host/io/stream.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_HEADER = 65536,
    ALIGNMENT = 64,  /* alignment at which NumPy lets the data begin */
    CHUNK = 1 << 20, /* bytes that are swapped at a time, so that they stay in the cache */
    TILE = 32,       /* side of a tile, in elements, for transposing */
};

/* Reads magic, version and header; leaves `input` at the first byte of data. */
clv_status clv_npy_header_read(clv_input *input, clv_npy_header *out)
{
    unsigned char start[12];
    char found[40];
    const size_t prefix = CLV_MIN(input->length, 8);
    CLV_TRY(clv_input_read(input, start, prefix));
    if (prefix < 6 || memcmp(start, "\x93NUMPY", 6) != 0)
        return clv_fail(CLV_E_FORMAT, "%s begins with \"%s\"; an NPY file begins with \\x93NUMPY",
                        input->path, clv_printable(start, CLV_MIN(prefix, 6), found, sizeof found));
    if (prefix < 8)
        return clv_fail(CLV_E_FORMAT, "%s: the file ends inside the NPY version number",
                        input->path);
    if (start[6] < 1 || start[6] > 3)
        return clv_fail(CLV_E_FORMAT, "%s is of NPY version %u.%u; expected 1.0, 2.0 or 3.0",
                        input->path, start[6], start[7]);

    const size_t field = start[6] == 1 ? 2 : 4; /* bytes of the length field, little-endian */
    size_t length = 0;
    CLV_TRY(clv_input_read(input, start + 8, field));
    for (size_t i = 0; i < field; ++i)
        length |= (size_t)start[8 + i] << 8 * i;
    if (length > MAX_HEADER)
        return clv_fail(CLV_E_FORMAT, "%s has an NPY header of %zu bytes; expected at most %d",
                        input->path, length, MAX_HEADER);

    char *text = clv_alloc(length, 1);
    if (!text) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the header", input->path);
    clv_status status = clv_input_read(input, text, length);
    if (!status) status = clv_npy_header_parse(input->path, text, length, out);
    clv_free(text);
    return status;
}

/* ---- the data ------------------------------------------------------------------------------ */

/* Reverses the bytes of each element. Compilers turn each of these loops into byte shuffles. */
void clv_npy_swap(void *data, size_t bytes, size_t size)
{
    if (size == 2) {
        uint16_t *v = data;
        for (size_t i = 0; i < bytes / 2; ++i)
            v[i] = (uint16_t)(v[i] << 8 | v[i] >> 8);
    } else if (size == 4) {
        uint32_t *v = data;
        for (size_t i = 0; i < bytes / 4; ++i)
            v[i] = __builtin_bswap32(v[i]);
    } else if (size == 8) {
        uint64_t *v = data;
        for (size_t i = 0; i < bytes / 8; ++i)
            v[i] = __builtin_bswap64(v[i]);
    }
}

/* Widens float16 to float32 in place. The float16 numbers are in the last part of `data`, so that writing from the
 * front never overtakes reading. */
static void widen_halves(float *data, size_t count)
{
    const char *narrow = (const char *)data + count * 2;
    for (size_t i = 0; i < count; ++i) {
        uint16_t half;
        memcpy(&half, narrow + 2 * i, sizeof half);
        data[i] = clv_half_to_float(half);
    }
}

static void widen_int8(int16_t *data, size_t count)
{
    const signed char *narrow = (const signed char *)data + count;
    for (size_t i = 0; i < count; ++i)
        data[i] = narrow[i];
}

/* Converts elements from Fortran order, in which the first axis runs fastest, to C order. Works in tiles over the first
 * and the last axis, which swap places. `s` is the shape, with 1 for missing axes. */
static inline void transpose(const char *restrict in, char *restrict out, const size_t s[4],
                             size_t size)
{
    for (size_t j = 0; j < s[1]; ++j)
        for (size_t k = 0; k < s[2]; ++k)
            for (size_t i0 = 0; i0 < s[0]; i0 += TILE)
                for (size_t l0 = 0; l0 < s[3]; l0 += TILE)
                    for (size_t i = i0; i < CLV_MIN(i0 + TILE, s[0]); ++i)
                        for (size_t l = l0; l < CLV_MIN(l0 + TILE, s[3]); ++l)
                            memcpy(out + (((i * s[1] + j) * s[2] + k) * s[3] + l) * size,
                                   in + (((l * s[2] + k) * s[1] + j) * s[0] + i) * size, size);
}

/* Replaces the array's data, which are in Fortran order, by the same data in C order. */
static clv_status to_c_order(const char *path, clv_file_array *array)
{
    clv_file_array ordered;
    CLV_TRY(clv_file_array_create(&ordered, path, array->type, array->rank, array->shape));
    const size_t rank = array->rank, *shape = array->shape;
    const size_t s[4] = { shape[0], rank > 2 ? shape[1] : 1, rank > 3 ? shape[2] : 1,
                          shape[rank - 1] };
    /* for a constant size, each memcpy becomes one move instruction */
    switch (clv_type_size(array->type)) {
    case 1:
        transpose(array->data, ordered.data, s, 1);
        break;
    case 2:
        transpose(array->data, ordered.data, s, 2);
        break;
    case 4:
        transpose(array->data, ordered.data, s, 4);
        break;
    default:
        transpose(array->data, ordered.data, s, 8);
        break;
    }
    clv_file_array_clear(array);
    *array = ordered;
    return CLV_OK;
}

static clv_status read_data(clv_input *input, const clv_npy_header *header, size_t bytes,
                            clv_file_array *array)
{
    /* Numbers of narrow types are read to the end of the array's memory, and widened from there. */
    char *at = (char *)array->data + (clv_file_array_bytes(array) - bytes);
    const size_t step = header->swap ? CHUNK : bytes;
    for (size_t done = 0; done < bytes;) {
        const size_t now = CLV_MIN(step, bytes - done);
        CLV_TRY(clv_input_read(input, at + done, now));
        if (header->swap) clv_npy_swap(at + done, now, header->dtype->size);
        done += now;
    }
    const size_t count = clv_file_array_count(array);
    if (header->dtype->widen == CLV_NPY_FROM_HALF) widen_halves(array->data, count);
    if (header->dtype->widen == CLV_NPY_FROM_INT8) widen_int8(array->data, count);
    return CLV_OK;
}

clv_status clv_npy_check_length(const clv_input *input, const clv_npy_header *header, size_t *bytes)
{
    char shape[CLV_SHAPE_TEXT];
    size_t count, ignored;
    clv_shape_text(header->rank, header->shape, shape);
    if (!clv_shape_size(header->dtype->type, header->rank, header->shape, &count, &ignored))
        return clv_fail(CLV_E_SHAPE, "%s: shape %s needs more memory than can be addressed",
                        input->path, shape);
    *bytes = count * header->dtype->size;
    const uint64_t there = input->length - input->position;
    if (there != *bytes)
        return clv_fail(CLV_E_FORMAT,
                        "%s: %s: the file has %llu bytes of data, expected %zu for shape %s of %s",
                        input->path, there < *bytes ? "truncated" : "bytes after the data",
                        (unsigned long long)there, *bytes, shape, header->dtype->code);
    return CLV_OK;
}

clv_status clv_npy_read(const char *path, clv_file_array *array)
{
    clv_npy_header header;
    clv_file_array read = { 0 };
    clv_input input;
    size_t bytes = 0;
    *array = (clv_file_array){ 0 };
    CLV_TRY(clv_input_open(&input, path));

    clv_status status = clv_npy_header_read(&input, &header);
    if (!status) status = clv_npy_check_length(&input, &header, &bytes);
    if (!status)
        status = clv_file_array_create(&read, path, header.dtype->type, header.rank, header.shape);
    if (!status) status = read_data(&input, &header, bytes, &read);
    /* an array without elements may have any number of rows */
    if (!status && header.fortran && header.rank > 1 && bytes) status = to_c_order(path, &read);
    if (!status) {
        *array = read;
        read = (clv_file_array){ 0 };
    }
    clv_file_array_clear(&read);
    clv_input_close(&input);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------- */

clv_status clv_npy_write(const char *path, const clv_file_array *array)
{
    char shape[CLV_SHAPE_TEXT] = "", head[4 * ALIGNMENT];
    size_t used = 0;
    for (size_t i = 0; i < array->rank; ++i) /* "(3,)", "(3, 4)" */
        used += (size_t)snprintf(shape + used, sizeof shape - used, i ? ", %zu" : "%zu",
                                 array->shape[i]);
    int length = snprintf(head, sizeof head,
                          "\x93NUMPY\x01%cHH{'descr': '%c%s', "
                          "'fortran_order': False, 'shape': (%s%s), }",
                          0, clv_type_size(array->type) > 1 ? CLV_NPY_NATIVE : '|',
                          clv_npy_code(array->type), shape, array->rank == 1 ? "," : "");
    while ((length + 1) % ALIGNMENT)
        head[length++] = ' ';
    head[length++] = '\n';
    head[8] = (char)(length - 10);
    head[9] = (char)((length - 10) >> 8);

    const clv_part parts[] = { { head, (size_t)length },
                               { array->data, clv_file_array_bytes(array) } };
    return clv_parts_write(path, parts, CLV_LEN(parts));
}
