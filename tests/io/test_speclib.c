/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/tables/speclib.c: libraries of templates, from networks and from grids, with each thing that may be wrong. */
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/formats/npy.h"
#include "host/io/tables/speclib.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARM(WHAT)                                                                 \
    "{\"arms\":{\"b\":{\"npix\":64,\"lam0\":4000,\"lam1\":5000,\"sigma\":2," WHAT \
    ",\"ccf\":{\"npoints\":70,\"logl0\":8,\"logl1\":9,\"splinestep\":1000}}}}"
static const char network[] = ARM("\"layers\":[4,3,64]"), grid[] = ARM("\"nodes\":[2,2,3,2]");

static const struct file {
    const char *name;
    clv_type type;
    size_t rank, shape[4];
} files[] = {
    { "ccf_params", CLV_F64, 2, { 5, 4 } },
    { "b/model_lin_0_weight", CLV_F32, 2, { 3, 4 } },
    { "b/model_lin_0_bias", CLV_F32, 1, { 3 } },
    { "b/pc_layer_weight", CLV_F32, 2, { 64, 3 } },
    { "b/pc_layer_bias", CLV_F32, 1, { 64 } },
    { "b/mean", CLV_F64, 1, { 4 } },
    { "b/std", CLV_F64, 1, { 4 } },
    { "b/hull_pts", CLV_F64, 2, { 6, 4 } },
    { "b/ccf_models", CLV_F32, 2, { 5, 70 } },
    { "b/axis_0", CLV_F64, 1, { 2 } },
    { "b/axis_1", CLV_F64, 1, { 2 } },
    { "b/axis_2", CLV_F64, 1, { 3 } },
    { "b/axis_3", CLV_F64, 1, { 2 } },
    { "b/grid", CLV_F64, 4, { 2, 2, 3, 2 } },
    { "b/log_flux", CLV_F32, 2, { 7, 64 } },
};
enum { GRID = 13 }; /* of `files` */

static const char *folder;
static clv_speclib library;

static const char *path_of(const char *name, const char *ending)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    return path;
}

/* Writes an array whose first element is `first`; element i is i / 10, in the grid the row i % 7. */
static void put_array(const struct file *f, double first)
{
    clv_file_array a;
    EXPECT_OK(clv_file_array_create(&a, f->name, f->type, f->rank, f->shape));
    for (size_t i = 0; i < clv_file_array_count(&a); ++i) {
        const double value = i == 0 ? first : f == &files[GRID] ? (double)(i % 7) : (double)i / 10;
        if (f->type == CLV_F32)
            ((float *)a.data)[i] = (float)value;
        else
            ((double *)a.data)[i] = value;
    }
    EXPECT_OK(clv_npy_write(path_of(f->name, ".npy"), &a));
    clv_file_array_clear(&a);
}

