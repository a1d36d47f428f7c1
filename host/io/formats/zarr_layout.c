/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the metadata of a Zarr array: .zarray of version 2, zarr.json of version 3. */
#include "host/io/formats/zarr_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "host/io/formats/movie_parts.h"
#include "host/io/formats/npy_header.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_JSON = 64 << 20, MOST_CHUNK = 1 << 30 };

char *clv_zarr_path(const char *folder, const char *name)
{
    const size_t bytes = strlen(folder) + strlen(name) + 2;
    char *path = clv_alloc(bytes, 1);
    if (path) snprintf(path, bytes, "%s/%s", folder, name);
    return path;
}

static bool is_there(const char *folder, const char *name)
{
    struct stat info;
    char *path = clv_zarr_path(folder, name);
    const bool there = path && stat(path, &info) == 0 && S_ISREG(info.st_mode);
    clv_free(path);
    return there;
}

bool clv_zarr_is(const char *path)
{
    return is_there(path, "zarr.json") || is_there(path, ".zgroup") || is_there(path, ".zarray") ||
           is_there(path, ".zattrs");
}

bool clv_zarr_is_old(const char *path)
{
    return is_there(path, ".zarray");
}

clv_status clv_zarr_json(const char *folder, const char *name, clv_json **root)
{
    *root = NULL;
    if (!is_there(folder, name)) return CLV_OK;
    char *path = clv_zarr_path(folder, name), *text = NULL;
    size_t length = 0;
    if (!path) return clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    clv_status status = clv_file_read_plain(path, MOST_JSON, &text, &length);
    if (!status) status = clv_json_parse(path, text, length, root);
    clv_free(text);
    clv_free(path);
    return status;
}

static const struct {
    const char *code, *name; /* code: in version 2, after the byte order; name: in version 3 */
    clv_type stored;
    clv_narrow narrow;
} types[] = {
    { "u1", "uint8", CLV_U8, CLV_NARROW_NOT },     { "b1", "bool", CLV_U8, CLV_NARROW_NOT },
    { "i1", "int8", CLV_I16, CLV_NARROW_INT8 },    { "u2", "uint16", CLV_U16, CLV_NARROW_NOT },
    { "i2", "int16", CLV_I16, CLV_NARROW_NOT },    { "u4", "uint32", CLV_U32, CLV_NARROW_NOT },
    { "i4", "int32", CLV_I32, CLV_NARROW_NOT },    { "i8", "int64", CLV_I64, CLV_NARROW_NOT },
    { "f2", "float16", CLV_F32, CLV_NARROW_HALF }, { "f4", "float32", CLV_F32, CLV_NARROW_NOT },
    { "f8", "float64", CLV_F64, CLV_NARROW_NOT },
};

static clv_status find_type(clv_zarr *z, const char *text)
{
    const char order = *text;
    const bool old = order == '<' || order == '>' || order == '|';
    for (size_t i = 0; i < CLV_LEN(types); ++i)
        if (strcmp(old ? text + 1 : text, old ? types[i].code : types[i].name) == 0) {
            z->layout.stored = types[i].stored, z->layout.narrow = types[i].narrow;
            z->element = clv_movie_stored_size(types[i].stored, types[i].narrow);
            z->swap = old && z->element > 1 && order == CLV_NPY_FOREIGN;
            return CLV_OK;
        }
    return clv_fail(CLV_E_FORMAT,
                    "%s: its pixels are of the type \"%.40s\"; expected integers of 8 to 64 bits "
                    "or floats of 16 to 64",
                    z->path, text);
}

