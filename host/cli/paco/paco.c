/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave paco`: parses the options, then reads, computes and writes. */
#include "host/cli/paco/files.h"
#include "host/cli/clash.h"
#include "host/cli/share.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "runtime/context/prepare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static clv_paco_options options_of(const paco_args *a, cli_bar *bar)
{
    return (clv_paco_options){
        .size = sizeof(clv_paco_options),
        .radius = (unsigned)a->radius,
        .psf_mode = (clv_psf_mode)a->psf_mode,
        .convention = (clv_paco_convention)a->conv,
        .rounding = !a->rounding_given ? CLV_ROUND_DEFAULT
                    : a->rounding      ? CLV_ROUND_TRUNC
                                       : CLV_ROUND_NEAREST,
        .reverse_angles = a->angle_sign == 1,
        .centre_given = true,
        .centre_x = a->centre_x,
        .centre_y = a->centre_y,
        .progress = cli_progress,
        .progress_user = bar,
        .measure_radius = (unsigned)a->measure_radius,
    };
}

static clv_paco_input input_of(const paco_inputs *in, size_t channel)
{
    const size_t source = in->first_channel + channel;
    return (clv_paco_input){
        .size = sizeof(clv_paco_input),
        .cube = in->cube + source * in->frames * in->height * in->width,
        .frames = in->frames,
        .height = in->height,
        .width = in->width,
        .angles = in->angles,
        .psf = in->psf + (in->psf_count > 1 ? source : 0) * in->psf_size * in->psf_size,
        .psf_size = in->psf_size,
        .weights = in->weights,
    };
}

/* Notes the search's kernels for compilation. The search fits planets with its own kernels; when they are noted before
 * the maps are computed, they are compiled on all cores together with the kernels of the maps. For a large cube this
 * would take longer than it saves. */
static void note_search(const paco_args *a, const paco_inputs *in, clv_context *context,
                        const clv_paco_options *options)
{
    static const size_t large = 16 << 20; /* pixels */
    const clv_paco_input input = input_of(in, 0);
    clv_companion at = { .x = a->centre_x, .y = a->centre_y };
    if (a->no_subtract || !clv_prepare_helps(context) ||
        in->frames * in->height * in->width > large)
        return;
    clv_prepare_begin(context);
    clv_paco_options once = *options; /* with one patch: that of measure_radius, if it is given */
    if (once.measure_radius) once.radius = once.measure_radius, once.measure_radius = 0;
    (void)clv_paco_characterize(context, &input, &once, in->fwhm, true, &at, 1, NULL);
    clv_prepare_leave(context);
}

static int compute(const paco_args *a, const paco_inputs *in, clv_context *context, cli_bar *bar,
                   clv_report *report, paco_maps *maps)
{
    const clv_paco_options options = options_of(a, bar);
    const size_t plane = in->height * in->width;
    note_search(a, in, context, &options);
    for (size_t c = 0; c < maps->channels; ++c) {
        const clv_paco_input input = input_of(in, c);
        clv_paco_counts counts;
        const clv_status status = clv_paco(context, &input, &options, maps->a + c * plane,
                                           maps->b + c * plane, &counts, report);
        if (status) return cli_status(&cli_paco, status);
        maps->counts.valid += counts.valid, maps->counts.outside += counts.outside;
        maps->counts.not_finite += counts.not_finite, maps->counts.constant += counts.constant;
        maps->counts.degenerate += counts.degenerate;
    }
    clv_paco_maps(maps->a, maps->b, maps->channels * plane, maps->raw ? maps->raw : maps->snr,
                  maps->flux, maps->sigma);
    return CLI_OK;
}

/* Searches all channels together: computes maps and companions, and in `rest` [channels,frames,height,width] the cube
 * without the companions. */
static int compute_together(const paco_args *a, const paco_inputs *in, clv_context *context,
                            cli_bar *bar, float *rest, clv_report *report, paco_maps *maps)
{
    const clv_paco_options options = options_of(a, bar);
    clv_paco_input *channels = clv_alloc(in->channels, sizeof *channels);
    if (!channels)
        return cli_error(&cli_paco, CLI_FAILED, "not enough memory for %zu channels", in->channels);
    for (size_t c = 0; c < in->channels; ++c)
        channels[c] = input_of(in, c);
    int code = paco_asdi_run(a, in, context, channels, &options, rest, maps, report);
    clv_free(channels);
    if (code || maps->counts.valid) return code;
    code = compute(a, in, context, bar, report, maps); /* finds out why there is no value */
    if (!code && maps->counts.valid)
        code = cli_error(&cli_paco, CLI_FAILED,
                         "no position of the map has a value in all %zu channels", in->channels);
    return code;
}

/* Lists the peaks of the map without subtracting companions. */
static int list_peaks(const paco_args *a, const paco_inputs *in, paco_maps *maps, size_t c)
{
    const size_t plane = in->height * in->width;
    clv_detection *found;
    size_t count;
    clv_status status = CLV_OK;
    if (maps->raw)
        status = clv_paco_calibrate(maps->raw + c * plane, NULL, in->height, in->width, a->centre_x,
                                    a->centre_y, in->fwhm, NULL, 0, maps->snr + c * plane);
    if (!status)
        status = clv_paco_detect(maps->snr + c * plane, maps->flux + c * plane,
                                 maps->sigma + c * plane, in->height, in->width, a->centre_x,
                                 a->centre_y, in->fwhm, a->threshold, &found, &count);
    if (status) return cli_status(&cli_paco, status);
    bool kept = true;
    for (size_t i = 0; i < count && kept; ++i) {
        const clv_companion companion = { .x = (double)found[i].x,
                                          .y = (double)found[i].y,
                                          .separation_px = found[i].separation_px,
                                          .position_angle = found[i].position_angle,
                                          .snr = found[i].snr,
                                          .flux = found[i].flux,
                                          .flux_err = found[i].sigma };
        kept = paco_add_detections(maps, c, &companion, 1);
    }
    clv_free(found);
    return kept ? CLI_OK : cli_error(&cli_paco, CLI_FAILED, "not enough memory for detections");
}

/* Measures the flux at the positions of --at, after subtracting the companions that were found elsewhere. */
static clv_status measure_at(const paco_args *a, const paco_inputs *in, clv_context *context,
                             const clv_paco_options *options, clv_report *report, float *rest,
                             paco_maps *maps, size_t c, const clv_companion *found, size_t count)
{
    clv_paco_input input = input_of(in, c);
    input.cube = rest;
    for (size_t i = 0; a->at.items[i]; ++i) {
        clv_companion at = { 0 };
        (void)paco_parse_place(a->at.items[i], &at.x, &at.y);
        for (int back = 1; back >= -1;
             back -= 2) { /* add what was found here, measure, subtract it */
            for (size_t k = 0; k < count; ++k) {
                if (hypot(found[k].x - at.x, found[k].y - at.y) > in->fwhm) continue;
                clv_companion one = found[k];
                one.flux *= -back;
                CLV_TRY(clv_paco_subtract(&input, options, &one, 1, rest));
            }
            if (back > 0)
                CLV_TRY(clv_paco_characterize(context, &input, options, in->fwhm, true, &at, 1,
                                              report));
        }
        const double x = floor(at.x + 0.5), y = floor(at.y + 0.5);
        const bool inside = x >= 0 && y >= 0 && x < (double)in->width && y < (double)in->height;
        const size_t p = inside ? (c * in->height + (size_t)y) * in->width + (size_t)x : 0;
        at.snr = !inside           ? NAN
                 : !maps->together ? (double)maps->snr[p]
                 : maps->a[p] > 0  ? maps->b[p] / sqrt(maps->a[p])
                                   : NAN;
        at.false_alarm = 0.5 * erfc(at.snr / sqrt(2)); /* of this position alone */
        if (!clv_reserve(&maps->at, &maps->at_capacity, maps->at_count + 1, sizeof *maps->at))
            return clv_fail(CLV_E_MEMORY, "not enough memory for positions");
        maps->at[maps->at_count++] = (paco_found){ c, at };
    }
    return CLV_OK;
}

static int find(const paco_args *a, const paco_inputs *in, clv_context *context, cli_bar *bar,
                clv_report *report, paco_maps *maps)
{
    const size_t plane = in->height * in->width;
    const clv_paco_options options = options_of(a, bar);
    const bool needs_rest = a->at.items[0] || a->contrast;
    if (a->contrast) {
        const clv_status status = paco_contrast_prepare(a, in, maps);
        if (status) return cli_status(&cli_paco, status);
    }
    for (size_t c = 0; c < maps->channels; ++c) {
        if (a->no_subtract) {
            const int code = list_peaks(a, in, maps, c);
            if (code) return code;
            if (!needs_rest) continue;
        }
        const clv_paco_input input = input_of(in, c);
        clv_companion *found = NULL;
        size_t count = 0;
        float *rest = NULL, *snr = clv_alloc(plane, sizeof *snr);
        if (needs_rest) rest = clv_alloc(in->frames * plane, sizeof *rest);
        clv_status status = snr && (rest || !needs_rest)
                                ? CLV_OK
                                : clv_fail(CLV_E_MEMORY, "not enough memory for maps");
        if (!status)
            status = clv_paco_search(context, &input, &options, in->fwhm,
                                     a->no_subtract ? INFINITY : a->threshold, maps->a + c * plane,
                                     maps->b + c * plane, snr, rest, &found, &count, report);
        if (!status && maps->raw) memcpy(maps->snr + c * plane, snr, plane * sizeof *snr);
        bool kept = status || paco_add_detections(maps, c, found, count);
        if (!status && a->at.items[0])
            status = measure_at(a, in, context, &options, report, rest, maps, c, found, count);
        if (!status && a->contrast) {
            clv_paco_input left = input;
            left.cube = rest;
            status =
                paco_contrast_run(a, in, context, &left, &options, c, found, count, maps, report);
        }
        clv_free(found);
        clv_free(rest), clv_free(snr);
        if (status) return cli_status(&cli_paco, status);
        if (!kept) return cli_error(&cli_paco, CLI_FAILED, "not enough memory for detections");
    }
    return CLI_OK;
}

/* Computes what --at and --contrast add to a search of all channels: each channel separately, without the
 * companions. */
static int measure_together(const paco_args *a, const paco_inputs *in, clv_context *context,
                            cli_bar *bar, float *rest, clv_report *report, paco_maps *maps)
{
    const size_t n = maps->companions.count, plane = in->height * in->width;
    const clv_paco_options options = options_of(a, bar);
    clv_companion *found = clv_alloc(n + 1, sizeof *found);
    clv_status status = found ? CLV_OK : clv_fail(CLV_E_MEMORY, "not enough memory for companions");
    if (!status && a->contrast) status = paco_contrast_prepare(a, in, maps);
    for (size_t c = 0; c < maps->channels && !status; ++c) {
        clv_paco_input left = input_of(in, c);
        left.cube = rest + c * in->frames * plane;
        for (size_t k = 0; k < n; ++k) {
            found[k] = maps->companions.companions[k];
            found[k].flux = maps->companions.fluxes[2 * (k * maps->channels + c)];
        }
        if (a->at.items[0])
            status = measure_at(a, in, context, &options, report, rest + c * in->frames * plane,
                                maps, c, found, n);
        if (!status && a->contrast)
            status = paco_contrast_run(a, in, context, &left, &options, c, found, n, maps, report);
    }
    clv_free(found);
    return cli_status(&cli_paco, status);
}

/* Does everything between reading and writing for a run with --wavelengths. */
static int search_together(const paco_args *a, const paco_inputs *in, clv_context *context,
                           clv_report *report, paco_maps *maps)
{
    cli_bar bar;
    float *rest = NULL;
    int code = CLI_OK;
    if (a->at.items[0] || a->contrast) {
        rest = clv_alloc(in->channels * in->frames, in->height * in->width * sizeof *rest);
        if (!rest)
            return cli_error(&cli_paco, CLI_FAILED, "not enough memory for %zu channels",
                             in->channels);
    }
    cli_share_split("paco", in->channels);
    cli_bar_start(&bar, &a->common, "rows");
    code = compute_together(a, in, context, &bar, rest, report, maps);
    cli_bar_end(&bar);
    if (!code) code = cli_input_status(&cli_paco, cli_share_end());
    if (!code) code = paco_check_maps(in, maps);
    if (!code && rest) {
        cli_bar_start(&bar, &a->common, "places");
        code = measure_together(a, in, context, &bar, rest, report, maps);
        cli_bar_end(&bar);
    }
    clv_free(rest);
    return code;
}

static int search_each(const paco_args *a, const paco_inputs *in, clv_context *context,
                       clv_report *report, paco_maps *maps)
{
    cli_bar bar;
    cli_share_split("paco", in->channels);
    cli_bar_start(&bar, &a->common, "rows");
    int code = compute(a, in, context, &bar, report, maps);
    cli_bar_end(&bar);
    if (!code) code = cli_input_status(&cli_paco, cli_share_end());
    if (!code) code = paco_check_maps(in, maps);
    if (!code) {
        cli_bar_start(&bar, &a->common, "places");
        code = find(a, in, context, &bar, report, maps);
        cli_bar_end(&bar);
    }
    return code;
}

static void show(FILE *out, const paco_args *a, const paco_maps *maps, const paco_found *found)
{
    const clv_companion *d = &found->companion;
    if (maps->channels > 1 && !maps->together) cli_say(out, "  channel %zu", found->channel);
    if (a->no_subtract)
        cli_say(
            out,
            "  x %4.0f  y %4.0f  separation %6.2f px  PA %6.2f deg  S/N %6.2f  flux %.4g +- %.2g\n",
            d->x, d->y, d->separation_px, d->position_angle, d->snr, d->flux, d->flux_err);
    else
        cli_say(out,
                "  x %7.2f  y %7.2f  separation %6.2f px  PA %6.2f deg  S/N %6.2f  flux %.4g +- "
                "%.2g  false alarm "
                "%.1g\n",
                d->x, d->y, d->separation_px, d->position_angle, d->snr, d->flux, d->flux_err,
                d->false_alarm);
}

static void summarize(const paco_args *a, const paco_inputs *in, const paco_maps *maps,
                      const clv_report *report, double seconds)
{
    char took[24];
    FILE *out = cli_news(&a->common, NULL, 0);
    if (a->common.quiet) return;
    cli_say(out, "%zu frames of %zux%zu", in->frames, in->width, in->height);
    if (maps->channels > 1) cli_say(out, ", %zu channels", maps->channels);
    cli_say(out, "; %s on", clv_format_seconds(seconds, took));
    for (size_t i = 0, shown = 0; i < clv_report_share_count(report); ++i) {
        const clv_share share = clv_report_share(report, i);
        if (share.chunks) cli_say(out, "%s %s", shown++ ? "," : "", share.device);
    }
    if (maps->together) cli_say(out, ", searched together");
    cli_say(out, "\n%zu detection%s above S/N %g\n", maps->detection_count,
            maps->detection_count == 1 ? "" : "s", a->threshold);
    for (size_t i = 0; i < maps->detection_count && i < 10; ++i) {
        show(out, a, maps, &maps->detections[i]);
    }
    if (maps->detection_count > 10)
        cli_say(out, "  ... and %zu more in %s/detections.csv\n", maps->detection_count - 10,
                a->output);
}

static int check_files(const paco_args *a, char **operands)
{
    static const char *const maps[][2] = { { "snr_raw.fits", "snr_raw.npy" },
                                           { "contrast.fits", "contrast.npy" },
                                           { "contrast.csv", "contrast.csv" },
                                           { "contrast.png", "contrast.png" },
                                           { "spectra.csv", "spectra.csv" },
                                           { "spectra.png", "spectra.png" },
                                           { "frames.csv", "frames.csv" },
                                           { "frames.png", "frames.png" },
                                           { "at.csv", "at.csv" },
                                           { "a.fits", "a.npy" },
                                           { "b.fits", "b.npy" },
                                           { "snr.fits", "snr.npy" },
                                           { "flux.fits", "flux.npy" },
                                           { "sigma.fits", "sigma.npy" },
                                           { "detections.csv", "detections.csv" },
                                           { "snr.png", "snr.png" },
                                           { "report.json", "report.json" } };
    const cli_file inputs[] = { { "CUBE", operands[0], NULL },
                                { "ANGLES", operands[1], NULL },
                                { "PSF", operands[2], NULL } };
    cli_file outputs[CLV_LEN(maps)];
    _Static_assert(CLV_LEN(maps) <= CLI_MOST_OUTPUTS, "more outputs than are compared");
    for (size_t i = 0; i < CLV_LEN(maps); ++i)
        outputs[i] = (cli_file){ "-o", maps[i][a->format], a->output, 0 };
    return cli_check_files(&cli_paco, &a->common, inputs, CLV_LEN(inputs), outputs,
                           CLV_LEN(outputs));
}

static int search(int argc, char **argv, char *line)
{
    paco_args a = { .threshold = 5, .command_line = line };
    cli_option own[PACO_OPTIONS + 1], common[CLI_COMMON_OPTIONS + 1], shared[CLI_SHARE_OPTIONS + 1];
    paco_make_table(&a, own);
    cli_common_table(&a.common, common);
    cli_share_table(&a.common, shared);
    const cli_option *const tables[] = { own, common, shared, NULL };
    int operands, code = cli_parse(&cli_paco, tables, argc, argv, &operands);
    if (code >= 0) return code;
    if ((code = cli_check_operands(&cli_paco, "CUBE,ANGLES,PSF", operands, argv + 1)) >= 0)
        return code;
    if ((code = paco_check_args(&a)) >= 0) return code;
    if ((code = check_files(&a, argv + 1)) >= 0) return code;

    clv_context *context = NULL;
    clv_report *report = NULL;
    paco_inputs in = { 0 };
    paco_maps maps = { 0 };
    const double started = clv_now();
    code = paco_read(&a, argv[1], argv[2], argv[3], &in);
    if (!code && (code = cli_common_context(&cli_paco, &a.common, &context)) < 0) code = CLI_OK;
    if (!code) code = cli_status(&cli_paco, clv_report_create(&report));
    if (!code) code = paco_prepare(&a, argv[1], &in);
    if (!code) code = paco_maps_create(&a, &in, &maps);
    if (!code)
        code = (maps.together ? search_together : search_each)(&a, &in, context, report, &maps);
    if (!code && !clv_outputs_discarded()) code = paco_write(&a, &in, &maps, report, started);
    if (!code) code = cli_write_report(&cli_paco, &a.common, context, report);
    if (!code) summarize(&a, &in, &maps, report, clv_now() - started);
    paco_maps_clear(&maps);
    paco_inputs_clear(&in);
    clv_report_free(report);
    clv_context_free(context);
    return code;
}

/* Returns the command line as it was given, for the headers of the maps. */
static char *command_line(int argc, char **argv)
{
    clv_text line = { 0 };
    clv_text_add(&line, "cleave");
    for (int i = 0; i < argc; ++i) {
        /* --devices-per-rank has no effect on the maps */
        const char *const ranks = "--devices-per-rank";
        if (strcmp(argv[i], ranks) == 0)
            ++i;
        else if (strncmp(argv[i], ranks, strlen(ranks)) != 0)
            clv_text_add(&line, " %s", argv[i]);
    }
    if (line.failed) clv_text_clear(&line);
    return line.data; /* NULL without memory */
}

static int run(int argc, char **argv)
{
    char *line = command_line(argc, argv); /* parsing moves the arguments */
    const int code =
        line ? search(argc, argv, line)
             : cli_error(&cli_paco, CLI_FAILED, "not enough memory for the command line");
    clv_free(line);
    return code;
}
const cli_command cli_paco = {
    .name = "paco",
    .summary = "find exoplanets in an ADI sequence (patch covariances)",
    .operands = "CUBE ANGLES PSF -o DIR [OPTION...]",
    .description =
        "Searches a sequence of star-centred frames, taken while the field rotates, for "
        "faint\ncompanions. CUBE is [T,H,W] or [C,T,H,W], ANGLES the T parallactic angles in "
        "degrees, PSF\nan off-axis image of the star; each a FITS or NPY file, angles also text. "
        "Finds the star,\nleaves out bad frames, then measures every companion and subtracts it "
        "from the data\nuntil none is left above the threshold. Writes the maps a, b, snr, "
        "snr_raw, flux and sigma,\ndetections.csv, frames.csv, pictures and report.json into DIR.",
    .run = run,
};
