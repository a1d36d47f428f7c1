/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a library's lib.json and its .npy files, and checks everything that lib.json states against the arrays. */
#include "host/io/tables/speclib.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "host/io/formats/npy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARMS = 64, MAX_ARRAYS = 32, MAX_JSON = 1 << 20, MAX_NAME = 128, MAX_NODES = 1 << 24 };

typedef struct arm_memory {
    char name[MAX_NAME];
    clv_file_array arrays[MAX_ARRAYS];
    size_t count;
} arm_memory;

typedef struct clv_speclib_memory {
    clv_spectra_arm *arms;
    arm_memory *of;
    size_t count;
    clv_file_array parameters;
} clv_speclib_memory;

void clv_speclib_clear(clv_speclib *lib)
{
    clv_speclib_memory *m = lib->memory;
    if (m) {
        for (size_t i = 0; m->of && i < m->count; ++i)
            for (size_t k = 0; k < m->of[i].count; ++k)
                clv_file_array_clear(&m->of[i].arrays[k]);
        clv_file_array_clear(&m->parameters);
        clv_free(m->arms), clv_free(m->of), clv_free(m);
    }
    *lib = (clv_speclib){ 0 };
}

size_t clv_speclib_arm(const clv_speclib *lib, const char *name)
{
    size_t i = 0;
    while (i < lib->library.arm_count && strcmp(lib->library.arms[i].name, name) != 0)
        ++i;
    return i;
}

/* Returns whether a file's name has only letters, digits, '_' and '-', so that it cannot lead out of the folder. */
static bool is_plain(const char *name)
{
    if (!*name || strlen(name) >= MAX_NAME) return false;
    for (const char *c = name; *c; ++c)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
              *c == '_' || *c == '-'))
            return false;
    return true;
}

/* Reads folder/part/file.npy as `type`, with the shape [rows,columns], or [rows] if columns is 0. */
static clv_status read_array(const char *folder, const char *part, const char *file, clv_type type,
                             size_t rows, size_t columns, clv_file_array *array)
{
    clv_text path = { 0 };
    char shape[CLV_SHAPE_TEXT];
    clv_text_add(&path, "%s/%s%s%s.npy", folder, part, *part ? "/" : "", file);
    clv_status status = path.failed ? clv_fail(CLV_E_MEMORY, "%s: out of memory", folder)
                                    : clv_npy_read(path.data, array);
    if (!status) status = clv_file_array_convert(array, path.data, type);
    if (!status && (array->rank != (columns ? 2u : 1u) || (rows && array->shape[0] != rows) ||
                    (columns && array->shape[1] != columns)))
        status =
            clv_fail(CLV_E_SHAPE, "%s: the array is %s; expected %zu rows (0: any number) of %zu",
                     path.data, clv_shape_text(array->rank, array->shape, shape), rows, columns);
    if (status) clv_file_array_clear(array);
    clv_text_clear(&path);
    return status;
}

static clv_status number_of(const clv_json *object, const char *path, const char *key, double low,
                            double high, double *out)
{
    const clv_json *value = clv_json_get(object, key);
    const double number = clv_json_number(value, NAN);
    if (isnan(number))
        return clv_fail(CLV_E_FORMAT, "%s: \"%s\" is %s; expected a number from %g to %g", path,
                        key, value ? "no number" : "missing", low, high);
    if (!(number >= low && number <= high))
        return clv_fail(CLV_E_FORMAT, "%s: \"%s\" is %g; expected a number from %g to %g", path,
                        key, number, low, high);
    *out = number;
    return CLV_OK;
}

