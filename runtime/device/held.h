/* SPDX-License-Identifier: Apache-2.0 */
/* Warns when a device does not end its commands. A kernel that never ends looks like one that takes long,
 * and nothing can stop it, since it may use the caller's memory. One thread of the process watches all
 * queues. */
#ifndef CLEAVE_RUNTIME_DEVICE_HELD_H
#define CLEAVE_RUNTIME_DEVICE_HELD_H

typedef struct clv_held clv_held;

/* Seconds that a wait may last before its first warning. The next warning follows after twice as long, and so on.
 * Tests shorten this time. */
extern _Atomic double clv_held_patience_s;

/* Creates the watch of one queue, whose waits follow one another. Returns NULL without memory or a thread; the other
 * functions accept NULL. `label` must stay valid until clv_held_free. */
clv_held *clv_held_create(const char *label);
void clv_held_free(clv_held *held);

/* Begin and end a wait for commands, of which the first is called `name`. */
void clv_held_begin(clv_held *held, const char *name);
void clv_held_end(clv_held *held);

#endif
