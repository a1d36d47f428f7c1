/* SPDX-License-Identifier: Apache-2.0 */
/* Computes products of matrices on one device: C = act(alpha * A * B + bias) + beta * R.
 *
 * There is one interface and several providers: tiles in registers (CPUs; small products without packing), tiles in
 * local memory (GPUs), tiles of single work-items (software rasterisers), and CLBlast. Whatever their tiles, our own
 * providers start every sum at 0 and add its terms by fma in ascending order of k, so they all give the same bits for
 * any m and n. A device without fma rounds every product before it is added: its bits are the same for all forms on
 * that device, but differ from those of other devices. CLBlast promises an error of at most 2e-6 of the sum of |a b|
 * instead. */
#ifndef CLEAVE_RUNTIME_BLAS_GEMM_H
#define CLEAVE_RUNTIME_BLAS_GEMM_H

#include "base/team.h"

#include <cleave/blas.h>
#include <cleave/offload.h>
#include <cleave/runtime.h>

/* Element (i, j) of matrix t of a batch lies at offset + t * batch + i * row + j * col. */
typedef struct clv_matrix {
    clv_buffer *buffer;
    size_t offset, row, col, batch;
} clv_matrix;

typedef struct clv_gemm {
    size_t m, n, k;
    size_t batch;            /* matrices in the batch; 0 means 1 */
    clv_matrix a, b, c;      /* c.col is 1; a packed matrix has only an offset and a batch stride */
    bool a_packed, b_packed; /* stored in the form's own layout; only for forms that pack */
    bool b_half;             /* B's elements are halves; must be packed where the form packs */
    bool any_order;          /* terms may be added up in an order other than ascending k */
    bool b_blocks;           /* B's columns are rows of quantised blocks, interleaved by 16
                                (cl/common/quants.clh), from byte b.offset on; ROWS only */
    unsigned b_quant;        /* type of B's blocks: a clv_quant */
    size_t b_block;          /* weights per block */
    float alpha, beta;
    clv_matrix add;         /* R; if its buffer is NULL, R is C before the product */
    const clv_buffer *bias; /* [n]; NULL: none */
    size_t bias_offset;
    clv_activation activation;
} clv_gemm;

typedef enum clv_gemm_provider {
    CLV_GEMM_ROWS,  /* cl/blas/gemm_rows.cl; packs B */
    CLV_GEMM_TILE,  /* cl/blas/gemm_tile.cl */
    CLV_GEMM_ITEMS, /* cl/blas/gemm_items.cl */
    CLV_GEMM_CLBLAST,
    CLV_GEMM_DIRECT, /* cl/blas/gemm_direct.cl: small products, unpacked, in one launch */
    CLV_GEMM_MATRIX, /* cl/blas/gemm_matrix.cl: matrix units, if B is of halves; other products by tiles */
} clv_gemm_provider;

/* A provider and its tiles, for one device. */
typedef struct clv_gemm_form {
    clv_gemm_provider provider;
    const char *name;
    size_t lanes, rows, vectors, block; /* ROWS: LANES, MR, NV, KC; DIRECT: lanes and rows only */
    bool fetch;                         /* ROWS: uses prefetch, which not every compiler can do */
    bool halves;                        /* rounds A to halves if B is of halves, see below */
    size_t tx, ty, rm, rn, kt;          /* for TILE, and for ITEMS with kt = 1 */
    size_t sub_group, down, across;     /* MATRIX: SG, SM, SN */
    bool emulated;                      /* MATRIX: by plain OpenCL C, for tests */
    size_t units;                       /* cores that share the work */
    size_t most_terms;                  /* most terms of a sum in one launch */
    double most_work;                   /* most multiply-adds in one launch */
} clv_gemm_form;

/* Return the number of forms that suit the device, and form `nth`. Form 0 is the default, and is likely the fastest for
 * many rows. */
size_t clv_gemm_form_count(const clv_device *device);
clv_gemm_form clv_gemm_form_of(const clv_device *device, size_t nth);

/* Chooses the fastest form for products of about m rows whose results agree with the host's. The forms are measured
 * when the device first computes a product of a class of rows, and the choice is noted in tuning.txt. `context` is
 * that of the queue's device. Returns CLV_E_WRONG_RESULT when no form agrees. */
clv_status clv_gemm_choose(clv_context *context, clv_queue *queue, size_t m, clv_gemm_form *form);
/* Chooses like clv_gemm_choose, but for a single product of unpacked matrices. Small products of this kind have a
 * class of their own, with forms of its own. Reads only sizes and strides of `gemm`. */
clv_status clv_gemm_choose_once(clv_context *context, clv_queue *queue, const clv_gemm *gemm,
                                clv_gemm_form *form);