static clv_status read_layers(const char *folder, const char *path, const clv_json *json,
                              arm_memory *m, clv_spectra_arm *arm)
{
    const clv_json *layers = clv_json_get(json, "layers");
    const size_t n = clv_json_count(layers);
    if (!clv_json_is_array(layers))
        return clv_fail(CLV_E_FORMAT, "%s: \"layers\" of %s is not a list of widths", path,
                        m->name);
    if (n < 2 || n > CLV_SPECTRA_MAX_LAYERS + 1)
        return clv_fail(CLV_E_FORMAT, "%s: \"layers\" of %s has %zu widths; expected 2 to %d", path,
                        m->name, n, CLV_SPECTRA_MAX_LAYERS + 1);
    for (size_t i = 0; i < n; ++i) {
        const int64_t width = clv_json_int(clv_json_at(layers, i), 0);
        if (width < 1 || width > 1 << 24)
            return clv_fail(CLV_E_FORMAT,
                            "%s: \"layers\" of %s has a width of %lld; expected 1 to 2^24", path,
                            m->name, (long long)width);
        arm->width[i] = (size_t)width;
    }
    arm->layers = n - 1;
    for (size_t l = 0; l < arm->layers; ++l) {
        const bool last = l + 1 == arm->layers;
        for (int bias = 0; bias < 2; ++bias) {
            char file[64];
            const char *kind = bias ? "bias" : "weight";
            if (last)
                snprintf(file, sizeof file, "pc_layer_%s", kind);
            else
                snprintf(file, sizeof file, "model_lin_%zu_%s", l, kind);
            clv_file_array *a = &m->arrays[m->count];
            CLV_TRY(read_array(folder, m->name, file, CLV_F32, arm->width[l + 1],
                               bias ? 0 : arm->width[l], a));
            ++m->count;
            *(bias ? &arm->bias[l] : &arm->weight[l]) = a->data;
        }
    }
    return CLV_OK;
}

/* Reads the template's row number for every node of the grid: whole numbers of any type, converted to int32. */
static clv_status read_rows(const char *folder, const char *part, const size_t nodes[4],
                            clv_file_array *array)
{
    clv_text path = { 0 };
    clv_file_array read = { 0 };
    clv_text_add(&path, "%s/%s/grid.npy", folder, part);
    clv_status status = path.failed ? clv_fail(CLV_E_MEMORY, "%s: out of memory", folder)
                                    : clv_npy_read(path.data, &read);
    if (!status) status = clv_file_array_convert(&read, path.data, CLV_F64);
    if (!status && (read.rank != 4 || memcmp(read.shape, nodes, 4 * sizeof *nodes) != 0)) {
        char shape[CLV_SHAPE_TEXT];
        status = clv_fail(CLV_E_SHAPE, "%s: the array is %s; expected [%zu,%zu,%zu,%zu]", path.data,
                          clv_shape_text(read.rank, read.shape, shape), nodes[0], nodes[1],
                          nodes[2], nodes[3]);
    }
    if (!status) status = clv_file_array_create(array, path.data, CLV_I32, 4, nodes);
    for (size_t i = 0; !status && i < clv_file_array_count(&read); ++i) {
        const double row = ((const double *)read.data)[i];
        if (!(row >= -1 && row < MAX_NODES) || row != floor(row))
            status = clv_fail(CLV_E_FORMAT, "%s: number %zu is %g; expected a row number or -1",
                              path.data, i, row);
        else
            ((int32_t *)array->data)[i] = (int32_t)row;
    }
    if (status) clv_file_array_clear(array);
    clv_file_array_clear(&read), clv_text_clear(&path);
    return status;
}

