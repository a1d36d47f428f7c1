/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the sizes of work-groups. */
#include "host/array/group.h"

#include "base/alloc.h"

enum {
    USUAL = 32,
    SHORTEST = 16,       /* work-items along a row: 64 bytes, which a card reads at once */
    GROUPS_PER_UNIT = 4, /* compute units are not left without work for the sake of larger groups */
    IDLE = 4 /* at most this part (1 / IDLE) of a row's work-items may be without work */
};

static bool is_gpu(const clv_probe_device *device)
{
    return device->device_class != CLV_CLASS_CPU && device->device_class != CLV_CLASS_SOFTWARE;
}

size_t clv_array_group(const clv_probe_device *device, size_t items)
{
    const size_t wave = CLV_MAX(device->preferred_multiple, (size_t)device->wavefront);
    const size_t most = CLV_MIN(device->max_work_group, (size_t)CLV_ARRAY_GROUP_MOST);
    const size_t groups = (size_t)GROUPS_PER_UNIT * device->compute_units;
    size_t group = USUAL;
    if (!is_gpu(device)) return group;
    while (2 * group <= most && (group < wave || items / (2 * group) >= groups))
        group *= 2;
    return group;
}

/* Returns the least power of two that is at least n, but not more than `most`, which is a power of two, too. */
static size_t power_of_two(size_t n, size_t most)
{
    size_t power = 1;
    while (power < n && power < most)
        power *= 2;
    return power;
}

clv_array_grid clv_array_grid_of(const clv_probe_device *device, size_t width, size_t rows)
{
    const size_t group = clv_array_group(device, clv_round_up(width, SHORTEST) * rows);
    clv_array_grid grid = { .local = { power_of_two(width, group), 1 }, .each = 1 };
    if (is_gpu(device)) {
        const size_t *most = device->max_work_item_sizes;
        while (grid.local[0] > SHORTEST &&
               clv_round_up(width, grid.local[0]) - width > width / IDLE)
            grid.local[0] /= 2;
        grid.local[1] = power_of_two(rows, group / grid.local[0]);
        while (grid.local[1] > CLV_MAX(CLV_MIN(most[1], most[2]), (size_t)1))
            grid.local[1] /= 2;
        const size_t at_once = CLV_ARRAY_ROWS_MOST * grid.local[1];
        grid.each = (rows + at_once - 1) / at_once;
    }
    grid.global[0] = clv_round_up(width, grid.local[0]);
    grid.global[1] = clv_round_up((rows + grid.each - 1) / grid.each, grid.local[1]);
    return grid;
}
