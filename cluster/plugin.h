/* SPDX-License-Identifier: Apache-2.0 */
/* What the command needs of MPI, as a table of functions. A plugin, libcleave-mpi-NAME.so, has it under the name
 * cleave_cluster_1. It is built once for each implementation of MPI and loaded at run time, so that neither the library
 * nor the command needs MPI. It knows nothing of Cleave. */
#ifndef CLEAVE_CLUSTER_PLUGIN_H
#define CLEAVE_CLUSTER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define CLEAVE_CLUSTER_SYMBOL "cleave_cluster_1"

typedef struct cleave_cluster {
    /* Starts MPI. Returns NULL, or why it cannot. `window` leases by one-sided fetch-and-add, not by messages. */
    const char *(*start)(int window, int *rank, int *ranks);
    /* Returns the next ticket of a job, from 0: each number goes to one rank. Jobs are numbered from 0. */
    uint64_t (*ticket)(uint64_t job);
    /* Ends a job: waits for all ranks and gives each the bytes of all. `all` receives memory of malloc with the bytes
     * of rank 0, of rank 1, ..., and sizes[ranks] their lengths; `identity` is the job's, and `odd` receives the first
     * rank whose identity differs from rank 0's, or -1. Returns NULL, or what failed. */
    const char *(*exchange)(uint64_t job, uint64_t identity, const void *bytes, size_t length,
                            char **all, size_t *sizes, int *odd);
    /* Gives `bytes` of rank 0 to all. */
    void (*share)(void *bytes, size_t length);
    /* Ends MPI. A code other than 0 ends all ranks. */
    void (*stop)(int code);
} cleave_cluster;

#endif
