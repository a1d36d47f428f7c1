/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the options of `cleave blobs`, checks which of them fit together, and converts them for the library. */
#include "host/cli/blobs/blobs.h"

#include "base/text.h"

#include <string.h>

clv_blob_options blobs_options(const blobs_args *a)
{
    return (clv_blob_options){
        .size = sizeof(clv_blob_options),
        .min_sigma_px = a->min_sigma,
        .max_sigma_px = a->max_sigma,
        .num_sigma = (unsigned)a->num_sigma,
        .log_scale = a->log_scale,
        .dog = a->dog,
        .sigma_ratio = a->sigma_ratio,
        .threshold_given = a->threshold_given,
        .threshold_rel_given = a->threshold_rel_given,
        .threshold_sigma_given = a->threshold_sigma_given,
        .threshold = a->threshold,
        .threshold_rel = a->threshold_rel,
        .threshold_sigma = a->threshold_sigma,
        .keep_hot_pixels = a->hot_pixels == 1,
        .taps = (clv_blob_taps)a->taps,
        .normalize = a->normalize == 1,
        .invert = a->invert,
        .subpixel = (clv_blob_subpixel)a->subpixel,
        .keep_overlapping = a->prune == 1,
        .overlap_given = true,
        .overlap = a->overlap,
        .exclude_border = (size_t)a->exclude_border,
    };
}