/* ---- products in half precision --------------------------------------------------------------------
 *
 * Forms with `halves` also round A to halves, to the nearest, if B is of halves; sums are still floats. An element of C
 * then differs by at most 2^-11 of the sum of |a b|, and an element of A beyond 65504 becomes infinite. No other
 * function returns such a form: they are for callers whose users ask for half precision. */

enum { CLV_GEMM_MOST_HALVES = 8 };
/* Writes the forms for products with B of halves on a device that has matrix units or fp16: those that use them, the
 * one that is likely the fastest first, then those that keep A as floats. Returns their number; 0 for other devices. */
size_t clv_gemm_halves_forms(const clv_device *device, clv_gemm_form forms[CLV_GEMM_MOST_HALVES]);
/* Chooses among them as clv_gemm_choose does; on other devices, calls clv_gemm_choose. */
clv_status clv_gemm_choose_halves(clv_context *context, clv_queue *queue, size_t m,
                                  clv_gemm_form *form);
/* Says in a phrase how a form multiplies matrices if B is of halves: "fp16 x fp16 by matrix units". */
const char *clv_gemm_halves_say(const clv_gemm_form *form);

/* Return the number of floats that packed A or one packed matrix B takes; 0 if the form does not pack. */
size_t clv_gemm_packed_a(const clv_gemm_form *form, size_t m, size_t k);
size_t clv_gemm_packed_b(const clv_gemm_form *form, size_t n, size_t k);
/* Packs B [k,n] into `packed` from `packed_offset` on; the matrices of a batch follow each other. */
clv_status clv_gemm_pack_b_enqueue(clv_queue *queue, const clv_gemm_form *form, size_t n, size_t k,
                                   size_t batch, const clv_matrix *b, clv_buffer *packed,
                                   size_t packed_offset);
/* Packs B like clv_gemm_pack_b_enqueue, but into halves, rounded to the nearest. Offsets count halves and must be
 * multiples of 16, because some drivers store vectors of halves only to aligned addresses. */
clv_status clv_gemm_pack_b_half_enqueue(clv_queue *queue, const clv_gemm_form *form, size_t n,
                                        size_t k, size_t batch, const clv_matrix *b,
                                        clv_buffer *packed, size_t packed_offset);
clv_status clv_gemm_pack_a_enqueue(clv_queue *queue, const clv_gemm_form *form, size_t m, size_t k,
                                   size_t batch, const clv_matrix *a, clv_buffer *packed);

/* Returns the floats of scratch that the product needs, at least 1. */
size_t clv_gemm_scratch(const clv_gemm_form *form, const clv_gemm *gemm);
/* Enqueues the product. The next command of the same queue may reuse `scratch`. Errors: CLV_E_SHAPE (an
 * extent of 2^32 or more, or c.col not 1), CLV_E_ARGUMENT (packed matrices for a form that does not pack). */
clv_status clv_gemm_enqueue(clv_queue *queue, const clv_gemm_form *form, const clv_gemm *gemm,
                            clv_buffer *scratch, clv_event **done);

/* ---- on the host --------------------------------------------------------------------------------- */

/* A product of matrices in host memory. clv_gemm_host computes it on one thread, with the bits of clv_gemm_enqueue. */
typedef struct clv_host_gemm {
    size_t m, n, k;
    const float *a, *b;
    size_t a_row, a_col, b_row, b_col;
    float *c;
    size_t c_row, c_col;
    float alpha, beta;
    const float *bias; /* NULL: none */
} clv_host_gemm;
void clv_gemm_host(const clv_host_gemm *gemm);
/* Computes y [rows, n] = x [rows, k] w [k, n] + b. All arrays are dense; b may be NULL. */
void clv_linear_host(const float *x, size_t rows, size_t k, const float *w, const float *b,
                     size_t n, float *y);
/* Returns roughly how many operations per second clv_gemm_host does on few rows of n columns that lie in the
 * innermost cache; 0: unknown. */
double clv_gemm_host_flops(size_t n);
/* Returns whether clv_gemm_host_by, given matrices with neighbouring columns, takes less time than a BLAS. On an AMD
 * EPYC with two threads, it takes 5.7 us instead of 6.7 us for 64^3, 25 us instead of 46 us for 128^3, and 0.37 ms
 * instead of 0.5 ms for 320^3. */
bool clv_gemm_host_is_quick(size_t m, size_t n, size_t k);
/* Returns whether such a product is large enough for several threads. */
bool clv_gemm_host_is_shared(size_t m, size_t n, size_t k);
/* Computes a product by the caller and a team, which may be NULL. The bits are those of clv_gemm_host. */
void clv_gemm_host_by(clv_team *team, const clv_host_gemm *gemm);

