/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/formats/zarr_layout.c and zarr.c: arrays of versions 2 and 3 in every order, with checksums and shards;
 * movie_zarr.c: the axes of movies; what is not supported, and chunks that are damaged. */
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/formats/zarr.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char old[] = "{\"zarr_format\":2,\"shape\":[4,6],\"chunks\":[2,3],\"dtype\":\"<i2\","
                          "\"compressor\":null,\"filters\":null,\"order\":\"C\",\"fill_value\":-5}";
#define NEW(CODECS)                                                                       \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4,6],\"data_type\":\"int16\"," \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2,3]}},"    \
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":-5,\"codecs\":[" CODECS "]}"
#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define SUM "{\"name\":\"crc32c\"}"
#define SHARD(PLACE, INDEX)                                                                      \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1,3],\"codecs\":[" BYTES \
    "]" PLACE ",\"index_codecs\":[" INDEX "]}}"

/* The chunk (1, 0) of both versions: the numbers 1 to 6. */
static const unsigned char little[12] = { 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0 },
                           big[12] = { 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6 };

/* Makes an empty folder of its own for each array, and returns its path. */
static const char *make_folder(void)
{
    static unsigned count;
    static char path[1024];
    snprintf(path, sizeof path, "%s/array-%u", test_temp_dir(), count++);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

static void put(const char *folder, const char *name, const void *data, size_t length)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* Opens an array whose description is `text` with the first `from` replaced by `to`. */
static clv_status open_changed(const char *text, const char *from, const char *to,
                               const char *folder, clv_zarr **z)
{
    char changed[2000];
    const char *at = strstr(text, from);
    assert_non_null(at);
    const int length = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to,
                                at + strlen(from));
    assert_true(length > 0 && (size_t)length < sizeof changed);
    put(folder, strstr(text, "node_type") ? "zarr.json" : ".zarray", changed, (size_t)length);
    return clv_zarr_open(folder, z);
}

/* The CRC-32C of bytes, bit by bit, as four bytes. */
static void add_sum(unsigned char *bytes, size_t length)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < 8 * length; ++i) {
        crc ^= (uint32_t)(bytes[i / 8] >> i % 8 & 1);
        crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
    }
    for (size_t i = 0; i < 4; ++i)
        bytes[length + i] = (unsigned char)(~crc >> 8 * i);
}

static void expect_numbers(clv_zarr *z, size_t row, const int16_t *want, size_t count)
{
    int16_t got[6];
    assert_int_equal(clv_zarr_look(z)->chunk_elements, count);
    EXPECT_OK(clv_zarr_read(z, (const size_t[]){ row, 0 }, got));
    assert_memory_equal(got, want, count * sizeof *got);
}

static void chunks_are_found_and_decoded(void **state)
{
    (void)state;
    static const int16_t numbers[] = { 1, 2, 3, 4, 5, 6 }, none[] = { -5, -5, -5, -5, -5, -5 };
    static const struct {
        const char *text, *from, *to, *folder, *chunk;
        bool is_big, sum;
    } cases[] = {
        { old, "", "", NULL, "1.0", false, false },
        { old, "<i2", ">i2", NULL, "1.0", true, false },
        { old, "<i2", "int16", NULL, "1.0", false, false },
        { old, "\"order\"", "\"dimension_separator\":\"/\",\"order\"", "1", "1/0", false, false },
        { NEW(BYTES), "", "", "c", "c/1/0", false, false },
        { NEW(BIG), "", "", "c", "c/1/0", true, false },
        { NEW(BYTES "," SUM), "", "", "c", "c/1/0", false, true },
        { NEW(BYTES), "\"default\"", "\"v2\"", NULL, "1.0", false, false },
        { NEW(BYTES), "\"default\"", "\"default\",\"configuration\":{\"separator\":\".\"}", NULL,
          "c.1.0", false, false },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_zarr *z;
        unsigned char bytes[16];
        char path[1200];
        const char *folder = make_folder();
        snprintf(path, sizeof path, "%s/%s", folder, cases[i].folder ? cases[i].folder : ".");
        if (cases[i].folder) assert_int_equal(mkdir(path, 0700), 0);
        strcat(path, "/1");
        if (strncmp(cases[i].chunk, "c/", 2) == 0) assert_int_equal(mkdir(path, 0700), 0);
        memcpy(bytes, cases[i].is_big ? big : little, sizeof little);
        if (cases[i].sum) add_sum(bytes, sizeof little);
        put(folder, cases[i].chunk, bytes, cases[i].sum ? 16 : 12);
        EXPECT_OK(open_changed(cases[i].text, cases[i].from, cases[i].to, folder, &z));
        expect_numbers(z, 1, numbers, 6);
        expect_numbers(z, 0, none, 6);
        clv_zarr_close(z);
    }
}