/* Reads a JSON list of `rank` positive sizes, one for each axis. */
static clv_status read_sizes(const clv_zarr *z, const char *what, const clv_json *list, size_t rank,
                             size_t *sizes)
{
    if (!clv_json_is_array(list) || clv_json_count(list) != rank)
        return clv_fail(CLV_E_FORMAT, "%s: %s has %zu numbers, expected %zu", z->path, what,
                        clv_json_count(list), rank);
    for (size_t i = 0; i < rank; ++i) {
        const int64_t size = clv_json_int(clv_json_at(list, i), -1);
        if (size < 1 || size > INT32_MAX)
            return clv_fail(CLV_E_FORMAT, "%s: %s has a size of %lld, expected 1 to %d", z->path,
                            what, (long long)size, INT32_MAX);
        sizes[i] = (size_t)size;
    }
    return CLV_OK;
}

static clv_status read_shape(clv_zarr *z, const clv_json *shape)
{
    z->layout.rank = clv_json_count(shape);
    if (!clv_json_is_array(shape) || z->layout.rank < 2 || z->layout.rank > CLV_ZARR_RANK)
        return clv_fail(CLV_E_FORMAT, "%s: the array has %zu axes; expected 2 to %d", z->path,
                        z->layout.rank, CLV_ZARR_RANK);
    return read_sizes(z, "its shape", shape, z->layout.rank, z->layout.shape);
}

/* Computes the number of elements in a chunk, and their stride along each axis. */
static clv_status measure_chunk(clv_zarr *z, bool first_axis_fastest)
{
    clv_zarr_layout *l = &z->layout;
    size_t elements = 1, bytes = 0;
    for (size_t i = 0; i < l->rank; ++i) {
        const size_t axis = first_axis_fastest ? i : l->rank - 1 - i;
        l->stride[axis] = elements;
        if (!clv_size_mul(elements, l->chunk[axis], &elements)) elements = SIZE_MAX;
    }
    if (!clv_size_mul(elements, z->element, &bytes) || bytes > MOST_CHUNK)
        return clv_fail(CLV_E_FORMAT, "%s: its chunks have more than %d bytes", z->path,
                        MOST_CHUNK);
    l->chunk_elements = elements;
    return CLV_OK;
}

/* Reads the fill value of missing chunks, and stores it in the array's stored type. */
static clv_status read_fill(clv_zarr *z, const clv_json *value)
{
    const char *text = clv_json_string(value, NULL);
    double number =
        clv_json_is_bool(value) ? clv_json_bool(value, false) : clv_json_number(value, 0);
    if (text && strcmp(text, "NaN") == 0) number = NAN;
    if (text && strcmp(text, "Infinity") == 0) number = INFINITY;
    if (text && strcmp(text, "-Infinity") == 0) number = -INFINITY;
    const bool real = z->layout.stored == CLV_F32 || z->layout.stored == CLV_F64;
    const bool fits = fabs(number) < 9e18; /* false for NaN, too */
    const int64_t whole = clv_json_is_int(value) ? clv_json_int(value, 0)
                          : !real && fits        ? (int64_t)number
                                                 : 0;
    const float single = (float)number;
    const uint64_t bits = (uint64_t)whole;
    if (z->layout.narrow == CLV_NARROW_HALF) {
        if (number != 0 && isfinite(number))
            return clv_fail(CLV_E_FORMAT, "%s: the fill value for float16 is %g; expected 0 or NaN",
                            z->path, number);
        const uint16_t half = isnan(number) ? 0x7E00
                              : number > 0  ? 0x7C00
                              : number < 0  ? 0xFC00
                                            : 0;
        memcpy(z->fill, &half, sizeof half);
    } else if (z->layout.stored == CLV_F32) {
        memcpy(z->fill, &single, sizeof single);
    } else if (z->layout.stored == CLV_F64) {
        memcpy(z->fill, &number, sizeof number);
    } else { /* the integer's low bytes, in this machine's byte order */
        for (size_t i = 0; i < z->element; ++i)
            z->fill[CLV_NPY_NATIVE == '<' ? i : z->element - 1 - i] =
                (unsigned char)(bits >> 8 * i);
    }
    return CLV_OK;
}

