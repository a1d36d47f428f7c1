/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the outputs of `cleave paco`: maps, detections, plots, report. */
#include "host/cli/paco/files.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/text.h"
#include "host/io/formats/fits.h"
#include "host/io/formats/npy.h"
#include "host/io/pictures/map.h"
#include "host/io/pictures/png.h"

#include <cleave/version.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_cards(const paco_args *a, const paco_inputs *in, clv_fits_cards *cards)
{
    static const long areas[] = { 0, 0, 13, 29, 49, 81, 113 };
    const double cx = a->centre_x, cy = a->centre_y;
    clv_fits_card_int(cards, "PACO_RAD", (int64_t)a->radius, "patch radius [pixel]");
    clv_fits_card_int(cards, "PACO_P", areas[a->radius], "pixels in a patch");
    clv_fits_card_int(cards, "NFRAMES", (int64_t)in->frames, "frames in the sequence");
    clv_fits_card_string(cards, "PSFMODE", a->psf_mode ? "fixed" : "shift", "PSF between pixels");
    clv_fits_card_string(cards, "CONV", a->conv ? "vip" : "paper", "formulas");
    clv_fits_card_int(cards, "NREJECT", (int64_t)(in->frames_read - in->frames), "frames left out");
    clv_fits_card_string(cards, "FRWEIGHT", paco_weights_name(a), "how frames count");
    clv_fits_card_int(cards, "NLOWERED", (int64_t)in->lowered, "frames that count less");
    clv_fits_card_double(cards, "FWHM", in->fwhm, "of the PSF [pixel]");
    clv_fits_card_double(cards, "CENX", cx + 1, "column of the star, 1-based");
    clv_fits_card_double(cards, "CENY", cy + 1, "row of the star, 1-based");
    clv_fits_card_history(cards, "made by Cleave " CLV_VERSION_STRING " with the command:");
    clv_fits_card_history(cards, a->command_line);
}

/* The files written to the output folder so far. Their digests go into the report, which is written last and so
 * distinguishes a complete set of files from an incomplete one or a mixture of two runs. */
typedef struct written {
    const char *folder;
    clv_json *digests;
} written;

/* Returns "DIR/NAME", or NULL after setting the error. Free with clv_free. */
static char *path_in(const char *folder, const char *name)
{
    char *path = clv_folder_path(folder, name);
    if (!path) (void)clv_fail(CLV_E_MEMORY, "not enough memory for a path");
    return path;
}

/* Notes the digest of what is now on disk, not of what was meant to be written. */
static clv_status note_digest(written *w, const char *path, const char *name)
{
    char *data, hex[65];
    size_t length;
    CLV_TRY(clv_file_read(path, SIZE_MAX / 2, &data, &length));
    const clv_digest digest = clv_sha256(data, length);
    clv_free(data);
    clv_digest_hex(&digest, hex);
    clv_json_add_string(w->digests, name, hex);
    return CLV_OK;
}

static clv_status write_map(written *w, const paco_args *a, const paco_inputs *in, size_t channels,
                            const char *map_name, clv_type type, void *data, clv_fits_cards *cards)
{
    char name[16];
    clv_file_array map = { .type = type, .rank = channels > 1 ? 3 : 2, .data = data };
    size_t *dims = map.shape + map.rank - 2;
    dims[0] = in->height, dims[1] = in->width;
    if (map.rank == 3) map.shape[0] = channels;
    snprintf(name, sizeof name, "%s.%s", map_name, a->format ? "npy" : "fits");
    char *path = path_in(w->folder, name);
    if (!path) return CLV_E_MEMORY;
    clv_status status = a->format ? clv_npy_write(path, &map) : clv_fits_write(path, &map, cards);
    if (!status) status = note_digest(w, path, name);
    clv_free(path);
    return status;
}

/* Warns about files left by an earlier run with other options, which a user could mistake for part of this run. */
static void tell_older(const written *w)
{
    static const char *const names[] = {
        "a.fits",       "b.fits",        "snr.fits",    "snr_raw.fits", "flux.fits",
        "sigma.fits",   "contrast.fits", "a.npy",       "b.npy",        "snr.npy",
        "snr_raw.npy",  "flux.npy",      "sigma.npy",   "contrast.npy", "at.csv",
        "contrast.csv", "contrast.png",  "spectra.csv", "spectra.png"
    };
    clv_text told = { 0 };
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        char *path = clv_json_get(w->digests, names[i]) ? NULL : path_in(w->folder, names[i]);
        if (path && access(path, F_OK) == 0)
            clv_text_add(&told, "%s%s", told.length ? ", " : "", names[i]);
        clv_free(path);
    }
    if (told.length)
        cli_warn(cli_running(),
                 "%s: the folder has files of an earlier run that do not belong to this one: %s "
                 "(remove them, or choose another folder)",
                 w->folder, clv_text_get(&told));
    clv_text_clear(&told);
}

