/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a classifier on labelled texts: accuracy, macro F1, confusion matrix. */
#ifndef CLEAVE_HOST_CLI_FINETUNE_METRICS_H
#define CLEAVE_HOST_CLI_FINETUNE_METRICS_H

#include "host/cli/cli.h"

#include <cleave/train.h>

/* Zero-initialise. `confusion` [classes, classes] counts texts: the row is the label, and the column is the prediction.
 * For pairs there are no classes and no matrix. */
typedef struct cli_metrics {
    size_t classes, counted, right;
    double loss_sum;
    uint64_t *confusion;
} cli_metrics;

/* Clears everything, and allocates the matrix. CLV_E_MEMORY. */
clv_status cli_metrics_begin(cli_metrics *metrics, size_t classes);
/* Adds a batch: scores [texts, classes], labels [texts]; for pairs both are ignored. */
void cli_metrics_add(cli_metrics *metrics, const clv_train_result *result, const float *scores,
                     const int32_t *labels, size_t texts);
void cli_metrics_clear(cli_metrics *metrics);

double cli_metrics_loss(const cli_metrics *metrics);
double cli_metrics_accuracy(const cli_metrics *metrics);
/* The mean over classes of 2 TP / (2 TP + FP + FN). A class that is neither a label nor a prediction does not count, as
 * in scikit-learn's f1_score(average="macro"). */
double cli_metrics_macro_f1(const cli_metrics *metrics);

/* Writes the metrics to the report; keys begin with `set` ("validation", "test"). */
void cli_metrics_note(const cli_metrics *metrics, clv_report *report, const char *set);
/* Prints the metrics to standard error, with the matrix if there are few classes. */
void cli_metrics_tell(const cli_metrics *metrics, const char *set, char *const *names);

#endif