/* The shard (1, 0) holds the chunks (2, 0) and (3, 0); the index lists the second one only. */
static void chunks_are_found_in_shards(void **state)
{
    (void)state;
    static const int16_t second[] = { 4, 5, 6 }, none[] = { -5, -5, -5 };
    for (int variant = 0; variant < 4; ++variant) {
        const bool first = variant & 1, sum = variant & 2;
        const char *text = variant == 0   ? NEW(SHARD("", BYTES))
                           : variant == 1 ? NEW(SHARD(",\"index_location\":\"start\"", BYTES))
                           : variant == 2
                               ? NEW(SHARD("", BYTES "," SUM))
                               : NEW(SHARD(",\"index_location\":\"start\"", BYTES "," SUM));
        unsigned char index[36], shard[42];
        const size_t length = sum ? 36 : 32;
        memset(index, 0xFF, 16), memset(index + 16, 0, 16);
        index[16] = (unsigned char)(first ? length : 0), index[24] = 6;
        add_sum(index, 32);
        memcpy(shard + (first ? 0 : 6), index, length);
        memcpy(shard + (first ? length : 0), little + 6, 6);
        clv_zarr *z;
        char path[1200];
        const char *folder = make_folder();
        snprintf(path, sizeof path, "%s/c", folder);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof path, "%s/c/1", folder);
        assert_int_equal(mkdir(path, 0700), 0);
        put(folder, "c/1/0", shard, length + 6);
        EXPECT_OK(open_changed(text, "", "", folder, &z));
        expect_numbers(z, 3, second, 3);
        expect_numbers(z, 2, none, 3);
        expect_numbers(z, 0, none, 3); /* no such shard */
        clv_zarr_close(z);

        int16_t got[6];
        shard[first ? 16 : 22] = 100; /* the chunk's offset */
        put(folder, "c/1/0", shard, length + 6);
        EXPECT_OK(clv_zarr_open(folder, &z));
        EXPECT_FAIL(CLV_E_FORMAT,
                    sum ? "do not match their checksum" : "6 bytes at byte 100, outside",
                    clv_zarr_read(z, (const size_t[]){ 3, 0 }, got));
        clv_zarr_close(z);
        put(folder, "c/1/0", shard, 20);
        EXPECT_OK(clv_zarr_open(folder, &z));
        EXPECT_FAIL(CLV_E_FORMAT, "has 20 bytes, too few for its index",
                    clv_zarr_read(z, (const size_t[]){ 3, 0 }, got));
        clv_zarr_close(z);
    }
}

static void damaged_chunks_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t length;
        const char *part;
    } cases[] = {
        { NEW(BYTES), 11, "the data have 11 bytes, expected 12" },
        { NEW(BYTES "," SUM), 3, "the data have 3 bytes, too few for a checksum" },
        { NEW(BYTES "," SUM), 12, "do not match their checksum (CRC-32C)" },
        { NEW(BYTES ",{\"name\":\"gzip\"}"), 12, "1/0" },
        { NEW(BYTES ",{\"name\":\"gzip\"}," SUM), 12, "do not match their checksum (CRC-32C)" },
        { NEW(BYTES "," SUM ",{\"name\":\"gzip\"}"), 12, "1/0" },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_zarr *z;
        char path[1200];
        int16_t got[6];
        const char *folder = make_folder();
        snprintf(path, sizeof path, "%s/c", folder);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof path, "%s/c/1", folder);
        assert_int_equal(mkdir(path, 0700), 0);
        put(folder, "c/1/0", little, cases[i].length);
        EXPECT_OK(open_changed(cases[i].text, "", "", folder, &z));
        EXPECT_FAIL(CLV_E_FORMAT, cases[i].part, clv_zarr_read(z, (const size_t[]){ 1, 0 }, got));
        clv_zarr_close(z);
    }
}

