/* SPDX-License-Identifier: Apache-2.0 */
/* Reads movies from OME-Zarr folders (0.4 and 0.5), always the first image at full resolution, or from a plain Zarr
 * array. */
#include "host/io/formats/movie_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/tiff_pages.h"
#include "host/io/formats/zarr.h"
#include "host/io/room.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { T, C, Z, Y, X, ROLES };

typedef struct zarr_movie {
    clv_zarr *array;
    clv_tiff_choice choice;
    int axis[ROLES]; /* the array's axis for each role; -1: none */
    size_t channels, planes;
    void *chunk;         /* the last chunk read */
    unsigned char *slab; /* [chunk of T][chunk of Z][height][width] as stored, of one channel */
    /* slab_at: chunk index of the slab along T, C and Z; slab_channel: its channel; SIZE_MAX: none */
    size_t slab_at[3];
    size_t slab_channel;
} zarr_movie;

static void close_movie(void *state)
{
    zarr_movie *m = state;
    clv_zarr_close(m->array);
    clv_free(m->chunk), clv_free(m->slab);
    clv_free(m);
}

static size_t of_role(const zarr_movie *m, const size_t *values, int role)
{
    return m->axis[role] >= 0 ? values[m->axis[role]] : 1;
}

/* Copies the chosen channel from the chunk that was read last, the chunk [down, across] of its plane, into the slab. */
static void spread(const clv_movie *movie, const zarr_movie *m, size_t down, size_t across,
                   size_t channel)
{
    const clv_zarr_layout *l = clv_zarr_look(m->array);
    const size_t size = clv_movie_stored_size(l->stored, l->narrow);
    const size_t height = movie->facts.height, width = movie->facts.width;
    size_t count[ROLES], stride[ROLES];
    for (int role = 0; role < ROLES; ++role) {
        count[role] = of_role(m, l->chunk, role);
        stride[role] = m->axis[role] >= 0 ? l->stride[m->axis[role]] : 0;
    }
    const size_t y0 = down * count[Y], x0 = across * count[X];
    const size_t rows = CLV_MIN(count[Y], height - y0), columns = CLV_MIN(count[X], width - x0);
    const size_t first = channel % count[C] * stride[C];
    for (size_t t = 0; t < count[T]; ++t)
        for (size_t z = 0; z < count[Z]; ++z)
            for (size_t y = 0; y < rows; ++y) {
                const size_t from = first + t * stride[T] + z * stride[Z] + y * stride[Y];
                unsigned char *to =
                    m->slab + (((t * count[Z] + z) * height + y0 + y) * width + x0) * size;
                const unsigned char *in = (const unsigned char *)m->chunk + from * size;
                if (stride[X] == 1)
                    memcpy(to, in, columns * size);
                else
                    for (size_t x = 0; x < columns; ++x)
                        memcpy(to + x * size, in + x * stride[X] * size, size);
            }
}

/* Reads the slab that holds time `t` and plane `z` of a channel, unless it is the current slab. */
static clv_status fetch(const clv_movie *movie, zarr_movie *m, size_t t, size_t channel, size_t z)
{
    const clv_zarr_layout *l = clv_zarr_look(m->array);
    const size_t wanted[3] = { t / of_role(m, l->chunk, T), channel / of_role(m, l->chunk, C),
                               z / of_role(m, l->chunk, Z) };
    if (memcmp(wanted, m->slab_at, sizeof wanted) == 0 && m->slab_channel == channel) return CLV_OK;
    m->slab_channel = SIZE_MAX; /* the slab is invalid until it has been read completely */
    size_t index[CLV_ZARR_RANK] = { 0 };
    for (int role = T; role <= Z; ++role)
        if (m->axis[role] >= 0) index[m->axis[role]] = wanted[role];
    const size_t down = (movie->facts.height - 1) / of_role(m, l->chunk, Y) + 1,
                 across = (movie->facts.width - 1) / of_role(m, l->chunk, X) + 1;
    for (size_t y = 0; y < down; ++y)
        for (size_t x = 0; x < across; ++x) {
            index[m->axis[Y]] = y, index[m->axis[X]] = x;
            CLV_TRY(clv_zarr_read(m->array, index, m->chunk));
            spread(movie, m, y, x, channel);
        }
    memcpy(m->slab_at, wanted, sizeof wanted);
    m->slab_channel = channel;
    return CLV_OK;
}

