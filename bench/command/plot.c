/* SPDX-License-Identifier: Apache-2.0 */
/* Plots of a bench as inline SVG: times along an axis, times of all cases, shares of the devices. */
#include "bench/command/bench.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { LEFT = 66, RIGHT = 190, TOP = 34, BOTTOM = 46, WIDTH = 720, HEIGHT = 330 };

/* Eight colours that colour-blind readers can distinguish; further parties reuse them. */
static const char *const colours[] = { "#2a78d6", "#1baf7a", "#eda100", "#e34948",
                                       "#4a3aa7", "#eb6834", "#e87ba4", "#008300" };

const char *bench_colour(const bench *b, size_t party)
{
    (void)b;
    return colours[party % CLV_LEN(colours)];
}

void bench_escape(const char *text, clv_text *out)
{
    for (; *text; ++text)
        switch (*text) {
        case '<':
            clv_text_add(out, "&lt;");
            break;
        case '>':
            clv_text_add(out, "&gt;");
            break;
        case '&':
            clv_text_add(out, "&amp;");
            break;
        case '"':
            clv_text_add(out, "&quot;");
            break;
        default:
            clv_text_add(out, "%c", *text);
        }
}

/* ---- logarithmic axes ------------------------------------------------------------------------- */

typedef struct axis {
    double low, high; /* of the data; low 0: empty */
    double from, to;  /* pixels */
} axis;

static void include(axis *a, double value)
{
    if (!(value > 0)) return;
    a->low = a->low > 0 ? fmin(a->low, value) : value;
    a->high = fmax(a->high, value);
}

/* Adds room around the data, so that points do not lie on the frame. */
static void widen(axis *a, double factor)
{
    a->low /= factor;
    a->high *= factor;
}

static double place(const axis *a, double value)
{
    const double part = log(value / a->low) / log(a->high / a->low);
    return a->from + part * (a->to - a->from);
}