/* Reads a regular grid: axis_0.npy to axis_3.npy, the row number of every node, and the templates. */
static clv_status read_grid(const char *folder, const char *path, const clv_json *json,
                            arm_memory *m, clv_spectra_arm *arm)
{
    const clv_json *nodes = clv_json_get(json, "nodes");
    size_t all = 1;
    if (!clv_json_is_array(nodes) || clv_json_count(nodes) != 4)
        return clv_fail(CLV_E_FORMAT, "%s: \"nodes\" of %s is not a list of four numbers", path,
                        m->name);
    for (size_t k = 0; k < 4; ++k) {
        const int64_t n = clv_json_int(clv_json_at(nodes, k), 0);
        if (n < 2 || n > MAX_NODES / (int64_t)all)
            return clv_fail(CLV_E_FORMAT,
                            "%s: \"nodes\" of %s has %lld; expected at least 2 along each axis and "
                            "at most 2^24 in all",
                            path, m->name, (long long)n);
        arm->nodes[k] = (size_t)n, all *= (size_t)n;
    }
    for (size_t k = 0; k < 4; ++k) {
        char file[32];
        snprintf(file, sizeof file, "axis_%zu", k);
        clv_file_array *axis = &m->arrays[m->count];
        CLV_TRY(read_array(folder, m->name, file, CLV_F64, arm->nodes[k], 0, axis));
        ++m->count;
        arm->axis[k] = axis->data;
    }
    clv_file_array *rows = &m->arrays[m->count];
    CLV_TRY(read_rows(folder, m->name, arm->nodes, rows));
    ++m->count;
    arm->grid = rows->data;
    clv_file_array *spectra = &m->arrays[m->count];
    CLV_TRY(read_array(folder, m->name, "log_flux", CLV_F32, 0, arm->points, spectra));
    ++m->count;
    arm->grid_log_flux = spectra->data, arm->grid_spectra = spectra->shape[0];
    for (size_t i = 0; i < all; ++i)
        if (arm->grid[i] >= 0 && (size_t)arm->grid[i] >= arm->grid_spectra)
            return clv_fail(CLV_E_SHAPE, "%s: node %zu of %s names spectrum %d, but there are %zu",
                            path, i, m->name, (int)arm->grid[i], arm->grid_spectra);
    return CLV_OK;
}

/* Reads the arrays that an arm has only if its templates come from a neural network. */
static clv_status read_network(const char *folder, const char *path, const clv_json *json,
                               arm_memory *m, clv_spectra_arm *arm)
{
    CLV_TRY(read_layers(folder, path, json, m, arm));
    if (arm->width[0] != 4 || arm->width[arm->layers] != arm->points)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the layers of %s go from %zu inputs to %zu outputs; expected 4 inputs "
                        "and %zu outputs",
                        path, m->name, arm->width[0], arm->width[arm->layers], arm->points);
    static const char *const inputs[] = { "mean", "std" };
    for (int i = 0; i < 2; ++i) {
        clv_file_array a = { 0 };
        CLV_TRY(read_array(folder, m->name, inputs[i], CLV_F64, 4, 0, &a));
        memcpy(i ? arm->std : arm->mean, a.data, sizeof arm->mean);
        clv_file_array_clear(&a);
    }
    clv_file_array *hull = &m->arrays[m->count];
    CLV_TRY(read_array(folder, m->name, "hull_pts", CLV_F64, 0, 4, hull));
    ++m->count;
    arm->hull = hull->data, arm->hull_count = hull->shape[0];
    return CLV_OK;
}

static clv_status read_arm(const char *folder, const char *path, const clv_json *json,
                           size_t templates, arm_memory *m, clv_spectra_arm *arm)
{
    double points = 0, ccf_points = 0;
    arm->name = m->name;
    CLV_TRY(number_of(json, path, "npix", 64, 1 << 24, &points));
    CLV_TRY(number_of(json, path, "lam0", 1, 1e7, &arm->first));
    CLV_TRY(number_of(json, path, "lam1", 1, 1e7, &arm->last));
    arm->points = (size_t)points;
    if (clv_json_get(json, "sigma")) CLV_TRY(number_of(json, path, "sigma", 0, 1e4, &arm->sigma));
    if (clv_json_get(json, "nodes"))
        CLV_TRY(read_grid(folder, path, json, m, arm));
    else
        CLV_TRY(read_network(folder, path, json, m, arm));
    const clv_json *ccf = clv_json_get(json, "ccf");
    CLV_TRY(number_of(ccf, path, "npoints", 64, 1 << 24, &ccf_points));
    CLV_TRY(number_of(ccf, path, "logl0", 0, 20, &arm->ccf_log0));
    CLV_TRY(number_of(ccf, path, "logl1", 0, 20, &arm->ccf_log1));
    CLV_TRY(number_of(ccf, path, "splinestep", 1, 1e6, &arm->ccf_spline_kms));
    arm->ccf_points = (size_t)ccf_points;
    clv_file_array *models = &m->arrays[m->count];
    CLV_TRY(read_array(folder, m->name, "ccf_models", CLV_F32, templates, arm->ccf_points, models));
    ++m->count;
    arm->ccf = models->data;
    return CLV_OK;
}

