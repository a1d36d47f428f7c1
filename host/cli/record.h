/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads records: files with the results of a shard.
 *
 * The file begins with the line "cleave record 1", the length of the head and the head: the version, the byte order,
 * the number of the shard and of all shards, the arguments of the run, and the inputs with their SHA-256. After the
 * head, each chunk of units has an entry, with a SHA-256 of the packed results (runtime/job/packed.h). The last
 * entry ends the file and holds the number of entries. Numbers are in the machine's own representation. Everything
 * is aligned to 16 bytes. */
#ifndef CLEAVE_HOST_CLI_RECORD_H
#define CLEAVE_HOST_CLI_RECORD_H

#include "base/digest.h"
#include "host/io/output.h"

typedef struct cli_record_input {
    char *path;
    char digest[65];
} cli_record_input;

/* The head of a record: the shard, and the run's arguments and inputs. */
typedef struct cli_record_head {
    unsigned shard, shards; /* number of the shard, from 1, and of all shards */
    int argc;
    char **argv; /* ends with NULL */
    cli_record_input *inputs;
    size_t input_count;
} cli_record_head;

/* Describes a chunk of results: the step of the command, the job of that step, the job's identity, and the chunk's
 * units. */
typedef struct cli_record_entry {
    uint32_t mark, ends;
    uint64_t step, job, identity, units, first, count, bytes;
    unsigned char digest[32];
} cli_record_entry;

typedef struct cli_record_writer {
    clv_output output;
    uint64_t entries;
} cli_record_writer;

clv_status cli_record_begin(cli_record_writer *w, const char *path, const cli_record_head *head);
clv_status cli_record_add(cli_record_writer *w, const cli_record_entry *entry, const void *bytes);
clv_status cli_record_finish(cli_record_writer *w); /* the file is complete, or absent */

/* A record that is mapped into memory. */
typedef struct cli_record {
    const char *path;
    cli_record_head head;
    const unsigned char *bytes;
    size_t length;
    const cli_record_entry **entries;
    size_t entry_count;
} cli_record;

/* Maps a record and checks all sizes. Errors: CLV_E_IO, CLV_E_FORMAT, CLV_E_MEMORY. */
clv_status cli_record_open(const char *path, cli_record *record);
/* Checks an entry's digest and returns the entry's bytes; CLV_E_FORMAT if they are damaged. */
clv_status cli_record_read(const cli_record *record, size_t entry, const void **bytes);
void cli_record_close(cli_record *record);

#endif
