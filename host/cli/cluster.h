/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out which rank of an MPI job this process is, and shares jobs among the ranks.
 *
 * All ranks run the same command on the same inputs. The units of a job are leased to the ranks in ranges
 * (ranges.h). At the end of a job every rank gets all results. Rank 0 writes the outputs and prints the messages;
 * the other ranks write nothing and print nothing but errors. */
#ifndef CLEAVE_HOST_CLI_CLUSTER_H
#define CLEAVE_HOST_CLI_CLUSTER_H

#include "runtime/job/spread.h"

/* Reads what the launcher (mpirun, mpiexec, srun) says, and CLEAVE_MPI. If there are several ranks, binds this one to
 * its share of the cores unless the launcher has bound it, and silences all but rank 0. main() calls it first. If
 * `shares` is false, the command cannot share its work, and rank 0 does it alone. Returns -1 to continue, else the exit
 * code. */
int cli_cluster_join(bool shares);

int cli_cluster_ranks(void); /* 1: no MPI */
int cli_cluster_rank(void);
/* Returns the number of this process among the ranks on this machine, from 0. */
int cli_cluster_local(void);

/* Returns whether Slurm (srun) runs several copies of this command in a step, none of which is an MPI rank because
 * the step has no interface of MPI (PMI). *task is the number of this copy, from 0, and *tasks the number of copies. */
bool cli_cluster_copies(int *task, int *tasks);

/* Starts MPI at the first call. *spread is NULL if there is one rank. */
clv_status cli_cluster_spread(const clv_spread **spread);
/* Copies rank 0's `bytes` to all ranks. Does nothing without MPI. */
void cli_cluster_tell(void *bytes, size_t length);
/* Ends MPI with the command's exit code. An exit code other than 0 ends all ranks. */
void cli_cluster_leave(int code);

#endif
