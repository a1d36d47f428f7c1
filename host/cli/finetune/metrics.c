/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a classifier on labelled texts: accuracy, macro F1, confusion matrix. */
#include "host/cli/finetune/metrics.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Largest number of classes whose matrix is printed (MOST_TOLD) or written to the report (MOST_NOTED). */
enum { MOST_TOLD = 12, MOST_NOTED = 128, NAME_WIDTH = 24 };

clv_status cli_metrics_begin(cli_metrics *m, size_t classes)
{
    cli_metrics_clear(m);
    m->classes = classes;
    if (!classes) return CLV_OK;
    m->confusion = clv_zalloc(classes * classes, sizeof *m->confusion);
    return m->confusion
               ? CLV_OK
               : clv_fail(CLV_E_MEMORY, "not enough memory for a confusion matrix of %zu classes",
                          classes);
}

void cli_metrics_clear(cli_metrics *m)
{
    clv_free(m->confusion);
    *m = (cli_metrics){ 0 };
}

void cli_metrics_add(cli_metrics *m, const clv_train_result *result, const float *scores,
                     const int32_t *labels, size_t texts)
{
    m->counted += result->counted;
    m->right += result->right;
    m->loss_sum += result->loss * (double)result->counted;
    for (size_t i = 0; i < texts && m->classes; ++i) {
        const float *s = scores + i * m->classes;
        size_t best = 0;
        for (size_t c = 1; c < m->classes; ++c)
            if (s[c] > s[best]) best = c;
        ++m->confusion[(size_t)labels[i] * m->classes + best];
    }
}

double cli_metrics_loss(const cli_metrics *m)
{
    return m->counted ? m->loss_sum / (double)m->counted : 0;
}

double cli_metrics_accuracy(const cli_metrics *m)
{
    return m->counted ? (double)m->right / (double)m->counted : 0;
}

double cli_metrics_macro_f1(const cli_metrics *m)
{
    double sum = 0;
    size_t there = 0;
    for (size_t c = 0; c < m->classes; ++c) {
        uint64_t labelled = 0, said = 0;
        for (size_t i = 0; i < m->classes; ++i) {
            labelled += m->confusion[c * m->classes + i];
            said += m->confusion[i * m->classes + c];
        }
        if (!(labelled + said)) continue;
        ++there;
        sum += 2 * (double)m->confusion[c * m->classes + c] / (double)(labelled + said);
    }
    return there ? sum / (double)there : 0;
}

/* Writes the matrix to the report as "[[5, 0], [1, 4]]". */
static void note_matrix(const cli_metrics *m, clv_report *report, const char *key)
{
    clv_text text = { 0 };
    for (size_t i = 0; i < m->classes * m->classes; ++i) {
        const bool begins = i % m->classes == 0, ends = (i + 1) % m->classes == 0;
        clv_text_add(&text, "%s%s%" PRIu64 "%s", i ? ", " : "[", begins ? "[" : "", m->confusion[i],
                     ends ? "]" : "");
    }
    clv_text_add(&text, "]");
    if (!text.failed) clv_report_note_text(report, key, clv_text_get(&text));
    clv_text_clear(&text);
}

void cli_metrics_note(const cli_metrics *m, clv_report *report, const char *set)
{
    const struct {
        const char *key;
        double value;
    } notes[] = { { "loss", cli_metrics_loss(m) },
                  { "accuracy", cli_metrics_accuracy(m) },
                  { "macro_f1", cli_metrics_macro_f1(m) } };
    char key[80];
    for (size_t i = 0; i < CLV_LEN(notes) - !m->classes; ++i) {
        snprintf(key, sizeof key, "%s_%s", set, notes[i].key);
        clv_report_note(report, key, notes[i].value);
    }
    snprintf(key, sizeof key, "%s_confusion", set);
    if (m->classes && m->classes <= MOST_NOTED) note_matrix(m, report, key);
}

void cli_metrics_tell(const cli_metrics *m, const char *set, char *const *names)
{
    cli_say(stderr, "%s: loss %.6f, accuracy %.6f (%zu of %zu)", set, cli_metrics_loss(m),
            cli_metrics_accuracy(m), m->right, m->counted);
    if (m->classes) cli_say(stderr, ", macro F1 %.6f", cli_metrics_macro_f1(m));
    fputc('\n', stderr);
    if (!m->classes || m->classes > MOST_TOLD) return;
    cli_say(stderr,
            "%*s  number of texts with this label that the model puts into class 0, 1, ...\n",
            NAME_WIDTH, "label");
    for (size_t c = 0; c < m->classes; ++c) {
        char name[NAME_WIDTH + 1];
        clv_copy_string(name, sizeof name, names[c]);
        cli_say(stderr, "%2zu %*s ", c, NAME_WIDTH - 3, name);
        for (size_t i = 0; i < m->classes; ++i)
            cli_say(stderr, " %6" PRIu64, m->confusion[c * m->classes + i]);
        fputc('\n', stderr);
    }
}
