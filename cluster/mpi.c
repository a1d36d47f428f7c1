/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: questions to rank 0 and exchanges of results, by MPI.
 *
 * Rank 0 has a thread that answers questions while the rank computes. All calls of MPI are short and made
 * under one lock (MPI_THREAD_SERIALIZED is enough): a wait is a loop of tests with pauses, so that a rank which waits
 * takes no core from those that compute. */
#define _GNU_SOURCE
#include "cluster/plugin.h"

#include <mpi.h>

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REQUEST = 1, REPLY, ROUND = 64 << 20 };
static const long pause_ns = 100000; /* between two looks; a request takes about as long */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Comm messages, groups; /* questions; exchanges */
static int rank, ranks, windowed, serving;
static pthread_t server;
static MPI_Win window;
static uint64_t *counters; /* [2] of rank 0: tickets of even and odd jobs */
static cleave_cluster_answer *answers;
static void *answers_self;

static void rest(void)
{
    const struct timespec time = { 0, pause_ns };
    nanosleep(&time, NULL);
}

static void await(MPI_Request *request, MPI_Status *status)
{
    int done = 0;
    for (;;) {
        pthread_mutex_lock(&lock);
        MPI_Test(request, &done, status);
        pthread_mutex_unlock(&lock);
        if (done) return;
        rest();
    }
}

/* Answers all questions that have come. The lock is held. */
static void answer_all(void)
{
    MPI_Status status;
    int there = 0;
    for (;;) {
        MPI_Iprobe(MPI_ANY_SOURCE, REQUEST, messages, &there, &status);
        if (!there) return;
        uint64_t question[CLEAVE_CLUSTER_QUESTION], answer[CLEAVE_CLUSTER_ANSWER];
        MPI_Recv(question, CLEAVE_CLUSTER_QUESTION, MPI_UINT64_T, status.MPI_SOURCE, REQUEST,
                 messages, &status);
        answers(answers_self, status.MPI_SOURCE, question, answer);
        MPI_Send(answer, CLEAVE_CLUSTER_ANSWER, MPI_UINT64_T, status.MPI_SOURCE, REPLY, messages);
    }
}

static void *serve(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        const int goes_on = serving;
        if (goes_on) answer_all(); /* with a window, the look alone lets it make progress */
        pthread_mutex_unlock(&lock);
        if (!goes_on) return NULL;
        rest();
    }
}

static const char *start(int by_window, cleave_cluster_answer *answer, void *self, int *my_rank,
                         int *all_ranks)
{
    int provided = 0;
    answers = answer, answers_self = self;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
        return "MPI_Init_thread failed";
    if (provided < MPI_THREAD_SERIALIZED) {
        MPI_Finalize();
        return "this MPI cannot be called from more than one thread (MPI_THREAD_SERIALIZED)";
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &messages);
    MPI_Comm_dup(MPI_COMM_WORLD, &groups);
    *my_rank = rank, *all_ranks = ranks;
    windowed = by_window;
    if (windowed) {
        MPI_Win_allocate(rank ? 0 : 2 * sizeof *counters, sizeof *counters, MPI_INFO_NULL, groups,
                         &counters, &window);
        MPI_Win_lock_all(0, window);
        if (!rank) counters[0] = counters[1] = 0, MPI_Win_sync(window);
        MPI_Barrier(groups);
    }
    serving = rank == 0 && ranks > 1;
    if (serving && pthread_create(&server, NULL, serve, NULL)) {
        serving = 0;
        return "no thread for the questions of the ranks";
    }
    return NULL;
}

/* Waits with pauses, as everything here does: a flush would take a core from the ranks that compute. */
static uint64_t ticket(uint64_t job)
{
    const uint64_t one = 1;
    uint64_t number = 0;
    MPI_Request request;
    MPI_Status status;
    pthread_mutex_lock(&lock);
    MPI_Rget_accumulate(&one, 1, MPI_UINT64_T, &number, 1, MPI_UINT64_T, 0, (MPI_Aint)(job % 2), 1,
                        MPI_UINT64_T, MPI_SUM, window, &request);
    pthread_mutex_unlock(&lock);
    await(&request, &status);
    return number;
}

static void ask(const uint64_t question[CLEAVE_CLUSTER_QUESTION],
                uint64_t answer[CLEAVE_CLUSTER_ANSWER])
{
    MPI_Request request;
    MPI_Status status;
    pthread_mutex_lock(&lock);
    if (rank == 0) {
        answers(answers_self, 0, question, answer);
    } else {
        MPI_Irecv(answer, CLEAVE_CLUSTER_ANSWER, MPI_UINT64_T, 0, REPLY, messages, &request);
        MPI_Send(question, CLEAVE_CLUSTER_QUESTION, MPI_UINT64_T, 0, REQUEST, messages);
    }
    pthread_mutex_unlock(&lock);
    if (rank) await(&request, &status);
}

