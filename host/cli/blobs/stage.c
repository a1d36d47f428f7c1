/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the drift of the stage frame by frame for `cleave blobs`; writes the drift, and the movie without it. */
#include "host/cli/blobs/blobs.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <math.h>

clv_status blobs_stage_open(blobs_stage *s, const blobs_args *a, const clv_movie_facts *f)
{
    static const clv_blob_pixel kinds[] = { [CLV_U8] = CLV_BLOB_U8,
                                            [CLV_U16] = CLV_BLOB_U16,
                                            [CLV_I16] = CLV_BLOB_I16,
                                            [CLV_F32] = CLV_BLOB_F32 };
    const clv_blob_frames shape = {
        .size = sizeof shape, .type = kinds[f->type], .height = f->height, .width = f->width
    };
    s->args = a, s->facts = f;
    CLV_TRY(clv_stage_open(&shape, NULL, &s->stage));
    if (!a->registered) return CLV_OK;
    s->frame = clv_alloc(f->height * f->width, sizeof *s->frame);
    s->restored = clv_alloc(f->height * f->width, sizeof *s->restored);
    if (!s->frame || !s->restored) return clv_fail(CLV_E_MEMORY, "not enough memory for a frame");
    return clv_npy_stream_open_movie(&s->registered, a->registered, f->height, f->width);
}

static clv_status restore(blobs_stage *s, const void *pixels, size_t frame,
                          const clv_stage_shift *shift)
{
    const size_t plane = s->facts->height * s->facts->width;
    for (size_t i = 0; i < plane; ++i)
        s->frame[i] = blobs_value_at(s->facts, pixels, frame * plane + i);
    CLV_TRY(clv_stage_restore(s->frame, s->facts->height, s->facts->width, shift->y, shift->x,
                              s->restored));
    return clv_npy_stream_add(&s->registered, s->restored, 1);
}

clv_status blobs_stage_take(blobs_stage *s, const void *pixels, size_t count)
{
    const double started = clv_now();
    if (!clv_reserve(&s->shifts, &s->room, s->count + count, sizeof *s->shifts))
        return clv_fail(CLV_E_MEMORY, "not enough memory for the drift of %zu frames",
                        s->count + count);
    clv_stage_shift *shifts = s->shifts + s->count;
    CLV_TRY(clv_stage_push(s->stage, pixels, count, shifts));
    s->count += count;
    for (size_t i = 0; i < count; ++i) {
        s->lost += !shifts[i].found;
        if (s->args->registered) CLV_TRY(restore(s, pixels, i, &shifts[i]));
    }
    s->seconds += clv_now() - started;
    return CLV_OK;
}

void blobs_stage_move(const blobs_stage *s, clv_spot *spot)
{
    if (spot->frame >= s->count) return;
    spot->y -= (float)s->shifts[spot->frame].y;
    spot->x -= (float)s->shifts[spot->frame].x;
}

static void add(clv_csv *csv, double value)
{
    if (isfinite(value))
        clv_csv_number(csv, value);
    else
        clv_csv_missing(csv);
}

static clv_status write_table(const blobs_stage *s, size_t first, const blobs_units *units)
{
    static const char *const own[] = { "frame", "y", "x", "y_err", "x_err" };
    const char *path = s->args->stage_drift, *names[16];
    blobs_extra extra;
    clv_csv csv;
    blobs_find_extra(units, false, &extra);
    clv_csv_begin_as(&csv, blobs_kind_of(path), names,
                     blobs_join_names(names, own, CLV_LEN(own), &extra, false));
    for (size_t i = 0; i < s->count; ++i) {
        const clv_stage_shift *d = &s->shifts[i];
        const double place[] = { d->y, d->x };
        double values[4];
        clv_csv_int(&csv, (int64_t)(first + i));
        clv_csv_number(&csv, d->y), clv_csv_number(&csv, d->x);
        add(&csv, d->y_err), add(&csv, d->x_err);
        blobs_extra_values(&extra, (uint32_t)(first + i), place, values);
        for (size_t k = 0; k < extra.count; ++k)
            clv_csv_number(&csv, values[k]);
        clv_csv_end_row(&csv);
    }
    clv_csv_end(&csv);
    const clv_status status = clv_csv_write(&csv, path);
    clv_csv_clear(&csv);
    return status;
}

clv_status blobs_stage_finish(blobs_stage *s, size_t first, const blobs_units *units)
{
    if (s->args->stage_drift) CLV_TRY(write_table(s, first, units));
    return s->args->registered ? clv_npy_stream_finish(&s->registered) : CLV_OK;
}

void blobs_stage_tell(const blobs_stage *s, FILE *news)
{
    if (!s->count) return;
    const clv_stage_shift *last = &s->shifts[s->count - 1];
    cli_say(news,
            "stage drift: from the first to the last frame the image moved by %.2f pixels along y "
            "and %.2f along x%s\n",
            last->y, last->x, s->args->subtract_drift ? ", subtracted" : "");
    if (s->lost)
        cli_warn(
            cli_running(),
            "%zu of %zu frames have nothing in common with the frames before them: for these, the "
            "drift of the frame before is used",
            s->lost, s->count);
}

void blobs_stage_note(const blobs_stage *s, clv_report *report)
{
    const clv_stage_shift *last = s->count ? &s->shifts[s->count - 1] : NULL;
    clv_report_note(report, "stage_y_px", last ? last->y : 0);
    clv_report_note(report, "stage_x_px", last ? last->x : 0);
    clv_report_note(report, "stage_lost_frames", (double)s->lost);
    clv_report_note(report, "stage_s", s->seconds);
}

void blobs_stage_close(blobs_stage *s)
{
    clv_stage_close(s->stage);
    clv_npy_stream_abandon(&s->registered);
    clv_free(s->shifts), clv_free(s->frame), clv_free(s->restored);
}
