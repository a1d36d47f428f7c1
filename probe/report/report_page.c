/* SPDX-License-Identifier: Apache-2.0 */
/* Implements what the parts of a report for people share: the text of unknown values. */
#include "probe/report/report_page.h"

const char *clv_known(const char *text)
{
    return text ? text : "unknown";
}

/* Writes "12.3 GB", or "unknown". */
const char *clv_known_bytes(uint64_t bytes, char *out)
{
    if (bytes == CLV_UNKNOWN)
        clv_copy_string(out, 16, "unknown");
    else
        clv_format_bytes(bytes, out);
    return out;
}