static clv_status read_all(const char *folder, const char *path, const clv_json *root,
                           clv_speclib *lib)
{
    const clv_json *arms = clv_json_get(root, "arms");
    const size_t count = clv_json_count(arms);
    if (!clv_json_is_object(arms) || !count || count > MAX_ARMS)
        return clv_fail(CLV_E_FORMAT, "%s: \"arms\" must be an object with 1 to %d arms", path,
                        MAX_ARMS);
    const char *activation = clv_json_string(clv_json_get(root, "activation"), "SiLU");
    if (strcmp(activation, "SiLU") != 0)
        return clv_fail(CLV_E_FORMAT, "%s: the activation is \"%s\"; expected SiLU", path,
                        activation);
    clv_speclib_memory *m = lib->memory = clv_zalloc(1, sizeof *m);
    if (m) m->arms = clv_zalloc(count, sizeof *m->arms), m->of = clv_zalloc(count, sizeof *m->of);
    if (!m || !m->arms || !m->of) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    m->count = count;
    CLV_TRY(read_array(folder, "", "ccf_params", CLV_F64, 0, 4, &m->parameters));
    const size_t templates = m->parameters.shape[0];
    if (!templates || templates > 1 << 16)
        return clv_fail(CLV_E_FORMAT, "%s: there are %zu start templates; expected 1 to 65536",
                        folder, templates);
    const char *name = NULL;
    for (size_t i = 0; i < count; ++i) {
        name = clv_json_next_key(arms, name);
        if (!name || !is_plain(name))
            return clv_fail(CLV_E_FORMAT,
                            "%s: the name of an arm may have only letters, digits, _ and -", path);
        clv_copy_string(m->of[i].name, MAX_NAME, name);
        CLV_TRY(
            read_arm(folder, path, clv_json_get(arms, name), templates, &m->of[i], &m->arms[i]));
    }
    lib->library = (clv_spectra_library){ .size = sizeof(clv_spectra_library),
                                          .arm_count = count,
                                          .arms = m->arms,
                                          .ccf_count = templates,
                                          .ccf_parameters = m->parameters.data };
    return CLV_OK;
}

clv_status clv_speclib_read(const char *folder, clv_speclib *out)
{
    clv_text path = { 0 };
    char *text = NULL;
    size_t length = 0;
    clv_json *root = NULL;
    *out = (clv_speclib){ 0 };
    clv_text_add(&path, "%s/lib.json", folder);
    clv_status status = path.failed ? clv_fail(CLV_E_MEMORY, "%s: out of memory", folder) : CLV_OK;
    if (!status && access(path.data, F_OK))
        status = clv_fail(
            CLV_E_IO,
            "%s: not a library of templates: cannot find %s (%s). A library is a folder that "
            "`cleave templates`, packaging/rvspecfit_library.py or `cleave demo` has made",
            folder, path.data, strerror(errno));
    if (!status) status = clv_file_read_plain(path.data, MAX_JSON, &text, &length);
    if (!status) status = clv_json_parse(path.data, text, length, &root);
    if (!status) status = read_all(folder, path.data, root, out);
    if (status) clv_speclib_clear(out);
    clv_json_free(root);
    clv_free(text);
    clv_text_clear(&path);
    return status;
}
