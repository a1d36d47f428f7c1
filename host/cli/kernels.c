/* SPDX-License-Identifier: Apache-2.0 */
/* Checks, records and removes the compiled kernels that drivers keep in our folders.
 *
 *   FOLDER          the driver's: FOLDER/XX/PROGRAM/...; a program is removed as a whole. Mesa's entries are
 *                   FOLDER/mesa_shader_cache/XX/DIGITS, and XX is removed as a whole
 *   FOLDER.sums     "SHA-256 PATH", one line for each file that a finished run recorded
 *   FOLDER.lock     held by every process that uses the kernels: shared, while it lives
 *   FOLDER.run-PID  exists while a process runs; later: "died" if it died inside the driver, "forget" if it wants the
 *                   kernels removed that another process used
 *
 * A file that is not in the list may belong to another process, unless no other process uses the folder.
 *
 * Mesa verifies the checksum of an entry itself, writes entries in its own thread (possibly after our end) and removes
 * old ones. So an unrecorded entry of Mesa stays, a missing one is no damage, and files that are not entries (its
 * index, a database) are left to Mesa. What Mesa does not notice is an intact entry in the place of another: that ends
 * the process. */
#define _GNU_SOURCE /* nftw */
#include "host/cli/kernels.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/temporary.h"
#include "base/text.h"
#include "host/cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LIST = 64 << 20, MOST_FILE = 256 << 20, HEX = 64, DEEPEST = 16 };

typedef struct entry {
    char *path; /* relative to the folder */
    char sum[HEX + 1];
    bool there;
} entry;

typedef struct list {
    entry *items;
    size_t count, room, length; /* `length`: of the folder's path, for the nftw visitors */
    bool checked;               /* the driver itself finds damage: only listed files are compared */
    char *bad[4096];            /* programs to be removed: "XX/PROGRAM" */
    size_t bad_count;
    bool too_many; /* there are more bad programs than `bad` holds */
    bool changed;  /* with `add`: a digest changed */
    bool add;      /* unlisted files are added instead of counted as bad */
    struct timespec
        since; /* with `add`: files written since then get a new digest, because several runs may compile the same
                * kernel at once, and the file written last stays */
} list;

/* A driver's folder. */
typedef struct place {
    char folder[PATH_MAX - 64];
    int lock_fd, mark_fd; /* -1: none */
    bool checked;         /* see `list` */
} place;

enum { MOST_PLACES = 2 };
static place places[MOST_PLACES];
static size_t place_count;
static pid_t owner;
static bool sealed; /* the command has ended, so an exit is not a driver's */

static void beside(const place *p, const char *ending, char *path, size_t capacity)
{
    snprintf(path, capacity, "%s%s", p->folder, ending);
}

/* ---- the list --------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->path, ((const entry *)b)->path);
}

static entry *find(const list *l, const char *path)
{
    const entry wanted = { .path = (char *)(uintptr_t)path };
    return l->count ? bsearch(&wanted, l->items, l->count, sizeof *l->items, by_path) : NULL;
}

static bool add_entry(list *l, const char *path, size_t length, const char *sum)
{
    if (!clv_reserve(&l->items, &l->room, l->count + 1, sizeof *l->items)) return false;
    entry *e = &l->items[l->count];
    *e = (entry){ .path = clv_alloc(length + 1, 1) };
    if (!e->path) return false;
    memcpy(e->path, path, length), e->path[length] = '\0';
    memcpy(e->sum, sum, HEX);
    ++l->count;
    return true;
}

/* Returns whether a path of the list stays within the folder: damaged programs are removed as a whole. */
static bool is_inside(const char *path, size_t length)
{
    for (size_t i = 0, from = 0; i <= length; ++i) {
        if (i < length && path[i] != '/') continue;
        if (i - from == 2 && memcmp(path + from, "..", 2) == 0) return false;
        from = i + 1;
    }
    return true;
}

static void read_list(const place *p, list *l)
{
    char path[PATH_MAX], *text = NULL;
    size_t length;
    beside(p, ".sums", path, sizeof path);
    if (clv_file_read_plain(path, MOST_LIST, &text, &length)) return;
    for (const char *at = text; *at;) {
        const size_t line = strcspn(at, "\n");
        if (line > HEX + 1 && at[HEX] == ' ' && is_inside(at + HEX + 1, line - HEX - 1))
            (void)add_entry(l, at + HEX + 1, line - HEX - 1, at);
        at += line + (at[line] == '\n');
    }
    clv_free(text);
    if (l->count) qsort(l->items, l->count, sizeof *l->items, by_path);
}

