/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of any type, views of arrays, and operations on arrays element by element.
 *
 * An array is a view of a storage: an element type, a shape of at most 8 axes, strides, and the place of its first
 * element. Several arrays may share one storage; clv_array_view makes another view without a copy. What is written
 * through one array is visible through all arrays of that storage. The storage lives until the last of its arrays is
 * freed. An array belongs to its context. Calls of several threads on one storage run one after another (array_data.h).
 *
 * The operations of cleave/array_math.h take only arrays of float32 that are dense, have at most 4 axes and cover all
 * of their storage. clv_array_cast makes a dense array of float32 from an array of any type. */
#ifndef CLEAVE_ARRAY_TYPED_H
#define CLEAVE_ARRAY_TYPED_H

#include <cleave/array_data.h>

CLV_BEGIN_DECLS

enum { CLV_ARRAY_RANK = 8 /**< largest number of axes of an array */ };

/** Element types. The numbers never change. float16 is a type for storage: operations compute in float32 and round the
 *  result. */
typedef enum clv_dtype {
    CLV_F32 = 0,
    CLV_BOOL = 1, /**< one byte, 0 or 1 */
    CLV_I8 = 2,
    CLV_I16 = 3,
    CLV_I32 = 4,
    CLV_I64 = 5,
    CLV_U8 = 6,
    CLV_U16 = 7,
    CLV_U32 = 8,
    CLV_U64 = 9,
    CLV_F16 = 10,
    CLV_F64 = 11,
    CLV_C64 = 12,  /**< two float32: real and imaginary part */
    CLV_C128 = 13, /**< two float64 */
} clv_dtype;

enum { CLV_DTYPES = 14 };

CLV_API const char *clv_dtype_name(clv_dtype type); /**< "int8", ...; "unknown" */
CLV_API size_t clv_dtype_bytes(clv_dtype type);     /**< size of an element; 0: no such type */

/**
 * Returns the type to which two types promote, by the Python array API standard (2024.12). If the standard leaves the
 * type open, NumPy's rules hold: float64 for uint64 with a signed integer; and for an integer with a float, the
 * smallest float type that is no smaller than the float and holds every value of the integer type (float64 if the
 * integer has 32 or 64 bits).
 */
CLV_API clv_dtype clv_dtype_promote(clv_dtype a, clv_dtype b);

/* ---- arrays ------------------------------------------------------------------------------------ */

/** Creates an owned, dense array with undefined contents. An extent may be 0. Errors: CLV_E_ARGUMENT; CLV_E_SHAPE (more
 *  than 8 axes, 2^31 elements or more); CLV_E_MEMORY. */
CLV_API clv_status clv_array_make(clv_context *context, clv_dtype type, size_t rank,
                                  const size_t *shape, clv_array **array);
/** Creates an owned array with the elements of `host`, which are dense, and copies them to the device at once, or to
 *  host memory if there is no device that works, has room and computes with this type. Errors: those of
 *  clv_array_make. */
CLV_API clv_status clv_array_make_from(clv_context *context, clv_dtype type, const void *host,
                                       size_t rank, const size_t *shape, clv_array **array);
/** Makes an array that uses your dense memory without copying it. The memory must be aligned to the element and must
 *  outlive the array and all of its views. */
CLV_API clv_status clv_array_make_wrap(clv_context *context, clv_dtype type, void *host,
                                       size_t rank, const size_t *shape, clv_array **array);

CLV_API clv_dtype clv_array_type(const clv_array *array);
/** Returns the strides in elements: 8 numbers, one per axis, 0 beyond the rank and for axes of extent 1. Borrowed. */
CLV_API const ptrdiff_t *clv_array_strides(const clv_array *array);
/** Returns the place of the first element in the storage, counted in elements. */
CLV_API size_t clv_array_offset(const clv_array *array);

/**
 * Makes an array that shares the storage of another one: element [i, j, ...] is element offset + i stride[0] + j
 * stride[1] + ... of that storage, counted from the first element of `array`. Strides may be negative or 0.
 *
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_SHAPE (more than 8 axes, or an element lies outside of the storage);
 *         CLV_E_MEMORY.
 */