/* Writes lib.json with the first `from` replaced by `to`. */
static void put_json(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    FILE *file = fopen(path_of("lib", ".json"), "w");
    assert_non_null(file);
    assert_true(fprintf(file, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
    assert_int_equal(fclose(file), 0);
}

static int make_folder(void **state)
{
    static char path[1024];
    (void)state;
    snprintf(path, sizeof path, "%s", io_temp("lib"));
    folder = path;
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mkdir(path_of("b", ""), 0700), 0);
    for (size_t i = 0; i < CLV_LEN(files); ++i)
        put_array(&files[i], 0);
    return 0;
}

static clv_status read_it(void)
{
    return clv_speclib_read(folder, &library);
}

static int is_empty(void)
{
    return !library.memory && !library.library.arms;
}

static void expect_refusal(clv_status status, const char *part)
{
    EXPECT_FAIL(status, part, read_it());
    EXPECT_FAIL(status, folder, read_it());
    assert_true(is_empty());
}

static void both_kinds_of_arms_are_read(void **state)
{
    (void)state;
    put_json(network, "", "");
    EXPECT_OK(read_it());
    const clv_spectra_arm *arm = &library.library.arms[0];
    assert_int_equal(clv_speclib_arm(&library, "b"), 0);
    assert_int_equal(clv_speclib_arm(&library, "r"), 1);
    assert_true(library.library.ccf_count == 5 && library.library.ccf_parameters[19] == 1.9);
    assert_true(arm->points == 64 && arm->first == 4000 && arm->last == 5000 && arm->sigma == 2);
    assert_true(arm->layers == 2 && arm->width[0] == 4 && arm->width[1] == 3 && !arm->grid);
    assert_true(arm->weight[0][11] == 1.1f && arm->weight[1][191] == 19.1f);
    assert_true(arm->bias[0][2] == 0.2f && arm->bias[1][63] == 6.3f);
    assert_true(arm->mean[3] == 0.3 && arm->std[1] == 0.1 && arm->hull_count == 6);
    assert_true(arm->hull[23] == 2.3 && arm->ccf_points == 70 && arm->ccf[349] == 34.9f);
    assert_true(arm->ccf_log0 == 8 && arm->ccf_log1 == 9 && arm->ccf_spline_kms == 1000);
    clv_speclib_clear(&library);

    put_json(grid, ",\"sigma\":2", "");
    EXPECT_OK(read_it());
    arm = &library.library.arms[0];
    assert_true(arm->layers == 0 && arm->sigma == 0 && arm->nodes[2] == 3 && arm->grid[9] == 2);
    assert_true(arm->axis[2][2] == 0.2 && arm->grid_spectra == 7);
    assert_true(arm->grid_log_flux[447] == 44.7f);
    clv_speclib_clear(&library);
    put_array(&files[GRID], -1); /* a node without a template */
    EXPECT_OK(read_it());
    assert_int_equal(library.library.arms[0].grid[0], -1);
    clv_speclib_clear(&library);
    put_array(&files[GRID], 0);
}

static void wrong_descriptions_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *part;
    } cases[] = {
        { "{\"arms\"", "{\"legs\"", "\"arms\" must be an object with 1 to 64 arms" },
        { "{\"b\":", "[{\"b\":", "lib.json" },
        { "{\"arms\"", "{\"activation\":\"tanh\",\"arms\"", "\"tanh\"; expected SiLU" },
        { "\"b\"", "\"../b\"", "may have only letters, digits, _ and -" },
        { "\"b\"", "\"\"", "may have only letters, digits, _ and -" },
        { "\"npix\"", "\"pixels\"", "\"npix\" is missing; expected a number from 64" },
        { "\"npix\":64", "\"npix\":\"64\"", "\"npix\" is no number; expected a number from 64" },
        { "\"npix\":64", "\"npix\":63", "\"npix\" is 63; expected a number from 64" },
        { "4000", "0.5", "\"lam0\" is 0.5; expected a number from 1 to" },
        { "5000", "1e8", "\"lam1\" is 1e+08; expected a number from 1 to 1e+07" },
        { "\"sigma\":2", "\"sigma\":-1", "\"sigma\" is -1; expected a number from 0 to 10000" },
        { "\"ccf\"", "\"cff\"", "\"npoints\" is missing" },
        { "\"npoints\":70", "\"npoints\":6", "\"npoints\" is 6; expected a number from 64" },
        { "\"logl0\":8", "\"logl0\":-8", "\"logl0\" is -8; expected a number from 0 to 20" },
        { "\"logl1\":9", "\"logl1\":90", "\"logl1\" is 90; expected a number from 0 to 20" },
        { ":1000", ":0", "\"splinestep\" is 0; expected a number from 1 to" },
        { "[4,3,64]", "64", "\"layers\" of b is not a list of widths" },
        { "[4,3,64]", "[64]", "\"layers\" of b has 1 widths; expected 2 to" },
        { "[4,3,64]", "[4,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,64]", "\"layers\" of b has 17 widths" },
        { "[4,3,64]", "[4,0,64]", "\"layers\" of b has a width of 0; expected 1 to 2^24" },
        { "[4,3,64]", "[4,16777217,64]", "\"layers\" of b has a width of 16777217" },
        { "\"npix\":64", "\"npix\":65",
          "of b go from 4 inputs to 64 outputs; expected 4 inputs and 65" },
    };
    static const struct {
        const char *to, *part;
    } nodes[] = {
        { "[2,2,3]", "\"nodes\" of b is not a list of four numbers" },
        { "{}", "\"nodes\" of b is not a list of four numbers" },
        { "[2,2,1,2]", "\"nodes\" of b has 1; expected at least 2 along each axis" },
        { "[2,2,3,4000000]", "\"nodes\" of b has 4000000; expected at least 2 along each axis" },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        put_json(network, cases[i].from, cases[i].to);
        expect_refusal(CLV_E_FORMAT, cases[i].part);
    }
    for (size_t i = 0; i < CLV_LEN(nodes); ++i) {
        put_json(grid, "[2,2,3,2]", nodes[i].to);
        expect_refusal(CLV_E_FORMAT, nodes[i].part);
    }
    char name[300];
    name[0] = '"', memset(name + 1, 'a', 128), name[129] = '"', name[130] = '\0';
    put_json(network, "\"b\"", name);
    expect_refusal(CLV_E_FORMAT, "may have only letters, digits, _ and -");
    assert_int_equal(unlink(path_of("lib", ".json")), 0);
    expect_refusal(CLV_E_IO, "not a library of templates: cannot find");
}

