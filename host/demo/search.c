/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: answers questions with sentences from Cleave's own manual pages. The vectors are counts of words, so
 * that no model is needed. With a model's vectors, the same search finds sentences of similar meaning. */
#include "host/cli/cli.h"
#include "host/demo/demo.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <cleave/search.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Each word sets PLACES of the WIDTH numbers of a vector. The ROWS after the passages are random words. */
enum { WIDTH = 512, PLACES = 2, ROWS = 10000, MOST_PASSAGES = 400, MOST_WORD = 32, LEAST_WORD = 3 };

static const struct {
    const char *text;
    const cli_command *answer;
} questions[] = {
    { "How do I find exoplanets in a sequence?", &cli_paco },
    { "How do I join spots of successive frames?", &cli_link },
    { "How do I measure diffusion and displacements?", &cli_tracks },
    { "What is kept on disk, and how do I forget it?", &cli_cache },
    { "What makes a library of template spectra?", &cli_templates },
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

static const cli_command *const pages[] = {
    &cli_probe,    &cli_paco,      &cli_blobs,    &cli_link,     &cli_tracks,
    &cli_specfit,  &cli_templates, &cli_embed,    &cli_search,   &cli_rank,
    &cli_tokenize, &cli_finetune,  &cli_classify, &cli_generate, &cli_cache,
};

/* A sentence of a manual page. */
typedef struct passage {
    const cli_command *command;
    const char *text;
    size_t length;
} passage;

typedef struct library {
    passage passages[MOST_PASSAGES];
    size_t count, rows; /* rows: passages, then vectors of random words */
    float *vectors, *queries;
    int64_t found[2][QUESTIONS]; /* rows found on devices, and in plain C */
    float scores[2][QUESTIONS];
    clv_report *report;
    int side;
} library;

/* ---- passages -------------------------------------------------------------------------------------- */

static void add_passage(library *l, const cli_command *command, const char *text, size_t length)
{
    if (l->count < MOST_PASSAGES && length)
        l->passages[l->count++] = (passage){ command, text, length };
}

/* Adds a page's summary and the sentences of its description. */
static void add_page(library *l, const cli_command *command)
{
    add_passage(l, command, command->summary, strlen(command->summary));
    const char *at = command->description;
    while (at && *at) {
        const char *end = at;
        while (*end && !(*end == '.' && (end[1] == ' ' || end[1] == '\n' || !end[1])))
            ++end;
        add_passage(l, command, at, (size_t)(end - at));
        while (*end == '.' || *end == ' ' || *end == '\n')
            ++end;
        at = end;
    }
}

/* ---- vectors --------------------------------------------------------------------------------------- */

/* Adds a word to a vector, at places and with signs that its hash determines. */
static void add_word(float *vector, uint64_t hash, float weight)
{
    for (int i = 0; i < PLACES; ++i) {
        hash = (hash ^ (hash >> 29)) * 0xBF58476D1CE4E5B9u;
        vector[(hash >> 33) % WIDTH] += (hash >> 32) & 1 ? weight : -weight;
    }
}

/* Adds the words of a text, except short words, which occur in every text. Long words get larger weights. */
static void add_text(float *vector, const char *text, size_t length)
{
    uint64_t hash = 0xCBF29CE484222325u;
    size_t letters = 0;
    for (size_t i = 0; i <= length; ++i) {
        const int c = i < length ? tolower((unsigned char)text[i]) : ' ';
        if (c >= 'a' && c <= 'z') {
            const bool plural = c == 's' && letters > LEAST_WORD &&
                                (i + 1 >= length || !isalpha((unsigned char)text[i + 1]));
            if (!plural && letters < MOST_WORD)
                hash = (hash ^ (uint64_t)c) * 0x100000001B3u, ++letters;
            continue;
        }
        if (letters > LEAST_WORD) add_word(vector, hash, (float)letters);
        hash = 0xCBF29CE484222325u, letters = 0;
    }
}

static clv_status make_vectors(library *l)
{
    uint64_t state = 5;
    for (size_t i = 0; i < CLV_LEN(pages); ++i)
        add_page(l, pages[i]);
    l->rows = ROWS;
    l->vectors = clv_zalloc(l->rows * WIDTH, sizeof *l->vectors);
    l->queries = clv_zalloc((size_t)QUESTIONS * WIDTH, sizeof *l->queries);
    if (!l->vectors || !l->queries) return clv_fail(CLV_E_MEMORY, "not enough memory for vectors");
    for (size_t i = 0; i < l->count; ++i)
        add_text(l->vectors + i * WIDTH, l->passages[i].text, l->passages[i].length);
    for (size_t i = l->count; i < l->rows; ++i)
        for (int word = 0; word < 12; ++word) {
            state = state * 0x5851F42D4C957F2Du + 1;
            add_word(l->vectors + i * WIDTH, state ^ (state >> 31), (float)(4 + state % 7));
        }
    for (size_t i = 0; i < QUESTIONS; ++i)
        add_text(l->queries + i * WIDTH, questions[i].text, strlen(questions[i].text));
    return CLV_OK;
}

/* ---- the search -------------------------------------------------------------------------------------- */

static clv_status find(clv_context *context, void *user)
{
    library *l = user;
    const clv_search_options options = { .size = sizeof options, .top = 1 };
    clv_search *search = NULL;
    clv_status status = clv_search_create(context, l->queries, QUESTIONS, WIDTH, &options, &search);
    if (!status) status = clv_search_add(search, l->vectors, l->rows, 0, l->report);
    if (!status) status = clv_search_result(search, l->found[l->side], l->scores[l->side]);
    clv_search_free(search);
    return status;
}

/* Counts the questions for which a passage of the right page was found, and notes what was found for each. */
static size_t judge(const library *l, demo_row *row)
{
    enum { SHOWN = 70 };
    size_t right = 0;
    for (size_t i = 0; i < QUESTIONS; ++i) {
        const int64_t at = l->found[0][i];
        if (at < 0 || (size_t)at >= l->count) continue;
        const passage *p = &l->passages[at];
        char text[SHOWN + 1];
        size_t used = 0;
        for (; used < p->length && used < SHOWN; ++used)
            text[used] = p->text[used] == '\n' ? ' ' : p->text[used];
        text[used] = '\0';
        right += p->command == questions[i].answer;
        clv_text_add(&row->notes, "%s\n  cleave %s: %s%s\n", questions[i].text, p->command->name,
                     text, used < p->length ? "..." : "");
    }
    return right;
}

static clv_status run(const demo_stage *stage, library *l, demo_row *row)
{
    if (stage->preparing) return demo_prepared(find(stage->context, l));
    for (demo_runs r = { 0 }; demo_next_run(&r, row);) {
        l->report = r.last ? stage->report : NULL;
        CLV_TRY(find(stage->context, l));
    }
    l->report = NULL;
    l->side = 1;
    const double started = clv_now();
    CLV_TRY(demo_plain(find, l));
    row->reference_s = clv_now() - started;
    const size_t right = judge(l, row);
    const bool same = memcmp(l->found[0], l->found[1], sizeof l->found[0]) == 0 &&
                      memcmp(l->scores[0], l->scores[1], sizeof l->scores[0]) == 0;
    snprintf(row->found, sizeof row->found, "%zu of %d questions answered", right, (int)QUESTIONS);
    clv_text_add(&row->notes,
                 "%s plain C: rows and similarities. The vectors are counts of words;\n"
                 "with a model (docs/texts.md) the same search finds meanings\n",
                 same ? "agrees with" : "DIFFERS FROM");
    row->ok = same && right == QUESTIONS;
    return CLV_OK;
}

clv_status demo_search(const demo_stage *stage, demo_row *row)
{
    library *l = clv_zalloc(1, sizeof *l);
    clv_status status =
        l ? make_vectors(l) : clv_fail(CLV_E_MEMORY, "not enough memory for passages");
    if (!status) {
        snprintf(row->input, sizeof row->input, "%d questions, %zu rows", (int)QUESTIONS, l->rows);
        status = run(stage, l, row);
    }
    if (l) clv_free(l->vectors), clv_free(l->queries);
    clv_free(l);
    return status;
}
