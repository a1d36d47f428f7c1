/* SPDX-License-Identifier: Apache-2.0 */
/* Writes synthetic stars to files: a library of templates and a DESI coadd. */
#include "host/synthetic/stars.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "host/io/formats/fits_rows.h"
#include "host/io/formats/npy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH = 1024 };

static clv_status save(const char *folder, const char *part, const char *name, clv_type type,
                       size_t rows, size_t columns, const void *data)
{
    char path[PATH];
    const clv_file_array array = { .type = type,
                                   .rank = columns ? 2 : 1,
                                   .shape = { rows, columns },
                                   .data = (void *)(uintptr_t)data };
    snprintf(path, sizeof path, "%s/%s%s%s.npy", folder, part, *part ? "/" : "", name);
    return clv_npy_write(path, &array);
}

static clv_status save_arm(const char *folder, const clv_spectra_arm *arm, size_t templates)
{
    char path[PATH], name[40];
    snprintf(path, sizeof path, "%s/%s", folder, arm->name);
    CLV_TRY(clv_dir_make(path));
    for (size_t l = 0; l < arm->layers; ++l) {
        const bool last = l + 1 == arm->layers;
        snprintf(name, sizeof name, last ? "pc_layer_weight" : "model_lin_%zu_weight", l);
        CLV_TRY(save(folder, arm->name, name, CLV_F32, arm->width[l + 1], arm->width[l],
                     arm->weight[l]));
        snprintf(name, sizeof name, last ? "pc_layer_bias" : "model_lin_%zu_bias", l);
        CLV_TRY(save(folder, arm->name, name, CLV_F32, arm->width[l + 1], 0, arm->bias[l]));
    }
    CLV_TRY(save(folder, arm->name, "mean", CLV_F64, 4, 0, arm->mean));
    CLV_TRY(save(folder, arm->name, "std", CLV_F64, 4, 0, arm->std));
    CLV_TRY(save(folder, arm->name, "hull_pts", CLV_F64, arm->hull_count, 4, arm->hull));
    return save(folder, arm->name, "ccf_models", CLV_F32, templates, arm->ccf_points, arm->ccf);
}

clv_status synthetic_stars_write_library(const synthetic_stars *s, const char *folder)
{
    const clv_spectra_library *lib = &s->library;
    char path[PATH];
    CLV_TRY(clv_dir_make(folder));
    clv_json *root = clv_json_object(), *arms = clv_json_add_object(root, "arms");
    clv_json_add_string(root, "activation", "SiLU");
    clv_status status = CLV_OK;
    for (size_t a = 0; a < lib->arm_count && !status; ++a) {
        const clv_spectra_arm *arm = &lib->arms[a];
        clv_json *entry = clv_json_add_object(arms, arm->name);
        clv_json_add_int(entry, "npix", (int64_t)arm->points);
        clv_json_add_number(entry, "lam0", arm->first);
        clv_json_add_number(entry, "lam1", arm->last);
        clv_json *layers = clv_json_add_array(entry, "layers");
        for (size_t l = 0; l <= arm->layers; ++l)
            clv_json_add_int(layers, NULL, (int64_t)arm->width[l]);
        clv_json *ccf = clv_json_add_object(entry, "ccf");
        clv_json_add_number(ccf, "logl0", arm->ccf_log0);
        clv_json_add_number(ccf, "logl1", arm->ccf_log1);
        clv_json_add_int(ccf, "npoints", (int64_t)arm->ccf_points);
        clv_json_add_number(ccf, "splinestep", arm->ccf_spline_kms);
        status = save_arm(folder, arm, lib->ccf_count);
    }
    snprintf(path, sizeof path, "%s/lib.json", folder);
    if (!status) status = clv_json_write(root, path);
    clv_json_free(root);
    return status ? status
                  : save(folder, "", "ccf_params", CLV_F64, lib->ccf_count, 4, lib->ccf_parameters);
}

/* ---- coadd ------------------------------------------------------------------------------------ */

