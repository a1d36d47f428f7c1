/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms a prime number p of elements (Rader): the elements other than the first, in the order of the powers of a
 * primitive root, are convolved with the powers of the root of unity in the opposite order. That takes two transforms
 * of p - 1 elements, of which the second one stands for the inverse, whose result it gives in reverse; so the result's
 * elements come in the same order as those of the input. */
#include "host/array/fourier.h"

#include "base/alloc.h"

#include <stdatomic.h>

enum { CHUNK = 2048 };

typedef struct prime {
    const clv_fourier *t;
    const clv_c64 *in;
    clv_c64 *out, *mine;
    size_t count; /* p - 1 */
    void (*pass)(const struct prime *, size_t first, size_t end);
    atomic_size_t next;
} prime;

static size_t elements(const clv_fourier *t)
{
    return t->o.length[0] * t->o.length[1];
}

size_t clv_fourier_prime_room(const clv_fourier *t)
{
    return clv_fourier_room(t) + elements(t) * sizeof(clv_c64);
}

static void pick(const prime *p, size_t first, size_t end)
{
    for (size_t s = first; s < end; ++s)
        p->mine[s] = p->in[p->t->o.order[s]];
}

static void multiply(const prime *p, size_t first, size_t end)
{
    for (size_t s = first; s < end; ++s) {
        const float re = p->t->o.factors[2 * s], im = p->t->o.factors[2 * s + 1];
        const clv_c64 x = p->out[s];
        p->out[s] = (clv_c64){ x.re * re - x.im * im, x.re * im + x.im * re };
    }
}

static void place(const prime *p, size_t first, size_t end)
{
    const float scale = p->t->o.scale != 0 ? (float)p->t->o.scale : 1;
    const clv_c64 x = p->in[0];
    for (size_t s = first; s < end; ++s)
        p->out[p->t->o.order[s]] =
            (clv_c64){ scale * (x.re + p->mine[s].re), scale * (x.im + p->mine[s].im) };
}

static void work(void *user)
{
    prime *p = user;
    for (size_t first; (first = atomic_fetch_add(&p->next, CHUNK)) < p->count;)
        p->pass(p, first, CLV_MIN(first + CHUNK, p->count));
}

static void share(prime *p, clv_team *team, void (*pass)(const prime *, size_t, size_t))
{
    p->pass = pass;
    atomic_store(&p->next, 0);
    clv_team_run(team, work, p);
}

void clv_fourier_prime(const clv_fourier *t, clv_team *team, const void *in, void *out, void *room)
{
    prime p = { .t = t, .in = in, .out = out, .count = elements(t) };
    p.mine = (clv_c64 *)((char *)room + clv_fourier_room(t));
    const float scale = t->o.scale != 0 ? (float)t->o.scale : 1;
    share(&p, team, pick);
    clv_fourier_compute(t, team, p.mine, p.out, room);
    const clv_c64 sum = { scale * (p.in[0].re + p.out[0].re), scale * (p.in[0].im + p.out[0].im) };
    share(&p, team, multiply);
    clv_fourier_compute(t, team, p.out, p.mine, room);
    share(&p, team, place);
    p.out[0] = sum;
}
