/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `cleave paco`, and checks of their values. */
#include "host/cli/paco/files.h"

#include "base/alloc.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

void paco_make_table(paco_args *a, cli_option *table)
{
    const cli_option rows[] = {
        { "o,output", CLI_TEXT, &a->output, "DIR", "where the maps go (made when missing)" },
        { "radius", CLI_UINT, &a->radius, "PX", "patch radius, 2 to 6 [0.85 FWHM]",
          &a->radius_given },
        { "patch-area", CLI_UINT, &a->patch_area, "N",
          "the same as pixels: 13, 29, 49, 81 or 113" },
        { "psf-mode", CLI_CHOICE, &a->psf_mode, "shift,fixed",
          "move the PSF between pixels, or not [shift]" },
        { "psf-norm", CLI_CHOICE, &a->psf_norm, "none,peak,sum,aperture",
          "scale of the PSF: the flux unit [none]" },
        { "fwhm", CLI_DOUBLE, &a->fwhm, "PX", "width of the PSF [measured by a Gaussian fit]",
          &a->fwhm_given },
        { "conv", CLI_CHOICE, &a->conv, "paper,vip",
          "formulas of the paper, or of vip-hci [paper]" },
        { "rounding", CLI_CHOICE, &a->rounding, "nearest,trunc",
          "patch centres [nearest; vip: trunc]", &a->rounding_given },
        { "angle-column", CLI_TEXT, &a->angle_column, "NAME|N",
          "of ANGLES where it is a table, from 1 [PA, PARANG... or ANGLE...]" },
        { "angle-sign", CLI_CHOICE, &a->angle_sign, "+,-", "which way the angles turn [+]" },
        { "center", CLI_TEXT, &a->centre, "X,Y|auto|middle",
          "star's column and row, 0-based, found, or W/2,H/2 [auto]" },
        { "channel", CLI_TEXT, &a->channel, "K|all", "of a 4-D cube [C,T,H,W] [all]" },
        { "threshold", CLI_DOUBLE, &a->threshold, "S/N", "lowest S/N of a detection [5]" },
        { "snr", CLI_CHOICE, &a->snr, "calibrated,raw",
          "noise of 1 at every separation, or b / sqrt(a) [calibrated]" },
        { "no-subtract", CLI_FLAG, &a->no_subtract, NULL,
          "list peaks of the map; do not measure them and take them out" },
        { "at", CLI_TEXTS, &a->at, "X,Y", "measure the flux at this place, too; may be repeated" },
        { "reject-frames", CLI_TEXT, &a->reject, "auto|none|LIST",
          "leave out frames: unusable ones, none, or 3,7-9 [auto]" },
        { "frame-weights", CLI_CHOICE, &a->weights, "robust,variance,none",
          "frames unlike the others count less, all by their noise, or all alike [robust]" },
        { "nan", CLI_CHOICE, &a->nan, "mend,mask",
          "fill in missing pixels, or leave out what they touch [mend]" },
        { "pixel-scale", CLI_DOUBLE, &a->pixel_scale, "MAS",
          "milliarcseconds per pixel: separations in mas", &a->scale_given },
        { "true-north", CLI_DOUBLE, &a->true_north, "DEG", "added to position angles [0]" },
        { "star-flux", CLI_DOUBLE, &a->star_flux, "F",
          "the star's flux in the PSF's unit: magnitudes", &a->star_given },
        { "star-ratio", CLI_DOUBLE, &a->star_ratio, "R",
          "the same from PSF, which is the star: exposure of CUBE / exposure and filter of PSF",
          &a->ratio_given },
        { "wavelengths", CLI_TEXT, &a->wavelengths, "LIST|FILE",
          "of the channels, in um, nm or m: search all together (ASDI)" },
        { "spectrum", CLI_TEXTS, &a->spectra, "flat|TK|FILE",
          "a companion's, tried in the search; may be repeated [flat]" },
        { "star-temperature", CLI_DOUBLE, &a->star_temperature, "K",
          "--spectrum TK is divided by a black body of K kelvin", &a->temperature_given },
        { "contrast", CLI_FLAG, &a->contrast, NULL,
          "which planets would be found: contrast.csv, .png and a map" },
        { "contrast-radii", CLI_TEXT, &a->contrast_radii, "PX,...",
          "separations of its curve [one FWHM to the edge]" },
        { "contrast-injections", CLI_UINT, &a->contrast_injections, "N",
          "planets hidden at each of them [24 to 200]" },
        { "format", CLI_CHOICE, &a->format, "fits,npy", "of the maps [fits]" },
        { NULL },
    };
    _Static_assert(sizeof rows / sizeof *rows == PACO_OPTIONS + 1, "PACO_OPTIONS");
    memcpy(table, rows, sizeof rows);
}

