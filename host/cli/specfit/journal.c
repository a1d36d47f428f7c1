/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the journal of a run: what the run works on, then one record for each finished block of stars.
 *
 * The file begins with the line "cleave specfit journal 1", the length of the identity and the identity. Each record
 * is a header (mark, first star, stars, bytes, SHA-256 of the bytes) and the bytes. The bytes are the results and,
 * if models are kept, for every star and slot a byte that is 1 if there is a model, followed by the model. Numbers
 * are stored in the machine's own representation, which the identity names. Reading stops at the first record that
 * is truncated or damaged. */
#include "host/cli/specfit/files.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"

#include <cleave/version.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "cleave specfit journal 1\n";
enum { MAGIC = sizeof magic - 1, MAX_IDENTITY = 1 << 16 };
static const uint32_t mark = 0x51a2b3c4;

typedef struct record {
    uint32_t mark, models;
    uint64_t from, count, bytes;
    unsigned char digest[32];
} record;

static clv_status io_error(const char *doing, const char *path)
{
    return clv_fail(CLV_E_IO, "%s: cannot %s the journal: %s", path, doing, strerror(errno));
}

/* ---- identity -------------------------------------------------------------------------------- */

static void add_digest(clv_text *text, const char *key, const void *data, size_t bytes)
{
    char hex[65];
    const clv_digest digest = clv_sha256(data, bytes);
    clv_digest_hex(&digest, hex);
    clv_text_add(text, "%s %s\n", key, hex);
}

static clv_status add_file(clv_text *text, const char *key, const char *path)
{
    struct stat facts;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &facts)) {
        const clv_status status = clv_fail(CLV_E_IO, "%s: %s", path, strerror(errno));
        if (file >= 0) close(file);
        return status;
    }
    const size_t bytes = facts.st_size > 0 ? (size_t)facts.st_size : 0;
    void *data = bytes ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
    close(file);
    if (data == MAP_FAILED) return clv_fail(CLV_E_IO, "%s: %s", path, strerror(errno));
    add_digest(text, key, data ? data : "", bytes);
    if (data) munmap(data, bytes);
    return CLV_OK;
}

static void add_arm(clv_text *text, const clv_spectra_arm *arm, size_t templates)
{
    clv_text all = { 0 };
    clv_text_add(&all, "%s %zu %.17g %.17g %.17g %.17g %.17g %.17g\n", arm->name, arm->points,
                 arm->first, arm->last, arm->ccf_log0, arm->ccf_log1, arm->ccf_spline_kms,
                 arm->sigma);
    for (size_t l = 0; l < arm->layers; ++l) {
        add_digest(&all, "weight", arm->weight[l],
                   arm->width[l] * arm->width[l + 1] * sizeof(float));
        add_digest(&all, "bias", arm->bias[l], arm->width[l + 1] * sizeof(float));
    }
    add_digest(&all, "mean", arm->mean, sizeof arm->mean);
    add_digest(&all, "std", arm->std, sizeof arm->std);
    add_digest(&all, "hull", arm->hull, arm->hull_count * 4 * sizeof(double));
    size_t nodes = 1;
    for (size_t k = 0; arm->nodes[0] && k < CLV_SPECTRA_PARAMETERS; ++k) {
        add_digest(&all, "axis", arm->axis[k], arm->nodes[k] * sizeof(double));
        nodes *= arm->nodes[k];
    }
    if (arm->nodes[0]) {
        add_digest(&all, "grid", arm->grid, nodes * sizeof *arm->grid);
        add_digest(&all, "flux", arm->grid_log_flux,
                   arm->grid_spectra * arm->points * sizeof *arm->grid_log_flux);
    }
    add_digest(&all, "ccf", arm->ccf, templates * arm->ccf_points * sizeof(float));
    char key[160];
    snprintf(key, sizeof key, "library:%s", arm->name);
    add_digest(text, key, all.data, all.length);
    text->failed |= all.failed;
    clv_text_clear(&all);
}

/* Adds one digest for all files, so that a long list of files does not make a long identity. */
static clv_status add_spectra(clv_text *out, const specfit_table *t)
{
    clv_text all = { 0 };
    clv_status status = CLV_OK;
    if (t->input_count == 1) return add_file(out, "spectra", t->inputs[0].path);
    for (size_t i = 0; i < t->input_count && !status; ++i)
        status = add_file(&all, "file", t->inputs[i].path);
    if (!status) add_digest(out, "spectra", clv_text_get(&all), all.length);
    out->failed |= all.failed;
    clv_text_clear(&all);
    return status;
}