static void write_list(const place *p, const list *l)
{
    char path[PATH_MAX];
    clv_text text = { 0 };
    for (size_t i = 0; i < l->count; ++i)
        if (l->items[i].there) clv_text_add(&text, "%s %s\n", l->items[i].sum, l->items[i].path);
    beside(p, ".sums", path, sizeof path);
    if (!text.failed) (void)clv_file_write_private(path, clv_text_get(&text), text.length);
    clv_text_clear(&text);
}

static void clear_list(list *l)
{
    for (size_t i = 0; i < l->count; ++i)
        clv_free(l->items[i].path);
    for (size_t i = 0; i < l->bad_count; ++i)
        clv_free(l->bad[i]);
    clv_free(l->items);
    *l = (list){ 0 };
}

static bool sum_file(const char *path, char sum[HEX + 1])
{
    char *bytes = NULL;
    size_t length;
    if (clv_file_read_plain(path, MOST_FILE, &bytes, &length)) return false;
    const clv_digest digest = clv_sha256(bytes, length);
    clv_digest_hex(&digest, sum);
    clv_free(bytes);
    return true;
}

/* ---- the folder ------------------------------------------------------------------------------- */

static list *visiting; /* nftw passes no user argument to its visitor */

/* Marks the program "XX/PROGRAM" that holds `path` for removal; a path that is not inside a program is marked
 * itself. */
static void note_bad(list *l, const char *path)
{
    const char *slash = strchr(path, '/');
    slash = slash ? strchr(slash + 1, '/') : NULL;
    const size_t length = slash ? (size_t)(slash - path) : strlen(path);
    for (size_t i = 0; i < l->bad_count; ++i)
        if (strlen(l->bad[i]) == length && memcmp(l->bad[i], path, length) == 0) return;
    char *copy = l->bad_count < CLV_LEN(l->bad) ? clv_alloc(length + 1, 1) : NULL;
    l->too_many = l->too_many || !copy;
    if (!copy) return;
    memcpy(copy, path, length), copy[length] = '\0';
    l->bad[l->bad_count++] = copy;
}

static bool earlier(struct timespec a, struct timespec b)
{
    return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

/* Returns whether `name`, relative to Mesa's folder, is a cache entry: mesa_shader_cache/XX/DIGITS. */
static bool is_entry(const char *name)
{
    static const char digits[] = "0123456789abcdef";
    const char *slash = strchr(name, '/');
    return slash && strspn(slash + 1, digits) == 2 && slash[3] == '/' && strlen(slash + 4) > 8 &&
           strspn(slash + 4, digits) == strlen(slash + 4);
}

static int visit(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    list *l = visiting;
    const char *name = path + l->length + 1;
    char sum[HEX + 1] = "";
    if (kind == FTW_D || walk->level == 0 || clv_starts_with(name, "tempfile_")) return 0;
    if (l->checked && (kind != FTW_F || !is_entry(name))) return 0;
    entry *e = find(l, name);
    if (kind != FTW_F || strchr(name, '\n')) {
        note_bad(l, name);
    } else if (e) {
        e->there = true;
        if (!l->add && (!sum_file(path, sum) || strcmp(sum, e->sum) != 0)) note_bad(l, name);
        if (l->add && !earlier(info->st_mtim, l->since) && sum_file(path, sum) &&
            strcmp(sum, e->sum) != 0) {
            memcpy(e->sum, sum, HEX);
            l->changed = true;
        }
    } else if (!l->add) {
        if (!l->checked) note_bad(l, name);
    } else if (sum_file(path, sum) && add_entry(l, name, strlen(name), sum)) {
        l->items[l->count - 1].there = true;
    }
    return 0;
}

static void walk(const place *p, list *l)
{
    l->length = strlen(p->folder);
    visiting = l;
    (void)nftw(p->folder, visit, DEEPEST, FTW_PHYS);
    visiting = NULL;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info, (void)kind, (void)walk;
    (void)remove(path);
    return 0;
}

/* Removes everything in the folder, and the list of digests; the folder itself stays. */
static void wipe(const place *p)
{
    char path[PATH_MAX];
    (void)nftw(p->folder, remove_one, DEEPEST, FTW_DEPTH | FTW_PHYS);
    beside(p, ".sums", path, sizeof path);
    unlink(path);
    (void)clv_dir_make_private(p->folder);
}

static void remove_bad(const place *p, const list *l)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < l->bad_count; ++i)
        if ((size_t)snprintf(path, sizeof path, "%s/%s", p->folder, l->bad[i]) < sizeof path)
            (void)nftw(path, remove_one, DEEPEST, FTW_DEPTH | FTW_PHYS);
}

