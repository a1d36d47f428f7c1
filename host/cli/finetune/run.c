/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a training: epochs of shuffled batches, validation, and states from which the run can be resumed. */
#include "host/cli/finetune/run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <cleave/tensors.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct batch {
    int32_t *ids, *labels;
    size_t *offsets;
    size_t texts, id_room, label_room, offset_room;
} batch;

static void batch_clear(batch *b)
{
    clv_free(b->ids), clv_free(b->labels), clv_free(b->offsets);
}

/* Fills the batch with the `count` examples order[first ...]; if `order` is NULL, with the examples in file order. */
static clv_status batch_fill(batch *b, const cli_examples *e, const uint32_t *order, size_t first,
                             size_t count)
{
    const size_t each = e->texts_each;
    size_t tokens = 0;
    b->texts = 0;
    if (!clv_reserve(&b->offsets, &b->offset_room, count * each + 1, sizeof *b->offsets) ||
        !clv_reserve(&b->labels, &b->label_room, count, sizeof *b->labels))
        return clv_fail(CLV_E_MEMORY, "not enough memory for a batch of %zu", count);
    b->offsets[0] = 0;
    for (size_t i = 0; i < count; ++i) {
        const size_t example = order ? order[first + i] : first + i;
        if (e->labels) b->labels[i] = e->labels[example];
        for (size_t k = 0; k < each; ++k) {
            const size_t from = e->offsets[example * each + k];
            const size_t length = e->offsets[example * each + k + 1] - from;
            if (!clv_reserve(&b->ids, &b->id_room, tokens + length, sizeof *b->ids))
                return clv_fail(CLV_E_MEMORY, "not enough memory for a batch of %zu", count);
            memcpy(b->ids + tokens, e->ids + from, length * sizeof *b->ids);
            b->offsets[++b->texts] = tokens += length;
        }
    }
    return CLV_OK;
}

/* Returns the next random number of SplitMix64. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Shuffles the examples of an epoch. The order depends only on seed and epoch, so that a run can be resumed
 * anywhere. */
static void shuffle(uint32_t *order, size_t count, uint64_t seed, uint64_t epoch)
{
    uint64_t state = seed * 0xD1342543DE82EF95u + epoch;
    for (size_t i = 0; i < count; ++i)
        order[i] = (uint32_t)i;
    for (size_t i = count; i > 1; --i) {
        const size_t other = (size_t)(draw(&state) % i);
        const uint32_t kept = order[i - 1];
        order[i - 1] = order[other], order[other] = kept;
    }
}

static uint64_t steps_an_epoch(const cli_train_plan *p)
{
    return (p->examples->count + p->batch_size - 1) / p->batch_size;
}

uint64_t cli_train_steps(const cli_train_plan *p)
{
    return steps_an_epoch(p) * p->epochs;
}

/* Returns the learning rate of step 0, 1, ...: the rate rises linearly, then falls linearly or stays constant. */
static double rate_of(const cli_train_plan *p, uint64_t step)
{
    const double total = (double)cli_train_steps(p), at = (double)step;
    const double rise = p->warmup * total;
    if (at + 1 <= rise) return p->rate * (at + 1) / rise;
    if (p->constant || at <= rise) return p->rate; /* the rise may end within a step */
    return p->rate * (total - at) / (total - rise);
}

/* Writes the settings that must be the same when a run resumes from a state. */
static void describe(const cli_train_plan *p, char out[200])
{
    snprintf(out, 200,
             "data %016" PRIx64 " seed %" PRIu64 " epochs %" PRIu64 " batch %" PRIu64
             " rate %.17g warmup %.17g %s",
             cli_examples_fingerprint(p->examples), p->seed, p->epochs, p->batch_size, p->rate,
             p->warmup, p->constant ? "constant" : "linear");
}

clv_status cli_train_save(const cli_train_plan *p, clv_trainer *trainer)
{
    char run[200];
    describe(p, run);
    const char *const metadata[] = { "cleave.run", run, NULL };
    cli_saving(true);
    const clv_status status = clv_trainer_save(trainer, p->state, metadata);
    cli_saving(false);
    return status;
}

