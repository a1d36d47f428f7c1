/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the options of `cleave specfit`, with their defaults, and checks their values. */
#include "host/cli/specfit/files.h"
#include "host/cli/endings.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { MOST_VELOCITY = 10000 /* km/s */ };

void specfit_make_options(specfit_args *a, cli_option *table)
{
    const cli_option rows[] = {
        { "library", CLI_TEXT, &a->library, "DIR",
          "folder with the library of templates (lib.json)" },
        { "o,output", CLI_TEXT, &a->output, "FILE",
          "the table, .fits or .csv; - writes CSV to standard output" },
        { "config", CLI_TEXT, &a->config, "FILE",
          "a settings file of rvspecfit (lines of key: value)" },
        { "resolution", CLI_CHOICE, &a->resolution, "off,on",
          "use the resolution matrices of the file [off]" },
        { "resolving-power", CLI_DOUBLE, &a->resolving_power, "R",
          "convolve the templates to wavelength / FWHM = R; not for DESI files",
          &a->resolving_power_given },
        { "combine", CLI_CHOICE, &a->combine, "none,target,all",
          "fit spectra together: those of a TARGETID or OBJECT, or all of them [none]" },
        { "arm", CLI_TEXT, &a->arm, "NAME,...",
          "arms of the library that single spectra belong to [those that cover them]" },
        { "columns", CLI_TEXT, &a->columns, "ROLE=NAME,...",
          "names of the columns wave (or loglam), flux, error (or ivar, var), mask and wdisp of "
          "tables and of text [the usual ones]" },
        { "wavelengths", CLI_CHOICE, &a->medium, "auto,vacuum,air",
          "whether the wavelengths of single spectra are in vacuum or air; auto: as the file says, "
          "else vacuum [auto]" },
        { "barycentric", CLI_TEXT, &a->barycentric, "KMS|header",
          "add this velocity to those of single spectra, or take it from the header (VHELIO, "
          "BARYCORR, BERV, ...) [0]" },
        { "starts", CLI_UINT, &a->starts, "N",
          "number of starting points of each fit, 1 to 8 [1; 2 with priors or fixed parameters]",
          &a->starts_given },
        { "models", CLI_TEXT, &a->models, "FILE", "write the best-fit models as FITS" },
        { "plot", CLI_TEXT, &a->plots, "DIR",
          "write a plot of each star and its best fit, and a summary" },
        { "npoly", CLI_UINT, &a->npoly, "N", "number of continuum terms, 1 to 15 [10]" },
        { "max-vel", CLI_DOUBLE, &a->max_vel, "KMS", "largest velocity [1000]" },
        { "min-vel", CLI_DOUBLE, &a->min_vel, "KMS",
          "smallest velocity [the negative of --max-vel]" },
        { "vel-step", CLI_DOUBLE, &a->vel_step, "KMS",
          "step of the velocity grid on which a fit starts [5]" },
        { "max-vsini", CLI_DOUBLE, &a->max_vsini, "KMS",
          "largest rotation velocity v sin i [500]" },
        { "prior", CLI_TEXT, &a->prior, "NAME=X:S,...",
          "Gaussian priors of mean X and standard deviation S, such as teff=5800:100; vrad, vsini, "
          "teff, logg, feh, alpha" },
        { "fix", CLI_TEXT, &a->fix, "NAME=X,...",
          "hold parameters at X, such as vsini=0,alpha=0.2" },
        { "priors", CLI_TEXT, &a->priors, "FILE",
          "priors of each star: CSV with the columns TARGETID or FILE, TEFF, TEFF_SIGMA, ...; a "
          "sigma of 0 holds the value" },
        { "ignore", CLI_TEXT, &a->ignore, "A:B,...",
          "leave out wavelengths from A to B Angstrom; none: leave out nothing [4300:4450 for DESI "
          "files, because of the dichroic; none for others]" },
        { "reject", CLI_DOUBLE, &a->reject, "SIGMA",
          "leave out pixels that are more than SIGMA away from the best fit, and fit again; 0: "
          "never [6]" },
        { "targets", CLI_TEXT, &a->targets, "ID,...", "fit only these TARGETIDs" },
        { "targets-file", CLI_TEXT, &a->targets_file, "FILE", "fit only the TARGETIDs in FILE" },
        { "minsn", CLI_DOUBLE, &a->min_sn, "S/N",
          "fit only spectra with at least one arm above this S/N", &a->min_sn_given },
        { "minexpid", CLI_INT, &a->min_expid, "N", "fit only exposures after EXPID N",
          &a->min_expid_given },
        { "maxexpid", CLI_INT, &a->max_expid, "N", "fit only exposures up to EXPID N",
          &a->max_expid_given },
        { "redshifts", CLI_TEXT, &a->redshifts, "FILE",
          "table of redrock, for the columns RR_Z, RR_SPECTYPE and RR_SUBTYPE" },
        { "zbest_include", CLI_FLAG, &a->zbest_include, NULL,
          "use the table redrock-X or zbest-X beside coadd-X" },
        { "zbest_select", CLI_FLAG, &a->zbest_select, NULL,
          "fit only spectra that redrock classifies as stars or below 1500 km/s" },
        { "resume", CLI_FLAG, &a->resume, NULL,
          "keep finished stars in OUTPUT.journal, and continue a run that was killed" },
        { "save-every", CLI_UINT, &a->save_every, "N",
          "with --resume: save after every N stars; with R ranks, after 2 R at least [512]" },
        { "use_gpu", CLI_FLAG, &a->use_gpu, NULL, "use GPUs, or the other devices if there is none",
          NULL, "CLEAVE_MODE" },
        { "gpu_batch_size", CLI_UINT, &a->gpu_batch_size, "N",
          "number of stars computed at once, like --batch" },
        { "gpu_devices", CLI_TEXT, &a->gpu_devices, "LIST", "GPUs by number, such as 0,1,2,3", NULL,
          "CLEAVE_MODE" },
        { NULL },
    };
    _Static_assert(sizeof rows / sizeof *rows == SPECFIT_OPTIONS + 1, "SPECFIT_OPTIONS");
    memcpy(table, rows, sizeof rows);
}

