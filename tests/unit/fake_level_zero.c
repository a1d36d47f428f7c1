/* SPDX-License-Identifier: Apache-2.0 */
/* A libze_loader for the tests: a card at 0000:03:00.0 with two memories on it and one beside it.
 * FREE is what the first of them says is free of its 8 GB. */
#include <stdint.h>
#include <string.h>

int zesInit(uint32_t flags);
int zesDriverGet(uint32_t *count, void **drivers);
int zesDeviceGet(void *driver, uint32_t *count, void **devices);
int zesDevicePciGetProperties(void *device, void *properties);
int zesDeviceEnumMemoryModules(void *device, uint32_t *count, void **memories);
int zesMemoryGetProperties(void *memory, void *properties);
int zesMemoryGetState(void *memory, void *state);

static int driver, device, memories[3];

int zesInit(uint32_t flags)
{
    return flags != 0;
}

int zesDriverGet(uint32_t *count, void **drivers)
{
    *count = 1;
    drivers[0] = &driver;
    return 0;
}

int zesDeviceGet(void *of, uint32_t *count, void **devices)
{
    if (of != &driver) return 1;
    *count = 1;
    devices[0] = &device;
    return 0;
}

int zesDevicePciGetProperties(void *of, void *properties)
{
    uint32_t type, address[] = { 0, 3, 0, 0 };
    memcpy(&type, properties, sizeof type);
    if (of != &device || type != 0x2) return 1;
    memcpy((char *)properties + 16, address, sizeof address);
    return 0;
}

int zesDeviceEnumMemoryModules(void *of, uint32_t *count, void **out)
{
    if (of != &device || *count < 3) return 1;
    *count = 3;
    for (int i = 0; i < 3; ++i)
        out[i] = &memories[i];
    return 0;
}

int zesMemoryGetProperties(void *memory, void *properties)
{
    uint32_t type;
    const int location = memory == &memories[2] ? 0 : 1; /* the last is the system's */
    memcpy(&type, properties, sizeof type);
    if (type != 0xb) return 1;
    memcpy((char *)properties + 28, &location, sizeof location);
    return 0;
}

int zesMemoryGetState(void *memory, void *state)
{
    uint32_t type;
    const uint64_t size = 8000000000;
    uint64_t left = memory == &memories[0] ? FREE : size;
    memcpy(&type, state, sizeof type);
    if (type != 0x1e) return 1;
    memcpy((char *)state + 24, &left, sizeof left);
    memcpy((char *)state + 32, &size, sizeof size);
    return 0;
}