static void fill_values_have_the_type_of_the_array(void **state)
{
    (void)state;
    static const struct {
        const char *type, *fill;
        double want;
    } cases[] = {
        { "<f4", "\"NaN\"", NAN },
        { "<f4", "\"Infinity\"", INFINITY },
        { "<f8", "\"-Infinity\"", -INFINITY },
        { "<f8", "0.25", 0.25 },
        { ">f4", "1e10", 1e10f },
        { "|b1", "true", 1 },
        { "|u1", "200", 200 },
        { "<u2", "65535", 65535 },
        { "<i4", "-7", -7 },
        { "<i8", "-7.0", -7 },
        { "<i4", "\"NaN\"", 0 },
        { "<f2", "\"NaN\"", 0x7E00 },
        { "<f2", "\"Infinity\"", 0x7C00 },
        { "<f2", "\"-Infinity\"", 0xFC00 },
        { "<f2", "0", 0 },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_zarr *z;
        char changed[600];
        union {
            float f4[6];
            double f8[6];
            uint8_t u1[6];
            uint16_t u2[6];
            int32_t i4[6];
            int64_t i8[6];
        } out;
        snprintf(changed, sizeof changed, "%s\",\"order\":\"F\",\"fill_value\":%s}", cases[i].type,
                 cases[i].fill);
        EXPECT_OK(open_changed(old, strstr(old, "<i2"), changed, make_folder(), &z));
        EXPECT_OK(clv_zarr_read(z, (const size_t[]){ 1, 1 }, &out));
        const char size = cases[i].type[2];
        const double got = cases[i].type[1] == 'f' && size == '4'   ? (double)out.f4[5]
                           : cases[i].type[1] == 'f' && size == '8' ? out.f8[5]
                           : size == '1'                            ? out.u1[5]
                           : size == '2'                            ? out.u2[5]
                           : size == '4'                            ? out.i4[5]
                                                                    : (double)out.i8[5];
        if (!(got == cases[i].want || (isnan(got) && isnan(cases[i].want))))
            fail_msg("%s, fill value %s: %g", cases[i].type, cases[i].fill, got);
        clv_zarr_close(z);
    }
}

