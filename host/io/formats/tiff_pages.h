/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the pages of a TIFF file, and reads what its description says about them. Private to the TIFF reader; calls no
 * TIFF library. */
#ifndef CLEAVE_HOST_IO_FORMATS_TIFF_PAGES_H
#define CLEAVE_HOST_IO_FORMATS_TIFF_PAGES_H

#include "host/io/formats/movie.h"

typedef struct clv_tiff_chain {
    uint64_t *offset; /* [count]: offset of each page's directory, freed with clv_free */
    size_t count;
    const char *damage; /* why the chain ends early; NULL if it is complete */
} clv_tiff_chain;

/* Follows a file's chain of directories, classic or BigTIFF. Returns CLV_OK, CLV_E_IO, CLV_E_MEMORY, or CLV_E_FORMAT if
 * there is no TIFF header. */
clv_status clv_tiff_follow(const char *path, clv_tiff_chain *chain);

/* What the description by ImageJ or OME says; a field is zero if the description does not state it. */
typedef struct clv_tiff_story {
    bool imagej, ome;
    size_t images, channels, slices, frames;
    const char *absurd; /* while it is read: points to a number that no file can have; NULL: none */
    char order[8];      /* axes from the one that varies fastest, such as "CZT" */
    /* ImageJ's slices, which may also be frames over time, were taken for frames */
    bool slices_in_time;
    /* OME: images after the first, which are not read; and planes that are not on pages in the order of `order` */
    size_t other_images;
    bool out_of_order;
} clv_tiff_story;

/* Parses the first page's description into *story and *facts. Returns CLV_E_FORMAT for a number of planes that no file
 * can have, and CLV_E_MEMORY. */
clv_status clv_tiff_read_story(const char *path, const char *description, clv_tiff_story *story,
                               clv_movie_facts *facts);
/* Returns the number of images that the description promises; 0 if it states none. */
double clv_tiff_promised(const clv_tiff_story *story);

/* clv_tiff_choose chooses the pages that form the movie. Frame f is plane p = f % planes of stack s = f / planes; it is
 * on page first + s * step + p * plane_step. Returns CLV_E_FORMAT if there are several channels or planes, and the
 * options choose none. */
typedef struct clv_tiff_choice {
    size_t first, step, frames;
    size_t planes, plane_step; /* planes: per stack; 1: frames in time */
} clv_tiff_choice;
clv_status clv_tiff_choose(const char *path, const clv_tiff_story *story,
                           const clv_movie_options *options, size_t pages, clv_tiff_choice *choice);

#endif