static clv_status read_movie(clv_movie *movie, size_t frame, void *pixels)
{
    zarr_movie *m = movie->state;
    const clv_zarr_layout *l = clv_zarr_look(m->array);
    const clv_tiff_choice *c = &m->choice;
    const size_t page = c->first + frame / c->planes * c->step + frame % c->planes * c->plane_step;
    const size_t channel = page % m->channels, z = page / m->channels % m->planes,
                 t = page / m->channels / m->planes;
    CLV_TRY(fetch(movie, m, t, channel, z));
    const size_t plane =
        t % of_role(m, l->chunk, T) * of_role(m, l->chunk, Z) + z % of_role(m, l->chunk, Z);
    const size_t count = movie->facts.height * movie->facts.width;
    clv_movie_convert(l->stored, l->narrow,
                      m->slab + plane * count * clv_movie_stored_size(l->stored, l->narrow), count,
                      pixels);
    return CLV_OK;
}

/* ---- the folder's metadata ---------------------------------------------------------------------- */

/* Writes the symbol of a unit to `out`; `name` is OME's name of the unit. Copies an unknown name unchanged. */
static void set_unit(char *out, size_t capacity, const char *name)
{
    static const char *const units[][2] = { { "nanometer", "nm" },  { "micrometer", "um" },
                                            { "millimeter", "mm" }, { "meter", "m" },
                                            { "second", "s" },      { "millisecond", "ms" },
                                            { "minute", "min" },    { "hour", "h" } };
    for (size_t i = 0; i < CLV_LEN(units); ++i)
        if (strcmp(units[i][0], name) == 0) name = units[i][1];
    clv_copy_string(out, capacity, name);
}

/* Returns the product of all scales along axis `axis` in a list of coordinate transformations. */
static double scale_of(const clv_json *transformations, size_t axis)
{
    double scale = 1;
    for (size_t i = 0; i < clv_json_count(transformations); ++i) {
        const clv_json *one = clv_json_at(transformations, i);
        if (strcmp(clv_json_string(clv_json_get(one, "type"), ""), "scale") == 0)
            scale *= clv_json_number(clv_json_at(clv_json_get(one, "scale"), axis), 1);
    }
    return scale > 0 ? scale : 1;
}

/* Returns the role of the axis called `name`, in any case; -1 if the name is not known. */
static int role_called(const char *name)
{
    static const struct {
        const char *name;
        int role;
    } names[] = { { "t", T }, { "time", T }, { "c", C }, { "channel", C },
                  { "z", Z }, { "y", Y },    { "x", X } };
    for (size_t i = 0; i < CLV_LEN(names); ++i)
        if (strcasecmp(names[i].name, name) == 0) return names[i].role;
    return -1;
}

/* Returns the name of an axis in a list of names, or of objects that have a "name"; "" if it has none. */
static const char *axis_name(const clv_json *axes, size_t axis)
{
    const clv_json *one = clv_json_at(axes, axis);
    return clv_json_string(clv_json_is_string(one) ? one : clv_json_get(one, "name"), "");
}

static void forget_axes(zarr_movie *m)
{
    for (int role = 0; role < ROLES; ++role)
        m->axis[role] = -1;
}

/* Derives the axes from their number alone, as for NPY files. */
static void guess_axes(zarr_movie *m, size_t rank)
{
    forget_axes(m);
    for (size_t i = 0; i < rank; ++i)
        m->axis[rank == 5 ? (int)i : X - (int)(rank - 1 - i)] = (int)i;
    if (rank == 3) m->axis[T] = m->axis[Z], m->axis[Z] = -1;
    if (rank == 4) m->axis[T] = m->axis[C], m->axis[C] = -1;
}

/* Finds the axes from their names; `axes` is NULL if the file names none. */
static clv_status find_axes(const clv_movie *movie, zarr_movie *m, const clv_json *axes,
                            size_t rank)
{
    if (!axes) {
        guess_axes(m, rank);
        return CLV_OK;
    }
    forget_axes(m);
    if (clv_json_count(axes) != rank)
        return clv_fail(CLV_E_FORMAT, "%s: the metadata name %zu axes, but the array has %zu",
                        movie->path, clv_json_count(axes), rank);
    for (size_t i = 0; i < rank; ++i) {
        const char *name = axis_name(axes, i);
        const int role = role_called(name);
        if (role < 0 || m->axis[role] >= 0)
            return clv_fail(
                CLV_E_FORMAT,
                "%s: there is an axis \"%.20s\"; expected t, c, z, y and x, each at most once",
                movie->path, name);
        m->axis[role] = (int)i;
    }
    if (m->axis[Y] < 0 || m->axis[X] < 0)
        return clv_fail(CLV_E_FORMAT, "%s: the array lacks the axes y and x", movie->path);
    return CLV_OK;
}