clv_status specfit_identity(const specfit_args *a, const specfit_table *t,
                            const clv_spectra_library *library, const clv_context *context,
                            clv_text *out)
{
    const uint32_t order = 1;
    *out = (clv_text){ 0 };
    clv_text_add(out, "version %s\n", clv_version());
    clv_text_add(out, "numbers %zu %u\n", sizeof(clv_specfit_result),
                 (unsigned)*(const unsigned char *)&order);
    clv_text_add(out, "device");
    for (size_t i = 0; i < clv_context_device_count(context); ++i) {
        const clv_device *device = clv_context_device(context, i);
        clv_text_add(out, ", %s, %s", clv_device_label(device),
                     clv_device_facts(device)->driver_version);
    }
    clv_text_add(out,
                 "\noptions npoly %u starts %u velocities %.17g %.17g %.17g vsini %.17g sigma "
                 "%.17g resolution %d models %d plots %d\n",
                 (unsigned)a->npoly, (unsigned)a->starts, a->min_vel, a->max_vel, a->vel_step,
                 a->max_vsini, a->sigma0, a->resolution, a->models != NULL, a->plots != NULL);
    clv_text_add(out, "pixels reject %.17g ignore", a->reject);
    for (size_t i = 0; i < 2 * a->ignored_count; ++i)
        clv_text_add(out, " %.17g", a->ignored[i]);
    clv_text_add(out, "\n");
    clv_text_add(out,
                 "spectra_options combine %d medium %d velocity %.17g power %.17g columns %s\n",
                 a->combine, a->medium, a->velocity_added, a->resolving_power,
                 a->columns ? a->columns : "usual");
    if (t->priors) {
        clv_text known = { 0 };
        for (size_t i = 0; i < t->count; ++i)
            for (size_t k = 0; k < CLV_SPECTRA_UNKNOWNS; ++k)
                clv_text_add(&known, "%.17g %.17g %d\n", t->priors[i].value[k],
                             t->priors[i].sigma[k], t->priors[i].fixed[k]);
        add_digest(out, "priors", clv_text_get(&known), known.length);
        out->failed |= known.failed;
        clv_text_clear(&known);
    }
    CLV_TRY(add_spectra(out, t));
    for (size_t i = 0; i < t->columns; ++i)
        add_arm(out, &library->arms[i], library->ccf_count);
    add_digest(out, "starts", library->ccf_parameters, library->ccf_count * 4 * sizeof(double));
    uint64_t *rows = clv_alloc(CLV_MAX(2 * t->place_count + t->count, (size_t)1), sizeof *rows);
    if (!rows) return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for the journal");
    size_t n = 0;
    for (size_t i = 0; i < t->count; ++i)
        rows[n++] = t->rows[i].count;
    for (size_t i = 0; i < t->place_count; ++i)
        rows[n++] = t->places[i].input, rows[n++] = t->places[i].row;
    add_digest(out, "selection", rows, n * sizeof *rows);
    clv_free(rows);
    return out->failed ? clv_fail(CLV_E_MEMORY, "specfit: not enough memory for the journal")
                       : CLV_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Copies the first word of the first line in which the two identities differ. */
static void first_difference(const char *want, const char *got, char out[64])
{
    while (*want && *got && *want == *got) {
        const size_t n = strcspn(want, "\n"), m = strcspn(got, "\n");
        if (n != m || memcmp(want, got, n) != 0 || !want[n]) break;
        want += n + 1, got += n + 1;
    }
    snprintf(out, 64, "%.*s", (int)CLV_MIN(strcspn(want, " :\n"), (size_t)63), want);
}

static clv_status check_identity(const char *path, const unsigned char *bytes, size_t length,
                                 const char *identity, size_t *at)
{
    uint64_t told = 0;
    if (length < MAGIC + sizeof told || memcmp(bytes, magic, MAGIC) != 0)
        return clv_fail(CLV_E_FORMAT, "%s is not a journal of cleave specfit", path);
    memcpy(&told, bytes + MAGIC, sizeof told);
    *at = MAGIC + sizeof told;
    if (told > MAX_IDENTITY || told > length - *at)
        return clv_fail(CLV_E_FORMAT, "%s: the journal is damaged; remove it to start again", path);
    if (told == strlen(identity) && memcmp(bytes + *at, identity, told) == 0) {
        *at += (size_t)told;
        return CLV_OK;
    }
    char *other = clv_zalloc((size_t)told + 1, 1), key[64];
    if (!other) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    memcpy(other, bytes + *at, (size_t)told);
    first_difference(identity, other, key);
    clv_free(other);
    return clv_fail(CLV_E_FORMAT,
                    "%s is the journal of another run (these differ: %s); remove it to start again",
                    path, key);
}

/* Returns the number of bytes of one star's models, which follow the results of a record; SIZE_MAX: they do not fit. */
static size_t models_at(const specfit_table *t, const specfit_row *row, const unsigned char *bytes,
                        size_t left, const float *model[CLV_SPECTRA_MAX_SPECTRA])
{
    specfit_slot slots[CLV_SPECTRA_MAX_SPECTRA];
    const size_t spectra = specfit_slots(t, row, slots);
    size_t at = 0;
    for (size_t s = 0; s < spectra; ++s) {
        const size_t length = slots[s].pixels * sizeof(float);
        model[s] = NULL;
        if (at >= left || bytes[at] > 1) return SIZE_MAX;
        if (!bytes[at++]) continue;
        if (length > left - at) return SIZE_MAX;
        model[s] = (const float *)(const void *)(bytes + at);
        at += length;
    }
    return at;
}

/* Returns whether a record's bytes are results and, if the record has models, exactly their bytes. */
static bool is_sound(const specfit_table *t, const record *r, const unsigned char *bytes)
{
    const size_t fits = (size_t)r->count * sizeof(clv_specfit_result);
    const float *model[CLV_SPECTRA_MAX_SPECTRA];
    size_t at = fits;
    if (r->bytes < fits || (!r->models && r->bytes != fits)) return false;
    for (size_t i = 0; r->models && i < r->count; ++i) {
        const size_t used =
            models_at(t, &t->rows[r->from + i], bytes + at, (size_t)r->bytes - at, model);
        if (used == SIZE_MAX) return false;
        at += used;
    }
    return at == r->bytes;
}

static clv_status keep_record(const specfit_table *t, const record *r, const unsigned char *bytes,
                              clv_fits_rows *models)
{
    size_t at = (size_t)r->count * sizeof(clv_specfit_result);
    clv_status status = CLV_OK;
    for (size_t i = 0; i < r->count && !status; ++i) {
        specfit_row *row = &t->rows[r->from + i];
        specfit_slot slots[CLV_SPECTRA_MAX_SPECTRA];
        const size_t spectra = specfit_slots(t, row, slots);
        const float *model[CLV_SPECTRA_MAX_SPECTRA] = { NULL };
        memcpy(&row->fit, bytes + i * sizeof row->fit, sizeof row->fit);
        memset(row->fit.model, 0, sizeof row->fit.model);
        if (!r->models) continue;
        at += models_at(t, row, bytes + at, (size_t)r->bytes - at, model);
        for (size_t s = 0; s < spectra && !status; ++s) {
            if (!model[s]) continue;
            float *aligned = clv_alloc(slots[s].pixels, sizeof *aligned);
            if (!aligned)
                status = clv_fail(CLV_E_MEMORY, "specfit: not enough memory for the journal");
            if (aligned) memcpy(aligned, model[s], slots[s].pixels * sizeof *aligned);
            row->fit.model[s] = aligned;
        }
        if (!status && models && specfit_models_put(t, (size_t)r->from + i, 1, models))
            status = CLV_E_IO;
        for (size_t s = 0; s < spectra; ++s)
            clv_free(row->fit.model[s]);
        memset(row->fit.model, 0, sizeof row->fit.model);
    }
    return status;
}

/* Takes over records as long as they are complete and consecutive; *end is set to the end of the last one. */
static clv_status read_records(const specfit_table *t, bool with_models, clv_fits_rows *models,
                               const unsigned char *bytes, size_t length, size_t *end, size_t *done)
{
    for (*done = 0; length - *end >= sizeof(record);) {
        record r;
        memcpy(&r, bytes + *end, sizeof r);
        const unsigned char *payload = bytes + *end + sizeof r;
        const size_t left = length - *end - sizeof r;
        if (r.mark != mark || (r.models != 0) != with_models || r.from != *done || !r.count ||
            r.count > t->count - *done || r.bytes > left)
            break;
        const clv_digest digest = clv_sha256(payload, (size_t)r.bytes);
        if (memcmp(digest.bytes, r.digest, sizeof r.digest) != 0 || !is_sound(t, &r, payload))
            break;
        CLV_TRY(keep_record(t, &r, payload, models));
        *done += (size_t)r.count, *end += sizeof r + (size_t)r.bytes;
    }
    return CLV_OK;
}

static clv_status read_journal(const specfit_journal *j, const char *identity, size_t length,
                               const specfit_table *t, clv_fits_rows *models, size_t *end,
                               size_t *done)
{
    unsigned char *bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, j->file, 0);
    if (bytes == MAP_FAILED) return io_error("read", j->path);
    clv_status status = check_identity(j->path, bytes, length, identity, end);
    if (!status) status = read_records(t, j->with_models, models, bytes, length, end, done);
    munmap(bytes, length);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static clv_status append(const specfit_journal *j, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = write(j->file, (const char *)data + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return io_error("write", j->path);
        done += (size_t)n;
    }
    return CLV_OK;
}

static clv_status begin(const specfit_journal *j, const char *identity)
{
    const uint64_t length = strlen(identity);
    if (length > MAX_IDENTITY)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: the options and inputs of this run have too much text for the journal",
                        j->path);
    if (ftruncate(j->file, 0) || lseek(j->file, 0, SEEK_SET) < 0) return io_error("begin", j->path);
    clv_text head = { 0 };
    clv_text_bytes(&head, magic, MAGIC);
    clv_text_bytes(&head, &length, sizeof length);
    clv_text_bytes(&head, identity, (size_t)length);
    const clv_status status = head.failed ? clv_fail(CLV_E_MEMORY, "%s: out of memory", j->path)
                                          : append(j, head.data, head.length);
    clv_text_clear(&head);
    return status;
}

