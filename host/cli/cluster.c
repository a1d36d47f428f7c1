/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the launcher of the ranks, loads the plugin for its MPI, and shares jobs among the ranks. */
#define _GNU_SOURCE
#include "host/cli/cluster.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cluster/plugin.h"
#include "host/cli/cli.h"
#include "host/cli/ranges.h"

#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 20 }; /* seconds that a failed rank waits for the other ranks to start MPI */

/* Precedes the results of a chunk in the bytes that ranks exchange. */
typedef struct piece {
    uint64_t first, count, bytes, unused;
} piece;

static struct {
    int rank, ranks, local, locals; /* of the job and of this machine; ranks 1: no MPI */
    const char *plugin;             /* "openmpi" */
    const cleave_cluster *mpi;      /* NULL: not started */
    bool tried;                     /* MPI was started, or starting it failed */
    clv_spread spread;
    /* the job that runs */
    uint64_t job, identity;
    cli_wish wish;
    double given_at;        /* when this rank got its last range */
    cli_division *division; /* on rank 0, else NULL */
    bool windowed;          /* ranks draw tickets instead of asking rank 0 */
    cli_tickets tickets;
    char *mine; /* packed results of this rank */
    size_t length, room;
    char *all; /* packed results of all ranks, after the exchange */
    size_t *sizes, at, end, total;
    int from; /* the rank whose bytes end at `end` */
    bool exchanged;
} cluster = { .ranks = 1 };

int cli_cluster_ranks(void)
{
    return cluster.ranks;
}

int cli_cluster_rank(void)
{
    return cluster.rank;
}

int cli_cluster_local(void)
{
    return cluster.local;
}

/* ---- joining -------------------------------------------------------------------------------------- */

static bool read_number(const char *name, int *number)
{
    const char *text = getenv(name);
    uint64_t value;
    if (!text || !clv_parse_u64(text, &value) || value > INT_MAX) return false;
    *number = (int)value;
    return true;
}

/* The variables in which launchers pass a process its rank. The first row whose `rank` and `ranks` are both set is
 * used. */
static const struct {
    const char *rank, *ranks, *local, *locals, *plugin;
} launchers[] = {
    { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE", "openmpi" },
    { "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "mpich" },
    { "PMIX_RANK", "SLURM_NTASKS", NULL, NULL, "openmpi" },
};

/* Reads Slurm's variables (srun): the number of ranks on this machine from a text such as "4" or "4(x2)", and the
 * number of this rank among them. */
static void ask_slurm(void)
{
    const char *text = getenv("SLURM_STEP_TASKS_PER_NODE");
    cluster.locals = text ? atoi(text) : 0;
    (void)read_number("SLURM_LOCALID", &cluster.local);
}

/* Returns the number of cores that the system lets this process have, even if it is bound to fewer; binds it to
 * `bound` again. */
static int count_cores(const cpu_set_t *bound)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    if (sched_setaffinity(0, sizeof all, &all)) return CPU_COUNT(bound);
    const int count = sched_getaffinity(0, sizeof all, &all) ? 0 : CPU_COUNT(&all);
    (void)sched_setaffinity(0, sizeof *bound, bound);
    return count;
}

/* Binds this rank to its share of the machine's cores, unless the launcher has bound it. */
static void bind_cores(void)
{
    cpu_set_t all, mine;
    if (cluster.locals < 2 || cluster.local >= cluster.locals ||
        sched_getaffinity(0, sizeof all, &all))
        return;
    const int online = CPU_COUNT(&all);
    if (online < 2 || online < count_cores(&all)) return;
    const int from = online * cluster.local / cluster.locals;
    const int to = CLV_MAX(online * (cluster.local + 1) / cluster.locals, from + 1);
    CPU_ZERO(&mine);
    for (int cpu = 0, n = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &all)) continue;
        if (n >= from && n < to) CPU_SET(cpu, &mine);
        ++n;
    }
    (void)sched_setaffinity(0, sizeof mine, &mine);
}

