/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks tile-compressed images with CFITSIO in a process of their own.
 *
 * CFITSIO 4.2 does not check the contents of tiles: damaged tiles make it divide by zero, or read and write anywhere.
 * So a child process unpacks them. The child has no file except the bytes in memory and may make no system calls except
 * those for memory (if the kernel filters calls). Its memory and its time are limited. It writes the pixels to shared
 * memory; the parent has checked their number beforehand, and checks it again in the result. */
#define _GNU_SOURCE
#include "host/io/formats/fits/library.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/fits/sandbox.h"
#include "host/io/room.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_COMPRESSION = 10000, /* pixels per compressed byte; constant images reach about 1000 */
    WIDEST = 8,              /* bytes of a pixel */
    ATTEMPTS = 3,
    MESSAGE = 300,
    LEAST_SECONDS = 2,           /* processor time for an image of few pixels */
    PATIENCE_SECONDS = 40,       /* wall time for one, on a machine that does other work */
    PIXELS_A_SECOND = 1000000,   /* even slow compressions on a slow core reach ten times as many */
    MEMORY_A_PIXEL = 4 * WIDEST, /* CFITSIO's buffers for a tile, which can be the whole image */
    LEAST_MEMORY = 256 << 20
};

/* The beginning of the memory that the child shares; the pixels begin at the next page. */
typedef struct answer {
    atomic_int begun, done;
    clv_status status;
    clv_fits_image image;
    char message[MESSAGE];
} answer;

static size_t head_bytes(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (sizeof(answer) + page - 1) / page * page;
}

/* Checks the sizes that the header claims against the file and against the memory limit; *pixels gets the number of
 * pixels. */
static clv_status check_sizes(const clv_fits_source *source, size_t *pixels)
{
    const clv_fits_tiles *t = &source->tiles;
    uint64_t count = 1;
    if (t->rank < 1 || t->rank > CLV_MAX_RANK)
        return clv_fail(CLV_E_SHAPE, "%s: a compressed image has %lld axes; expected 1 to %d",
                        source->path, (long long)t->rank, CLV_MAX_RANK);
    for (int i = 0; i < (int)t->rank; ++i) {
        if (t->axis[i] < 1 || __builtin_mul_overflow(count, (uint64_t)t->axis[i], &count) ||
            count > SIZE_MAX / (2 * WIDEST))
            return clv_fail(CLV_E_FORMAT, "%s: the sizes of a compressed image are damaged",
                            source->path);
    }
    if (count / MAX_COMPRESSION > source->length)
        return clv_fail(CLV_E_FORMAT,
                        "%s: %zu bytes of compressed data cannot hold an image of %llu pixels",
                        source->path, source->length, (unsigned long long)count);
    *pixels = (size_t)count;
    return clv_io_need(source->path, "unpacked", count * WIDEST);
}

/* ---- the child ------------------------------------------------------------------------------- */

static void limit(int what, rlim_t most)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)what, &now)) return;
    now.rlim_cur = CLV_MIN(now.rlim_cur, most);
    (void)setrlimit((__rlimit_resource_t)what, &now);
}

static clv_status unpack(const clv_fits_source *source, clv_fits_reader *reader, answer *a,
                         size_t pixels)
{
    clv_fits_source own = *source;
    int error = 0;
    void **bytes = (void **)&own.bytes;
    own.tiles.found = false;
    *source->tiles.hidden = 'Z'; /* changes only the child's copy of the page */
    if (fits_open_memfile(&own.file, "unpacked", READONLY, bytes, &own.length, 0, NULL, &error))
        return clv_fits_error(own.path, "read as FITS", error);
    atomic_store(&a->begun, 1);
    if (fits_movabs_hdu(own.file, source->tiles.hdu + 1, NULL, &error))
        return clv_fits_error(own.path, "read the compressed image", error);
    return reader(&own, &a->image, pixels, (char *)a + head_bytes());
}

/* Returns the bytes that the child may allocate. CFITSIO 4.2 enlarges its buffer without end for some damaged tiles;
 * what the image needs is a better bound than what the machine has. */
static uint64_t memory_for(const clv_fits_source *source, size_t pixels)
{
    const uint64_t most = LEAST_MEMORY + source->length + (uint64_t)pixels * MEMORY_A_PIXEL;
    return CLV_MIN(most, clv_io_room());
}