CLV_API clv_status clv_array_view(clv_array *array, ptrdiff_t offset, size_t rank,
                                  const size_t *shape, const ptrdiff_t *stride, clv_array **view);
/** Makes such an array whose elements are the same bytes, read as another type: the real parts of complex numbers are
 *  a view as floats with twice the strides. `offset` and the strides are counted in elements of the new type. Errors:
 *  those of clv_array_view; CLV_E_SHAPE also if the first element of `array` does not begin at a whole element of
 *  `type`. */
CLV_API clv_status clv_array_view_as(clv_array *array, clv_dtype type, ptrdiff_t offset,
                                     size_t rank, const size_t *shape, const ptrdiff_t *stride,
                                     clv_array **view);

/** Copies all elements to `host`, dense and in row-major order, with a transfer if they are on a device. */
CLV_API clv_status clv_array_copy_to(clv_array *array, void *host);
/** Copies all elements from `host`, which is dense, to the side, host or device, that holds the array. */
CLV_API clv_status clv_array_fill_from(clv_array *array, const void *host);

/** Gives the address at which the host finds the array's first element; the others follow by the array's strides. It is
 *  your own memory if the array wraps it, or memory that the device shares with the host. Nothing is copied. The
 *  address holds until the array and all of its views are freed. Use it between calls, not while one runs.
 *  CLV_E_UNSUPPORTED: the elements are in the memory of a device that does not share the host's. */
CLV_API clv_status clv_array_host(clv_array *array, void **host);

/** Creates an owned, dense array with the elements of `array`, converted to `type`. Numbers that an integer type cannot
 *  hold wrap; floats outside of the type's range and NaN give an unspecified number. A complex number loses its
 *  imaginary part. Converted to bool, every number but 0 is true. */
CLV_API clv_status clv_array_cast(clv_array *array, clv_dtype type, clv_array **out);

/* ---- element by element ------------------------------------------------------------------------ */

/** What clv_array_apply computes. The numbers never change; new ones come at the end. */
typedef enum clv_op {
    CLV_OP_COPY = 0,
    CLV_OP_ADD,
    CLV_OP_SUBTRACT,
    CLV_OP_MULTIPLY,
    CLV_OP_DIVIDE,       /**< integers are divided as float64 */
    CLV_OP_FLOOR_DIVIDE, /**< integers: 0 for a divisor of 0 */
    CLV_OP_REMAINDER,    /**< has the divisor's sign; integers: 0 for a divisor of 0 */
    CLV_OP_POW,          /**< integers: 0 for a negative exponent, unless the base is 1 or -1 */
    CLV_OP_EQUAL,
    CLV_OP_NOT_EQUAL,
    CLV_OP_LESS,
    CLV_OP_LESS_EQUAL,
    CLV_OP_GREATER,
    CLV_OP_GREATER_EQUAL,
    CLV_OP_LOGICAL_AND,
    CLV_OP_LOGICAL_OR,
    CLV_OP_LOGICAL_XOR,
    CLV_OP_LOGICAL_NOT,
    CLV_OP_BIT_AND,
    CLV_OP_BIT_OR,
    CLV_OP_BIT_XOR,
    CLV_OP_BIT_NOT,
    CLV_OP_SHIFT_LEFT, /**< a shift by the width of the type or more gives 0 */
    /** A shift by the width of the type or more gives 0, or -1 if the number is negative. */
    CLV_OP_SHIFT_RIGHT,
    CLV_OP_MINIMUM, /**< NaN if an argument is NaN */
    CLV_OP_MAXIMUM,
    CLV_OP_FMIN, /**< if one argument is NaN, the other argument */
    CLV_OP_FMAX,
    CLV_OP_ATAN2,
    CLV_OP_HYPOT,
    CLV_OP_COPYSIGN,
    CLV_OP_NEXTAFTER,
    CLV_OP_LOGADDEXP,
    CLV_OP_NEGATE,
    CLV_OP_ABS, /**< for a complex number, its magnitude, which is real */
    CLV_OP_SIGN,
    CLV_OP_SQUARE,
    CLV_OP_RECIPROCAL,
    CLV_OP_SQRT,
    CLV_OP_EXP,
    CLV_OP_EXP2,
    CLV_OP_EXPM1,
    CLV_OP_LOG,
    CLV_OP_LOG2,
    CLV_OP_LOG10,
    CLV_OP_LOG1P,
    CLV_OP_SIN,
    CLV_OP_COS,
    CLV_OP_TAN,
    CLV_OP_ASIN,
    CLV_OP_ACOS,
    CLV_OP_ATAN,
    CLV_OP_SINH,
    CLV_OP_COSH,
    CLV_OP_TANH,
    CLV_OP_ASINH,
    CLV_OP_ACOSH,
    CLV_OP_ATANH,
    CLV_OP_FLOOR,
    CLV_OP_CEIL,
    CLV_OP_TRUNC,
    CLV_OP_ROUND, /**< to the nearest integer; halves to the even one */
    CLV_OP_ISNAN,
    CLV_OP_ISINF,
    CLV_OP_ISFINITE,
    CLV_OP_SIGNBIT,
    CLV_OP_CONJ,
    CLV_OP_REAL,
    CLV_OP_IMAG,
    CLV_OP_WHERE, /**< where(condition, x, y) */
    CLV_OP_RAMP, /**< ramp(start, step): start + step * i for element i of the result, row by row */
} clv_op;