/* Makes PoCL start as many threads as this rank has cores; by default it starts one for each core of the machine. */
static void limit_drivers(void)
{
    cpu_set_t mine;
    char number[16];
    if (sched_getaffinity(0, sizeof mine, &mine)) return;
    snprintf(number, sizeof number, "%d", CPU_COUNT(&mine));
    (void)setenv("POCL_CPU_MAX_CU_COUNT", number, 0);
    (void)setenv("POCL_MAX_PTHREAD_COUNT", number, 0);
}

int cli_cluster_join(bool shares)
{
    char name[64];
    const char *wish = clv_environment("CLEAVE_MPI");
    if (wish && strcmp(wish, "off") == 0) return -1;
    for (size_t i = 0; i < CLV_LEN(launchers) && !cluster.plugin; ++i) {
        int rank, ranks;
        if (!read_number(launchers[i].rank, &rank) || !read_number(launchers[i].ranks, &ranks) ||
            ranks < 2 || rank >= ranks)
            continue;
        cluster.rank = rank, cluster.ranks = ranks, cluster.plugin = launchers[i].plugin;
        if (!launchers[i].local || !read_number(launchers[i].local, &cluster.local) ||
            !read_number(launchers[i].locals, &cluster.locals))
            ask_slurm();
    }
    if (!cluster.plugin) return -1;
    if (wish && strcmp(wish, "auto") != 0) cluster.plugin = wish;
    if (!shares) {
        const int ranks = cluster.ranks;
        cluster.ranks = 1;
        if (cluster.rank) return CLI_OK;
        cli_say(stderr, "cleave: this command runs in one process; the other %d ranks end now\n",
                ranks - 1);
        return -1;
    }
    bind_cores();
    limit_drivers();
    if (!cluster.rank) return -1;
    snprintf(name, sizeof name, "rank %d: ", cluster.rank);
    cli_speak_as(name);
    clv_outputs_discard(true);
    return -1;
}

bool cli_cluster_copies(int *task, int *tasks)
{
    const char *wish = clv_environment("CLEAVE_MPI");
    return !cluster.plugin && !(wish && strcmp(wish, "off") == 0) &&
           read_number("SLURM_PROCID", task) && read_number("SLURM_STEP_NUM_TASKS", tasks) &&
           *tasks > 1;
}

/* ---- the plugin ----------------------------------------------------------------------------------- */

/* Opens the plugin that CLEAVE_MPI_PLUGIN names, else the one that is installed or built beside the command. Adds
 * the paths that were tried to `tried`. */
static void *open_plugin(clv_text *tried)
{
    static const char *const folders[] = { "../" CLEAVE_LIBDIR "/cleave", "../lib/cleave",
                                           "../lib" };
    char self[PATH_MAX], path[PATH_MAX + 128];
    const char *given = clv_environment("CLEAVE_MPI_PLUGIN");
    if (given) {
        clv_text_add(tried, "%s", given);
        return dlopen(given, RTLD_NOW | RTLD_GLOBAL);
    }
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) return NULL;
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < CLV_LEN(folders); ++i) {
        snprintf(path, sizeof path, "%s/%s/libcleave-mpi-%s.so", self, folders[i], cluster.plugin);
        clv_text_add(tried, "%s%s", i ? ", " : "", path);
        /* RTLD_GLOBAL: parts of MPI look for MPI's symbols among the global ones */
        if (access(path, R_OK) == 0) return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    return NULL;
}

/* Answers a rank's request for work with a range of units; runs on rank 0. */
static void answer_wish(void *self, int rank, const uint64_t question[CLEAVE_CLUSTER_QUESTION],
                        uint64_t range[CLEAVE_CLUSTER_ANSWER])
{
    cli_wish wish;
    (void)self;
    _Static_assert(sizeof wish == CLEAVE_CLUSTER_QUESTION * sizeof *question, "cli_wish");
    memcpy(&wish, question, sizeof wish);
    range[0] = range[1] = 0;
    if (cluster.division && rank < cluster.ranks)
        cli_divide(cluster.division, &wish, (size_t)rank, &range[0], &range[1]);
}

