/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an array or a vector from a file, whose format is recognised by its content, not its name. */
#include "host/io/formats/reader.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/formats/column.h"
#include "host/io/formats/fits.h"
#include "host/io/formats/npy.h"
#include "host/io/stream.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef enum format { OTHER, NPY, FITS, TEXT } file_format;

/* Signatures of formats; the first that matches decides. Formats that Cleave cannot read are listed too, so that the
 * message names them. */
static const struct {
    const char *magic;
    size_t length;
    file_format format;
    const char *name;
} formats[] = {
    { "\x93NUMPY", 6, NPY, "NPY" },
    { "SIMPLE  =", 9, FITS, "FITS" },
    { "\x1F\x8B", 2, FITS, "a gzip file" },
    { "PK\x03\x04", 4, OTHER,
      "a zip archive, perhaps .npz: save its arrays one by one with "
      "numpy.save" },
    { "\x89HDF\r\n\x1A\n", 8, OTHER, "HDF5" },
    { "II*\0", 4, OTHER, "TIFF" },
    { "MM\0*", 4, OTHER, "TIFF" },
    { "II+\0", 4, OTHER, "BigTIFF" },
    { "MM\0+", 4, OTHER, "BigTIFF" },
    { "\x89PNG", 4, OTHER, "PNG" },
    { "\xFF\xD8\xFF", 3, OTHER, "JPEG" },
    { "BZh", 3, OTHER, "a bzip2 file: unpack it first" },
    { "\xFD"
      "7zXZ",
      5, OTHER, "an xz file: unpack it first" },
    { "\x28\xB5\x2F\xFD", 4, OTHER, "a zstd file: unpack it first" },
    { "\x1F\x9D", 2, OTHER, "a .Z file: unpack it first" },
    { "MATLAB", 6, OTHER, "a MATLAB file" },
    { "CDF", 3, OTHER, "netCDF" },
    { "\xFF\xFE", 2, OTHER, "UTF-16 text: save it as UTF-8" },
    { "\xFE\xFF", 2, OTHER, "UTF-16 text: save it as UTF-8" },
};

static bool looks_like_text(const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; ++i)
        if (bytes[i] < 0x20 && !strchr("\t\n\v\f\r", bytes[i])) return false;
    return memchr(bytes, 0, length) == NULL && length > 0;
}

/* Splits "FILE[EXT]" into FILE and EXT, unless a file called "FILE[EXT]" exists. *extension is NULL for other paths,
 * else it points into *file. Free *file with clv_free. */
static clv_status split(const char *path, char **file, const char **extension)
{
    const size_t length = strlen(path);
    const char *open = strrchr(path, '[');
    *extension = NULL;
    *file = clv_strdup(path);
    if (!*file) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the name", path);
    if (!open || open == path || length < 3 || path[length - 1] != ']' || open[1] == ']' ||
        access(path, F_OK) == 0)
        return CLV_OK;
    (*file)[length - 1] = '\0', (*file)[open - path] = '\0';
    *extension = *file + (open - path) + 1;
    return CLV_OK;
}

/* Recognises a file's format by its first bytes, and sets *name to the format's name for a message. */
static clv_status recognise(const char *path, file_format *out, const char **name)
{
    unsigned char start[512];
    clv_input input;
    CLV_TRY(clv_input_open(&input, path));
    const size_t length = CLV_MIN(input.length, sizeof start);
    const clv_status status = clv_input_read(&input, start, length);
    clv_input_close(&input);
    if (status) return status;

    *out = OTHER;
    *name = length ? "unknown" : "empty";
    for (size_t i = 0; i < CLV_LEN(formats); ++i) {
        if (length < formats[i].length || memcmp(start, formats[i].magic, formats[i].length) != 0)
            continue;
        *out = formats[i].format;
        *name = formats[i].name;
        return CLV_OK;
    }
    if (looks_like_text(start, length)) {
        *out = TEXT;
        *name = "text";
    }
    return CLV_OK;
}

static clv_status no_extension(const char *path, const char *name, const char *extension)
{
    return clv_fail(CLV_E_FORMAT, "%s: [%s] names an HDU of a FITS file, but this is %s", path,
                    extension, name);
}

