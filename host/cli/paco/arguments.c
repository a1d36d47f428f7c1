/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the options of `cleave paco`, and checks their values. */
#include "host/cli/paco/files.h"

#include "base/alloc.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

static const double least_fwhm = 0.1, most_fwhm = 10000; /* pixels */

void paco_make_table(paco_args *a, cli_option *table)
{
    const cli_option rows[] = {
        { "o,output", CLI_TEXT, &a->output, "DIR", "folder for the maps (created if missing)" },
        { "radius", CLI_UINT, &a->radius, "PX", "patch radius, 2 to 6 [0.85 FWHM]",
          &a->radius_given },
        { "patch-area", CLI_UINT, &a->patch_area, "N",
          "patch radius given as its number of pixels: 13, 29, 49, 81 or 113" },
        { "psf-mode", CLI_CHOICE, &a->psf_mode, "shift,fixed",
          "shift the PSF to sub-pixel positions, or keep it fixed [shift]" },
        { "psf-norm", CLI_CHOICE, &a->psf_norm, "none,peak,sum,aperture",
          "divide the PSF by this, which sets the unit of fluxes [none]" },
        { "fwhm", CLI_DOUBLE, &a->fwhm, "PX", "width of the PSF [measured by a Gaussian fit]",
          &a->fwhm_given },
        { "conv", CLI_CHOICE, &a->conv, "paper,vip",
          "use the formulas of the paper or of vip-hci [paper]" },
        { "rounding", CLI_CHOICE, &a->rounding, "nearest,trunc",
          "how patch centres are rounded to pixels [nearest; vip: trunc]", &a->rounding_given },
        { "angle-column", CLI_TEXT, &a->angle_column, "NAME|N",
          "column of ANGLES if it is a table; numbers start at 1 [PA, PARANG... or ANGLE...]" },
        { "angle-sign", CLI_CHOICE, &a->angle_sign, "+,-",
          "direction in which the angles turn [+]" },
        { "center", CLI_TEXT, &a->centre, "X,Y|auto|middle",
          "column and row of the star from 0; auto finds it, middle is W/2,H/2 [auto]" },
        { "channel", CLI_TEXT, &a->channel, "K|all",
          "channel of a 4-D cube [C,T,H,W] to search [all]" },
        { "threshold", CLI_DOUBLE, &a->threshold, "S/N", "lowest S/N of a detection [5]" },
        { "snr", CLI_CHOICE, &a->snr, "calibrated,raw",
          "calibrated: noise of 1 at every separation; raw: b / sqrt(a) [calibrated]" },
        { "no-subtract", CLI_FLAG, &a->no_subtract, NULL,
          "list the peaks of the map without measuring and subtracting them" },
        { "at", CLI_TEXTS, &a->at, "X,Y",
          "also measure the flux at this position; may be repeated" },
        { "reject-frames", CLI_TEXT, &a->reject, "auto|none|LIST",
          "leave out frames: unusable ones, none, or 3,7-9 [auto]" },
        { "frame-weights", CLI_CHOICE, &a->weights, "robust,variance,none",
          "weights of the frames: lower for frames that differ from the others (robust), by the "
          "noise of each frame (variance), or equal (none) [robust]" },
        { "nan", CLI_CHOICE, &a->nan, "mend,mask",
          "fill in missing pixels, or leave out positions that they affect [mend]" },
        { "pixel-scale", CLI_DOUBLE, &a->pixel_scale, "MAS",
          "milliarcseconds per pixel, to give separations in mas", &a->scale_given },
        { "true-north", CLI_DOUBLE, &a->true_north, "DEG",
          "degrees that are added to position angles [0]" },
        { "star-flux", CLI_DOUBLE, &a->star_flux, "F",
          "flux of the star in the unit of the PSF, to give magnitudes", &a->star_given },
        { "star-ratio", CLI_DOUBLE, &a->star_ratio, "R",
          "instead of --star-flux, if PSF is an image of the star: exposure time of CUBE / "
          "(exposure "
          "time x filter transmission of PSF)",
          &a->ratio_given },
        { "wavelengths", CLI_TEXT, &a->wavelengths, "LIST|FILE",
          "wavelengths of the channels in um, nm or m; searches all channels together (ASDI)" },
        { "spectrum", CLI_TEXTS, &a->spectra, "flat|TK|FILE",
          "spectrum of a companion to search for; may be repeated [flat]" },
        { "star-temperature", CLI_DOUBLE, &a->star_temperature, "K",
          "divide --spectrum TK by a black body of K kelvin, the star", &a->temperature_given },
        { "contrast", CLI_FLAG, &a->contrast, NULL,
          "measure how bright a planet must be to be detected: contrast.csv, .png and a map" },
        { "contrast-radii", CLI_TEXT, &a->contrast_radii, "PX,...",
          "separations of the contrast curve [one FWHM to the edge]" },
        { "contrast-injections", CLI_UINT, &a->contrast_injections, "N",
          "number of planets to inject at each separation [24 to 200]" },
        { "format", CLI_CHOICE, &a->format, "fits,npy", "format of the maps [fits]" },
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
    if (a->fwhm_given && !(a->fwhm >= least_fwhm && a->fwhm <= most_fwhm))
        return cli_error(cli_running(), CLI_USAGE,
                         "--fwhm is %g, but it must be a positive number of pixels, %g to %g",
                         a->fwhm, least_fwhm, most_fwhm);
    if (!(fabs(a->true_north) <= 360))
        return cli_error(cli_running(), CLI_USAGE,
                         "--true-north is %g, but it must be -360 to 360 degrees", a->true_north);
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
    if (!(a->threshold > 0))
        return cli_error(cli_running(), CLI_USAGE,
                         "--threshold is %g, but it must be more than 0 (usual: 5)", a->threshold);
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
