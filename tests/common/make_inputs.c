/* SPDX-License-Identifier: Apache-2.0 */
/* make_inputs FOLDER: writes small input files for commands, with the same names as the files of `cleave demo`. They
 * are for tests that need any input: plain C computes on each of them within a second. */
#include "base/error.h"
#include "host/io/formats/npy.h"
#include "host/synthetic/adi.h"
#include "host/synthetic/movie.h"
#include "host/synthetic/stars.h"

#include <stdio.h>
#include <sys/stat.h>

enum {
    FRAMES = 16,
    SIDE = 40,
    MOVIE_FRAMES = 16,
    MOVIE_SIDE = 64,
    PARTICLES = 10,
    STARS = 3,
    SEED = 2
};

static char path[4096];

static const char *in(const char *folder, const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static clv_status make_sequence(const char *folder)
{
    synthetic_adi adi;
    CLV_TRY(synthetic_adi_create(FRAMES, SIDE, SIDE, SEED, &adi));
    const clv_file_array cube = { CLV_F32, 3, { adi.frames, adi.height, adi.width }, adi.cube };
    const clv_file_array angles = { CLV_F64, 1, { adi.frames }, adi.angles };
    const clv_file_array psf = { CLV_F32, 2, { adi.psf_size, adi.psf_size }, adi.psf };
    clv_status status = clv_npy_write(in(folder, "paco-cube.npy"), &cube);
    if (!status) status = clv_npy_write(in(folder, "paco-angles.npy"), &angles);
    if (!status) status = clv_npy_write(in(folder, "paco-psf.npy"), &psf);
    synthetic_adi_clear(&adi);
    return status;
}

static clv_status make_movie(const char *folder)
{
    synthetic_movie movie;
    CLV_TRY(synthetic_movie_create(MOVIE_FRAMES, MOVIE_SIDE, MOVIE_SIDE, PARTICLES, SEED, &movie));
    const clv_file_array pixels = {
        CLV_U16, 3, { MOVIE_FRAMES, MOVIE_SIDE, MOVIE_SIDE }, movie.pixels
    };
    const clv_status status = clv_npy_write(in(folder, "blobs-movie.npy"), &pixels);
    synthetic_movie_clear(&movie);
    return status;
}

static clv_status make_stars(const char *folder)
{
    synthetic_stars stars;
    CLV_TRY(synthetic_stars_create(STARS, SEED, false, &stars));
    clv_status status = synthetic_stars_write_library(&stars, in(folder, "specfit-library"));
    if (!status)
        status = synthetic_stars_write_coadd(&stars, STARS, in(folder, "specfit-coadd.fits"));
    synthetic_stars_clear(&stars);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_inputs FOLDER\n");
        return 2;
    }
    mkdir(argv[1], 0777);
    if (make_sequence(argv[1]) || make_movie(argv[1]) || make_stars(argv[1])) {
        fprintf(stderr, "make_inputs: %s\n", clv_error_message());
        return 1;
    }
    return 0;
}