static void what_is_not_supported_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *from, *to, *part;
    } cases[] = {
        { old, "<i2", "<c8", "of the type \"<c8\"; expected integers of 8 to 64 bits or floats" },
        { old, "\"dtype\"", "\"type\"", "of the type \"(none)\"; expected integers" },
        { old, "[4,6]", "[4]", "the array has 1 axes; expected 2 to 5" },
        { old, "[4,6]", "[1,1,1,1,4,6]", "the array has 6 axes; expected 2 to 5" },
        { old, "[4,6]", "4", "axes; expected 2 to 5" },
        { old, "[4,6]", "[4,-6]", "its shape has a size of -6, expected 1 to 2147483647" },
        { old, "[2,3]", "[2,3,4]", "its list of chunks has 3 numbers, expected 2" },
        { old, "[2,3]", "[0,3]", "its list of chunks has a size of 0, expected 1 to 2147483647" },
        { old, "[2,3]", "[2000000000,2000000000]", "its chunks have more than" },
        { old, "\"filters\":null", "\"filters\":[{\"id\":\"delta\"}]", "filtered with \"delta\"" },
        { old, "\"compressor\":null", "\"compressor\":{\"id\":\"lzma\"}",
          "compressed with \"lzma\"; expected blosc, zstd, gzip or zlib" },
        { NEW(BYTES), "\"array\"", "\"group\"", "is a Zarr group, expected an array" },
        { NEW(BYTES), "[2,3]", "[2]", "its list of chunks has 1 numbers, expected 2" },
        { NEW(BYTES ",{\"name\":\"gzip\"},{\"name\":\"zstd\"}"), "", "", "compressed twice" },
        { NEW("{\"name\":\"transpose\"}"), "", "", "compressed with \"transpose\"; expected" },
        { NEW(SHARD("", BYTES)), "[1,3]", "[3,3]",
          "shards of 2 elements along axis 0 cannot be divided into chunks of 3" },
        { NEW(SHARD("", BYTES)), "[1,3]", "[1,2]",
          "shards of 3 elements along axis 1 cannot be divided into chunks of 2" },
        { NEW(SHARD("", BYTES)), "[1,3]", "[1]", "its list of chunks in shards has 1 numbers" },
        { NEW(SHARD("", BIG)), "", "", "encoded with \"bytes\", big-endian, which is not" },
        { NEW(SHARD("", "{\"name\":\"gzip\"}")), "", "", "encoded with \"gzip\", which is not" },
    };
    clv_zarr *z;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        EXPECT_FAIL(CLV_E_FORMAT, cases[i].part,
                    open_changed(cases[i].text, cases[i].from, cases[i].to, make_folder(), &z));
        assert_null(z);
    }
    EXPECT_FAIL(
        CLV_E_FORMAT, "the fill value for float16 is 1.5; expected 0 or NaN",
        open_changed(old, strstr(old, "<i2"), "<f2\",\"fill_value\":1.5}", make_folder(), &z));
    EXPECT_FAIL(CLV_E_FORMAT, "has no Zarr array (neither zarr.json nor .zarray)",
                clv_zarr_open(make_folder(), &z));
    assert_false(clv_zarr_is(make_folder()));
}

/* ---- movies -------------------------------------------------------------------------------------- */

#define IMAGE(AXES, PATH) \
    "{\"multiscales\":[{\"axes\":" AXES ",\"datasets\":[{\"path\":\"" PATH "\"}]}]}"

/* A group with the attributes, and in its folder "0" an array [4,2,3]. */
static const char *make_group(const char *attributes)
{
    static const char array[] =
        "{\"zarr_format\":2,\"shape\":[4,2,3],\"chunks\":[1,2,3],\"dtype\":\"|u1\","
        "\"compressor\":null,\"filters\":null,\"order\":\"C\",\"fill_value\":7}";
    static const char group[] = "{\"zarr_format\":2}";
    char path[1200];
    const char *folder = make_folder();
    snprintf(path, sizeof path, "%s/0", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    put(folder, "0/.zarray", array, strlen(array));
    put(folder, ".zgroup", group, strlen(group));
    put(folder, ".zattrs", attributes, strlen(attributes));
    return folder;
}

static void movies_with_odd_axes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *attributes, *part;
    } cases[] = {
        { IMAGE("[\"y\",\"x\"]", "0"), "the metadata name 2 axes, but the array has 3" },
        { IMAGE("[\"t\",\"y\",\"q\"]", "0"), "there is an axis \"q\"; expected t, c, z, y and x" },
        { IMAGE("[\"t\",\"y\",\"y\"]", "0"), "there is an axis \"y\"; expected t, c, z, y and x" },
        { IMAGE("[\"t\",\"y\",{}]", "0"), "there is an axis \"\"; expected t, c, z, y and x" },
        { IMAGE("[\"t\",\"c\",\"x\"]", "0"), "the array lacks the axes y and x" },
        { IMAGE("[\"c\",\"y\",\"x\"]", "0"), "has 4 channels; choose one" },
        { IMAGE("[\"t\",\"y\",\"x\"]", "../0"), "has no path inside this folder" },
        { IMAGE("[\"t\",\"y\",\"x\"]", "1"), "has no Zarr array" },
        { "{\"multiscales\":[]}", "has no path inside this folder" },
        { "{\"plate\":{}}", "is a plate of wells; give the folder of one field" },
        { "{}", "is a Zarr group without an OME image" },
    };
    const clv_movie_options options = { .channel = 0 };
    clv_movie *movie;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        EXPECT_FAIL(CLV_E_FORMAT, cases[i].part,
                    clv_movie_open(make_group(cases[i].attributes), &options, &movie));
        assert_null(movie);
    }
}

