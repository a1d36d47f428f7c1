/* SPDX-License-Identifier: Apache-2.0 */
/* What the command needs of MPI, as a table of functions. A plugin, libcleave-mpi-NAME.so, has it under the name
 * cleave_cluster_2. It is built once for each implementation of MPI and loaded at run time, so that neither the library
 * nor the command needs MPI. It knows nothing of Cleave. */
#ifndef CLEAVE_CLUSTER_PLUGIN_H
#define CLEAVE_CLUSTER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define CLEAVE_CLUSTER_SYMBOL "cleave_cluster_2"

enum { CLEAVE_CLUSTER_QUESTION = 6, CLEAVE_CLUSTER_ANSWER = 2 }; /* numbers in each */

/* Answers the question of a rank. Only rank 0 calls it, one call at a time, but on any thread. */
typedef void cleave_cluster_answer(void *self, int rank,
                                   const uint64_t question[CLEAVE_CLUSTER_QUESTION],
                                   uint64_t answer[CLEAVE_CLUSTER_ANSWER]);

typedef struct cleave_cluster {
    /* Starts MPI. Returns NULL, or why it cannot. `window` is for tickets by one-sided fetch-and-add; without it,
     * rank 0 has `answer` answer questions. */
    const char *(*start)(int window, cleave_cluster_answer *answer, void *self, int *rank,
                         int *ranks);
    /* Asks rank 0. */
    void (*ask)(const uint64_t question[CLEAVE_CLUSTER_QUESTION],
                uint64_t answer[CLEAVE_CLUSTER_ANSWER]);
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