clv_status clv_array_read(const char *path, clv_file_array *array, clv_fits_cards *cards)
{
    file_format format;
    const char *name, *extension;
    char *file;
    *array = (clv_file_array){ 0 };
    CLV_TRY(split(path, &file, &extension));
    clv_status status = recognise(file, &format, &name);
    if (!status && extension && format != FITS)
        status = no_extension(file, name, extension);
    else if (!status && format == NPY)
        status = clv_npy_read(file, array);
    else if (!status && format == FITS)
        status = clv_fits_read_extension(file, extension, array, cards);
    else if (!status)
        status = clv_fail(CLV_E_FORMAT,
                          "%s: its format is not supported (%s); expected NPY (.npy) or FITS "
                          "(.fits, .fits.gz, .fits.fz)",
                          file, name);
    clv_free(file);
    return status;
}

static clv_status read_npy_vector(const char *path, double **values, size_t *count)
{
    char shape[CLV_SHAPE_TEXT];
    clv_file_array array;
    size_t long_axes = 0;
    CLV_TRY(clv_npy_read(path, &array));
    clv_status status = CLV_OK;
    for (size_t i = 0; i < array.rank; ++i)
        long_axes += array.shape[i] > 1;
    if (long_axes > 1 || !clv_file_array_count(&array))
        status = clv_fail(CLV_E_SHAPE, "%s: shape %s is not a vector; expected [T], [T,1] or [1,T]",
                          path, clv_shape_text(array.rank, array.shape, shape));
    if (!status) status = clv_file_array_convert(&array, path, CLV_F64);
    if (!status) {
        *count = clv_file_array_count(&array);
        *values = array.data;
        array.data = NULL;
    }
    clv_file_array_clear(&array);
    return status;
}

static clv_status read_column(const char *path, const char *extension, const char *column,
                              double **values, size_t *count, char unit[CLV_FITS_UNIT])
{
    file_format format;
    const char *name;
    CLV_TRY(recognise(path, &format, &name));
    if (extension && format != FITS) return no_extension(path, name, extension);
    switch (format) {
    case NPY:
        if (column)
            return clv_fail(CLV_E_FORMAT,
                            "%s: an array has no column %s; give a table: text or FITS", path,
                            column);
        return read_npy_vector(path, values, count);
    case FITS:
        return clv_fits_read_vector_of(path, extension, column, values, count, unit);
    case TEXT:
        return clv_text_column_read(path, column, values, count);
    default:
        break;
    }
    return clv_fail(
        CLV_E_FORMAT,
        "%s: its format is not supported (%s); expected text, NPY (.npy) or FITS (.fits)", path,
        name);
}

static clv_status read_split(const char *path, const char *column, double **values, size_t *count,
                             char unit[CLV_FITS_UNIT])
{
    char *file;
    const char *extension;
    *values = NULL;
    *count = 0;
    CLV_TRY(split(path, &file, &extension));
    const clv_status status = read_column(file, extension, column, values, count, unit);
    clv_free(file);
    return status;
}

/* Returns how many degrees an angle of one `unit` has; 0 for an unknown unit. */
static double degrees_in(const char *unit)
{
    static const struct {
        const char *unit;
        double degrees;
    } known[] = { { "", 1 },
                  { "deg", 1 },
                  { "degree", 1 },
                  { "degrees", 1 },
                  { "rad", 180 / 3.14159265358979323846 },
                  { "radian", 180 / 3.14159265358979323846 },
                  { "radians", 180 / 3.14159265358979323846 },
                  { "arcmin", 1.0 / 60 },
                  { "arcsec", 1.0 / 3600 },
                  { "mas", 1.0 / 3600000 } };
    for (size_t i = 0; i < CLV_LEN(known); ++i)
        if (strcasecmp(unit, known[i].unit) == 0) return known[i].degrees;
    return 0;
}

clv_status clv_angles_read(const char *path, const char *column, double **values, size_t *count)
{
    char unit[CLV_FITS_UNIT] = "";
    CLV_TRY(read_split(path, column, values, count, unit));
    const double degrees = degrees_in(unit);
    if (degrees == 0) {
        clv_free(*values);
        *values = NULL;
        *count = 0;
        return clv_fail(
            CLV_E_FORMAT,
            "%s: the unit of its angles is \"%s\"; expected deg, rad, arcmin, arcsec or "
            "mas, or no unit for degrees; correct the unit (TUNIT or BUNIT), or convert "
            "the angles",
            path, unit);
    }
    for (size_t i = 0; degrees != 1 && i < *count; ++i)
        (*values)[i] *= degrees;
    return CLV_OK;
}

clv_status clv_vector_read(const char *path, double **values, size_t *count)
{
    return read_split(path, NULL, values, count, NULL);
}