static clv_status write_tables(written *w, const paco_args *a, const paco_inputs *in,
                               const paco_maps *m)
{
    static const char *const names[] = { "detections.csv", "frames.csv",   "frames.png",
                                         "at.csv",         "contrast.csv", "contrast.png",
                                         "spectra.csv",    "spectra.png" };
    const bool made[] = { true,      true,      true,        m->at_count > 0,
                          m->limits, m->limits, m->together, m->together };
    clv_status status = paco_write_tables(a, in, m);
    for (size_t i = 0; i < CLV_LEN(names) && !status; ++i) {
        if (!made[i]) continue;
        char *path = path_in(w->folder, names[i]);
        status = path ? note_digest(w, path, names[i]) : CLV_E_MEMORY;
        clv_free(path);
    }
    return status;
}

/* Returns the length of a scale bar: 1, 2 or 5 times a power of ten, about a fifth of the map's width. */
static double ruler_of(const paco_args *a, const paco_inputs *in, char *label, size_t bytes)
{
    const double unit = a->scale_given ? a->pixel_scale : 1, most = 0.25 * (double)in->width * unit;
    const double power = pow(10, floor(log10(most))), times = most / power;
    const double length = power * (times >= 5 ? 5 : times >= 2 ? 2 : 1);
    if (!a->scale_given)
        snprintf(label, bytes, "%g px", length);
    else if (length >= 100)
        snprintf(label, bytes, "%g arcsec", length / 1000);
    else
        snprintf(label, bytes, "%g mas", length);
    return length / unit;
}

/* Draws the S/N map (of the channel with the highest peak) with the detections circled and the star marked. */
static clv_status write_picture(written *w, const paco_args *a, const paco_inputs *in,
                                const paco_maps *m)
{
    enum { MOST_MARKS = 100 };
    clv_map_mark marks[MOST_MARKS];
    char labels[MOST_MARKS][16], title[96], ruler[32];
    const size_t plane = in->height * in->width;
    size_t channel = 0, count = 0;
    double highest = -INFINITY;
    for (size_t i = 0; i < (m->together ? 1 : m->channels) * plane; ++i)
        if (m->snr[i] > highest) highest = m->snr[i], channel = i / plane;
    for (size_t i = 0; i < m->detection_count && count < MOST_MARKS; ++i) {
        const clv_companion *d = &m->detections[i].companion;
        if (m->detections[i].channel != channel) continue;
        snprintf(labels[count], sizeof labels[count], "%.1f", d->snr);
        marks[count] = (clv_map_mark){
            .x = d->x, .y = d->y, .radius = 1.2 * in->fwhm, .label = labels[count]
        };
        ++count;
    }
    if (m->together)
        snprintf(title, sizeof title, "PACO S/N of %zu channels together", m->channels);
    else if (m->channels > 1)
        snprintf(title, sizeof title, "PACO S/N, channel %zu", in->first_channel + channel);
    else
        snprintf(title, sizeof title, "PACO S/N");
    const clv_map_style style = { .title = title,
                                  .unit = "S/N",
                                  .up_to_peak = true, /* planets cover few of the pixels */
                                  .first_row_below = true,
                                  .marks = marks,
                                  .mark_count = count,
                                  .star = true,
                                  .star_x = a->centre_x,
                                  .star_y = a->centre_y,
                                  .ruler = ruler_of(a, in, ruler, sizeof ruler),
                                  .ruler_label = ruler };
    clv_image image = { 0 };
    char *path = path_in(w->folder, "snr.png");
    clv_status status = path ? CLV_OK : CLV_E_MEMORY;
    if (!status)
        status = clv_map_draw(m->snr + channel * plane, in->height, in->width, &style, &image);
    if (!status) status = clv_png_write(path, &image);
    if (!status) status = note_digest(w, path, "snr.png");
    clv_image_clear(&image);
    clv_free(path);
    return status;
}

