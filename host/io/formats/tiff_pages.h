/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a TIFF file by their offsets, and what its description says about them. Private to the TIFF reader;
 * knows no library. */
#ifndef CLEAVE_HOST_IO_FORMATS_TIFF_PAGES_H
#define CLEAVE_HOST_IO_FORMATS_TIFF_PAGES_H

#include "host/io/formats/movie.h"

typedef struct clv_tiff_chain {
    uint64_t *offset; /* offset of each page's directory; clv_free */
    size_t count;
    const char *damage; /* why the chain ends early; NULL: it does not */
} clv_tiff_chain;

/* Follows the chain of directories, classic or BigTIFF. Returns CLV_OK, CLV_E_IO, CLV_E_MEMORY, or CLV_E_FORMAT if
 * there is no TIFF header. */
clv_status clv_tiff_follow(const char *path, clv_tiff_chain *chain);

/* The contents of ImageJ's and OME's descriptions; zero: not stated. */
typedef struct clv_tiff_story {
    bool imagej, ome;
    size_t images, channels, slices, frames;
    const char *absurd;  /* beginning of a number beyond all bounds; NULL: none */
    char order[8];       /* axes from the fastest: "CZT" */
    bool slices_in_time; /* ImageJ says slices, which may also be frames over time */
} clv_tiff_story;

/* Reads the description. Returns CLV_E_FORMAT for a number of planes that no file can have. */
clv_status clv_tiff_read_story(const char *path, const char *description, clv_tiff_story *story,
                               clv_movie_facts *facts);
/* Returns the number of planes that the description promises; 0: it does not say. */
double clv_tiff_promised(const clv_tiff_story *story);

/* The pages that form the movie. Frame f is plane f % planes of stack f / planes, on page
 * first + stack * step + plane * plane_step. Returns CLV_E_FORMAT if there are several channels or planes, and no
 * choice. */
typedef struct clv_tiff_choice {
    size_t first, step, frames;
    size_t planes, plane_step; /* planes 1: frames in time */
} clv_tiff_choice;
clv_status clv_tiff_choose(const char *path, const clv_tiff_story *story,
                           const clv_movie_options *options, size_t pages, clv_tiff_choice *choice);

#endif