/* Returns the radius of the disc with that number of pixels, or 0. */
static unsigned radius_of_area(uint64_t area)
{
    static const unsigned areas[] = { 0, 0, 13, 29, 49, 81, 113 };
    for (unsigned r = 2; r < CLV_LEN(areas); ++r)
        if (areas[r] == area) return r;
    return 0;
}

int paco_check_args(paco_args *a)
{
    if (!a->output)
        return cli_error(cli_running(), CLI_USAGE, "-o DIR is missing: the folder for the maps");
    if (a->radius_given && (a->radius < 2 || a->radius > 6))
        return cli_error(cli_running(), CLI_USAGE, "--radius is %llu, but it must be 2 to 6",
                         (unsigned long long)a->radius);
    if (a->patch_area) {
        const unsigned radius = radius_of_area(a->patch_area);
        if (!radius)
            return cli_error(cli_running(), CLI_USAGE,
                             "--patch-area is %llu, but it must be 13, 29, 49, 81 or 113 (discs of "
                             "radius 2 to 6)",
                             (unsigned long long)a->patch_area);
        if (a->radius_given && a->radius != radius)
            return cli_error(
                cli_running(), CLI_USAGE,
                "--radius %llu and --patch-area %llu disagree: %llu pixels are a disc of radius %u",
                (unsigned long long)a->radius, (unsigned long long)a->patch_area,
                (unsigned long long)a->patch_area, radius);
        a->radius = radius;
    }
    if (a->fwhm_given && !(a->fwhm > 0))
        return cli_error(cli_running(), CLI_USAGE, "--fwhm is %g, but it must be a positive number",
                         a->fwhm);
    if (a->centre && strcmp(a->centre, "auto") != 0 && strcmp(a->centre, "middle") != 0 &&
        !paco_parse_place(a->centre, &a->centre_x, &a->centre_y))
        return cli_error(cli_running(), CLI_USAGE,
                         "--center is \"%s\", but it must be two numbers X,Y, auto or middle",
                         a->centre);
    for (size_t i = 0; a->at.items[i]; ++i) {
        double x, y;
        if (!paco_parse_place(a->at.items[i], &x, &y))
            return cli_error(cli_running(), CLI_USAGE,
                             "--at is \"%s\", but it must be two numbers X,Y", a->at.items[i]);
    }
    if (a->scale_given && !(a->pixel_scale > 0))
        return cli_error(cli_running(), CLI_USAGE,
                         "--pixel-scale is %g, but it must be a positive number", a->pixel_scale);
    if (a->star_given && !(a->star_flux > 0))
        return cli_error(cli_running(), CLI_USAGE,
                         "--star-flux is %g, but it must be a positive number", a->star_flux);
    if (a->ratio_given && !(a->star_ratio > 0))
        return cli_error(cli_running(), CLI_USAGE,
                         "--star-ratio is %g, but it must be a positive number", a->star_ratio);
    if (a->ratio_given && a->star_given)
        return cli_error(cli_running(), CLI_USAGE,
                         "--star-flux and --star-ratio both give the brightness of the star; leave "
                         "one of them out");
    if (a->contrast && !(a->threshold > 0))
        return cli_error(cli_running(), CLI_USAGE,
                         "--threshold is %g, but --contrast needs a positive number", a->threshold);
    const int code = paco_asdi_check(a);
    return code >= 0 ? code : paco_contrast_check(a);
}

bool paco_parse_place(const char *text, double *x, double *y)
{
    char first[64];
    const char *comma = strchr(text, ',');
    const size_t length = comma ? (size_t)(comma - text) : 0;
    if (!comma || length >= sizeof first) return false;
    memcpy(first, text, length);
    first[length] = '\0';
    return clv_parse_double(first, x) && clv_parse_double(comma + 1, y);
}