/* A bare array [2,3,4] whose axes are called `names`, a list in JSON: of Zarr 3, or of Zarr 2 as xarray writes them. */
static const char *make_named(const char *names, bool v3)
{
    static const char head[] =
        "\"shape\":[2,3,4],\"fill_value\":7,\"chunk_grid\":{\"name\":\"regular\",\"configuration\":"
        "{"
        "\"chunk_shape\":[2,3,4]}},\"chunk_key_encoding\":{\"name\":\"default\"},\"codecs\":[" BYTES
        "]";
    static const char array[] = "{\"zarr_format\":2,\"shape\":[2,3,4],\"chunks\":[2,3,4],\"dtype\":"
                                "\"|u1\",\"compressor\":null,"
                                "\"filters\":null,\"order\":\"C\",\"fill_value\":7}";
    char text[1000];
    const char *folder = make_folder();
    if (v3) {
        snprintf(text, sizeof text,
                 "{\"zarr_format\":3,\"node_type\":\"array\",\"data_type\":\"uint8\",%s,"
                 "\"dimension_names\":%s}",
                 head, names);
        put(folder, "zarr.json", text, strlen(text));
        return folder;
    }
    put(folder, ".zarray", array, strlen(array));
    snprintf(text, sizeof text, "{\"_ARRAY_DIMENSIONS\":%s}", names);
    put(folder, ".zattrs", text, strlen(text));
    return folder;
}

static void names_of_axes_are_used(void **state)
{
    (void)state;
    static const struct {
        const char *names;
        clv_movie_axes axes;
        size_t frames, depth, height, width;
        const char *part;
    } cases[] = {
        { "[\"y\",\"x\",\"t\"]", CLV_MOVIE_AS_TOLD, 4, 1, 2, 3, NULL },
        { "[\"Time\",\"X\",\"Y\"]", CLV_MOVIE_AS_TOLD, 2, 1, 4, 3, NULL },
        { "[\"z\",\"y\",\"x\"]", CLV_MOVIE_AS_TOLD, 2, 2, 3, 4, NULL },
        { "[\"z\",\"y\",\"x\"]", CLV_MOVIE_TYX, 2, 1, 3, 4, NULL },
        { "[\"y\",\"x\",\"t\"]", CLV_MOVIE_ZYX, 4, 4, 2, 3, NULL },
        { "[null,\"x\",\"y\"]", CLV_MOVIE_AS_TOLD, 2, 1, 3, 4, "by position, as t, y, x" },
        { "[\"x\",\"y\",\"lag\"]", CLV_MOVIE_AS_TOLD, 2, 1, 3, 4, "by position, as t, y, x" },
        { "[null,null,null]", CLV_MOVIE_AS_TOLD, 2, 1, 3, 4, NULL },
    };
    clv_movie *movie;
    for (size_t i = 0; i < 2 * CLV_LEN(cases); ++i) {
        const size_t k = i / 2;
        const clv_movie_options options = { .stacks = true, .axes = cases[k].axes };
        EXPECT_OK(clv_movie_open(make_named(cases[k].names, i % 2), &options, &movie));
        const clv_movie_facts *f = clv_movie_look(movie);
        if (f->frames != cases[k].frames || f->depth != cases[k].depth ||
            f->height != cases[k].height || f->width != cases[k].width)
            fail_msg("%s: frames %zu, depth %zu, %zu x %zu", cases[k].names, f->frames, f->depth,
                     f->height, f->width);
        assert_true((strstr(f->notices, "by position") != NULL) == (cases[k].part != NULL));
        if (cases[k].part) assert_non_null(strstr(f->notices, cases[k].part));
        clv_movie_close(movie);
    }
    static const char *const refused[][2] = {
        { "[\"t\",\"y\",\"Y\"]",
          "there is an axis \"Y\"; expected t, c, z, y and x, each at most once" },
        { "[\"t\",\"time\",\"x\"]", "there is an axis \"time\"" },
        { "[\"t\",\"z\",\"x\"]", "lacks the axes y and x" },
        { "[\"y\",\"x\"]", "the metadata name 2 axes, but the array has 3" },
        { "[\"channel\",\"y\",\"x\"]", "has 2 channels; choose one" },
    };
    for (size_t i = 0; i < 2 * CLV_LEN(refused); ++i)
        EXPECT_FAIL(CLV_E_FORMAT, refused[i / 2][1],
                    clv_movie_open(make_named(refused[i / 2][0], i % 2), NULL, &movie));
}

