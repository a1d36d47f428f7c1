/* SPDX-License-Identifier: Apache-2.0 */
/* Says so when a device does not end what it was given: a kernel that never ends looks like one that takes long, and
 * nothing can stop it, since it may use the caller's memory. One thread of the process watches all queues. */
#ifndef CLEAVE_RUNTIME_DEVICE_HELD_H
#define CLEAVE_RUNTIME_DEVICE_HELD_H

typedef struct clv_held clv_held;

/* Seconds of one wait before the first warning; then after twice as long, and so on. Tests shorten it. */
extern _Atomic double clv_held_patience_s;

/* For one queue, whose waits come one after the other; NULL without memory or a thread, which the others accept.
 * `label` stays valid until the end. */
clv_held *clv_held_create(const char *label);
void clv_held_free(clv_held *held);

/* A wait for commands, the first of them called `name`. */
void clv_held_begin(clv_held *held, const char *name);
void clv_held_end(clv_held *held);

#endif