/* Drops the entries of removed programs from the list. */
static void drop_removed(list *l)
{
    for (size_t i = 0; i < l->count; ++i)
        for (size_t k = 0; k < l->bad_count && l->items[i].there; ++k)
            if (clv_starts_with(l->items[i].path, l->bad[k])) l->items[i].there = false;
}

/* Returns whether a recorded file is damaged or gone. When no other process uses the folder (`alone`), removes such a
 * file's program, and silently removes what a run left unfinished. Otherwise another process may be writing the file
 * right now, so nothing is removed. */
static bool check_all(const place *p, bool alone)
{
    list *l = clv_zalloc(1, sizeof *l);
    if (!l) return false;
    l->checked = p->checked;
    read_list(p, l);
    const size_t known = l->count;
    walk(p, l);
    bool damaged = false;
    for (size_t i = 0; i < known; ++i) {
        char path[PATH_MAX], sum[HEX + 1];
        snprintf(path, sizeof path, "%s/%s", p->folder, l->items[i].path);
        if (l->items[i].there && sum_file(path, sum) && strcmp(sum, l->items[i].sum) == 0) continue;
        if (l->checked && !l->items[i].there) continue;
        note_bad(l, l->items[i].path);
        damaged = true;
    }
    if (alone && l->too_many) {
        wipe(p);
    } else if (alone && l->bad_count) {
        remove_bad(p, l);
        drop_removed(l);
        write_list(p, l);
    }
    clear_list(l);
    clv_free(l);
    return damaged;
}

/* ---- processes -------------------------------------------------------------------------------- */

/* Contents of a mark, which their lengths tell apart. */
static const char died[] = "died\n", forget[] = "forget\n";
enum { DIED = sizeof died - 1, FORGET = sizeof forget - 1 };

/* What the marks of earlier and concurrent runs report. */
typedef struct marks {
    bool died;   /* a run died inside the driver */
    bool forget; /* a run wants all kernels removed */
    bool left;   /* a mark belongs to a process that no longer exists */
} marks;

static marks read_marks(const place *p, bool remove_them)
{
    char parent[PATH_MAX], path[PATH_MAX];
    const char *slash = strrchr(p->folder, '/');
    marks found = { 0 };
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - p->folder), p->folder);
    DIR *directory = opendir(parent);
    if (!directory) return found;
    for (struct dirent *d; (d = readdir(directory));) {
        struct stat info;
        const size_t name = strlen(slash + 1);
        if (strncmp(d->d_name, slash + 1, name) != 0 ||
            !clv_starts_with(d->d_name + name, ".run-") ||
            (size_t)snprintf(path, sizeof path, "%s/%s", parent, d->d_name) >= sizeof path)
            continue;
        const long pid = strtol(d->d_name + name + strlen(".run-"), NULL, 10);
        const off_t size = lstat(path, &info) == 0 ? info.st_size : 0;
        found.forget = found.forget || size == FORGET;
        found.died = found.died || (size > 0 && size != FORGET);
        found.left = found.left || (pid > 0 && kill((pid_t)pid, 0) && errno == ESRCH);
        if (remove_them) unlink(path);
    }
    closedir(directory);
    return found;
}

/* Takes the exclusive lock and returns whether no other process uses the folder. Children of a killed run may live a
 * moment longer than that run and hold the lock until they die, so this waits up to 0.5 s for them. */
static bool lock_alone(const place *p)
{
    static const double patience_s = 0.5;
    if (p->lock_fd < 0) return false;
    for (const double end = clv_now() + patience_s; flock(p->lock_fd, LOCK_EX | LOCK_NB);
         clv_sleep(0.01))
        if (clv_now() > end || !read_marks(p, false).left) return false;
    return true;
}

/* Takes the shared lock and returns true as soon as no other process is removing files; a process that is alone holds
 * the exclusive lock only during its check. Where files cannot be locked, no process ever counts as alone. */
static bool lock_shared(const place *p)
{
    static const double patience_s = 20;
    if (p->lock_fd < 0) return false;
    for (const double end = clv_now() + patience_s; flock(p->lock_fd, LOCK_SH | LOCK_NB);
         clv_sleep(0.01)) {
        if (errno != EWOULDBLOCK && errno != EINTR) return true;
        if (clv_now() > end) return false;
    }
    return true;
}

static void note_death(void)
{
    for (size_t i = 0; i < place_count; ++i)
        if (places[i].mark_fd >= 0 && getpid() == owner &&
            write(places[i].mark_fd, died, DIED) != DIED)
            continue;
}

static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
static struct sigaction before[CLV_LEN(deadly)];

