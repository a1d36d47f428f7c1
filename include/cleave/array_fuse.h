/* SPDX-License-Identifier: Apache-2.0 */
/* Parses programs of your own, which compute elements of arrays of any type from the elements at the same place, and
 * runs each program as one kernel. */
#ifndef CLEAVE_ARRAY_FUSE_H
#define CLEAVE_ARRAY_FUSE_H

#include <cleave/array_typed.h>
#include <cleave/offload.h>

CLV_BEGIN_DECLS

enum {
    CLV_FUSE_INPUTS = 12, /**< largest number of inputs of a program */
    CLV_FUSE_OUTPUTS = 4, /**< largest number of results */
    CLV_FUSE_NAMES = 32,  /**< largest number of inputs, results and names of types */
};

typedef enum clv_fuse_role {
    CLV_FUSE_INPUT = 0, /**< an array or a number, which the program reads */
    CLV_FUSE_OUTPUT,    /**< an array that the program assigns to */
    CLV_FUSE_TYPE,      /**< another name of an element type, such as T */
} clv_fuse_role;

/** What a name in a program stands for. Frozen. */
typedef struct clv_fuse_name {
    /** Letters, digits and '_'; not the name of a type. The name hides a function of the same name. */
    const char *name;
    clv_fuse_role role;
    clv_dtype type;
} clv_fuse_name;

/** A program, checked and ready to run. Any number of threads may use it at once, in any context. */
typedef struct clv_fused clv_fused;

/**
 * Parses a program, such as "float d = x - y; z = d * d" with the inputs x and y and the output z.
 *
 * A program is a list of statements, separated by ';': an assignment (= += -= *= /=) to an output or a variable, or the
 * declaration of a variable with its value (`float d = x - y`, `T d = x`, `auto d = x`, with or without `const`). Types
 * are bool, int8 to int64, uint8 to uint64, float16 to float64, complex64, complex128, OpenCL's names for them (char,
 * uchar, short, ushort, int, uint, long, ulong, half, float, double) and the names that you define.
 *
 * Parts of expressions, from the tightest binding to the loosest: numbers, names, f(...), (...); `**`
 * (right-associative); unary - + ! ~ and conversions such as (float)x; * / %; + -; << >>; < <= > >=; == !=; &; ^; |;
 * &&; ||; c ? a : b. Functions are the operations of clv_op under their names (clv_op_name), and C's names fabs, fmin,
 * fmax, min, max, rint, rsqrt and clamp. Constants: pi, e, inf, nan, true, false and C's INFINITY, NAN, M_PI, M_E.
 * Comments are C's.
 *
 * Types are those of clv_op_types, as if each operation were a call of clv_array_apply; a number in the text takes the
 * type of the other operand if that type can hold numbers of its kind. The language differs from C in these points. `/`
 * of two integers is refused, because C truncates the quotient: write floor_divide(a, b), divide(a, b) or (float)a / b.
 * `%` has the divisor's sign. A comparison is a bool, and both branches of ?: are computed. Intermediate float16
 * numbers keep float32's digits.
 *
 * There are no loops, no `if` and no indices: an element of the result depends only on the operands' elements at the
 * same place. For other computations, write a kernel in OpenCL C and run it with clv_items_run.
 *
 * @param names     the inputs and outputs, in the order of clv_fuse_run's arguments, and the names of types
 * @param program   receives the program; free it with clv_fuse_free
 * @param position  NULL, or receives the byte offset of the first error in the text
 * @return CLV_OK; CLV_E_FORMAT (the message has line and column, and what was expected there); CLV_E_UNSUPPORTED (an
 *         operation has no meaning for a type; the message has line and column); CLV_E_ARGUMENT (names that cannot be
 *         used); CLV_E_MEMORY.
 */
CLV_API clv_status clv_fuse_parse(const char *text, const clv_fuse_name *names, size_t count,
                                  clv_fused **program, size_t *position);
CLV_API void clv_fuse_free(clv_fused *program); /**< accepts NULL */

/**
 * Runs a program for every element of the outputs, which all have the same shape; inputs broadcast to that shape as in
 * NumPy.
 *
 * The kernel is compiled at the first use, once per context and number of axes that do not merge, and the compiled
 * kernel is kept on disk. The side that is predicted to finish first computes: the host interprets the program in
 * blocks of 256 elements, with the same operations, and needs neither a device nor a compiler. The host also computes
 * what the device cannot: float64 on a device without fp64, and functions of complex numbers such as exp.
 *
 * Outputs may be views, and may share memory with inputs: the result is as if all inputs had been copied first.
 *
 * Accuracy: each operation is as accurate as in clv_array_apply. Operations are not contracted or reassociated.
 *
 * @param inputs   one per input of the program, arrays of its type or numbers
 * @param outputs  one per output, of its type
 * @return CLV_OK; CLV_E_ARGUMENT (a type or count is not the program's; outputs overlap); CLV_E_SHAPE; CLV_E_MEMORY;
 *         CLV_E_NO_DEVICE (you forced a device and there is none).
 */
CLV_API clv_status clv_fuse_run(clv_context *context, const clv_fused *program,
                                const clv_operand *inputs, size_t input_count,
                                clv_array *const *outputs, size_t output_count);

CLV_END_DECLS

#endif