static clv_status find_codec(clv_zarr *z, const char *name)
{
    static const struct {
        const char *name;
        clv_unpacker *unpack;
    } known[] = { { "blosc", clv_unpack_blosc },
                  { "zstd", clv_unpack_zstd },
                  { "gzip", clv_unpack_zlib },
                  { "zlib", clv_unpack_zlib } };
    for (size_t i = 0; i < CLV_LEN(known); ++i)
        if (strcmp(known[i].name, name) == 0) {
            if (z->unpack)
                return clv_fail(CLV_E_FORMAT,
                                "%s: its chunks are compressed twice, which is not supported",
                                z->path);
            z->unpack = known[i].unpack;
            return CLV_OK;
        }
    return clv_fail(CLV_E_FORMAT,
                    "%s: its chunks are compressed with \"%.40s\"; expected blosc, zstd, gzip or "
                    "zlib; save the array with one of these",
                    z->path, name);
}

/* ---- version 2 --------------------------------------------------------------------------------- */

static clv_status read_old(clv_zarr *z, const clv_json *root)
{
    const clv_json *filters = clv_json_get(root, "filters"),
                   *packed = clv_json_get(root, "compressor");
    const char *order = clv_json_string(clv_json_get(root, "order"), "C");
    const char *between = clv_json_string(clv_json_get(root, "dimension_separator"), ".");
    CLV_TRY(read_shape(z, clv_json_get(root, "shape")));
    CLV_TRY(find_type(z, clv_json_string(clv_json_get(root, "dtype"), "(none)")));
    CLV_TRY(read_sizes(z, "its list of chunks", clv_json_get(root, "chunks"), z->layout.rank,
                       z->layout.chunk));
    CLV_TRY(measure_chunk(z, *order == 'F'));
    if (clv_json_count(filters))
        return clv_fail(CLV_E_FORMAT,
                        "%s: its chunks are filtered with \"%.40s\"; expected no filters; save "
                        "the array without them",
                        z->path, clv_json_string(clv_json_get(clv_json_at(filters, 0), "id"), "?"));
    if (clv_json_is_object(packed))
        CLV_TRY(find_codec(z, clv_json_string(clv_json_get(packed, "id"), "?")));
    z->separator[0] = *between == '/' ? '/' : '.';
    return read_fill(z, clv_json_get(root, "fill_value"));
}

/* ---- version 3 --------------------------------------------------------------------------------- */

static clv_status read_codecs(clv_zarr *z, const clv_json *codecs, bool sharded);

static clv_status read_shards(clv_zarr *z, const clv_json *how)
{
    size_t shard[CLV_ZARR_RANK];
    memcpy(shard, z->layout.chunk, sizeof shard);
    CLV_TRY(read_sizes(z, "its list of chunks in shards", clv_json_get(how, "chunk_shape"),
                       z->layout.rank, z->layout.chunk));
    z->per_shard = 1;
    for (size_t i = 0; i < z->layout.rank; ++i) {
        z->shard[i] = shard[i] / z->layout.chunk[i];
        if (!z->shard[i] || shard[i] % z->layout.chunk[i] ||
            !clv_size_mul(z->per_shard, z->shard[i], &z->per_shard) || z->per_shard > MOST_JSON)
            return clv_fail(
                CLV_E_FORMAT,
                "%s: shards of %zu elements along axis %zu cannot be divided into chunks of %zu",
                z->path, shard[i], i, z->layout.chunk[i]);
    }
    z->index_first =
        strcmp(clv_json_string(clv_json_get(how, "index_location"), "end"), "start") == 0;
    const clv_json *sums = clv_json_get(how, "index_codecs");
    for (size_t i = 0; i < clv_json_count(sums); ++i) {
        const char *name = clv_json_string(clv_json_get(clv_json_at(sums, i), "name"), "?");
        const clv_json *setting = clv_json_get(clv_json_at(sums, i), "configuration");
        const bool big =
            strcmp(clv_json_string(clv_json_get(setting, "endian"), "little"), "big") == 0;
        if (strcmp(name, "crc32c") == 0)
            z->index_sum = true;
        else if (strcmp(name, "bytes") != 0 || big)
            return clv_fail(
                CLV_E_FORMAT,
                "%s: the index of its shards is encoded with \"%.40s\"%s, which is not supported",
                z->path, name, big ? ", big-endian" : "");
    }
    return read_codecs(z, clv_json_get(how, "codecs"), true);
}

