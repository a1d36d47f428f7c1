/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a failure of CFITSIO in one line instead of its stack of messages. */
#include "host/io/formats/fits/library.h"

#include "base/error.h"

#include <string.h>

/* Fails with the first message on CFITSIO's stack, which is the cause; later ones only say which function passed it
 * on. */
clv_status clv_fits_error(const char *path, const char *doing, int error)
{
    char name[FLEN_STATUS], cause[FLEN_ERRMSG] = "", rest[FLEN_ERRMSG];
    char text[2 * FLEN_ERRMSG];
    fits_get_errstatus(error, name);
    if (fits_read_errmsg(cause))
        while (fits_read_errmsg(rest))
            continue;
    const clv_status status = error == MEMORY_ALLOCATION ? CLV_E_MEMORY : CLV_E_FORMAT;
    return clv_fail(status, "%s: cannot %s: %s (CFITSIO %d)%s%s", path, doing, name, error,
                    *cause ? ": " : "", clv_printable(cause, strlen(cause), text, sizeof text));
}
