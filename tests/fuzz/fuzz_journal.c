/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as the journal of a run of specfit. An input that begins with '=' is a record's head (first star,
 * stars, models) and its bytes. It is put after a valid head and gets a valid checksum, so that mutations reach the
 * record. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "host/cli/specfit/files.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STARS = 4, PIXELS = 3, ROOM = 1 << 16 };
static const char identity[] = "version 1\nspectra 2\n", magic[] = "cleave specfit journal 1\n";

/* Replaces the writer of models, and reads each model. */
int specfit_models_put(const specfit_table *t, size_t from, size_t count, clv_fits_rows *file)
{
    (void)file;
    FUZZ_CHECK(from + count <= t->count);
    for (size_t i = from; i < from + count; ++i)
        if (t->rows[i].fit.model[0]) fuzz_touch(t->rows[i].fit.model[0], PIXELS * sizeof(float));
    return 0;
}

static size_t true_head(uint8_t *out)
{
    const uint64_t length = sizeof identity - 1;
    memcpy(out, magic, sizeof magic - 1);
    memcpy(out + sizeof magic - 1, &length, sizeof length);
    memcpy(out + sizeof magic - 1 + sizeof length, identity, length);
    return sizeof magic - 1 + sizeof length + length;
}

/* Makes a record with the layout that host/cli/specfit/journal.c writes. */
static size_t true_record(const uint8_t *data, size_t size, uint8_t *out)
{
    struct {
        uint32_t mark, models;
        uint64_t from, count, bytes;
        unsigned char digest[32];
    } r = { .mark = 0x51a2b3c4 };
    if (size < 3) return 0;
    r.from = data[0], r.count = data[1], r.models = data[2];
    r.bytes = CLV_MIN(size - 3, (size_t)ROOM / 2);
    const clv_digest digest = clv_sha256(data + 3, (size_t)r.bytes);
    memcpy(r.digest, digest.bytes, sizeof r.digest);
    memcpy(out, &r, sizeof r);
    memcpy(out + sizeof r, data + 3, (size_t)r.bytes);
    return sizeof r + (size_t)r.bytes;
}

static void try_journal(const char *path, bool models)
{
    specfit_input input = { .desi.rows = STARS, .column = { 0, SIZE_MAX, SIZE_MAX } };
    specfit_place places[STARS];
    specfit_row rows[STARS] = { { 0 } };
    const specfit_table table = { .input_count = 1,
                                  .inputs = &input,
                                  .columns = 1,
                                  .count = STARS,
                                  .rows = rows,
                                  .place_count = STARS,
                                  .places = places };
    for (size_t i = 0; i < STARS; ++i)
        places[i] = (specfit_place){ 0, i }, rows[i].first = i, rows[i].count = 1;
    clv_fits_rows file = { .file = -1 };
    specfit_journal journal;
    size_t done;
    input.desi.wavelength[0].shape[0] = PIXELS;
    if (specfit_journal_open(path, identity, models, &table, models ? &file : NULL, &journal,
                             &done)) {
        FUZZ_CHECK(journal.file < 0 && !journal.path);
        return;
    }
    FUZZ_CHECK(done <= STARS);
    for (size_t i = 0; i < STARS; ++i)
        for (size_t k = 0; k < CLV_SPECTRA_MAX_SPECTRA; ++k)
            FUZZ_CHECK(!rows[i].fit.model[k]);
    if (done < STARS) {
        size_t again;
        clv_status status = specfit_journal_put(&journal, &table, done, 1);
        specfit_journal_close(&journal, false);
        if (!status)
            status = specfit_journal_open(path, identity, models, &table, models ? &file : NULL,
                                          &journal, &again);
        FUZZ_CHECK(fuzz_poor || status == CLV_OK);
        if (status) return;
        FUZZ_CHECK(again == done + 1); /* the star that was added is found again */
    }
    specfit_journal_close(&journal, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t made[ROOM];
    if (size && *data == '=') {
        const size_t head = true_head(made);
        size = head + true_record(data + 1, size - 1, made + head);
        data = made;
    }
    for (int models = 0; models < 2; ++models)
        try_journal(fuzz_file(data, size), models != 0);
    return 0;
}