static clv_status resume(const cli_train_plan *p, clv_trainer *trainer)
{
    char run[200];
    clv_tensors *file = NULL;
    describe(p, run);
    CLV_TRY(clv_tensors_open(p->state, &file));
    const char *found = clv_tensors_metadata(file, "cleave.run");
    clv_status status = CLV_OK;
    if (!found || strcmp(found, run) != 0)
        status = clv_fail(
            CLV_E_FORMAT,
            "%s belongs to another run: its options are \"%s\", those of this run are \"%s\"",
            p->state, found ? found : "", run);
    clv_tensors_close(file);
    return status ? status : clv_trainer_restore(trainer, p->state);
}

/* Runs a batch without learning; `scores` is [texts, classes]. */
static clv_status look(const cli_train_plan *p, clv_trainer *trainer, const batch *b,
                       cli_metrics *out)
{
    clv_train_result r;
    if (!p->classes) {
        CLV_TRY(clv_trainer_evaluate(trainer, b->ids, b->offsets, b->texts, NULL, &r));
        cli_metrics_add(out, &r, NULL, NULL, 0);
        return CLV_OK;
    }
    float *scores = clv_alloc(b->texts * p->classes, sizeof *scores);
    if (!scores)
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu x %zu scores", b->texts,
                        p->classes);
    const clv_status status =
        clv_trainer_scores(trainer, b->ids, b->offsets, b->texts, b->labels, scores, &r);
    if (!status) cli_metrics_add(out, &r, scores, b->labels, b->texts);
    clv_free(scores);
    return status;
}

static clv_status validate(const cli_train_plan *p, const cli_examples *e, clv_trainer *trainer,
                           batch *b, cli_metrics *out)
{
    CLV_TRY(cli_metrics_begin(out, p->classes));
    for (size_t first = 0; first < e->count; first += p->batch_size) {
        CLV_TRY(batch_fill(b, e, NULL, first, CLV_MIN((size_t)p->batch_size, e->count - first)));
        CLV_TRY(look(p, trainer, b, out));
        if (cli_interrupted()) return clv_fail(CLV_E_CANCELLED, "interrupted");
    }
    return CLV_OK;
}

clv_status cli_train_test(const cli_train_plan *p, const cli_examples *examples,
                          clv_trainer *trainer, cli_metrics *metrics)
{
    batch b = { 0 };
    const clv_status status = validate(p, examples, trainer, &b, metrics);
    batch_clear(&b);
    return status;
}

/* Prints a line of results, after erasing the bar. */
static void say(const cli_train_plan *p, const cli_bar *bar, const char *line)
{
    if (p->quiet) return;
    if (bar->show) cli_status_line(NULL);
    cli_say(stdout, "%s", line);
    fflush(stdout);
}

static clv_status one_step(const cli_train_plan *p, clv_trainer *trainer, const cli_bar *bar,
                           const uint32_t *order, batch *b, cli_train_facts *facts)
{
    char line[160];
    clv_train_result r;
    const uint64_t step = clv_trainer_steps(trainer), each = steps_an_epoch(p);
    const size_t first = (size_t)(step % each * p->batch_size);
    const double rate = rate_of(p, step);
    CLV_TRY(batch_fill(b, p->examples, order, first,
                       CLV_MIN((size_t)p->batch_size, p->examples->count - first)));
    CLV_TRY(clv_trainer_step(trainer, b->ids, b->offsets, b->texts,
                             p->examples->labels ? b->labels : NULL, rate, &r));
    if (!isfinite(r.loss))
        return clv_fail(CLV_E_ARGUMENT,
                        "step %" PRIu64 ": the loss has become %g, so the training has diverged; "
                        "nothing is written. A lower --lr or --clip may help",
                        step + 1, r.loss);
    if (step == facts->resumed_at) facts->first_loss = r.loss;
    facts->last_loss = r.loss;
    ++facts->steps;
    facts->texts += b->texts;
    facts->tokens += b->offsets[b->texts];
    snprintf(line, sizeof line,
             "step %" PRIu64 "/%" PRIu64 " epoch %" PRIu64 " loss %.6f rate %.4g\n", step + 1,
             cli_train_steps(p), step / each + 1, r.loss, rate);
    say(p, bar, line);
    return CLV_OK;
}

