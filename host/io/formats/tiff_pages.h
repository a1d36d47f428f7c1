/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a TIFF file by their places, and what its description says of them. Private to the
 * TIFF reader; knows no library. */
#ifndef CLEAVE_HOST_IO_FORMATS_TIFF_PAGES_H
#define CLEAVE_HOST_IO_FORMATS_TIFF_PAGES_H

#include "host/io/formats/movie.h"

typedef struct clv_tiff_chain {
    uint64_t *offset; /* of each page's directory; clv_free */
    size_t count;
    const char *damage; /* why the chain ends early; NULL: it does not */
} clv_tiff_chain;

/* Follows the chain of directories, classic or BigTIFF. CLV_E_IO, CLV_E_MEMORY; CLV_E_FORMAT for a
 * header that is none. */
clv_status clv_tiff_follow(const char *path, clv_tiff_chain *chain);

/* What ImageJ's and OME's descriptions tell; zero: not told. */
typedef struct clv_tiff_story {
    bool imagej, ome;
    size_t images, channels, slices, frames;
    const char *absurd;  /* the number that is beyond all bounds, where it begins; NULL: none */
    char order[8];       /* axes from the fastest: "CZT" */
    bool slices_in_time; /* ImageJ calls them slices, but of a stack over time as well */
} clv_tiff_story;

/* CLV_E_FORMAT for a number of planes that no file can have. */
clv_status clv_tiff_read_story(const char *path, const char *description, clv_tiff_story *story,
                               clv_movie_facts *facts);
/* Planes that the description promises; 0: it tells none. */
double clv_tiff_promised(const clv_tiff_story *story);

/* The pages that are the movie: of frame f, stack f / planes and plane f % planes of it, first + stack * step +
 * plane * plane_step. CLV_E_FORMAT: several channels or planes, and no choice. */
typedef struct clv_tiff_choice {
    size_t first, step, frames;
    size_t planes, plane_step; /* planes 1: frames in time */
} clv_tiff_choice;
clv_status clv_tiff_choose(const char *path, const clv_tiff_story *story,
                           const clv_movie_options *options, size_t pages, clv_tiff_choice *choice);

#endif
