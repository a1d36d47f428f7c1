/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one spectrum of one star from a file of any usual kind: text, a FITS table or a FITS image. */
#ifndef CLEAVE_HOST_IO_TABLES_SPECTRUM_H
#define CLEAVE_HOST_IO_TABLES_SPECTRUM_H

#include "host/io/formats/fits_copy.h"

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum clv_medium { CLV_MEDIUM_UNTOLD, CLV_MEDIUM_VACUUM, CLV_MEDIUM_AIR } clv_medium;

/* A spectrum of a star. Zero-initialise; read, clear. */
typedef struct clv_one_spectrum {
    const char *kind;          /* "SDSS table", "text", ...; static */
    size_t pixels;             /* at least 16 */
    double *wavelength, *flux; /* Angstrom, ascending; flux per Angstrom, in any unit */
    double *error;             /* standard error of the flux; 0: the pixel is bad */
    double *lsf;       /* standard deviation of the line-spread function in pixels; NULL: unknown */
    bool estimated;    /* the errors were estimated from the scatter, since the file has none */
    bool guessed_um;   /* wavelengths were taken as micrometres, since none is above 100 */
    bool from_pixel_0; /* the image has no CRPIX1, which was taken as 0 */
    size_t unplaced;   /* pixels left out because they have no wavelength (NaN, 0, negative) */
    size_t masked;     /* pixels that are bad only because of the mask */
    clv_medium medium;
    double barycentric; /* km/s to be added to velocities, from the header; NaN: unknown */
    double ra, dec;     /* degrees; NaN: unknown */
    int64_t target, plate, mjd, fiber; /* -1: unknown */
    char object[40];                   /* "": unknown */
} clv_one_spectrum;

typedef enum clv_spectrum_role {
    CLV_ROLE_NONE,
    CLV_ROLE_WAVE,
    CLV_ROLE_LOG_WAVE, /* log10 of Angstrom */
    CLV_ROLE_FLUX,
    CLV_ROLE_ERROR,
    CLV_ROLE_IVAR,
    CLV_ROLE_VARIANCE,
    CLV_ROLE_MASK,
    CLV_ROLE_LSF,
    CLV_ROLES
} clv_spectrum_role;

/* The user's names of the columns in each role, for a table that does not use the usual names; "": the usual names. */
typedef struct clv_spectrum_names {
    char of[CLV_ROLES][72];
} clv_spectrum_names;

/* Reads a spectrum from FITS, recognised by its first bytes, or from text of two to four columns. `names` are the names
 * of columns in a FITS table or in the text; NULL: the usual names. Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT (wavelengths
 * that neither rise nor fall; or no spectrum or no such columns, with a message that says what was looked for);
 * CLV_E_MEMORY. `out` is zero after a failure. */
clv_status clv_one_spectrum_read(const char *path, const clv_spectrum_names *names,
                                 clv_one_spectrum *out);
void clv_one_spectrum_clear(clv_one_spectrum *spectrum);

/* Converts a wavelength in air to vacuum, both in Angstrom; wavelengths below 2000 stay unchanged. Inverts the formula
 * of Morton (2000), which the IAU adopted, to 1e-9 of the wavelength. */
double clv_vacuum_of_air(double air);

/* ---- spectrum_parts.c: what the readers share ---- */
/* Returns the role that a column or image called `name` usually has. */
clv_spectrum_role clv_spectrum_role_of(const char *name);
/* Returns the role of a column called `name`, given the user's names. These replace the usual names of their role, and
 * those of roles for the same quantity: an error replaces inverse variances and variances, and a wavelength replaces
 * its logarithm. */
clv_spectrum_role clv_spectrum_role_among(const clv_spectrum_names *names, const char *name);
/* Writes the user's names to `out` for a message; "" if there are none. */
void clv_spectrum_list_names(const clv_spectrum_names *names, char *out, size_t room);
/* Returns how many Angstrom the unit of length `unit` has; 0 for an unknown unit. */
double clv_angstrom_in(const char *unit);
/* Returns the bits that make a pixel bad in a mask called `name`: SDSS's bits, JWST's DO_NOT_USE, else all bits. */
int64_t clv_spectrum_mask_bits(const char *name);
/* Returns the bits that make a pixel bad in the masks of APOGEE's apStar, which have no name. */
int64_t clv_spectrum_apogee_bits(void);
/* Columns of the same length that form a spectrum: wavelength and flux are required, others may be NULL. */
typedef struct clv_spectrum_columns {
    size_t count;
    const double *value[CLV_ROLES];
    double angstrom;    /* Angstrom per unit of wavelength; 0: unknown */
    double error_scale; /* factor that converts the errors to the flux's unit; 0: 1 */
    bool per_hertz;     /* flux is per Hz */
    int64_t bad_bits;   /* bits of the mask that make a pixel bad */
    bool marks_good;    /* the mask is 0 where a pixel is bad */
} clv_spectrum_columns;
clv_status clv_spectrum_assemble(const char *path, const clv_spectrum_columns *columns,
                                 clv_one_spectrum *out);
/* The text of the unit of each role's values; "": unknown. */
typedef struct clv_spectrum_unit_texts {
    char of[CLV_ROLES][72];
} clv_spectrum_unit_texts;
/* Sets the factor that converts the errors to the unit of the flux. Returns CLV_E_FORMAT, naming both units, if errors
 * are in a unit that cannot be converted. A variance or an inverse variance whose unit is not understood, or is a copy
 * of the flux's, is taken to be in the unit that belongs to the flux. */
clv_status clv_spectrum_match_units(const char *path, const clv_spectrum_unit_texts *units,
                                    clv_spectrum_columns *columns);
/* Joins `part` to the beginning or the end of `out` if their wavelengths do not overlap; else changes nothing. */
clv_status clv_spectrum_append(const char *path, const clv_one_spectrum *part,
                               clv_one_spectrum *out);
/* Returns whether a unit of flux is per Hz. */
bool clv_is_per_hertz(const char *unit);
/* Returns CLV_E_FORMAT if a unit of flux is logarithmic, as that of magnitudes is. */
clv_status clv_spectrum_check_flux_unit(const char *path, const char *unit);

/* ---- the kinds; *found is false if the file is not of that kind ---- */
clv_status clv_spectrum_read_text(const char *path, const clv_spectrum_names *names,
                                  clv_one_spectrum *out);
clv_status clv_spectrum_read_table(const char *path, const clv_fits_hdus *hdus,
                                   const clv_spectrum_names *names, clv_one_spectrum *out,
                                   bool *found);
clv_status clv_spectrum_read_image(const char *path, const clv_fits_hdus *hdus,
                                   clv_one_spectrum *out, bool *found);

#endif