clv_status specfit_journal_open(const char *path, const char *identity, bool with_models,
                                const specfit_table *t, clv_fits_rows *models, specfit_journal *j,
                                size_t *done)
{
    struct stat facts;
    size_t end = 0;
    *done = 0;
    *j = (specfit_journal){ .file = -1, .path = clv_strdup(path), .with_models = with_models };
    if (!j->path) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    j->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    clv_status status = j->file < 0 ? io_error("open", path) : CLV_OK;
    if (!status && flock(j->file, LOCK_EX | LOCK_NB))
        status = clv_fail(CLV_E_IO, "%s: another run is writing this journal", path);
    if (!status && fstat(j->file, &facts)) status = io_error("read", path);
    if (!status && !S_ISREG(facts.st_mode)) status = clv_fail(CLV_E_FORMAT, "%s: not a file", path);
    if (!status && facts.st_size > 0)
        status = read_journal(j, identity, (size_t)facts.st_size, t, models, &end, done);
    else if (!status)
        status = begin(j, identity);
    if (!status && end &&
        (ftruncate(j->file, (off_t)end) || lseek(j->file, (off_t)end, SEEK_SET) < 0))
        status = io_error("write", path);
    if (status) specfit_journal_close(j, false);
    return status;
}

static void add_models(const specfit_table *t, const specfit_row *row, clv_text *payload)
{
    specfit_slot slots[CLV_SPECTRA_MAX_SPECTRA];
    const size_t spectra = specfit_slots(t, row, slots);
    for (size_t s = 0; s < spectra; ++s) {
        const float *model = row->fit.model[s];
        const unsigned char is = model != NULL;
        clv_text_bytes(payload, &is, 1);
        if (is) clv_text_bytes(payload, model, slots[s].pixels * sizeof *model);
    }
}