/* Attributes beside an array do not make it a group. */
static void arrays_with_attributes_tell_their_fault(void **state)
{
    (void)state;
    clv_zarr *z;
    clv_movie *movie;
    const char *folder = make_folder();
    put(folder, ".zattrs", "{}", 2);
    EXPECT_FAIL(
        CLV_E_FORMAT, "compressed with \"lz4\"; expected blosc, zstd, gzip or zlib",
        open_changed(old, "\"compressor\":null", "\"compressor\":{\"id\":\"lz4\"}", folder, &z));
    EXPECT_FAIL(CLV_E_FORMAT, "compressed with \"lz4\"; expected blosc, zstd, gzip or zlib",
                clv_movie_open(folder, NULL, &movie));
    EXPECT_FAIL(
        CLV_E_FORMAT, "filtered with \"delta\"; expected no filters",
        open_changed(old, "\"filters\":null", "\"filters\":[{\"id\":\"delta\"}]", folder, &z));
    EXPECT_FAIL(CLV_E_FORMAT, "filtered with \"delta\"; expected no filters",
                clv_movie_open(folder, NULL, &movie));
}

static void movies_have_scales_and_units(void **state)
{
    (void)state;
    static const char attributes[] =
        "{\"multiscales\":[{\"axes\":[{\"name\":\"t\",\"unit\":\"minute\"},{\"name\":\"y\"},"
        "{\"name\":\"x\",\"unit\":\"micrometer\"}],\"coordinateTransformations\":[{\"type\":"
        "\"scale\","
        "\"scale\":[2,1,10]}],\"datasets\":[{\"path\":\"0\",\"coordinateTransformations\":[{"
        "\"type\":"
        "\"translation\"},{\"type\":\"scale\",\"scale\":[1.5,0.25,0.5]},"
        "{\"type\":\"scale\",\"scale\":[1,3,1]}]}]},{}]}";
    const clv_movie_options options = { .channel = 0 };
    clv_movie *movie;
    EXPECT_OK(clv_movie_open(make_group(attributes), &options, &movie));
    const clv_movie_facts *f = clv_movie_look(movie);
    assert_true(f->frames == 4 && f->height == 2 && f->width == 3 && f->depth == 1);
    assert_true(f->pixel_size == 5 && f->row_spacing == 0.75 && f->interval == 3);
    assert_string_equal(f->pixel_unit, "um");
    assert_string_equal(f->time_unit, "min");
    assert_non_null(strstr(f->notices, "2 images are in this folder; the first is taken"));
    clv_movie_close(movie);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_found_and_decoded),
        cmocka_unit_test(chunks_are_found_in_shards),
        cmocka_unit_test(damaged_chunks_are_told),
        cmocka_unit_test(fill_values_have_the_type_of_the_array),
        cmocka_unit_test(what_is_not_supported_is_named),
        cmocka_unit_test(movies_with_odd_axes_are_refused),
        cmocka_unit_test(names_of_axes_are_used),
        cmocka_unit_test(arrays_with_attributes_tell_their_fault),
        cmocka_unit_test(movies_have_scales_and_units),
    };
    return cmocka_run_group_tests_name("zarr_layout", tests, NULL, NULL);
}