/* Checks that a list of GPUs consists of whole numbers. */
static int check_gpus(const char *list)
{
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += at != list;
        const size_t digits = strspn(at, "0123456789");
        if (!digits || (at[digits] && at[digits] != ','))
            return cli_error(cli_running(), CLI_USAGE,
                             "--gpu_devices is \"%s\", but it must be the numbers of GPUs, such as "
                             "0,1",
                             list);
    }
    return -1;
}

/* Returns a setting, or a valid number if it is not given. */
static double known(double setting)
{
    return isnan(setting) ? 1 : setting;
}

int specfit_check_options(const specfit_args *a)
{
    if (!a->library)
        return cli_error(
            cli_running(), CLI_USAGE,
            "--library DIR is missing: the folder of templates (`cleave demo` makes one)");
    if (!a->output)
        return cli_error(cli_running(), CLI_USAGE,
                         "-o FILE is missing: the file for the table, such as -o stars.csv");
    if (a->starts < 1 || a->starts > 8)
        return cli_error(cli_running(), CLI_USAGE, "--starts is %llu, but it must be 1 to 8",
                         (unsigned long long)a->starts);
    if (a->npoly < 1 || a->npoly > CLV_SPECTRA_MAX_TERMS)
        return cli_error(cli_running(), CLI_USAGE, "--npoly is %llu, but it must be 1 to %d",
                         (unsigned long long)a->npoly, CLV_SPECTRA_MAX_TERMS);
    if (a->reject != 0 && !(a->reject >= 3))
        return cli_error(cli_running(), CLI_USAGE, "--reject is %g, but it must be 0 or at least 3",
                         a->reject);
    if (a->save_every < 1 || a->save_every > SPECFIT_BLOCK_ROWS)
        return cli_error(cli_running(), CLI_USAGE, "--save-every is %llu, but it must be 1 to %d",
                         (unsigned long long)a->save_every, SPECFIT_BLOCK_ROWS);
    if (a->resume && a->common.shard)
        return cli_error(
            cli_running(), CLI_USAGE,
            "--resume and --shard cannot be used together; run an unfinished shard again, "
            "or use more shards");
    if (a->resume && cli_is_stream(a->output))
        return cli_error(cli_running(), CLI_USAGE,
                         "--resume needs -o FILE, because the journal lies beside that file");
    if (a->resolving_power_given && !(a->resolving_power >= 10 && isfinite(a->resolving_power)))
        return cli_error(cli_running(), CLI_USAGE,
                         "--resolving-power is %g, but it is wavelength / FWHM and must be at "
                         "least 10; leave out the option if the templates are not to be broadened",
                         a->resolving_power);
    if (!(fmax(fabs(a->min_vel), fabs(a->max_vel)) <= MOST_VELOCITY))
        return cli_error(cli_running(), CLI_USAGE,
                         "--max-vel is %g and --min-vel is %g, but velocities must be within %d "
                         "km/s of 0",
                         a->max_vel, a->min_vel, MOST_VELOCITY);
    if (!(a->max_vel > a->min_vel))
        return cli_error(cli_running(), CLI_USAGE,
                         "--max-vel is %g, but it must be above the smallest velocity, %g km/s%s",
                         a->max_vel, a->min_vel,
                         a->max_vel < 0 ? " (the default is the negative of --max-vel)" : "");
    const struct {
        const char *name;
        double value;
    } positive[] = { { "--vel-step", a->vel_step },
                     { "--max-vsini", a->max_vsini },
                     { "lsf_sigma0_angstrom (of --config)", known(a->sigma0) },
                     { "lsf_sigma0_angstrom of b (of --config)", known(a->sigma_of[0]) },
                     { "lsf_sigma0_angstrom of r (of --config)", known(a->sigma_of[1]) },
                     { "lsf_sigma0_angstrom of z (of --config)", known(a->sigma_of[2]) } };
    for (size_t i = 0; i < CLV_LEN(positive); ++i)
        if (!(positive[i].value > 0 && positive[i].value <= MOST_VELOCITY))
            return cli_error(cli_running(), CLI_USAGE,
                             "%s is %g, but it must be more than 0, and at most %d",
                             positive[i].name, positive[i].value, MOST_VELOCITY);
    return check_gpus(a->gpu_devices);
}

void specfit_set_defaults(specfit_args *a)
{
    if (isnan(a->max_vel)) a->max_vel = 1000;
    if (isnan(a->min_vel)) a->min_vel = -a->max_vel;
    if (isnan(a->vel_step)) a->vel_step = 5;
    if (isnan(a->max_vsini)) a->max_vsini = 500;
    /* a prior that contradicts the spectrum creates a second minimum */
    if (!a->starts_given && (a->prior || a->fix || a->priors)) a->starts = 2;
}
