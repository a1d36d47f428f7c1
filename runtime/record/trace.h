/* SPDX-License-Identifier: Apache-2.0 */
/* Records what ran when, for chrome://tracing and Perfetto. */
#ifndef CLEAVE_RUNTIME_RECORD_TRACE_H
#define CLEAVE_RUNTIME_RECORD_TRACE_H

#include <cleave/runtime.h>

typedef struct clv_trace clv_trace;

clv_trace *clv_trace_create(void); /* NULL without memory */
void clv_trace_free(clv_trace *trace);

/* Adds one bar on track `track` of the device (NULL: the host). All calls accept a NULL trace. Names are
 * copied. */
void clv_trace_span(clv_trace *trace, const clv_device *device, unsigned track, const char *name,
                    double start, double end, size_t bytes);
/* Adds a note of a decision made at the time `when`. */
void clv_trace_note(clv_trace *trace, const clv_device *device, double when, const char *text);

clv_status clv_trace_write(clv_trace *trace, const char *path);

#endif