/* Finds the axes of an array without OME's metadata. `names` are the names that Zarr 3 (dimension_names) or xarray
 * (_ARRAY_DIMENSIONS) may give the axes. One name that is missing or unknown makes all of them a matter of position. */
static clv_status find_bare_axes(clv_movie *movie, zarr_movie *m, const clv_json *names,
                                 const clv_movie_options *options)
{
    const size_t rank = clv_zarr_look(m->array)->rank;
    bool given = false, known = clv_json_is_array(names);
    for (size_t i = 0; i < clv_json_count(names); ++i) {
        given |= *axis_name(names, i) != '\0';
        known &= role_called(axis_name(names, i)) >= 0;
    }
    CLV_TRY(find_axes(movie, m, known ? names : NULL, rank));
    if (given && !known)
        clv_movie_notice(movie,
                         "its axes have names other than t, c, z, y and x, so they are taken by "
                         "position, as %s\n",
                         rank == 5   ? "t, c, z, y, x"
                         : rank == 4 ? "t, z, y, x"
                         : rank == 3 ? "t, y, x"
                                     : "y, x");
    /* --axes TYX: the planes of a single stack are frames in time */
    if (options->axes == CLV_MOVIE_TYX && m->axis[T] < 0) m->axis[T] = m->axis[Z], m->axis[Z] = -1;
    return CLV_OK;
}

static void find_scales(clv_movie *movie, const zarr_movie *m, const clv_json *image,
                        const clv_json *level)
{
    clv_movie_facts *f = &movie->facts;
    const clv_json *axes = clv_json_get(image, "axes");
    double scale[ROLES] = { 0 };
    const char *unit[ROLES] = { 0 };
    for (int role = 0; role < ROLES; ++role) {
        if (m->axis[role] < 0) continue;
        const size_t axis = (size_t)m->axis[role];
        unit[role] = clv_json_string(clv_json_get(clv_json_at(axes, axis), "unit"), NULL);
        scale[role] = scale_of(clv_json_get(level, "coordinateTransformations"), axis) *
                      scale_of(clv_json_get(image, "coordinateTransformations"), axis);
    }
    if (unit[X]) {
        f->pixel_size = scale[X], f->row_spacing = scale[Y];
        set_unit(f->pixel_unit, sizeof f->pixel_unit, unit[X]);
        if (unit[Z] && strcmp(unit[Z], unit[X]) == 0) f->plane_spacing = scale[Z];
    }
    if (unit[T]) {
        f->interval = scale[T];
        set_unit(f->time_unit, sizeof f->time_unit, unit[T]);
    }
}

static clv_status start(clv_movie *movie, zarr_movie *m, const clv_movie_options *options)
{
    const clv_zarr_layout *l = clv_zarr_look(m->array);
    clv_movie_facts *f = &movie->facts;
    m->channels = of_role(m, l->shape, C), m->planes = of_role(m, l->shape, Z);
    clv_tiff_story story = { .ome = true,
                             .channels = m->channels,
                             .slices = m->planes,
                             .frames = of_role(m, l->shape, T),
                             .order = "CZT" };
    size_t pages = 0;
    if (!clv_size_mul(m->channels, m->planes, &pages) || !clv_size_mul(pages, story.frames, &pages))
        return clv_fail(CLV_E_SHAPE, "%s: its planes need more memory than can be addressed",
                        movie->path);
    CLV_TRY(clv_tiff_choose(movie->path, &story, options, pages, &m->choice));
    f->frames = m->choice.frames, f->depth = m->choice.planes;
    f->height = l->shape[m->axis[Y]], f->width = l->shape[m->axis[X]];
    f->type = l->narrow == CLV_NARROW_INT8 ? CLV_I16 : clv_movie_type(l->stored);
    clv_copy_string(f->stored, sizeof f->stored, clv_movie_stored_name(l->stored, l->narrow));
    if (f->type != l->stored || l->narrow)
        clv_movie_notice(movie, "%s pixels become %s\n", f->stored, clv_type_name(f->type));
    const size_t size = clv_movie_stored_size(l->stored, l->narrow);
    size_t bytes = size;
    if (!clv_size_mul(bytes, f->height, &bytes) || !clv_size_mul(bytes, f->width, &bytes) ||
        !clv_size_mul(bytes, of_role(m, l->chunk, T), &bytes) ||
        !clv_size_mul(bytes, of_role(m, l->chunk, Z), &bytes))
        return clv_fail(CLV_E_SHAPE, "%s: its chunks need more memory than can be addressed",
                        movie->path);
    CLV_TRY(
        clv_io_need(movie->path, "for the chunks of one frame", bytes + l->chunk_elements * size));
    m->slab = clv_alloc(bytes, 1), m->chunk = clv_alloc(l->chunk_elements, size);
    m->slab_channel = SIZE_MAX;
    if (!m->slab || !m->chunk)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the chunks of a frame",
                        movie->path);
    return CLV_OK;
}