void blobs_table(blobs_args *a, cli_option *table)
{
    const cli_option rows[] = {
        { "o,output", CLI_TEXT, &a->output, "FILE",
          "spots: .csv .tsv .json .npy .parquet, or TrackMate's .xml; - is standard output" },
        { "min-sigma", CLI_DOUBLE, &a->min_sigma, "PX",
          "sigma of the smallest spot, in pixels; its radius is 1.4 sigma [1]" },
        { "max-sigma", CLI_DOUBLE, &a->max_sigma, "PX",
          "sigma of the largest spot, in pixels [3]" },
        { "num-sigma", CLI_UINT, &a->num_sigma, "N", "number of sigmas, including both ends [5]" },
        { "log-scale", CLI_FLAG, &a->log_scale, NULL,
          "space the sigmas by equal ratios instead of equal steps" },
        { "dog", CLI_FLAG, &a->dog, NULL,
          "use differences of Gaussians: faster, with coarser sigmas" },
        { "sigma-ratio", CLI_DOUBLE, &a->sigma_ratio, "R",
          "ratio between the sigmas of --dog [1.6]" },
        { "threshold", CLI_DOUBLE, &a->threshold, "T",
          "keep spots whose response is above T, in units of the pixel values",
          &a->threshold_given },
        { "threshold-rel", CLI_DOUBLE, &a->threshold_rel, "R",
          "keep spots whose response is above R times the largest of the frame",
          &a->threshold_rel_given },
        { "threshold-sigma", CLI_DOUBLE, &a->threshold_sigma, "Z",
          "keep spots above Z times the local noise; usual: 4 to 6 [6]",
          &a->threshold_sigma_given },
        { "hot-pixels", CLI_CHOICE, &a->hot_pixels, "reject,keep",
          "with --threshold-sigma: leave out or keep single bright pixels, which are narrower than "
          "--min-sigma [reject]" },
        { "threshold-scope", CLI_CHOICE, &a->scope, "frame,movie",
          "what --threshold-rel is relative to [frame]" },
        { "kernel", CLI_CHOICE, &a->taps, "zero-sum,scipy",
          "filter coefficients: sum of zero, so that a constant background gives no response, or "
          "those of scipy [zero-sum]" },
        { "normalize", CLI_CHOICE, &a->normalize, "none,dtype",
          "dtype: --threshold is a share of the largest value of the integer type [none]" },
        { "subpixel", CLI_CHOICE, &a->subpixel, "quad,fit,none",
          "find sub-pixel positions by a quadratic or a Gaussian fit [quad]" },
        { "prune", CLI_CHOICE, &a->prune, "on,off", "drop spots that overlap others [on]" },
        { "overlap", CLI_DOUBLE, &a->overlap, "PART",
          "largest overlap that two spots may have, as a share of the smaller disc [0.5]" },
        { "exclude-border", CLI_UINT, &a->exclude_border, "PX",
          "leave out spots within this distance of an edge [0]" },
        { "invert", CLI_FLAG, &a->invert, NULL, "find dark spots" },
        { "frames", CLI_TEXT, &a->frames, "A:B", "use only frames A to B - 1", NULL },
        { "channel", CLI_UINT, &a->channel, "C", "channel of a file that has several, from 0",
          &a->channel_given },
        { "z,z", CLI_UINT, &a->z, "Z",
          "use one plane of each stack, from 0 [all planes, in three dimensions]", &a->z_given },
        { "axes", CLI_CHOICE, &a->axes, "auto,TYX,ZYX,TZYX",
          "read planes as frames in time, one stack, or stacks in time [as the file says]" },
        { "voxel-size", CLI_TEXT, &a->voxel_size, "Z,Y,X[UNIT]",
          "sides of a voxel of a stack [from the file, or cubes]" },
        { "raw", CLI_TEXT, &a->raw, "T,H,W,TYPE[,OFFSET]",
          "read MOVIE as raw pixels without a header; TYPE is u8, u16, i16, f32 ..." },
        { "partial", CLI_FLAG, &a->partial, NULL,
          "if the file is damaged or you press Ctrl-C, keep the frames before that" },
        { "link", CLI_DOUBLE, &a->link, "R", "link spots at most R pixels apart into tracks",
          &a->link_given },
        { "memory", CLI_UINT, &a->memory, "M",
          "number of frames for which a particle may disappear [0]" },
        { "predict", CLI_CHOICE, &a->predict, "none,velocity,drift",
          "search at the position predicted by the velocity of the nearest particle, or of all "
          "particles [none]" },
        { "min-length", CLI_UINT, &a->min_length, "L",
          "leave out tracks with fewer than L spots [1]" },
        { "fill-gaps", CLI_FLAG, &a->fill_gaps, NULL,
          "add interpolated spots where a particle was not seen" },
        { "T,tracks", CLI_TEXT, &a->tracks, "FILE",
          "linked spots: .csv .tsv .json .npy .parquet .xml" },
        { "overlay", CLI_TEXT, &a->overlay, "FILE.png",
          "write a picture of the brightest values, with spots and tracks" },
        { "histogram", CLI_TEXT, &a->histogram, "FILE.png",
          "with --preview: plot the number of spots by their height above the noise, and the "
          "threshold" },
        { "stage-drift", CLI_TEXT, &a->stage_drift, "FILE",
          "write how far the image moved in each frame: .csv .tsv .json" },
        { "subtract-drift", CLI_FLAG, &a->subtract_drift, NULL,
          "give positions as in the first frame, as if the stage had not drifted" },
        { "registered", CLI_TEXT, &a->registered, "FILE.npy",
          "write the movie with each frame shifted back by the drift" },
        { "format", CLI_CHOICE, &a->format, "cleave,trackmate,xy,napari",
          "names and order of the columns [cleave]" },
        { "pixel-size", CLI_TEXT, &a->pixel_size, "S[UNIT]",
          "side of a pixel, such as 0.1um; adds columns in this unit [from the file]" },
        { "interval", CLI_DOUBLE, &a->interval, "SEC",
          "seconds between frames; adds a column t_s [from the file]", &a->interval_given },
        { "preview", CLI_UINT, &a->preview, "N",
          "show how many spots of frame N pass each of several thresholds, and stop",
          &a->preview_given },
        { NULL },
    };
    _Static_assert(sizeof rows / sizeof *rows <= BLOBS_OPTIONS + 1, "BLOBS_OPTIONS");
    memcpy(table, rows, sizeof rows);
}

static int wrong(const char *format, const char *given)
{
    return cli_error(cli_running(), CLI_USAGE, format, given);
}

/* Reads --frames: "A:B", "A:", ":B". */
static int read_frames(blobs_args *a)
{
    a->last = SIZE_MAX;
    if (!a->frames) return -1;
    char text[64];
    uint64_t from = 0, to = UINT64_MAX;
    char *colon;
    clv_copy_string(text, sizeof text, a->frames);
    colon = strchr(text, ':');
    if (!colon) return wrong("--frames is \"%s\", but it must be A:B", a->frames);
    *colon = '\0';
    if ((text[0] && !clv_parse_u64(text, &from)) || (colon[1] && !clv_parse_u64(colon + 1, &to)) ||
        from >= to)
        return wrong("--frames is \"%s\", but A must be below B in A:B", a->frames);
    a->first = (size_t)from;
    if (to != UINT64_MAX) a->last = (size_t)to;
    return -1;
}