/* Notes the death and removes temporary files, then restores the earlier handler and raises the signal again. */
static void on_death(int number)
{
    note_death();
    if (getpid() == owner) clv_temporaries_remove();
    for (size_t i = 0; i < CLV_LEN(deadly); ++i)
        if (deadly[i] == number) sigaction(number, &before[i], NULL);
    raise(number);
}

/* A driver's compiler may call exit when it fails; that counts as a death inside the driver, too. */
static void on_exit_unsealed(void)
{
    if (sealed || getpid() != owner) return;
    note_death();
    clv_temporaries_remove();
    cli_say(stderr, "cleave: an OpenCL driver has ended the process; what it said stands above\n");
}

/* Writes the path of this process's mark. */
static void mark_of(const place *p, char *path, size_t capacity)
{
    snprintf(path, capacity, "%.*s.run-%ld", (int)sizeof p->folder - 1, p->folder, (long)owner);
}

void cli_kernels_watch(void)
{
    const struct sigaction action = { .sa_handler = on_death };
    if (owner == getpid()) return;
    owner = getpid();
    for (size_t i = 0; i < CLV_LEN(deadly); ++i)
        sigaction(deadly[i], &action, &before[i]);
    atexit(on_exit_unsealed);
}

static void leave_mark(place *p)
{
    char path[PATH_MAX];
    cli_kernels_watch();
    mark_of(p, path, sizeof path);
    p->mark_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
}

bool cli_kernels_guard(const char *folder, bool checked)
{
    static bool told;
    char path[PATH_MAX];
    if (strlen(folder) >= sizeof places->folder || place_count == MOST_PLACES) return true;
    place *p = &places[place_count++];
    *p = (place){ .lock_fd = -1, .mark_fd = -1, .checked = checked };
    clv_copy_string(p->folder, sizeof p->folder, folder);
    beside(p, ".lock", path, sizeof path);
    p->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    const bool alone = lock_alone(p);
    const marks runs = read_marks(p, alone);
    bool usable = true;
    if (!alone) {
        usable = lock_shared(p) && !check_all(p, false);
    } else if (runs.died || runs.forget) {
        if (runs.died && !told)
            cli_say(stderr,
                    "cleave: the last run died inside an OpenCL driver; the kernels that it had "
                    "compiled are removed, and compiled again\n");
        told = told || runs.died;
        wipe(p);
    } else if (check_all(p, true) && !runs.left) {
        cli_say(stderr,
                "cleave: compiled kernels in %s were damaged; they are removed, and compiled "
                "again\n",
                p->folder);
    }
    /* another process may take the lock in between; it finds none of our files yet */
    if (alone) usable = lock_shared(p);
    /* `cleave cache clear` may have removed it before we had the lock */
    if (usable) usable = clv_dir_make_private(p->folder) == CLV_OK;
    if (usable) {
        leave_mark(p);
        return true;
    }
    if (p->lock_fd >= 0) close(p->lock_fd);
    --place_count;
    return false;
}

/* Records the digests of the files that lie in the folder now. */
static void vouch(const place *p)
{
    list *l = clv_zalloc(1, sizeof *l);
    if (!l) return;
    l->checked = p->checked;
    read_list(p, l);
    l->add = true;
    struct stat mark;
    if (fstat(p->mark_fd, &mark) == 0) l->since = mark.st_mtim;
    const size_t known = l->count;
    walk(p, l);
    size_t there = 0;
    for (size_t i = 0; i < known; ++i)
        there += l->items[i].there;
    if (l->changed || l->count > known || there < known) write_list(p, l);
    clear_list(l);
    clv_free(l);
}

void cli_kernels_seal(bool good)
{
    sealed = true;
    if (!place_count || getpid() != owner) return;
    char path[PATH_MAX];
    if (!good) note_death(); /* the marks stay and record the failure */
    for (size_t i = 0; i < place_count; ++i) {
        place *p = &places[i];
        if (p->mark_fd < 0) continue;
        if (good) vouch(p);
        close(p->mark_fd);
        p->mark_fd = -1;
        mark_of(p, path, sizeof path);
        if (good) unlink(path);
    }
}

void cli_kernels_forget(void)
{
    for (size_t i = 0; i < place_count; ++i) {
        place *p = &places[i];
        if (p->mark_fd < 0) continue;
        const bool alone = p->lock_fd >= 0 && flock(p->lock_fd, LOCK_EX | LOCK_NB) == 0;
        if (alone)
            wipe(p);
        else if (write(p->mark_fd, forget, FORGET) == FORGET)
            close(p->mark_fd), p->mark_fd = -1; /* the mark stays for the next run */
        /* the system gives up the shared lock even if it does not give the exclusive one */
        (void)lock_shared(p);
    }
}