static clv_status start(void)
{
    clv_text tried = { 0 };
    int rank = 0, ranks = 0;
    cluster.tried = true;
    void *library = open_plugin(&tried);
    const char *why = library ? NULL : dlerror();
    clv_status status = CLV_OK;
    const cleave_cluster *mpi = library ? dlsym(library, CLEAVE_CLUSTER_SYMBOL) : NULL;
    if (!mpi)
        status = clv_fail(
            CLV_E_NO_DEVICE,
            "this is rank %d of %d, but the plugin for MPI cannot be loaded (%s%s%s); build Cleave "
            "where the headers of that MPI are installed, set CLEAVE_MPI to openmpi or mpich, or "
            "set CLEAVE_MPI=off to run each rank alone",
            cluster.rank, cluster.ranks, clv_text_get(&tried), why ? ": " : "", why ? why : "");
    clv_text_clear(&tried);
    if (status) return status;
    const char *lease = clv_environment("CLEAVE_MPI_LEASE");
    cluster.windowed = lease && strcmp(lease, "window") == 0;
    cluster.division = cluster.rank ? NULL : cli_division_create((size_t)cluster.ranks);
    if (!cluster.rank && !cluster.division)
        return clv_fail(CLV_E_MEMORY, "not enough memory for %d ranks", cluster.ranks);
    const char *failed = mpi->start(cluster.windowed, answer_wish, NULL, &rank, &ranks);
    if (failed) return clv_fail(CLV_E_DEVICE, "MPI: %s", failed);
    cluster.mpi = mpi;
    if (rank == cluster.rank && ranks == cluster.ranks) return CLV_OK;
    return clv_fail(
        CLV_E_DEVICE,
        "MPI calls this rank %d of %d, but the launcher called it %d of %d: the plugin was built "
        "for a different MPI from the launcher's; set CLEAVE_MPI to openmpi or mpich",
        rank, ranks, cluster.rank, cluster.ranks);
}

void cli_cluster_tell(void *bytes, size_t length)
{
    if (cluster.mpi) cluster.mpi->share(bytes, length);
}

/* Starts MPI in a rank that fails before it has started MPI, in order to end the other ranks: MPICH's launcher would
 * leave them waiting for this rank. If the others do not start MPI within PATIENCE seconds, a signal ends this rank,
 * and the launcher ends the job. */
static void start_to_fail(void)
{
    if (cluster.ranks < 2 || cluster.tried) return;
    fflush(NULL);
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(PATIENCE);
    (void)start();
    (void)alarm(0);
}

void cli_cluster_leave(int code)
{
    if (code && !cluster.mpi) start_to_fail();
    if (!cluster.mpi) return;
    fflush(NULL);
    cluster.mpi->stop(code);
    clv_free(cluster.mine), free(cluster.all), clv_free(cluster.sizes);
    clv_free(cluster.division);
    cluster.mpi = NULL, cluster.mine = cluster.all = NULL, cluster.sizes = NULL;
    cluster.division = NULL;
}

/* ---- jobs ----------------------------------------------------------------------------------------- */

static clv_status begin(void *self, const clv_job *job, bool *shared)
{
    (void)self;
    *shared = job->units > 1;
    if (!*shared) return CLV_OK;
    uint64_t hash = clv_fnv1a(CLV_FNV1A, job->name, strlen(job->name) + 1);
    if (job->signature) hash = clv_fnv1a(hash, job->signature, strlen(job->signature) + 1);
    cluster.identity = clv_fnv1a(hash, &job->units, sizeof job->units);
    cluster.wish = (cli_wish){
        .job = cluster.job, .units = job->units, .step = job->align, .least = job->min_chunk
    };
    cluster.tickets = (cli_tickets){ .units = job->units,
                                     .step = job->align,
                                     .least = job->min_chunk,
                                     .ranks = (size_t)cluster.ranks };
    cluster.length = 0, cluster.exchanged = false;
    return CLV_OK;
}