clv_status specfit_journal_put(specfit_journal *j, const specfit_table *t, size_t from,
                               size_t count)
{
    clv_text payload = { 0 };
    for (size_t i = from; i < from + count; ++i) {
        clv_specfit_result fit = t->rows[i].fit;
        memset(fit.model, 0, sizeof fit.model);
        clv_text_bytes(&payload, &fit, sizeof fit);
    }
    for (size_t i = from; j->with_models && i < from + count; ++i)
        add_models(t, &t->rows[i], &payload);
    clv_status status =
        payload.failed ? clv_fail(CLV_E_MEMORY, "%s: out of memory", j->path) : CLV_OK;
    if (!status) {
        record r = { .mark = mark,
                     .models = j->with_models,
                     .from = from,
                     .count = count,
                     .bytes = payload.length };
        const clv_digest digest = clv_sha256(payload.data, payload.length);
        memcpy(r.digest, digest.bytes, sizeof r.digest);
        status = append(j, &r, sizeof r);
    }
    if (!status) status = append(j, payload.data, payload.length);
    if (!status && fdatasync(j->file)) status = io_error("write", j->path);
    clv_text_clear(&payload);
    return status;
}

void specfit_journal_close(specfit_journal *j, bool remove)
{
    if (j->file >= 0 && remove) (void)unlink(j->path);
    if (j->file >= 0) close(j->file);
    clv_free(j->path);
    *j = (specfit_journal){ .file = -1 };
}
