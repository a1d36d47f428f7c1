/* SPDX-License-Identifier: Apache-2.0 */
/* Host or device for one call: curves of measured times, and the choice between them. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_OFFLOAD_H
#define CLEAVE_RUNTIME_OFFLOAD_OFFLOAD_H

#include <cleave/offload.h>

enum { CLV_CURVE_POINTS = 24 };

/* Times of both sides against work, ascending. */
typedef struct clv_curve {
    size_t count;
    struct {
        double work, host_s, device_s;
    } at[CLV_CURVE_POINTS];
} clv_curve;

/* What a call tells. */
typedef struct clv_offload_request {
    const char *operation; /* "map" */
    const char *kind;      /* calls of one kind share a curve: "map 1f3a"; one line, no '=' */
    double work;           /* the curve's axis, in the operation's own measure */
    uint64_t shape;        /* what else tells this call from others of the kind and work */
    double flops, bytes, transfer_bytes, resident_bytes;
    bool brief; /* the words are for clv_offload_last, made when it asks: a microsecond less */
    bool stays; /* an operand lies only on the device: so the device does it */
    double host_flops;            /* built-in rate of the host; 0: 3e9 */
    double least_work, most_work; /* between which the curve is measured */
    /* Seconds of one call of about that work on a side, on memory of its own: for the request's work,
     * of just its shape. NULL: built-in rates.
     * Runs with offload_lock and job_lock free, the thread's override set to `side`. */
    clv_status (*trial)(clv_context *context, double work, clv_side side, double *seconds,
                        void *user);
    void *user;
} clv_offload_request;

/* Decides, and notes the decision as the thread's latest. CLV_E_NO_DEVICE (forced). */
clv_status clv_offload_decide(clv_context *context, const clv_offload_request *request,
                              clv_offload *out);
/* Extents, one after the other, as one number. */
static inline uint64_t clv_offload_shape(uint64_t before, uint64_t extent)
{
    const uint64_t mixed = ((before << 7 | before >> 57) ^ extent) * 0x9E3779B97F4A7C15u;
    return mixed ^ mixed >> 29;
}

/* Shorter on the host than any launch: decided without a curve, `kind` is not looked at. */
bool clv_offload_is_short(const clv_offload_request *request);
bool clv_offload_is_dry(void);
/* Calls of this thread teach nothing, or do so again: for benchmarks that force sides. */
void clv_offload_mute(bool on);
/* The decision on a call that nobody need think about, in a few nanoseconds: true when the host does
 * it; false when clv_offload_decide is to be asked after all (an override, a plan, no device). */
bool clv_offload_at_once(clv_context *context, const char *operation, double flops,
                         double host_flops, double bytes);
/* The call was done by the host after all. `request` may be NULL: nobody tried a device. */
void clv_offload_fell_back(clv_context *context, const clv_offload_request *request,
                           const char *why);

/* The call that was decided is done, by `side`, and took that long: what the next ones learn from. */
void clv_offload_took(clv_context *context, const clv_offload_request *request, clv_side side,
                      double seconds);

/* Median of several calls of `body` within a short time; for trials. */
clv_status clv_offload_time(clv_status (*body)(void *user), void *user, double *seconds);

/* ---- parts, for tests ------------------------------------------------------------------------------ */

/* The point before `work` and how far it is from there to the next one, 0 to 1, in logarithms. */
double clv_curve_place(const clv_curve *curve, double work, size_t *first);
/* Between neighbours by logarithms, in proportion to work beyond the last, constant before the first. */
void clv_curve_at(const clv_curve *curve, double work, double *host_s, double *device_s);
void clv_curve_add(clv_curve *curve, double work, double host_s, double device_s);
/* "4096:1.2e-06:3.1e-05 ..."; false when it is no curve. */
bool clv_curve_read(const char *text, clv_curve *curve);
void clv_curve_write(const clv_curve *curve, char *text, size_t room);

/* For the context. */
struct clv_offload_table;
void clv_offload_free(clv_context *context); /* notes what it learnt */

#endif