enum { CLV_OPS = CLV_OP_RAMP + 1, CLV_OP_INPUTS = 3 };

/** An operand: an array, or, if `array` is NULL, a number of type `type`. For integers and bool, the number is in
 *  `whole` (for uint64, as the same 64 bits); for the other types, in `real` and `imaginary`. Frozen. */
typedef struct clv_operand {
    clv_array *array;
    clv_dtype type;
    int64_t whole;
    double real, imaginary;
} clv_operand;

CLV_API const char *clv_op_name(clv_op op); /**< "floor_divide", ...; "unknown" */
/** Returns how many operands an operation has; 0 if there is no such operation. */
CLV_API size_t clv_op_inputs(clv_op op);

/**
 * Gets the type in which an operation on operands of these types computes, and the type of its result. The type of the
 * condition of CLV_OP_WHERE has no influence. Division and functions such as sqrt compute integers and bool as float64.
 *
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_UNSUPPORTED (the operation has no meaning for the type, such as sin of complex
 *         numbers or a shift of floats).
 */
CLV_API clv_status clv_op_types(clv_op op, const clv_dtype *types, size_t count, clv_dtype *compute,
                                clv_dtype *result);

/**
 * Computes `op` for every element of `out`. Operands broadcast against `out` as in NumPy: shapes are aligned at their
 * last axes, and an axis that is missing or has extent 1 repeats. The result is converted to the type of `out` as
 * clv_array_cast does.
 *
 * `out` may be a view, such as a part of another array, and operands may share its storage: the result is as if all
 * operands had been copied first. An `out` with two elements at the same place of its storage is refused.
 *
 * The side that is predicted to finish first computes (cleave/offload.h). float64 and complex128 are computed on the
 * host if the device has no fp64.
 *
 * Accuracy: integers, + - * and comparisons are exact or correctly rounded. Functions are within the bounds of OpenCL
 * 1.2 for their type (float32: division 2.5 ulp, sqrt 3, exp, log, sin and cos 4, pow 16).
 *
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_SHAPE (an operand does not broadcast); CLV_E_UNSUPPORTED (as for clv_op_types);
 *         CLV_E_MEMORY; CLV_E_NO_DEVICE (you forced a device and there is none).
 */
CLV_API clv_status clv_array_apply(clv_context *context, clv_op op, const clv_operand *operands,
                                   size_t count, clv_array *out);

/**
 * Creates an array with the result of an operation that has one operand, `x`, or two. It is the short way to a small
 * call: clv_array_make and clv_array_apply in one. If `x` or `y` is NULL, `number` stands for it in the type of the
 * other one. The result has the type that clv_op_types gives, and the shape to which the operands broadcast.
 *
 * Returns NULL if it fails; clv_error_message says why.
 */
CLV_API clv_array *clv_array_compute(clv_op op, clv_array *x, clv_array *y, double number);

CLV_END_DECLS

#endif