/* Computes clv_matmul in host memory, on one thread; checks the shapes. */
clv_status clv_matmul_host(size_t m, size_t n, size_t k, const float *a, const float *b,
                           const clv_matmul_options *options, float *c);

/* ---- which products take equally long: matmul_shape.c --------------------------------------------- */

typedef struct clv_matmul_shape {
    size_t m, n, k, batch;
    bool a_columns, b_columns; /* stored column by column */
} clv_matmul_shape;
/* Names the kind of a product. Calls of one kind share a curve over their flops, measured from `least` to
 * `most`. */
void clv_matmul_kind(const clv_matmul_shape *shape, char kind[64], double *least, double *most);
/* Scales the shape to about `flops` operations. Returns `flops` divided by the operations of the new shape. */
double clv_matmul_scale(clv_matmul_shape *shape, double flops);

/* ---- few rows: gemm_few.c --------------------------------------------------------------------------
 *
 * On GPUs clv_gemm_enqueue computes products of one matrix with up to CLV_GEMM_FEW rows and any_order set by
 * kernels that share the terms of a sum among work-items and work-groups, and so run as fast as B can be
 * read. B is not packed, and its columns or its terms are neighbours. The bits of a row do not depend on the
 * other rows. They differ from the bits of the same row in a product of more than CLV_GEMM_FEW rows by at
 * most 2e-6 of the sum of |a b|. */
enum { CLV_GEMM_FEW = 8 };
bool clv_gemm_is_few(const clv_gemm_form *form, const clv_gemm *gemm);
size_t clv_gemm_few_scratch(const clv_gemm_form *form, const clv_gemm *gemm);
clv_status clv_gemm_few_enqueue(clv_queue *queue, const clv_gemm_form *form, const clv_gemm *gemm,
                                clv_buffer *scratch, clv_event **done);

/* ---- providers: for gemm.c ------------------------------------------------------------------------ */

size_t clv_gemm_rows_scratch(const clv_gemm_form *form, const clv_gemm *gemm);
clv_status clv_gemm_rows_enqueue(clv_queue *queue, const clv_gemm_form *form, const clv_gemm *gemm,
                                 clv_buffer *scratch, clv_event **done);
size_t clv_gemm_tile_scratch(const clv_gemm *gemm, const clv_gemm_form *form);
clv_status clv_gemm_tile_enqueue(clv_queue *queue, const clv_gemm_form *form, const clv_gemm *gemm,
                                 clv_buffer *scratch, clv_event **done);
clv_status clv_gemm_direct_enqueue(clv_queue *queue, const clv_gemm_form *form,
                                   const clv_gemm *gemm, clv_event **done);
bool clv_gemm_clblast_is_here(void);
bool clv_gemm_clblast_can(const clv_gemm *gemm); /* false: our own tiles compute the product */
clv_status clv_gemm_clblast_enqueue(clv_queue *queue, const clv_gemm *gemm, clv_event **done);
/* Completes a product that CLBlast computed: C = act(C + bias) + beta * R. Without R it adds the old C itself. */
clv_status clv_gemm_finish_enqueue(clv_queue *queue, const clv_gemm *gemm, float beta,
                                   clv_event **done);
static inline clv_arg clv_gemm_u32(size_t value)
{
    return clv_arg_u32((uint32_t)value);
}

/* Kernel arguments of the two tile kernels, in their order: a matrix that is read, with both strides; a matrix whose
 * columns are neighbours; the bias; the extents; the scale factors and the activation. */
#define CLV_GEMM_GIVEN(m)                                                      \
    clv_arg_buffer((m).buffer), clv_arg_u64((m).offset), clv_arg_u64((m).row), \
        clv_arg_u64((m).col), clv_arg_u64((m).batch)
#define CLV_GEMM_PLACE(m)                                                      \
    clv_arg_buffer((m).buffer), clv_arg_u64((m).offset), clv_arg_u64((m).row), \
        clv_arg_u64((m).batch)
#define CLV_GEMM_BIAS(g, none)                                                                     \
    clv_arg_buffer((g)->bias ? (g)->bias : (none)), clv_arg_u64((g)->bias ? (g)->bias_offset : 0), \
        clv_gemm_u32((g)->bias != NULL)
#define CLV_GEMM_EXTENTS(g) clv_gemm_u32((g)->m), clv_gemm_u32((g)->n), clv_gemm_u32((g)->k)
#define CLV_GEMM_END(g) \
    clv_arg_f32((g)->alpha), clv_arg_f32((g)->beta), clv_gemm_u32((g)->activation)

#endif