static clv_status end_epoch(const cli_train_plan *p, clv_trainer *trainer, const cli_bar *bar,
                            uint64_t epoch, batch *b, cli_train_facts *facts)
{
    char line[160];
    char f1[40] = "";
    cli_metrics *v = &facts->validation;
    if (!p->validation) return CLV_OK;
    CLV_TRY(validate(p, p->validation, trainer, b, v));
    if (v->classes) snprintf(f1, sizeof f1, " macro F1 %.4f", cli_metrics_macro_f1(v));
    snprintf(line, sizeof line,
             "epoch %" PRIu64 " validation loss %.6f accuracy %.4f (%zu of %zu)%s\n", epoch,
             cli_metrics_loss(v), cli_metrics_accuracy(v), v->right, v->counted, f1);
    say(p, bar, line);
    return CLV_OK;
}

static clv_status interrupted(const cli_train_plan *p, uint64_t done)
{
    return clv_fail(CLV_E_CANCELLED, "interrupted after step %" PRIu64 "; --resume goes on from %s",
                    done, p->state);
}

/* Saves the state and validates between two steps, when they are due. The state is saved first, because a validation
 * may take long, fail or be interrupted. */
static clv_status behind_step(const cli_train_plan *p, clv_trainer *trainer, cli_bar *bar, batch *b,
                              cli_train_facts *facts)
{
    const uint64_t total = cli_train_steps(p), done = clv_trainer_steps(trainer);
    const bool epoch = done % steps_an_epoch(p) == 0, ends = done == total;
    const bool due = epoch ? !ends || p->validation : p->save_every && done % p->save_every == 0;
    const bool stop = cli_progress("finetune", (size_t)done, (size_t)total, bar) != 0;
    if (due || stop) CLV_TRY(cli_train_save(p, trainer));
    if (stop && !ends) return interrupted(p, done);
    const clv_status status =
        epoch ? end_epoch(p, trainer, bar, done / steps_an_epoch(p), b, facts) : CLV_OK;
    return status == CLV_E_CANCELLED ? interrupted(p, done) : status;
}

static clv_status run(const cli_train_plan *p, clv_trainer *trainer, cli_bar *bar, uint32_t *order,
                      batch *b, cli_train_facts *facts)
{
    const uint64_t total = cli_train_steps(p), each = steps_an_epoch(p);
    uint64_t shuffled = UINT64_MAX;
    if (clv_trainer_steps(trainer) && clv_trainer_steps(trainer) % each == 0)
        CLV_TRY(behind_step(p, trainer, bar, b, facts)); /* a validation may be missing */
    while (clv_trainer_steps(trainer) < total) {
        const uint64_t epoch = clv_trainer_steps(trainer) / each;
        if (epoch != shuffled) shuffle(order, p->examples->count, p->seed, shuffled = epoch);
        CLV_TRY(one_step(p, trainer, bar, order, b, facts));
        CLV_TRY(behind_step(p, trainer, bar, b, facts));
    }
    return CLV_OK;
}

clv_status cli_train_run(const cli_train_plan *p, clv_trainer *trainer, cli_bar *bar,
                         cli_train_facts *facts)
{
    batch b = { 0 };
    const double started = clv_now();
    uint32_t *order = clv_alloc(p->examples->count, sizeof *order);
    clv_status status =
        order ? CLV_OK
              : clv_fail(CLV_E_MEMORY, "not enough memory to shuffle %zu", p->examples->count);
    if (!status && p->resume) status = resume(p, trainer);
    facts->resumed_at = clv_trainer_steps(trainer);
    if (!status) status = run(p, trainer, bar, order, &b, facts);
    facts->seconds = clv_now() - started;
    batch_clear(&b);
    clv_free(order);
    return status;
}