/* Opens the array at full resolution of the image that a group's attributes describe. */
static clv_status open_image(clv_movie *movie, zarr_movie *m, const char *folder,
                             const clv_json *attributes, const clv_movie_options *options)
{
    const clv_json *list = clv_json_get(attributes, "multiscales"), *image = clv_json_at(list, 0),
                   *level = clv_json_at(clv_json_get(image, "datasets"), 0);
    const char *name = clv_json_string(clv_json_get(level, "path"), NULL);
    if (!name || !*name || *name == '/' || strstr(name, ".."))
        return clv_fail(CLV_E_FORMAT,
                        "%s: the first dataset of the first image (multiscales) has no path inside "
                        "this folder",
                        folder);
    char *path = clv_zarr_path(folder, name);
    if (!path) return clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    clv_status status = clv_zarr_open(path, &m->array);
    clv_free(path);
    if (status) return status;
    CLV_TRY(find_axes(movie, m, clv_json_get(image, "axes"), clv_zarr_look(m->array)->rank));
    find_scales(movie, m, image, level);
    if (clv_json_count(list) > 1)
        clv_movie_notice(movie, "%zu images are in this folder; the first is taken\n",
                         clv_json_count(list));
    return start(movie, m, options);
}

/* Reads the attributes of a group; version 3 stores OME's below "ome". The caller frees *root, which owns the
 * attributes. *attributes is NULL if there are none. */
static clv_status read_attributes(const char *folder, clv_json **root, const clv_json **attributes)
{
    CLV_TRY(clv_zarr_json(folder, "zarr.json", root));
    if (*root) {
        *attributes = clv_json_get(clv_json_get(*root, "attributes"), "ome");
        return CLV_OK;
    }
    CLV_TRY(clv_zarr_json(folder, ".zattrs", root));
    *attributes = *root;
    return CLV_OK;
}

static clv_status open_group(clv_movie *movie, zarr_movie *m, const char *folder, bool inner,
                             const clv_movie_options *options)
{
    clv_json *root = NULL;
    const clv_json *attributes = NULL;
    clv_status status = read_attributes(folder, &root, &attributes);
    if (status) return status;
    const bool several = clv_json_get(attributes, "bioformats2raw.layout") && !inner;
    if (clv_json_get(attributes, "multiscales")) {
        status = open_image(movie, m, folder, attributes, options);
    } else if (clv_json_get(attributes, "plate")) {
        status = clv_fail(CLV_E_FORMAT,
                          "%s is a plate of wells; give the folder of one field, such as %s/A/1/0",
                          movie->path, movie->path);
    } else if (several) {
        char *first = clv_zarr_path(folder, "0"), *second = clv_zarr_path(folder, "1");
        if (!first || !second)
            status = clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
        else
            status = open_group(movie, m, first, true, options);
        if (!status && clv_zarr_is(second))
            clv_movie_notice(movie, "several images are in this folder; %s is taken\n", first);
        clv_free(first), clv_free(second);
    } else {
        status = clv_zarr_open(folder, &m->array);
        if (status == CLV_E_FORMAT && !clv_json_get(root, "shape") && !clv_zarr_is_old(folder))
            status = clv_fail(CLV_E_FORMAT,
                              "%s is a Zarr group without an OME image (it has no "
                              "\"multiscales\"); give the folder of an image or of an array in it",
                              folder);
        const clv_json *names = clv_json_get(root, "dimension_names");
        if (!names) names = clv_json_get(root, "_ARRAY_DIMENSIONS");
        if (!status) status = find_bare_axes(movie, m, names, options);
        if (!status) status = start(movie, m, options);
    }
    clv_json_free(root);
    return status;
}

clv_status clv_movie_open_zarr(clv_movie *movie, const clv_movie_options *options)
{
    zarr_movie *m = clv_zalloc(1, sizeof *m);
    if (!m) return clv_fail(CLV_E_MEMORY, "%s: out of memory", movie->path);
    movie->state = m, movie->close = close_movie, movie->read = read_movie;
    clv_copy_string(movie->facts.format, sizeof movie->facts.format, "OME-Zarr");
    CLV_TRY(open_group(movie, m, movie->path, false, options));
    return CLV_OK;
}
