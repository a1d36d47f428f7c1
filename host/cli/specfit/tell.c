/* SPDX-License-Identifier: Apache-2.0 */
/* Prints warnings about single spectra, and the summary at the end of a run. */
#include "host/cli/specfit/files.h"

#include "base/alloc.h"
#include "host/cli/clash.h"

#include <math.h>

void specfit_tell_placed(const specfit_args *a, const char *path, const clv_one_spectrum *s,
                         size_t used)
{
    if (s->unplaced)
        cli_warn(cli_running(), "%s: %zu of its pixels have no wavelength and are left out", path,
                 s->unplaced);
    if (s->guessed_um)
        cli_warn(cli_running(),
                 "%s gives no unit for its wavelengths, which are below 100: reading them as "
                 "micrometres",
                 path);
    if (s->from_pixel_0)
        cli_warn(cli_running(),
                 "%s: CRPIX1 is missing, taken as 0, the FITS standard's default; if CRVAL1 is the "
                 "wavelength of the first pixel, set CRPIX1 to 1 in the header",
                 path);
    if (!a->medium && s->medium == CLV_MEDIUM_UNTOLD)
        cli_warn(cli_running(),
                 "%s does not say whether its wavelengths are in vacuum or in air: assuming vacuum "
                 "(--wavelengths air or vacuum chooses)",
                 path);
    if (used < s->pixels)
        cli_warn(cli_running(),
                 "%s: %zu of its %zu pixels are left out, as the library does not cover them", path,
                 s->pixels - used, s->pixels);
}

/* Prints "27 without warnings, 37 with vsini above 100 km/s"; a star may count under several warnings. */
static void tell_warnings(const specfit_table *t, FILE *out)
{
    static const struct {
        int bit;
        const char *what;
    } kinds[] = { { CLV_SPECFIT_LOW_CONTRAST, "of low contrast" },
                  { CLV_SPECFIT_VELOCITY_EDGE, "with a velocity at a limit" },
                  { CLV_SPECFIT_VELOCITY_ERROR, "with a velocity error above 100 km/s" },
                  { CLV_SPECFIT_PARAMETER_EDGE, "with a parameter at a limit of the library" },
                  { CLV_SPECFIT_FAST_ROTATION, "with vsini above 100 km/s" },
                  { CLV_SPECFIT_BAD_HESSIAN, "whose errors are not to be trusted" },
                  { CLV_SPECFIT_BAD_FIT, "with chi-square per degree of freedom above 3" },
                  { CLV_SPECFIT_BAD_SPECTRUM, "with nothing to fit" } };
    size_t good = 0;
    for (size_t i = 0; i < t->count; ++i)
        good += (t->rows[i].fit.warnings & ~(unsigned)CLV_SPECFIT_WIDE_ERROR) == 0;
    cli_say(out, "%zu without warnings", good);
    for (size_t k = 0; k < CLV_LEN(kinds); ++k) {
        size_t found = 0;
        for (size_t i = 0; i < t->count; ++i)
            found += (t->rows[i].fit.warnings & (unsigned)kinds[k].bit) != 0;
        if (found) cli_say(out, ", %zu %s (%d)", found, kinds[k].what, kinds[k].bit);
    }
    cli_say(out, "\n");
}

void specfit_tell(const specfit_args *a, const specfit_table *t, const clv_report *report,
                  double seconds)
{
    char took[24];
    const cli_file table = { "-o", a->output, NULL, 0 };
    FILE *out = cli_news(&a->common, &table, 1);
    if (a->common.quiet) return;
    if (!t->count) {
        size_t spectra = 0;
        for (size_t i = 0; i < t->input_count; ++i)
            spectra += t->inputs[i].desi.rows;
        cli_say(out, "none of the file's %zu spectra is a selected star: the table has no rows\n",
                spectra);
        return;
    }
    cli_say(out, "%zu stars in %s (%.1f stars/s) on", t->count, clv_format_seconds(seconds, took),
            (double)t->count / fmax(seconds, 1e-6));
    for (size_t i = 0, shown = 0; i < clv_report_share_count(report); ++i) {
        const clv_share share = clv_report_share(report, i);
        if (share.chunks) cli_say(out, "%s %s", shown++ ? "," : "", share.device);
    }
    cli_say(out, "\n");
    tell_warnings(t, out);
}
