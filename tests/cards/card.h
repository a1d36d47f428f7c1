/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL layer (OPENCL_LAYERS) that makes PoCL's CPU device answer as a graphics card would.
 *
 * $CLEAVE_CARD names the card: FILE.json, a recorded machine of tests/platforms/machines, or
 * FILE.json#ID for one device of it. The layer then
 *   - answers queries about name, vendor, driver, memory, limits, extensions and vendor attributes;
 *   - refuses what the card refuses: work-groups, local memory, buffers and totals beyond its limits;
 *   - hands out no binaries of Cleave's programs, and the source of others as their binary;
 *   - keeps a clock of the card: one engine computes, one copies to the card, one copies from it.
 *     Commands end on that clock, so that overlap, launch delays and waiting can be measured.
 *
 * Rates of that clock, all 0 (no delay) unless they are set:
 *   CLEAVE_CARD_GBPS      transfer rate in each direction, in 1e9 bytes per second. Transfers from or to
 *                         host memory that the driver did not allocate run at half of it, and the call
 *                         returns when they are done, as with a driver that copies through a buffer
 *                         of its own.
 *   CLEAVE_CARD_LAUNCH_US delay from the enqueue of a command to its start on an idle card
 *   CLEAVE_CARD_ITEM_NS   time that a kernel takes per work-item
 *   CLEAVE_CARD_WATCHDOG_S  launches that take longer fail, with a message on stderr
 *
 * CLEAVE_CARD_LAUNCHES=FILE appends a line PID KERNEL for each kernel that a process launched on the card, which
 * proves that the process used it. The layer makes the file when it is loaded.
 *
 * For tools: CLEAVE_CARD_RECORD=FOLDER writes every program with its options, and every launch, and has
 * PoCL build without optimisation;
 * CLEAVE_CARD_RUN_UP_TO=N executes only kernels of at most N work-items;
 * CLEAVE_CARD_HOLLOW=1 gives buffers no memory, for plans of jobs that are never executed. */
#ifndef CLEAVE_TESTS_CARD_H
#define CLEAVE_TESTS_CARD_H

#include "../faults/layer.h"

#include <stddef.h>
#include <stdint.h>

/* What the card says of itself; texts that it does not answer are NULL. */
typedef struct card_facts {
    const char *platform, *platform_version, *vendor, *name, *version, *driver, *extensions,
        *board_name, *profile;
    uint32_t vendor_id, compute_units, clock_mhz, wavefront, preferred_multiple, capability[2],
        pci[4];
    uint64_t global_bytes, max_alloc_bytes, local_bytes, free_bytes, timer_ns;
    size_t max_work_group;
    bool fp64, unified, local_is_global, integrated, kernel_timeout;
} card_facts;

typedef struct card_clock {
    double bytes_per_s, launch_s, item_s; /* 0: no delay */
    double watchdog_s;                    /* 0: none */
} card_clock;

typedef struct card_state {
    card_facts facts;
    card_clock clock;
    const char *record, *launches; /* folder, and file, or NULL */
    bool hollow;                   /* buffers have no memory */
    double run_up_to;              /* work-items; INFINITY: all kernels are executed */
} card_state;

extern card_state card;

/* Reads the recorded machine; false with a message on stderr when it cannot be read. */
bool card_read(const char *where, card_facts *facts);
double card_now(void);

/* Is it a device, or a context of a device, of the platform that plays the card? */
bool card_plays(cl_device_id device);
bool card_plays_context(cl_context context);
bool card_plays_queue(cl_command_queue queue);

void card_info_install(cl_icd_dispatch *layer);     /* queries */
void card_objects_install(cl_icd_dispatch *layer);  /* contexts, queues, buffers */
void card_commands_install(cl_icd_dispatch *layer); /* commands and their events */
void card_record_install(cl_icd_dispatch *layer);   /* programs, kernels, arguments */

/* ---- objects: card_objects.c ---- */
/* Host memory inside a mapped buffer of the driver's. */
bool card_is_pinned(const void *host, size_t bytes);
void card_pinned(void *host, size_t bytes);
void card_unpinned(const void *host);
/* Was the buffer made with CL_MEM_ALLOC_HOST_PTR? What it maps to is pinned. */
bool card_is_host_buffer(cl_mem buffer);
/* Bytes in buffers exceed the card's memory: commands fail, as drivers allocate lazily. */
bool card_is_full(void);

/* ---- record: card_record.c ---- */
void card_accepted(cl_kernel kernel); /* a launch that the driver has accepted */
void card_launched(cl_kernel kernel, cl_uint dimensions, const size_t *global, const size_t *local);

#endif