static _Noreturn void be_child(const clv_fits_source *source, clv_fits_reader *reader, answer *a,
                               size_t pixels)
{
    static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE,  SIGILL,  SIGABRT, SIGALRM, SIGTERM,
                                  SIGINT,  SIGHUP, SIGQUIT, SIGXCPU, SIGUSR1, SIGUSR2 };
    sigset_t none;
    sigemptyset(&none);
    for (size_t i = 0; i < CLV_LEN(deadly); ++i)
        signal(deadly[i], SIG_DFL); /* the application's handlers must not run in the child */
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* the parent reports what happened */
    close(STDIN_FILENO), close(STDOUT_FILENO), close(STDERR_FILENO);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, LEAST_SECONDS + pixels / PIXELS_A_SECOND);
    clv_sandbox_memory(memory_for(source, pixels));
    clv_sandbox_enter();
    a->status = unpack(source, reader, a, pixels);
    clv_copy_string(a->message, sizeof a->message, clv_error_message());
    atomic_store(&a->done, 1);
    _exit(0);
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* Waits until the child ends, and kills it after `seconds`. Returns false if CFITSIO did not begin, because another
 * thread of the parent held CFITSIO's lock during the fork. */
static bool wait_for(pid_t child, const answer *a, double seconds, int *how)
{
    const double started = clv_now(), begin_s = 5;
    *how = 0;
    for (double nap = 1e-4;; nap = CLV_MIN(2 * nap, 0.02)) {
        const pid_t ended = waitpid(child, how, WNOHANG);
        const double passed = clv_now() - started;
        if (ended == child) return true;
        /* the process ignores SIGCHLD, so there is no status */
        if (ended < 0 && errno != EINTR) return true;
        if (passed > seconds || (passed > begin_s && !atomic_load(&a->begun))) {
            kill(child, SIGKILL);
            while (waitpid(child, how, 0) < 0 && errno == EINTR)
                continue;
            return passed > seconds;
        }
        clv_sleep(nap);
    }
}

static bool is_known(const answer *a, size_t pixels)
{
    size_t count = 1;
    if (a->image.rank < 1 || a->image.rank > CLV_MAX_RANK) return false;
    for (size_t i = 0; i < a->image.rank; ++i)
        if (!a->image.shape[i] || __builtin_mul_overflow(count, a->image.shape[i], &count))
            return false;
    return count == pixels;
}

static clv_status judge(const clv_fits_source *source, answer *a, size_t pixels, bool begun,
                        int how)
{
    char why[64] = "it was ended";
    if (begun && atomic_load(&a->done)) {
        a->message[MESSAGE - 1] = '\0';
        if (a->status == CLV_OK && is_known(a, pixels)) return CLV_OK;
        if (a->status != CLV_OK && *a->message)
            return clv_fail(a->status == CLV_E_MEMORY ? CLV_E_MEMORY : CLV_E_FORMAT, "%s",
                            a->message);
    }
    if (!begun)
        clv_copy_string(why, sizeof why, "it did not begin");
    else if (WIFSIGNALED(how))
        snprintf(why, sizeof why, "%s (signal %d)",
                 WTERMSIG(how) == SIGKILL || WTERMSIG(how) == SIGXCPU ? "it took too long"
                                                                      : "it crashed",
                 WTERMSIG(how));
    return clv_fail(CLV_E_FORMAT,
                    "%s: a tile-compressed image is damaged: CFITSIO tried to unpack it in a "
                    "process of its own, and %s",
                    source->path, why);
}

clv_status clv_fits_unpack(clv_fits_source *source, clv_fits_reader *reader)
{
    size_t pixels = 0;
    int how = 0;
    if (source->unpacked) return CLV_OK;
    CLV_TRY(check_sizes(source, &pixels));
    const size_t bytes = head_bytes() + pixels * WIDEST;
    answer *a = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (a == MAP_FAILED)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu bytes", source->path, bytes);
    bool begun = false;
    pid_t child = 0;
    for (int i = 0; i < ATTEMPTS && !begun; ++i) {
        child = fork();
        if (child == 0) be_child(source, reader, a, pixels);
        if (child < 0) break;
        begun = wait_for(child, a, PATIENCE_SECONDS + 2.0 * (double)pixels / PIXELS_A_SECOND, &how);
    }
    const clv_status status =
        child < 0
            ? clv_fail(CLV_E_IO, "%s: cannot start a process to unpack a compressed image: %s",
                       source->path, strerror(errno))
            : judge(source, a, pixels, begun, how);
    if (status) {
        munmap(a, bytes);
        return status;
    }
    source->unpacked = a, source->unpacked_bytes = bytes;
    return CLV_OK;
}

const clv_fits_image *clv_fits_unpacked(const clv_fits_source *source, const char **pixels)
{
    const answer *a = source->unpacked;
    if (pixels) *pixels = (const char *)a + head_bytes();
    return &a->image;
}

void clv_fits_forget(clv_fits_source *source)
{
    if (source->unpacked) munmap(source->unpacked, source->unpacked_bytes);
    source->unpacked = NULL;
    source->unpacked_bytes = 0;
}