static void add_text(clv_text *out, double x, double y, const char *anchor, const char *text)
{
    clv_text_add(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    bench_escape(text, out);
    clv_text_add(out, "</text>\n");
}

/* Adds a grid line at each power of ten, labelled with its time. */
static void add_time_grid(const axis *a, bool vertical, double near, double far, clv_text *out)
{
    char text[24];
    for (int e = (int)ceil(log10(a->low)); e <= (int)floor(log10(a->high)); ++e) {
        const double p = place(a, pow(10, e));
        if (vertical)
            clv_text_add(out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", p, near, far);
        else
            clv_text_add(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", near, p, far);
        clv_format_seconds(pow(10, e), text);
        if (vertical)
            add_text(out, p, far + 16, "middle", text);
        else
            add_text(out, near - 6, p + 4, "end", text);
    }
}

static void open_figure(double height, const char *title, clv_text *out)
{
    clv_text_add(out, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\">\n<title>", WIDTH, height);
    bench_escape(title, out);
    clv_text_add(out, "</title>\n<text class=\"title\" x=\"0\" y=\"16\">");
    bench_escape(title, out);
    clv_text_add(out, "</text>\n");
}

static void add_dot(const bench *b, size_t party, double x, double y, const char *what,
                    double seconds, clv_text *out)
{
    char text[24];
    clv_text_add(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" fill=\"%s\"><title>", x, y,
                 bench_colour(b, party));
    bench_escape(b->parties[party].name, out);
    clv_text_add(out, ", ");
    bench_escape(what, out);
    clv_text_add(out, ": %s</title></circle>\n", clv_format_seconds(seconds, text));
}

/* ---- times along an axis ----------------------------------------------------------------------- */

static double cell_time(const bench *b, size_t c, size_t p, bench_metric metric)
{
    const bench_stat *s = &b->cells[c][p].stat[metric];
    return s->count ? s->median : 0;
}

typedef struct name_place {
    double y;
    size_t party;
} name_place;

/* Adds names at the ends of the lines, moved apart if they would overlap. */
static void add_names(const bench *b, name_place *names, size_t count, clv_text *out)
{
    for (size_t i = 1; i < count; ++i) /* few: insertion sort by height */
        for (size_t k = i; k > 0 && names[k].y < names[k - 1].y; --k) {
            const name_place swap = names[k];
            names[k] = names[k - 1], names[k - 1] = swap;
        }
    double below = 0;
    for (size_t i = 0; i < count; ++i) {
        const double y = fmax(names[i].y, below);
        below = y + 15;
        clv_text_add(out, "<circle cx=\"%d\" cy=\"%.1f\" r=\"4.5\" fill=\"%s\"/>\n",
                     WIDTH - RIGHT + 14, y, bench_colour(b, names[i].party));
        add_text(out, WIDTH - RIGHT + 23, y + 4, "start", b->parties[names[i].party].name);
    }
}

static void add_line(const bench *b, const bench_plot *plot, bench_metric metric, size_t party,
                     const axis *x, const axis *y, name_place *name, clv_text *out)
{
    size_t order[BENCH_MOST_CASES], count = 0;
    for (size_t c = 0; c < b->case_count; ++c) {
        if (!(plot->x(&b->cases[c]) > 0) || !(cell_time(b, c, party, metric) > 0)) continue;
        size_t k = count++;
        for (; k > 0 && plot->x(&b->cases[order[k - 1]]) > plot->x(&b->cases[c]); --k)
            order[k] = order[k - 1];
        order[k] = c;
    }
    clv_text_add(out, "<path class=\"line\" stroke=\"%s\" d=\"", bench_colour(b, party));
    for (size_t i = 0; i < count; ++i)
        clv_text_add(out, "%c%.1f %.1f", i ? 'L' : 'M', place(x, plot->x(&b->cases[order[i]])),
                     place(y, cell_time(b, order[i], party, metric)));
    clv_text_add(out, "\"/>\n");
    for (size_t i = 0; i < count; ++i) {
        const double seconds = cell_time(b, order[i], party, metric);
        *name = (name_place){ place(y, seconds), party };
        add_dot(b, party, place(x, plot->x(&b->cases[order[i]])), name->y, b->cases[order[i]].name,
                seconds, out);
    }
}

void bench_draw_plot(const bench *b, const bench_plot *plot, bench_metric metric, clv_text *out)
{
    axis x = { .from = LEFT, .to = WIDTH - RIGHT }, y = { .from = HEIGHT - BOTTOM, .to = TOP };
    size_t points[BENCH_MOST_PARTIES] = { 0 }, lines = 0;
    for (size_t p = 0; p < b->party_count; ++p) {
        for (size_t c = 0; c < b->case_count; ++c)
            points[p] += plot->x(&b->cases[c]) > 0 && cell_time(b, c, p, metric) > 0;
        lines += points[p] > 1;
        for (size_t c = 0; c < b->case_count; ++c)
            if (points[p] > 1 && plot->x(&b->cases[c]) > 0 && cell_time(b, c, p, metric) > 0) {
                include(&x, plot->x(&b->cases[c]));
                include(&y, cell_time(b, c, p, metric));
            }
    }
    if (!lines || !(x.high > x.low)) return;
    widen(&x, 1.1), widen(&y, 1.6);
    open_figure(HEIGHT, plot->title, out);
    add_time_grid(&y, false, LEFT, WIDTH - RIGHT, out);
    double last = -100;
    for (size_t c = 0; c < b->case_count; ++c) { /* ticks where there are points */
        const double value = plot->x(&b->cases[c]);
        char text[24];
        if (!(value > 0) || value < x.low || value > x.high) continue;
        if (fabs(place(&x, value) - last) < 28) continue;
        snprintf(text, sizeof text, "%g", value);
        add_text(out, last = place(&x, value), HEIGHT - BOTTOM + 16, "middle", text);
    }
    clv_text_add(out, "<path class=\"axis\" d=\"M%d %dH%d\"/>\n", LEFT, HEIGHT - BOTTOM,
                 WIDTH - RIGHT);
    add_text(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8, "middle", plot->x_title);
    name_place names[BENCH_MOST_PARTIES];
    size_t named = 0;
    for (size_t p = 0; p < b->party_count; ++p)
        if (points[p] > 1) add_line(b, plot, metric, p, &x, &y, &names[named++], out);
    add_names(b, names, named, out);
    clv_text_add(out, "</svg>\n");
}

/* ---- times of all cases ------------------------------------------------------------------------- */

/* Returns the room for the names of cases, of a workload or of all, to the left of a drawing. */
static double names_room(const bench *b, const bench_workload *workload)
{
    size_t longest = 0;
    for (size_t c = 0; c < b->case_count; ++c)
        if (!workload || b->cases[c].workload == workload)
            longest = CLV_MAX(longest, strlen(b->cases[c].name));
    return fmin(fmax(34 + 6.4 * (double)longest, 110), 345);
}

void bench_draw_dots(const bench *b, const bench_workload *workload, bench_metric metric,
                     clv_text *out)
{
    enum { ROW = 26 };
    static const char *const titles[] = { "Kernels", "Compute, memory to memory",
                                          "The whole program, files to files", "Cold start" };
    const double left = names_room(b, workload);
    axis x = { .from = left, .to = WIDTH - RIGHT };
    bool taking_part[BENCH_MOST_PARTIES] = { false };
    size_t rows = 0;
    for (size_t c = 0; c < b->case_count; ++c) {
        bool any = false;
        for (size_t p = 0; p < b->party_count && b->cases[c].workload == workload; ++p) {
            const double seconds = cell_time(b, c, p, metric);
            include(&x, seconds);
            taking_part[p] = taking_part[p] || seconds > 0;
            any = any || seconds > 0;
        }
        rows += any;
    }
    if (!rows) return;
    widen(&x, 1.5);
    size_t parties = 0;
    for (size_t p = 0; p < b->party_count; ++p)
        parties += taking_part[p];
    const double bottom = TOP + 8 + ROW * (double)rows;
    open_figure(fmax(bottom + 24, TOP + 20.0 * (double)parties + 10), titles[metric], out);
    add_time_grid(&x, true, TOP, bottom, out);
    double y = TOP + 8 + ROW / 2.0;
    for (size_t c = 0; c < b->case_count; ++c) {
        bool any = false;
        for (size_t p = 0; p < b->party_count && b->cases[c].workload == workload; ++p)
            any = any || cell_time(b, c, p, metric) > 0;
        if (!any) continue;
        add_text(out, left - 10, y + 4, "end", b->cases[c].name);
        for (size_t p = 0; p < b->party_count; ++p)
            if (cell_time(b, c, p, metric) > 0)
                add_dot(b, p, place(&x, cell_time(b, c, p, metric)), y, b->cases[c].name,
                        cell_time(b, c, p, metric), out);
        y += ROW;
    }
    name_place names[BENCH_MOST_PARTIES];
    size_t named = 0;
    for (size_t p = 0; p < b->party_count; ++p)
        if (taking_part[p]) {
            names[named] = (name_place){ TOP + 14 + 20 * (double)named, p };
            ++named;
        }
    add_names(b, names, named, out);
    clv_text_add(out, "</svg>\n");
}

/* ---- shares --------------------------------------------------------------------------------------- */

static size_t device_party(const bench *b, const char *device)
{
    for (size_t p = 0; p < b->party_count; ++p)
        if (strcmp(b->parties[p].name, device) == 0) return p;
    return BENCH_MOST_PARTIES - 1;
}

void bench_draw_shares(const bench *b, clv_text *out)
{
    enum { ROW = 26 };
    const double left = names_room(b, NULL);
    size_t rows = 0;
    for (size_t c = 0; c < b->case_count; ++c)
        for (size_t p = 0; p < b->party_count; ++p)
            rows += b->cells[c][p].share_count > 1;
    if (!rows) return;
    open_figure(TOP + ROW * (double)rows + 10, "Who did how much, devices together", out);
    double y = TOP;
    for (size_t c = 0; c < b->case_count; ++c)
        for (size_t p = 0; p < b->party_count; ++p) {
            const bench_cell *cell = &b->cells[c][p];
            double x = left;
            if (cell->share_count < 2) continue;
            add_text(out, left - 10, y + 14, "end", b->cases[c].name);
            for (size_t i = 0; i < cell->share_count; ++i) {
                const double width = cell->shares[i].part * (WIDTH - left - 20);
                clv_text_add(out,
                             "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"18\" "
                             "fill=\"%s\"><title>",
                             x, y, fmax(width - 2, 0),
                             bench_colour(b, device_party(b, cell->shares[i].device)));
                bench_escape(cell->shares[i].device, out);
                clv_text_add(out, ": %.0f %%</title></rect>\n", 100 * cell->shares[i].part);
                x += width;
            }
            y += ROW;
        }
    clv_text_add(out, "</svg>\n");
}
