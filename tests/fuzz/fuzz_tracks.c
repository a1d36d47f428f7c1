/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a table of tracks. The result is tracks with finite positions, which are analysed, or an error.
 * The input's length chooses the options: pixel size, interval, decimal separator. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/cli/tracks/tracks.h"

#include <math.h>

static void analyse(clv_tracks *tracks)
{
    enum { MOST_FRAMES = 4096, LAGS = 8 };
    int64_t first, last;
    clv_msd msd[LAGS];
    clv_diffusion diffusion;
    const clv_diffusion_options options = { .size = sizeof options };
    clv_tracks_frames(tracks, &first, &last);
    for (size_t k = 0; k < clv_tracks_count(tracks); ++k) {
        const clv_track t = clv_tracks_at(tracks, k);
        FUZZ_CHECK(t.particle >= 0 && t.spots && t.first >= first && t.last <= last);
        FUZZ_CHECK(isfinite(t.extent) && t.extent >= 0 && isfinite(t.displacement));
    }
    FUZZ_CHECK(fuzz_poor || clv_tracks_msd(tracks, CLV_ALL_TRACKS, LAGS, msd) == CLV_OK);
    FUZZ_CHECK(fuzz_poor ||
               clv_tracks_diffusion(tracks, CLV_ALL_TRACKS, &options, &diffusion) == CLV_OK);
    if (last < first || last - first >= MOST_FRAMES) return;
    double *drift = fuzz_alloc((size_t)(last - first) + 1, 3 * sizeof *drift), share;
    if (clv_tracks_drift(tracks, 1, drift, &share) == CLV_OK) {
        FUZZ_CHECK(share >= 0 && share <= 1);
        (void)clv_tracks_subtract(tracks, drift);
    }
    clv_free(drift);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tracks_args a = { .pixel_size = size % 3 == 0 ? "0.1um" : NULL,
                            .interval = 0.05,
                            .interval_given = size % 5 == 0,
                            .decimal = (int)(size % 7 % 3),
                            .min_length = 1,
                            .quiet = size % 2 };
    tracks_found f = { .a = &a };
    FUZZ_CHECK(tracks_find_units(&f) < 0);
    const clv_status status = tracks_read(fuzz_file(data, size), &f);
    FUZZ_CHECK(!status == (f.tracks != NULL));
    FUZZ_CHECK(f.units.interval > 0 && isfinite(f.units.interval));
    if (!status) analyse(f.tracks);
    clv_tracks_free(f.tracks);
    return 0;
}