static clv_status read_codecs(clv_zarr *z, const clv_json *codecs, bool sharded)
{
    for (size_t i = 0; i < clv_json_count(codecs); ++i) {
        const char *name = clv_json_string(clv_json_get(clv_json_at(codecs, i), "name"), "?");
        const clv_json *how = clv_json_get(clv_json_at(codecs, i), "configuration");
        if (strcmp(name, "bytes") == 0) {
            const bool big =
                strcmp(clv_json_string(clv_json_get(how, "endian"), "little"), "big") == 0;
            z->swap = z->element > 1 && big == (CLV_NPY_NATIVE == '<');
        } else if (strcmp(name, "crc32c") == 0) {
            *(z->unpack ? &z->sum_behind : &z->sum_before) = true;
        } else if (strcmp(name, "sharding_indexed") == 0 && !sharded &&
                   clv_json_count(codecs) == 1) {
            CLV_TRY(read_shards(z, how));
        } else {
            CLV_TRY(find_codec(z, name));
        }
    }
    return CLV_OK;
}

static clv_status read_new(clv_zarr *z, const clv_json *root)
{
    const clv_json *grid = clv_json_get(root, "chunk_grid"),
                   *key = clv_json_get(root, "chunk_key_encoding");
    const char *kind = clv_json_string(clv_json_get(root, "node_type"), "?");
    if (strcmp(kind, "array") != 0)
        return clv_fail(CLV_E_FORMAT, "%s is a Zarr %.20s, expected an array", z->path, kind);
    CLV_TRY(read_shape(z, clv_json_get(root, "shape")));
    CLV_TRY(find_type(z, clv_json_string(clv_json_get(root, "data_type"), "(none)")));
    CLV_TRY(read_sizes(z, "its list of chunks",
                       clv_json_get(clv_json_get(grid, "configuration"), "chunk_shape"),
                       z->layout.rank, z->layout.chunk));
    z->prefixed = strcmp(clv_json_string(clv_json_get(key, "name"), "default"), "default") == 0;
    const char *between = clv_json_string(
        clv_json_get(clv_json_get(key, "configuration"), "separator"), z->prefixed ? "/" : ".");
    z->separator[0] = *between == '/' ? '/' : '.';
    CLV_TRY(read_codecs(z, clv_json_get(root, "codecs"), false));
    CLV_TRY(measure_chunk(z, false));
    return read_fill(z, clv_json_get(root, "fill_value"));
}

clv_status clv_zarr_open(const char *path, clv_zarr **out)
{
    clv_json *root = NULL;
    clv_zarr *z = clv_zalloc(1, sizeof *z);
    *out = NULL;
    if (z) z->path = clv_strdup(path);
    if (!z || !z->path) {
        clv_zarr_close(z);
        return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    }
    for (size_t i = 0; i < CLV_ZARR_RANK; ++i)
        z->shard[i] = 1;
    for (uint32_t byte = 0; byte < CLV_LEN(z->crc_of); ++byte) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
        z->crc_of[byte] = crc;
    }
    clv_status status = clv_zarr_json(path, "zarr.json", &root);
    if (!status && root) {
        status = read_new(z, root);
    } else if (!status) {
        status = clv_zarr_json(path, ".zarray", &root);
        if (!status && root)
            status = read_old(z, root);
        else if (!status)
            status =
                clv_fail(CLV_E_FORMAT,
                         "%s: the folder has no Zarr array (neither zarr.json nor .zarray)", path);
    }
    clv_json_free(root);
    if (status) {
        clv_zarr_close(z);
        return status;
    }
    *out = z;
    return CLV_OK;
}
