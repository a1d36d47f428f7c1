/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the progress bar and the status line on the terminal. */
#define _DEFAULT_SOURCE /* the width of a terminal */
#include "host/cli/cli.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool cli_has_status_line(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static size_t columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

void cli_status_line(const char *text)
{
    const size_t most = columns() - 1; /* some terminals wrap in the last column */
    size_t bytes = 0;
    for (size_t width = 0; text && text[bytes]; ++bytes)
        if (((unsigned char)text[bytes] & 0xC0) != 0x80 && ++width > most) break;
    fputs("\r\033[K", stderr);
    cli_say(stderr, "%.*s", (int)bytes, text ? text : "");
    fflush(stderr);
}

static bool wanted(const cli_common *common)
{
    return !common->quiet && !common->no_progress && cli_has_status_line();
}

void cli_doing(const cli_common *common, const char *what)
{
    if (wanted(common)) cli_status_line(what);
}

void cli_bar_start(cli_bar *bar, const cli_common *common, const char *unit)
{
    *bar = (cli_bar){ .show = wanted(common), .started = clv_now(), .unit = unit };
    cli_catch_interrupts();
}

int cli_progress(const char *job, size_t done, size_t total, void *user)
{
    enum { WIDTH = 24 };
    cli_bar *bar = user;
    const double passed = clv_now() - bar->started;
    if (!bar->show || passed < 0.3) return cli_interrupted(); /* short jobs need no bar */
    done = CLV_MIN(done, total); /* a resumed job may have done more than it was told to do */
    const int full = total ? (int)((double)WIDTH * (double)done / (double)total) : 0;
    char filled[WIDTH + 1], left[24] = "", line[200];
    memset(filled, '.', WIDTH);
    memset(filled, '#', (size_t)full);
    filled[WIDTH] = '\0';
    const double rate = (double)done / passed;
    if (done) clv_format_seconds((double)(total - done) / rate, left);
    snprintf(line, sizeof line, "%s [%s] %3d %%  %.3g %s/s  %s%s", job, filled,
             total ? (int)(100.0 * (double)done / (double)total) : 0, rate, bar->unit, left,
             done ? " left" : "");
    cli_status_line(line);
    bar->drawn = clv_now();
    return cli_interrupted();
}

void cli_bar_end(cli_bar *bar)
{
    if (bar->drawn > 0) cli_status_line(NULL);
    bar->drawn = 0;
}