/* Brings each rank's identity and length to all. */
static void tell_sizes(uint64_t identity, size_t length, uint64_t *told)
{
    const uint64_t mine[2] = { identity, length };
    MPI_Request request;
    MPI_Status status;
    pthread_mutex_lock(&lock);
    MPI_Iallgather(mine, 2, MPI_UINT64_T, told, 2, MPI_UINT64_T, groups, &request);
    pthread_mutex_unlock(&lock);
    await(&request, &status);
}

/* Brings a piece of each rank's bytes to all: at most `most` bytes from `done` on. */
static void exchange_round(const char *bytes, char *all, const size_t *sizes, const size_t *starts,
                           size_t done, size_t most, int *counts, int *places, char *room)
{
    MPI_Request request;
    MPI_Status status;
    int total = 0;
    for (int r = 0; r < ranks; ++r) {
        const size_t left = sizes[r] > done ? sizes[r] - done : 0;
        counts[r] = (int)(left < most ? left : most);
        places[r] = total;
        total += counts[r];
    }
    pthread_mutex_lock(&lock);
    MPI_Iallgatherv(counts[rank] ? bytes + done : bytes, counts[rank], MPI_BYTE, room, counts,
                    places, MPI_BYTE, groups, &request);
    pthread_mutex_unlock(&lock);
    await(&request, &status);
    for (int r = 0; r < ranks; ++r)
        if (counts[r]) memcpy(all + starts[r] + done, room + places[r], (size_t)counts[r]);
}

static const char *exchange(uint64_t job, uint64_t identity, const void *bytes, size_t length,
                            char **all, size_t *sizes, int *odd)
{
    const size_t n = (size_t)ranks, most = (size_t)ROUND / n + 1;
    size_t total = 0, longest = 0;
    *all = NULL, *odd = -1;
    if (windowed && rank == 0) { /* nobody takes tickets of the job after this one yet */
        const uint64_t zero = 0;
        uint64_t old;
        pthread_mutex_lock(&lock);
        MPI_Fetch_and_op(&zero, &old, MPI_UINT64_T, 0, (MPI_Aint)((job + 1) % 2), MPI_REPLACE,
                         window);
        MPI_Win_flush(0, window);
        pthread_mutex_unlock(&lock);
    }
    uint64_t *told = malloc(2 * n * sizeof *told);
    size_t *starts = malloc(n * sizeof *starts);
    int *counts = malloc(2 * n * sizeof *counts);
    if (!told || !starts || !counts) {
        free(told), free(starts), free(counts);
        return "not enough memory for the ranks' sizes";
    }
    tell_sizes(identity, length, told);
    for (size_t r = 0; r < n; ++r) {
        if (told[2 * r] != told[0] && *odd < 0) *odd = (int)r;
        sizes[r] = (size_t)told[2 * r + 1];
        starts[r] = total, total += sizes[r];
        if (sizes[r] > longest) longest = sizes[r];
    }
    const char *failed = NULL;
    char *room = NULL;
    if (*odd < 0) {
        const size_t largest = n * (longest < most ? longest : most);
        *all = malloc(total ? total : 1);
        room = malloc(largest ? largest : 1);
        if (!*all || !room) failed = "not enough memory for the results of all ranks";
        for (size_t done = 0; !failed && done < longest; done += most)
            exchange_round(bytes, *all, sizes, starts, done, most, counts, counts + n, room);
    }
    free(told), free(starts), free(counts), free(room);
    return failed;
}

static void share(void *bytes, size_t length)
{
    MPI_Request request;
    MPI_Status status;
    pthread_mutex_lock(&lock);
    MPI_Ibcast(bytes, (int)length, MPI_BYTE, 0, groups, &request);
    pthread_mutex_unlock(&lock);
    await(&request, &status);
}

static void stop(int code)
{
    if (code) MPI_Abort(MPI_COMM_WORLD, code);
    MPI_Request request;
    MPI_Status status;
    pthread_mutex_lock(&lock);
    MPI_Ibarrier(groups, &request);
    pthread_mutex_unlock(&lock);
    await(&request, &status);
    pthread_mutex_lock(&lock);
    const int served = serving;
    serving = 0;
    pthread_mutex_unlock(&lock);
    if (served) pthread_join(server, NULL);
    if (windowed) MPI_Win_unlock_all(window), MPI_Win_free(&window);
    MPI_Finalize();
}

extern const cleave_cluster cleave_cluster_2;
const cleave_cluster cleave_cluster_2 = { start, ask, ticket, exchange, share, stop };
