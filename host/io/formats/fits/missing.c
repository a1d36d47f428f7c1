/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the FITS functions in a build without CFITSIO: every function fails and says so. */
#include "host/io/formats/fits.h"
#include "host/io/formats/fits_copy.h"

#include "base/error.h"

static clv_status missing(const char *path)
{
    return clv_fail(CLV_E_FORMAT,
                    "%s: this Cleave was built without FITS; use .npy, or build it "
                    "with CFITSIO",
                    path);
}

clv_status clv_fits_read(const char *path, int hdu, clv_file_array *array, clv_fits_cards *cards)
{
    (void)hdu, (void)cards;
    *array = (clv_file_array){ 0 };
    return missing(path);
}

clv_status clv_fits_read_extension(const char *path, const char *extension, clv_file_array *array,
                                   clv_fits_cards *cards)
{
    (void)extension, (void)cards;
    *array = (clv_file_array){ 0 };
    return missing(path);
}

clv_status clv_fits_read_vector_of(const char *path, const char *extension, const char *column,
                                   double **values, size_t *count, char unit[CLV_FITS_UNIT])
{
    (void)extension, (void)column, (void)unit;
    *values = NULL;
    *count = 0;
    return missing(path);
}

clv_status clv_fits_read_vector(const char *path, double **values, size_t *count)
{
    return clv_fits_read_vector_of(path, NULL, NULL, values, count, NULL);
}

clv_status clv_fits_read_named(const char *path, const char *name, size_t first, size_t rows,
                               clv_file_array *array, bool *found)
{
    (void)name, (void)first, (void)rows;
    *array = (clv_file_array){ 0 }, *found = false;
    return missing(path);
}

clv_status clv_fits_read_column(const char *path, const char *table, const char *column,
                                clv_type type, clv_file_array *array, bool *found)
{
    (void)table, (void)column, (void)type;
    *array = (clv_file_array){ 0 }, *found = false;
    return missing(path);
}

clv_status clv_fits_write(const char *path, const clv_file_array *array,
                          const clv_fits_cards *cards)
{
    (void)array, (void)cards;
    return missing(path);
}

clv_status clv_fits_raw_read(const char *path, const char *name, clv_fits_raw *raw, bool *found)
{
    (void)name;
    *raw = (clv_fits_raw){ 0 }, *found = false;
    return missing(path);
}

clv_status clv_fits_raw_primary(const char *path, const char *const *keys, size_t count,
                                clv_fits_raw *raw)
{
    (void)keys, (void)count;
    *raw = (clv_fits_raw){ 0 };
    return missing(path);
}

clv_status clv_fits_describe(const char *path, clv_fits_hdus *hdus)
{
    *hdus = (clv_fits_hdus){ 0 };
    return missing(path);
}

clv_status clv_fits_read_cells(const char *path, int hdu, const char *column, clv_file_array *array,
                               bool *found)
{
    (void)hdu, (void)column;
    *array = (clv_file_array){ 0 }, *found = false;
    return missing(path);
}