/* Every array is missing, of another rank, longer, and (if it has columns) wider. */
static void wrong_arrays_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLV_LEN(files); ++i) {
        struct file wrong = files[i];
        const bool any = strcmp(wrong.name, "b/hull_pts") == 0 ||
                         strcmp(wrong.name, "b/log_flux") == 0 ||
                         strcmp(wrong.name, "ccf_params") == 0; /* any number of rows */
        put_json(i < 9 ? network : grid, "", "");
        assert_int_equal(unlink(path_of(wrong.name, ".npy")), 0);
        expect_refusal(CLV_E_IO, wrong.name);
        wrong.rank = wrong.rank == 4 ? 3 : wrong.rank + 1, wrong.shape[wrong.rank - 1] = 2;
        put_array(&wrong, 0);
        expect_refusal(CLV_E_SHAPE, "; expected ");
        wrong = files[i];
        ++wrong.shape[wrong.rank - 1];
        put_array(&wrong, 0);
        expect_refusal(CLV_E_SHAPE, wrong.name);
        wrong = files[i];
        ++wrong.shape[0];
        put_array(&wrong, 0);
        if (!any) expect_refusal(CLV_E_SHAPE, "the array is [");
        put_array(&files[i], 0);
        EXPECT_OK(read_it());
        clv_speclib_clear(&library);
    }
    static const double rows[] = { 0.5, -2, NAN, 1e9 };
    put_json(grid, "", "");
    for (size_t i = 0; i < CLV_LEN(rows); ++i) {
        put_array(&files[GRID], rows[i]);
        expect_refusal(CLV_E_FORMAT, "expected a row number or -1");
    }
    put_array(&files[GRID], 7);
    expect_refusal(CLV_E_SHAPE, "node 0 of b names spectrum 7, but there are 7");
    put_array(&files[GRID], 0);
    struct file none = files[0];
    none.shape[0] = 65537;
    put_array(&none, 0);
    expect_refusal(CLV_E_FORMAT, "there are 65537 start templates; expected 1 to 65536");
    put_array(&files[0], 0);
}

static void failing_allocations_are_told(void **state)
{
    (void)state;
    for (int grids = 0; grids < 2; ++grids) {
        put_json(grids ? grid : network, "", "");
        assert_true(io_without_memory(read_it, is_empty) > 10);
        clv_speclib_clear(&library);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_kinds_of_arms_are_read),
        cmocka_unit_test(wrong_descriptions_are_named),
        cmocka_unit_test(wrong_arrays_are_named),
        cmocka_unit_test(failing_allocations_are_told),
    };
    return cmocka_run_group_tests_name("speclib", tests, make_folder, NULL);
}