static clv_status write_report(written *w, const clv_report *report)
{
    clv_json *root = NULL;
    char *text = clv_report_json(report), *path = path_in(w->folder, "report.json");
    clv_status status =
        text && path ? CLV_OK : clv_fail(CLV_E_MEMORY, "not enough memory for the report");
    if (!status) status = clv_json_parse(path, text, strlen(text), &root);
    if (!status) {
        clv_json_add_copy(root, "sha256", w->digests);
        status = clv_json_write(root, path);
    }
    clv_json_free(root);
    clv_free(path);
    clv_free(text);
    return status;
}

/* Removes an old report before its files are overwritten, because a report stands for a complete set. */
static clv_status drop_report(const written *w)
{
    char *path = path_in(w->folder, "report.json");
    if (!path) return CLV_E_MEMORY;
    const bool gone = unlink(path) == 0 || errno == ENOENT;
    const clv_status status =
        gone ? CLV_OK : clv_fail(CLV_E_IO, "%s: cannot remove: %s", path, strerror(errno));
    clv_free(path);
    return status;
}

int paco_write(const paco_args *a, const paco_inputs *in, const paco_maps *m, clv_report *report,
               double started)
{
    clv_fits_cards own = { .rank = in->cards.rank };
    const char *unit = clv_fits_card_find(&in->cards, "BUNIT");
    for (size_t i = 0; i < in->cards.count; ++i)
        if (in->cards.items[i].text != unit) clv_fits_card_carry(&own, in->cards.items[i].text);
    add_cards(a, in, &own);
    written w = { a->output, clv_json_object() };
    clv_status status = clv_dir_make(a->output);
    if (!status) status = drop_report(&w);
    if (!status) status = write_map(&w, a, in, m->channels, "a", CLV_F64, m->a, &own);
    if (!status) status = write_map(&w, a, in, m->channels, "b", CLV_F64, m->b, &own);
    if (!status)
        status = write_map(&w, a, in, m->together ? 1 : m->channels, "snr", CLV_F32, m->snr, &own);
    if (!status && m->raw)
        status =
            write_map(&w, a, in, m->together ? 1 : m->channels, "snr_raw", CLV_F32, m->raw, &own);
    if (unit && a->psf_norm) /* otherwise fluxes are multiples of the PSF as it was given */
        clv_fits_card_carry(&own, unit);
    if (!status) status = write_map(&w, a, in, m->channels, "flux", CLV_F32, m->flux, &own);
    if (!status) status = write_map(&w, a, in, m->channels, "sigma", CLV_F32, m->sigma, &own);
    if (!status && m->limits)
        status = write_map(&w, a, in, m->channels, "contrast", CLV_F32, m->limit_map, &own);
    if (!status) status = write_tables(&w, a, in, m);
    if (!status) status = write_picture(&w, a, in, m);
    clv_fits_cards_clear(&own);
    if (!status) {
        clv_report_note_text(report, "operation", "paco");
        clv_report_note_text(report, "psf_mode", a->psf_mode ? "fixed" : "shift");
        clv_report_note_text(report, "convention", a->conv ? "vip" : "paper");
        clv_report_note(report, "frames", (double)in->frames);
        clv_report_note(report, "height", (double)in->height);
        clv_report_note(report, "width", (double)in->width);
        clv_report_note(report, "channels", (double)m->channels);
        clv_report_note(report, "radius", (double)a->radius);
        clv_report_note(report, "measure_radius",
                        (double)(a->measure_radius ? a->measure_radius : a->radius));
        clv_report_note(report, "fwhm_px", in->fwhm);
        clv_report_note(report, "centre_x", a->centre_x);
        clv_report_note(report, "centre_y", a->centre_y);
        clv_report_note(report, "frames_rejected", (double)(in->frames_read - in->frames));
        clv_report_note_text(report, "frame_weights", paco_weights_name(a));
        clv_report_note(report, "frames_lowered", (double)in->lowered);
        clv_report_note(report, "pixels_mended", (double)in->mended);
        clv_report_note_text(report, "channels_searched", m->together ? "together" : "each");
        clv_report_note_text(report, "snr", a->snr ? "raw" : "calibrated");
        clv_report_note(report, "threshold", a->threshold);
        clv_report_note(report, "detections", (double)m->detection_count);
        clv_report_note(report, "command_s", clv_now() - started);
        status = write_report(&w, report);
        if (!status) tell_older(&w);
    }
    clv_json_free(w.digests);
    return cli_status(cli_running(), status);
}