int blobs_check(blobs_args *a)
{
    enum { MOST_SIGMA = 256 }; /* pixels; the library's limit */
    if (!a->output && !a->preview_given && !a->tracks && !a->stage_drift && !a->registered)
        return cli_error(cli_running(), CLI_USAGE,
                         "-o FILE is missing: the file for the spots, such as -o spots.csv");
    if (!(a->min_sigma > 0) || a->max_sigma < a->min_sigma)
        return cli_error(
            cli_running(), CLI_USAGE,
            "--min-sigma is %g and --max-sigma %g, but they must satisfy 0 < min <= max",
            a->min_sigma, a->max_sigma);
    if (a->max_sigma > MOST_SIGMA)
        return cli_error(cli_running(), CLI_USAGE, "--max-sigma is %g, but it must be at most %d",
                         a->max_sigma, MOST_SIGMA);
    if (!a->num_sigma || a->num_sigma > CLV_BLOB_MAX_SCALES)
        return cli_error(cli_running(), CLI_USAGE, "--num-sigma is %llu, but it must be 1 to %d",
                         (unsigned long long)a->num_sigma, CLV_BLOB_MAX_SCALES);
    if (a->tracks && !a->link_given)
        return cli_error(cli_running(), CLI_USAGE,
                         "-T needs --link R, the farthest that a spot may move between frames");
    if (a->link_given && !(a->link > 0))
        return cli_error(cli_running(), CLI_USAGE, "--link is %g, but it must be more than 0",
                         a->link);
    if (a->fill_gaps && !a->link_given)
        return cli_error(cli_running(), CLI_USAGE, "--fill-gaps needs --link R");
    if (!a->link_given && (a->memory || a->min_length != 1 || a->predict))
        return cli_error(cli_running(), CLI_USAGE,
                         "%s is for tracks; add --link R, the farthest that a spot may move "
                         "between frames, in pixels",
                         a->memory    ? "--memory"
                         : a->predict ? "--predict"
                                      : "--min-length");
    if (a->sigma_ratio != 1.6 && !a->dog)
        return cli_error(cli_running(), CLI_USAGE, "--sigma-ratio is only possible with --dog");
    if (a->z_given && a->voxel_size)
        return cli_error(cli_running(), CLI_USAGE,
                         "--z reads one plane of each stack, but --voxel-size is for whole stacks; "
                         "leave one of them out");
    if (a->z_given && a->axes > CLV_MOVIE_TYX)
        return cli_error(cli_running(), CLI_USAGE,
                         "--z reads one plane of each stack, but --axes %s reads all of them; "
                         "leave one of them out",
                         a->axes == CLV_MOVIE_ZYX ? "ZYX" : "TZYX");
    if ((a->pixel_size || a->interval_given) && a->format == BLOBS_XY)
        return cli_error(cli_running(), CLI_USAGE,
                         "%s cannot be used with --format xy, which is in pixels and frames",
                         a->pixel_size ? "--pixel-size" : "--interval");
    if (a->preview_given && !a->common.quiet && (a->output || a->tracks))
        cli_warn(cli_running(), "--preview writes only pictures: %s is not written",
                 a->output ? a->output : a->tracks);
    if (a->preview_given && blobs_wants_stage(a))
        return cli_error(
            cli_running(), CLI_USAGE,
            "%s needs the whole movie, but --preview shows one frame; leave one of them out",
            a->stage_drift      ? "--stage-drift"
            : a->subtract_drift ? "--subtract-drift"
                                : "--registered");
    if (a->histogram && !a->preview_given)
        return cli_error(cli_running(), CLI_USAGE,
                         "--histogram needs --preview N: it shows the histogram of frame N");
    if (!(a->overlap >= 0 && a->overlap <= 1))
        return cli_error(cli_running(), CLI_USAGE, "--overlap is %g, but it must be 0 to 1",
                         a->overlap);
    if (a->scope == 1 && a->common.shard)
        return cli_error(
            cli_running(), CLI_USAGE,
            "--threshold-scope movie and --shard cannot be used together, since a shard does "
            "not know the whole movie; give --threshold, or use MPI");
    if (a->scope == 1 && a->threshold_sigma_given)
        return cli_error(cli_running(), CLI_USAGE,
                         "--threshold-scope movie and --threshold-sigma cannot be used together");
    if (a->min_sigma < 0.8 && !a->common.quiet)
        cli_warn(cli_running(), "a filter narrower than 0.8 pixels cannot be sampled well on the "
                                "pixel grid; use --min-sigma 0.8 or more");
    return read_frames(a);
}
