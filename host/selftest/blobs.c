/* SPDX-License-Identifier: Apache-2.0 */
/* Tests blob detection on the device under test against the reference. */
#include "host/selftest/selftest.h"
#include "host/synthetic/movie.h"
#include "host/synthetic/worse.h"

#include <cleave/memory.h>

#include <math.h>

enum { FRAMES = 4, HEIGHT = 90, WIDTH = 110, PARTICLES = 14, SEED = 6 };

static const struct {
    const char *name;
    clv_blob_options options;
} cases[] = {
    { "blobs LoG", { .threshold_given = true, .threshold = 60 } },
    { "blobs DoG", { .dog = true, .threshold_given = true, .threshold = 40 } },
    { "blobs by noise", { .threshold_sigma_given = true, .threshold_sigma = 6 } },
    { "blobs, sigma up to 7", { .max_sigma_px = 7, .threshold_given = true, .threshold = 60 } },
};

/* Returns the largest distance in pixels from a spot of the reference to the nearest spot that was found, at most 1;
 * also 1 if the numbers of spots differ or are 0. *response receives the largest relative difference of responses. */
static double compare(const clv_spot *got, size_t got_count, const clv_spot *want,
                      size_t want_count, double *response)
{
    double worst = got_count == want_count && want_count ? 0 : 1;
    *response = 0;
    for (size_t i = 0; i < want_count; ++i) {
        double best = 1;
        for (size_t j = 0; j < got_count; ++j) {
            if (got[j].frame != want[i].frame) continue;
            const double d =
                hypot((double)got[j].y - (double)want[i].y, (double)got[j].x - (double)want[i].x);
            if (d >= best) continue;
            best = d;
            const double r = fabs((double)got[j].response / (double)want[i].response - 1);
            if (d < 1e-3) *response = cli_worse(*response, r);
        }
        worst = fmax(worst, best);
    }
    return worst;
}

static void run_case(selftest *test, size_t index, const synthetic_movie *movie)
{
    clv_spot *want = NULL, *got = NULL;
    size_t wanted = 0, found = 0;
    double response = 0, error = 0;
    clv_blob_options options = cases[index].options;
    options.size = sizeof options;
    clv_context *plain = NULL;
    const clv_context_options reference = { .size = sizeof(clv_context_options),
                                            .mode = CLV_MODE_REFERENCE,
                                            .cache_dir = "" };
    clv_status status = clv_context_create(&reference, &plain);
    if (!status)
        status =
            clv_blobs(plain, &movie->shape, movie->pixels, &options, &want, &wanted, NULL, NULL);
    clv_context_free(plain);
    selftest_begin(test, "%s: places", cases[index].name);
    if (!status)
        status = clv_blobs(test->context, &movie->shape, movie->pixels, &options, &got, &found,
                           NULL, NULL);
    if (!status) error = compare(got, found, want, wanted, &response);
    selftest_end(test, status, error, 1e-3);
    if (!status) selftest_also(test, response, 1e-5, "%s: responses", cases[index].name);
    clv_free(want), clv_free(got);
}

void selftest_blobs(selftest *test)
{
    synthetic_movie movie;
    const clv_status status =
        synthetic_movie_create(FRAMES, HEIGHT, WIDTH, PARTICLES, SEED, &movie);
    if (status) {
        selftest_begin(test, "blobs");
        selftest_end(test, status, 0, 0);
        return;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        run_case(test, i, &movie);
    synthetic_movie_clear(&movie);
}
