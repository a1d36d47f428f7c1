/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvidia-ml for the tests: one card at 0000:1B:00.0 with 11 GB, 3 GB of them free. */
#include <string.h>
#include <strings.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory);
int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates);

static int card;

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device)
{
    if (strcasecmp(bus_id, "0000:1B:00.0") != 0) return 6; /* NOT_FOUND */
    *device = &card;
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    if (strcmp(uuid, "GPU-04c88413-cbeb-4721-3976-7ec59802f5e9") != 0) return 6;
    *device = &card;
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory)
{
    if (device != &card) return 2; /* INVALID_ARGUMENT */
    memory[0] = 11000000000, memory[1] = 2500000000, memory[2] = 8500000000;
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates)
{
    if (device != &card) return 2;
    rates[0] = 42, rates[1] = 7;
    return 0;
}

#ifdef VERSION_2
typedef struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
} memory_v2;

int nvmlDeviceGetMemoryInfo_v2(void *device, memory_v2 *memory);

int nvmlDeviceGetMemoryInfo_v2(void *device, memory_v2 *memory)
{
    if (device != &card || memory->version != (40u | 2u << 24)) return 25; /* VERSION_MISMATCH */
    memory->total = 11000000000, memory->reserved = 300000000;
    memory->free = 3000000000, memory->used = 7700000000;
    return 0;
}
#endif