static void add_tables(const synthetic_stars *s, size_t count, clv_fits_table *head)
{
    static const clv_fits_column map[] = {
        { "TARGETID", 'K', NULL },    { "OBJTYPE", 'A', NULL }, { "COADD_FIBERSTATUS", 'J', NULL },
        { "FIBER", 'J', NULL },       { "BRICKID", 'J', NULL }, { "TARGET_RA", 'D', "deg" },
        { "TARGET_DEC", 'D', "deg" }, { "REF_ID", 'K', NULL },  { "REF_CAT", 'A', NULL },
    };
    static const clv_fits_column scores[] = {
        { "TARGETID", 'K', NULL },
        { "MEDIAN_COADD_FLUX_SNR_B", 'D', NULL },
        { "MEDIAN_COADD_FLUX_SNR_R", 'D', NULL },
        { "MEDIAN_COADD_FLUX_SNR_Z", 'D', NULL },
    };
    clv_fits_table_begin(head, "FIBERMAP", map, CLV_LEN(map), count);
    for (size_t i = 0; i < count; ++i)
        clv_fits_table_row(head, (clv_fits_value[]){ { .whole = 39600000000000 + (int64_t)i },
                                                     { .text = "TGT" },
                                                     { .whole = 0 },
                                                     { .whole = (int64_t)i },
                                                     { .whole = 1 },
                                                     { .real = 10 + 1e-3 * (double)i },
                                                     { .real = 20 },
                                                     { .whole = (int64_t)i },
                                                     { .text = "G2" } });
    clv_fits_table_next(head, "SCORES", scores, 1 + s->stars.spectra, count);
    for (size_t i = 0; i < count; ++i) {
        clv_fits_value row[4] = { { .whole = 39600000000000 + (int64_t)i } };
        for (size_t a = 0; a < s->stars.spectra; ++a) {
            const clv_spectrum *x = &s->stars.items[i % s->stars.count * s->stars.spectra + a];
            row[1 + a].real = (double)(x->flux[x->pixels / 2] * sqrtf(x->ivar[x->pixels / 2]));
        }
        clv_fits_table_row(head, row);
    }
}

static float noise(uint64_t *state)
{
    float sum = 0; /* sum of 4 uniform numbers: close enough to normal */
    for (int i = 0; i < 4; ++i) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (float)(*state >> 40) * 0x1p-24f - 0.5f;
    }
    return sum * 1.7320508f;
}

/* Writes a star. After the first round, the noise is larger by a tenth, so that no two stars are equal. */
static clv_status put_star(const synthetic_stars *s, clv_fits_rows *file, size_t star, float *flux,
                           float *ivar)
{
    const bool again = star >= s->stars.count;
    uint64_t state = 1 + star;
    for (size_t a = 0; a < s->stars.spectra; ++a) {
        const clv_spectrum *x = &s->stars.items[star % s->stars.count * s->stars.spectra + a];
        for (size_t k = 0; k < x->pixels; ++k) {
            flux[k] = x->flux[k] + (again ? 0.46f / sqrtf(x->ivar[k]) * noise(&state) : 0);
            ivar[k] = x->ivar[k] / (again ? 1.2116f : 1);
        }
        CLV_TRY(clv_fits_rows_put(file, 5 * a + 1, star, flux));
        CLV_TRY(clv_fits_rows_put(file, 5 * a + 2, star, ivar));
    }
    return CLV_OK;
}

/* The arms are b, r and z, as many as a star has spectra. Masks and resolution matrices stay zero: files of other
 * programs have them, but no reader here uses their values. */
clv_status synthetic_stars_write_coadd(const synthetic_stars *s, size_t count, const char *path)
{
    static const char *const names[] = { "WAVELENGTH", "FLUX", "IVAR", "MASK", "RESOLUTION" };
    enum { DIAGONALS = 11 };
    clv_fits_image images[15];
    clv_fits_table head = { 0 };
    clv_fits_rows file;
    size_t most = 0, n = 0;
    for (size_t a = 0; a < s->stars.spectra; ++a)
        for (size_t k = 0; k < 5; ++k) {
            const size_t pixels = s->stars.items[a].pixels;
            images[n] = (clv_fits_image){ .bitpix = k == 0   ? -64
                                                    : k == 3 ? 32
                                                             : -32,
                                          .rank = k == 0   ? 1
                                                  : k == 4 ? 3
                                                           : 2 };
            const size_t shape[3] = { k ? count : pixels, k == 4 ? DIAGONALS : pixels, pixels };
            memcpy(images[n].shape, shape, sizeof shape);
            snprintf(images[n].name, sizeof images[n].name, "%c_%s", "BRZ"[a], names[k]);
            most = CLV_MAX(most, pixels), ++n;
        }
    add_tables(s, count, &head);
    clv_status status = clv_fits_rows_begin(path, &head, images, n, &file);
    clv_fits_table_clear(&head);
    if (status) return status;
    float *room = clv_zalloc(2 * most, sizeof *room);
    if (!room) status = clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    for (size_t a = 0; a < s->stars.spectra && !status; ++a)
        status = clv_fits_rows_put(&file, 5 * a, 0, s->stars.items[a].wavelength);
    for (size_t i = 0; i < count && !status; ++i)
        status = put_star(s, &file, i, room, room + most);
    clv_free(room);
    if (status) clv_fits_rows_abandon(&file);
    return status ? status : clv_fits_rows_end(&file, path);
}
