/* SPDX-License-Identifier: Apache-2.0 */
/* One PACO kernel by itself: the geometry and defines that the operation would give it, arrays that
 * the test fills. The tables are made here again, from their description in the kernels. */
#ifndef CLEAVE_TESTS_STAGE_H
#define CLEAVE_TESTS_STAGE_H

#include "cube.h"
#include "device.h"

#include "host/patch/paco_family.h"

/* A form of the kernels, and the kind of device that gets it. */
typedef struct stage_form {
    const char *name, *variant;
    clv_device_class device_class;
} stage_form;

extern const stage_form stage_forms[]; /* ends with a NULL name */
/* The forms of an everyday run, which get more cases than the others. */
bool stage_is_main(const stage_form *form);

typedef struct stage_shape {
    test_cube_shape cube;
    clv_paco_options options;
    size_t first, rows; /* the chunk; rows 0: all */
} stage_shape;

typedef struct stage {
    test_device *device;
    const stage_form *form;
    test_cube cube;
    clv_paco_plan *plan;
    clv_paco_family f;
    clv_paco_chunk c;
} stage;

/* Disguises the device so that it gets the form. */
void stage_open(stage *s, test_device *device, const stage_form *form, const stage_shape *shape);
void stage_close(stage *s);

/* Calls `claim` on every device in every form that `wanted` is part of ("" is in all). */
void stage_each(const char *wanted, void (*claim)(test_device *device, const stage_form *form));

/* The same without groups, for kernels that have none: "group" would be "items" again. */
void stage_each_item_form(void (*claim)(test_device *device, const stage_form *form));

/* Tells whether a cube of that many samples would keep an interpreter busy for too long. */
bool stage_is_too_much(const test_device *device, size_t samples);

/* Launches and waits. `x`, `y`, `z` as runtime wants them; z 0: two dimensions. */
void stage_launch(const stage *s, clv_paco_kernel kernel, size_t x, size_t y, size_t z,
                  const clv_arg *args, size_t count);
/* The same with a local size of the test's own. */
void stage_launch_as(const stage *s, clv_paco_kernel kernel, const size_t global[3], size_t local,
                     const clv_arg *args, size_t count);

/* Elements from D[t,u] to D[t,u + offset]. */
int32_t stage_step(const stage *s, clv_offset offset);
/* Returns where entry (i, j <= i) of a patch's covariance lies in V, from the patch's first band row. */
int32_t *stage_entries(const stage *s);

/* As KEPT in cl/patch/paco.clh: element e of `count` that patch x of a row keeps. */
size_t stage_kept(const stage *s, size_t row, size_t x, size_t e, size_t count);

clv_arg stage_u32(size_t value);

#endif
