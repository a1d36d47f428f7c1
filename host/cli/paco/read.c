/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the inputs of `cleave paco`: checks their shapes, and warns about suspicious contents. */
#include "host/cli/paco/files.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Prepends the operand to the message: the message names the file, but the user needs to know which of the three inputs
 * it is. */
static int bad_input(const char *operand, clv_status status)
{
    clv_error why = { 0 };
    clv_error_take(&why, status);
    (void)clv_fail_detail(status, why.detail, "%s: %s", operand, why.message);
    clv_error_clear(&why);
    return cli_input_status(cli_running(), status);
}

static int read_cube(const paco_args *a, const char *path, paco_inputs *in)
{
    clv_file_array cube = { 0 };
    char shape[CLV_SHAPE_TEXT];
    clv_status status = clv_array_read(path, &cube, &in->cards);
    if (!status) status = clv_file_array_convert(&cube, path, CLV_F32);
    if (status) {
        clv_file_array_clear(&cube);
        return bad_input("CUBE", status);
    }
    if (cube.rank != 3 && cube.rank != 4) {
        clv_shape_text(cube.rank, cube.shape, shape);
        clv_file_array_clear(&cube);
        return cli_error(cli_running(), CLI_USAGE,
                         "CUBE: %s has the shape %s, but it must be frames [T,H,W] or channels of "
                         "frames [C,T,H,W]. Is the order CUBE ANGLES PSF?",
                         path, shape);
    }
    const size_t *dims = cube.shape + cube.rank - 3;
    in->cube = cube.data;
    in->channels = cube.rank == 4 ? cube.shape[0] : 1;
    in->frames = dims[0], in->height = dims[1], in->width = dims[2];
    in->channels_used = in->channels;
    if (!in->channels || !in->frames || !in->height || !in->width)
        return cli_error(cli_running(), CLI_USAGE, "%s: %s holds nothing", path,
                         clv_shape_text(cube.rank, cube.shape, shape));
    if (a->channel && strcmp(a->channel, "all") != 0) {
        uint64_t k;
        if (!clv_parse_u64(a->channel, &k) || k >= in->channels)
            return cli_error(cli_running(), CLI_USAGE,
                             "--channel is \"%s\", but %s has the channels 0 to %zu", a->channel,
                             path, in->channels - 1);
        in->first_channel = (size_t)k;
        in->channels_used = 1;
    }
    return CLI_OK;
}