static clv_status lease(void *self, size_t *first, size_t *count)
{
    uint64_t question[CLEAVE_CLUSTER_QUESTION], range[CLEAVE_CLUSTER_ANSWER];
    (void)self;
    if (cluster.windowed) {
        cli_tickets_find(&cluster.tickets, cluster.mpi->ticket(cluster.job), first, count);
        return CLV_OK;
    }
    cluster.wish.ns = (uint64_t)(1e9 * (clv_now() - cluster.given_at));
    memcpy(question, &cluster.wish, sizeof question);
    cluster.mpi->ask(question, range);
    cluster.given_at = clv_now();
    cluster.wish.done = range[1];
    *first = (size_t)range[0], *count = (size_t)range[1];
    /* rank 0 runs another job, which the exchange will report */
    if (range[0] > cluster.wish.units || range[1] > cluster.wish.units - range[0]) *count = 0;
    return CLV_OK;
}

static clv_status put(void *self, size_t first, size_t count, const void *bytes, size_t length)
{
    const piece head = { .first = first, .count = count, .bytes = length };
    size_t end;
    (void)self;
    if (!clv_size_add(cluster.length, sizeof head + length, &end) ||
        !clv_reserve(&cluster.mine, &cluster.room, end, 1))
        return clv_fail(CLV_E_MEMORY, "not enough memory for the results of this rank");
    memcpy(cluster.mine + cluster.length, &head, sizeof head);
    memcpy(cluster.mine + cluster.length + sizeof head, bytes, length);
    cluster.length = end;
    return CLV_OK;
}

/* Waits for the other ranks and copies the results of all ranks to every rank. */
static clv_status exchange(void)
{
    int odd;
    if (!cluster.sizes) cluster.sizes = clv_zalloc((size_t)cluster.ranks, sizeof *cluster.sizes);
    if (!cluster.sizes)
        return clv_fail(CLV_E_MEMORY, "not enough memory for %d ranks", cluster.ranks);
    free(cluster.all); /* allocated by malloc, see plugin.h */
    const char *failed = cluster.mpi->exchange(cluster.job++, cluster.identity, cluster.mine,
                                               cluster.length, &cluster.all, cluster.sizes, &odd);
    if (failed) return clv_fail(CLV_E_MEMORY, "MPI: %s", failed);
    if (odd >= 0)
        return clv_fail(CLV_E_ARGUMENT,
                        "rank %d does not do the same job as rank 0; all ranks need the same "
                        "command, the same inputs and the same version of cleave",
                        odd);
    cluster.exchanged = true;
    cluster.at = cluster.end = cluster.total = 0, cluster.from = -1;
    for (int r = 0; r < cluster.ranks; ++r)
        cluster.total += cluster.sizes[r];
    return CLV_OK;
}

static clv_status get(void *self, size_t *first, size_t *count, const void **bytes, size_t *length)
{
    piece head;
    (void)self;
    if (!cluster.exchanged) CLV_TRY(exchange());
    *count = 0;
    while (cluster.at == cluster.end) {
        if (++cluster.from == cluster.ranks) return CLV_OK;
        cluster.end += cluster.sizes[cluster.from];
        if (cluster.from == cluster.rank) cluster.at = cluster.end; /* committed already */
    }
    if (cluster.end - cluster.at < sizeof head)
        return clv_fail(CLV_E_FORMAT, "the results of rank %d were received incompletely",
                        cluster.from);
    memcpy(&head, cluster.all + cluster.at, sizeof head);
    cluster.at += sizeof head;
    if (head.bytes > cluster.end - cluster.at)
        return clv_fail(CLV_E_FORMAT, "the results of rank %d were received incompletely",
                        cluster.from);
    *first = (size_t)head.first, *count = (size_t)head.count, *length = (size_t)head.bytes;
    *bytes = cluster.all + cluster.at;
    cluster.at += *length;
    return CLV_OK;
}

static clv_status end(void *self, clv_status status)
{
    (void)self;
    free(cluster.all);
    cluster.all = NULL;
    return status;
}

clv_status cli_cluster_spread(const clv_spread **spread)
{
    *spread = NULL;
    if (cluster.ranks < 2) return CLV_OK;
    if (!cluster.mpi) CLV_TRY(start());
    cluster.spread = (clv_spread){ NULL, begin, lease, put, get, end };
    *spread = &cluster.spread;
    return CLV_OK;
}
