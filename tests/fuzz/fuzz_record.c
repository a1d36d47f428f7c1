/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as the record of a shard, and as packed results. An input that begins with '=' is put after a
 * valid head, and its entries get valid digests, so that mutations reach the code after these checks. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/cli/shard.h"
#include "runtime/job/packed.h"
#include "runtime/job/results.h"

#include <cleave/version.h>

#include <stdio.h>
#include <string.h>

enum { STEP = 16, ROOM = 1 << 16, MOST_KEYS = 70 };

/* Writes a head as host/cli/record.c does, of shard 1 of 1. */
static size_t true_head(uint8_t out[256])
{
    char head[200];
    const int length =
        snprintf(head, sizeof head, "%s%clittle%c1%c1%c2%cblobs%cmovie.npy%c1%cmovie.npy%c%064d",
                 clv_version(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 7) +
        1;
    const uint64_t lengths[2] = { (uint64_t)length, 0 };
    const size_t end = STEP + sizeof lengths + (size_t)length;
    memset(out, 0, 256);
    memcpy(out, "cleave record 1\n", STEP);
    memcpy(out + STEP, lengths, sizeof lengths);
    memcpy(out + STEP + sizeof lengths, head, (size_t)length);
    return (end + STEP - 1) / STEP * STEP;
}

static void true_digests(uint8_t *at, size_t left)
{
    cli_record_entry e;
    while (left >= sizeof e) {
        memcpy(&e, at, sizeof e);
        if (e.ends || e.bytes > left - sizeof e) return;
        const clv_digest digest = clv_sha256(at + sizeof e, (size_t)e.bytes);
        memcpy(at + offsetof(cli_record_entry, digest), digest.bytes, sizeof e.digest);
        const size_t step = sizeof e + ((size_t)e.bytes + STEP - 1) / STEP * STEP;
        if (step > left) return;
        at += step, left -= step;
    }
}

/* Takes results of several lengths as a commit function does; none may be longer than the packed bytes. */
static void try_results(const void *bytes, size_t length)
{
    static const size_t wanted[] = { 0, 1, 24, 1000 };
    clv_slot slot = { 0 };
    if (clv_unpack(bytes, length, &slot)) return;
    for (unsigned key = 0; key < MOST_KEYS; ++key)
        for (size_t i = 0; i < CLV_LEN(wanted); ++i) {
            const unsigned char *result;
            if (clv_slot_take(&slot, key, wanted[i], &result)) continue;
            FUZZ_CHECK(wanted[i] <= length);
            fuzz_touch(result, wanted[i]);
        }
}

static void try_record(const char *path)
{
    cli_place place = { 0 };
    cli_replay replay = { .place = &place };
    const clv_status status = cli_replay_open(&replay, &path, 1);
    if (!status) FUZZ_CHECK(replay.record_count == 1 && replay.records[0].head.argc > 0);
    for (size_t i = 0; !status && i < replay.item_count; ++i) {
        const cli_record *record = &replay.records[0];
        const void *bytes;
        const cli_record_entry *e = record->entries[i];
        FUZZ_CHECK(e->count && e->first + e->count <= e->units && e->bytes <= record->length);
        if (cli_record_read(record, i, &bytes) == CLV_OK) try_results(bytes, (size_t)e->bytes);
    }
    cli_replay_close(&replay);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t made[ROOM];
    if (size > ROOM / 2) return 0;
    if (size && *data == '=') {
        const size_t head = true_head(made);
        memcpy(made + head, data + 1, size - 1);
        true_digests(made + head, size - 1);
        try_record(fuzz_file(made, head + size - 1));
        return 0;
    }
    try_record(fuzz_file(data, size));
    void *aligned = fuzz_alloc(1, size + 1);
    FUZZ_CHECK(aligned);
    memcpy(aligned, data, size);
    try_results(aligned, size);
    clv_free(aligned);
    return 0;
}