static int read_angles(const paco_args *a, const char *path, paco_inputs *in)
{
    size_t count;
    const clv_status status = clv_angles_read(path, a->angle_column, &in->angles, &count);
    if (status) return bad_input("ANGLES", status);
    if (count != in->frames && in->channels > 1 && count == in->channels)
        return cli_error(
            cli_running(), CLI_USAGE,
            "%s: there are %zu angles, but the cube has %zu channels of %zu frames; it looks like "
            "[T,C,H,W], but the channels come first, [C,T,H,W] (numpy: cube.swapaxes(0, 1))",
            path, count, in->channels, in->frames);
    if (count != in->frames)
        return cli_error(cli_running(), CLI_USAGE,
                         "%s: there are %zu angles, but the cube has %zu frames", path, count,
                         in->frames);
    for (size_t i = 0; i < count; ++i)
        if (!isfinite(in->angles[i]))
            return cli_error(cli_running(), CLI_USAGE, "%s: angle %zu is not finite", path, i);
    return CLI_OK;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Reduces [k,n,n] to [n,n]: the median over the first axis for each pixel. */
static bool take_median(float *psf, size_t count, size_t pixels)
{
    float *column = clv_alloc(count, sizeof *column);
    if (!column) return false;
    for (size_t p = 0; p < pixels; ++p) {
        for (size_t k = 0; k < count; ++k)
            column[k] = psf[k * pixels + p];
        qsort(column, count, sizeof *column, by_value);
        psf[p] = count % 2 ? column[count / 2] : 0.5f * (column[count / 2 - 1] + column[count / 2]);
    }
    clv_free(column);
    return true;
}

static void warn_about_psf(const char *path, const float *psf, size_t size)
{
    size_t peak = 0;
    double border = 0;
    for (size_t i = 0; i < size * size; ++i) {
        if (psf[i] > psf[peak]) peak = i;
        if (i / size == 0 || i / size == size - 1 || i % size == 0 || i % size == size - 1)
            border += psf[i];
    }
    border /= (double)(4 * (size - 1));
    if (border > 0.05 * psf[peak])
        cli_warn(cli_running(),
                 "%s: the border of the PSF is at %.0f %% of its peak. Was the background "
                 "subtracted? A remaining background lowers the S/N",
                 path, 100 * border / psf[peak]);
}

/* Moves the PSF's centre to its middle pixel. A PSF without a peak is reported later. */
static void recentre(const char *path, paco_inputs *in, bool quiet)
{
    const size_t pixels = in->psf_size * in->psf_size;
    for (size_t k = 0; k < in->psf_count; ++k) {
        double dx, dy;
        if (clv_psf_recentre(in->psf + k * pixels, in->psf_size, &dx, &dy)) continue;
        if (hypot(dx, dy) < 0.02 || quiet) continue;
        const double middle = (double)(in->psf_size / 2);
        if (hypot(dx, dy) > 1)
            cli_warn(cli_running(),
                     "%s: the PSF peaks at (%.2f, %.2f) instead of the centre (%g, %g); it was "
                     "moved to the centre",
                     path, middle + dx, middle + dy, middle, middle);
        else
            cli_say(stderr,
                    "the centre of the PSF was at (%.2f, %.2f); it was moved to pixel (%g, %g)\n",
                    middle + dx, middle + dy, middle, middle);
    }
}

/* Chooses a patch that holds the core of the PSF: a radius of 0.85 FWHM, as far as the sizes of the frames and the PSF
 * allow. A wider patch improves the positions of companions but lowers the S/N of the map. */
static void choose_radius(paco_args *a, const paco_inputs *in)
{
    if (a->radius) return;
    const size_t side = CLV_MIN(CLV_MIN(in->height, in->width), in->psf_size),
                 most = side > 5 ? (side - 1) / 2 : 2;
    a->radius = (uint64_t)fmin(fmin(fmax(round(0.85 * in->fwhm), 2), 6), (double)most);
    a->measure_radius = CLV_MIN(CLV_MIN(a->radius + 1, 6), (uint64_t)most);
    if (!a->common.quiet)
        cli_say(stderr,
                "patch radius %llu px for a FWHM of %.2f px; %llu px to measure companions "
                "(--radius sets it)\n",
                (unsigned long long)a->radius, in->fwhm, (unsigned long long)a->measure_radius);
}

/* Computes the mean FWHM of all channels, which are searched together. */
static clv_status mean_fwhm(paco_inputs *in)
{
    double sum = 0, one;
    for (size_t k = 0; k < in->psf_count; ++k) {
        CLV_TRY(clv_psf_fwhm(in->psf + k * in->psf_size * in->psf_size, in->psf_size, &one));
        sum += one;
    }
    in->fwhm = sum / (double)in->psf_count;
    return CLV_OK;
}

/* Derives the star's flux from the PSF, which is an image of the star taken with another exposure time or through a
 * filter. `before` is the PSF's sum before normalisation; its present sum is one unit of flux. */
static int take_star(paco_args *a, const char *path, const paco_inputs *in, const float *psf,
                     double before)
{
    double after = 0;
    if (!a->ratio_given) return CLI_OK;
    if (in->psf_count > 1 && in->channels_used > 1 && a->psf_norm)
        return cli_error(
            cli_running(), CLI_USAGE,
            "--star-ratio: %s has %zu PSFs, which share a unit only with --psf-norm none", path,
            in->psf_count);
    for (size_t i = 0; i < in->psf_size * in->psf_size; ++i)
        after += (double)psf[i];
    a->star_flux = a->star_ratio * before / after, a->star_given = true;
    if (!(a->star_flux > 0) || !isfinite(a->star_flux))
        return cli_error(cli_running(), CLI_USAGE,
                         "--star-ratio: the pixels of the PSF %s add up to %g, so that the star's "
                         "flux is unknown; give --star-flux",
                         path, before);
    if (!a->common.quiet)
        cli_say(stderr, "the star's flux is %.6g in units of the PSF (--star-ratio)\n",
                a->star_flux);
    return CLI_OK;
}

static int read_psf(paco_args *a, const char *path, paco_inputs *in)
{
    clv_file_array psf = { 0 };
    char shape[CLV_SHAPE_TEXT];
    clv_status status = clv_array_read(path, &psf, NULL);
    if (!status) status = clv_file_array_convert(&psf, path, CLV_F32);
    if (status) {
        clv_file_array_clear(&psf);
        return bad_input("PSF", status);
    }
    in->psf = psf.data;
    const size_t rank = psf.rank;
    if (rank < 2 || rank > 3 || psf.shape[rank - 1] != psf.shape[rank - 2] ||
        !psf.shape[rank - 1] || (rank == 3 && !psf.shape[0]))
        return cli_error(cli_running(), CLI_USAGE,
                         "PSF: %s has the shape %s, but it must be square, [n,n], or several of "
                         "them, [k,n,n]",
                         path, clv_shape_text(rank, psf.shape, shape));
    in->psf_size = psf.shape[rank - 1];
    in->psf_count = rank == 3 ? psf.shape[0] : 1;
    if (in->psf_size < 2 * a->radius + 1)
        return cli_error(
            cli_running(), CLI_USAGE,
            "%s: the PSF of %zux%zu pixels is smaller than the patch of %llux%llu (radius %llu)",
            path, in->psf_size, in->psf_size, (unsigned long long)(2 * a->radius + 1),
            (unsigned long long)(2 * a->radius + 1), (unsigned long long)a->radius);
    const size_t pixels = in->psf_size * in->psf_size;
    const bool per_channel = in->channels > 1 && in->psf_count == in->channels;
    const size_t side = CLV_MIN(in->height, in->width);
    if (in->psf_count > 1 && !per_channel && in->psf_size >= side)
        return cli_error(
            cli_running(), CLI_USAGE,
            "PSF: %s has the shape %s, which looks like a sequence of frames (those of CUBE are "
            "%zux%zu); it must be one off-axis image of the star, [n,n], or several of them, "
            "[k,n,n], smaller than a frame. Is the order CUBE ANGLES PSF?",
            path, clv_shape_text(rank, psf.shape, shape), in->width, in->height);
    for (size_t i = 0; i < in->psf_count * pixels; ++i) /* NaN has no place among sorted values */
        if (!isfinite(in->psf[i]))
            return cli_error(cli_running(), CLI_USAGE,
                             "%s: the PSF holds a value that is not finite", path);
    if (in->psf_count > 1 && !per_channel) {
        if (!take_median(in->psf, in->psf_count, pixels))
            return cli_error(cli_running(), CLI_FAILED, "%s: out of memory", path);
        if (!a->common.quiet)
            cli_say(stderr, "%s: %zu images of the PSF: using their median, pixel by pixel\n", path,
                    in->psf_count);
        in->psf_count = 1;
    }
    bool dark = true;
    for (size_t i = 0; i < in->psf_count * pixels; ++i)
        dark = dark && in->psf[i] == 0;
    if (dark) return cli_error(cli_running(), CLI_USAGE, "%s: the PSF is zero everywhere", path);
    recentre(path, in, a->common.quiet);
    const size_t used = per_channel ? in->first_channel : 0;
    status = a->fwhm > 0 ? CLV_OK : clv_psf_fwhm(in->psf + used * pixels, in->psf_size, &in->fwhm);
    if (status)
        return cli_error(cli_running(), CLI_USAGE, "%s: %s; give --fwhm", path,
                         clv_error_message());
    if (a->fwhm > 0) in->fwhm = a->fwhm;
    if (a->wavelengths && in->psf_count > 1 && !(a->fwhm > 0)) status = mean_fwhm(in);
    choose_radius(a, in);
    double before = 0;
    for (size_t i = 0; i < pixels; ++i)
        before += (double)in->psf[used * pixels + i];
    for (size_t k = 0; k < in->psf_count && !status; ++k) {
        double own = in->fwhm; /* of this channel */
        if (in->psf_count > 1 && !(a->fwhm > 0))
            status = clv_psf_fwhm(in->psf + k * pixels, in->psf_size, &own);
        if (!status)
            status = clv_psf_normalize(in->psf + k * pixels, in->psf_size,
                                       (clv_psf_norm)a->psf_norm, own);
    }
    const int code = cli_input_status(cli_running(), status);
    return code ? code : take_star(a, path, in, in->psf + used * pixels, before);
}

/* Returns whether any pixel has two different values in the frames that are used; also true if no pixel has any. */
static bool changes(const paco_inputs *in)
{
    const size_t pixels = in->height * in->width;
    bool has_value = false;
    for (size_t c = in->first_channel; c < in->first_channel + in->channels_used; ++c)
        for (size_t p = 0; p < pixels; ++p) {
            const float *at = in->cube + c * in->frames * pixels + p;
            float first = NAN;
            for (size_t t = 0; t < in->frames; ++t, at += pixels) {
                if (!isfinite(*at)) continue;
                if (isfinite(first) && *at != first) return true;
                first = *at, has_value = true;
            }
        }
    return !has_value;
}

/* Checks what the operation would refuse, before any message is printed or device opened. */
static int check_geometry(const paco_args *a, const char *cube, const paco_inputs *in)
{
    const size_t patch = 2 * (size_t)a->radius + 1;
    if (in->frames < 2)
        return cli_error(cli_running(), CLI_USAGE,
                         "%s: there is %zu frame, but statistics over time need at least 2", cube,
                         in->frames);
    if (in->height < patch || in->width < patch)
        return cli_error(
            cli_running(), CLI_USAGE,
            "%s: frames of %zux%zu are smaller than the patch of %zux%zu (radius %llu)", cube,
            in->width, in->height, patch, patch, (unsigned long long)a->radius);
    const bool numbers = a->centre && strchr(a->centre, ',');
    if (numbers && !(a->centre_x >= 0 && a->centre_x <= (double)(in->width - 1) &&
                     a->centre_y >= 0 && a->centre_y <= (double)(in->height - 1)))
        return cli_error(cli_running(), CLI_USAGE,
                         "--center: (%g, %g) is outside frames of %zux%zu", a->centre_x,
                         a->centre_y, in->width, in->height);
    return CLI_OK;
}

static int check_changes(const char *cube, const paco_inputs *in)
{
    if (!changes(in))
        return cli_error(
            cli_running(), CLI_USAGE,
            "CUBE: %s: every pixel has the same value in all %zu frames (the first one is %g), but "
            "planets are found among values that change from frame to frame; check the "
            "cube, and BSCALE if it is FITS",
            cube, in->frames,
            (double)in->cube[in->first_channel * in->frames * in->height * in->width]);
    return CLI_OK;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the length in degrees of the shortest arc of a circle that holds all angles: 20 for 350 and 10. Infinity
 * if there is no memory. */
static double arc_of(const double *angles, size_t count)
{
    double *sorted = clv_alloc(count, sizeof *sorted);
    if (!sorted) return INFINITY;
    for (size_t i = 0; i < count; ++i)
        sorted[i] = angles[i] - 360 * floor(angles[i] / 360);
    qsort(sorted, count, sizeof *sorted, by_size);
    double gap = sorted[0] + 360 - sorted[count - 1];
    for (size_t i = 1; i < count; ++i)
        gap = fmax(gap, sorted[i] - sorted[i - 1]);
    clv_free(sorted);
    return 360 - gap;
}

/* Prints how far the field rotates. Inside a certain radius a planet moves by less than its own width and is mistaken
 * for the star's halo. */
static void tell_rotation(const paco_args *a, const char *angles, const paco_inputs *in)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < in->frames; ++i)
        low = fmin(low, in->angles[i]), high = fmax(high, in->angles[i]);
    if (high > low && fmax(fabs(low), fabs(high)) < 7 && high - low < 6.3)
        cli_warn(cli_running(),
                 "%s: angles from %.4g to %.4g look like radians; degrees are expected (multiply "
                 "them by 57.29578)",
                 angles, low, high);
    const double turn = fmin(high - low, arc_of(in->angles, in->frames)),
                 radius = turn > 0 ? in->fwhm / (turn * 3.14159265358979323846 / 180) : INFINITY;
    const double edge = 0.5 * (double)CLV_MIN(in->height, in->width) - (double)a->radius;
    if (!(turn > 0))
        cli_warn(cli_running(),
                 "%s: all angles are the same. If the field does not rotate, or the frames have "
                 "been derotated, a planet cannot be distinguished from the star's light",
                 angles);
    else if (radius > edge)
        cli_warn(cli_running(),
                 "the field rotates by only %.3g degrees: a planet moves by one FWHM (%.2f px) "
                 "only if it is at least %.0f px from the star, but the frame ends at %.0f px; the "
                 "method will subtract part of the planet's own light",
                 turn, in->fwhm, radius, edge);
    else if (!a->common.quiet)
        cli_say(stderr,
                "rotation %.2f degrees, FWHM %.2f px: a planet closer than %.1f px to the star "
                "moves by less than one FWHM\n",
                turn, in->fwhm, radius);
}

int paco_read(paco_args *a, const char *cube, const char *angles, const char *psf, paco_inputs *in)
{
    in->cube_path = cube;
    int code = read_cube(a, cube, in);
    if (!code) code = check_geometry(a, cube, in);
    if (!code) code = read_angles(a, angles, in);
    if (!code) code = read_psf(a, psf, in);
    if (!code) code = check_changes(cube, in); /* after messages about the order of the files */
    if (!code) code = paco_asdi_read(a, in);
    if (!code) warn_about_psf(psf, in->psf, in->psf_size);
    if (!code) tell_rotation(a, angles, in);
    return code;
}

void paco_inputs_clear(paco_inputs *in)
{
    clv_free(in->cube), clv_free(in->angles), clv_free(in->psf), clv_free(in->quality);
    clv_free(in->weights), clv_free(in->weights_read);
    clv_free(in->angles_read), clv_free(in->wavelengths), clv_free(in->spectra);
    clv_fits_cards_clear(&in->cards);
    *in = (paco_inputs){ 0 };
}
