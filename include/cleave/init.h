/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Explains the structs of these headers: how you initialise a struct, how structs gain fields, and how you ask for a
 * default.
 *
 * **Structs that you fill in** (options, descriptions) begin with a field `size`, so that they can gain fields
 * in later releases without breaking programs that were compiled before. Start each one with CLV_INIT, which
 * sets `size` and makes everything else zero:
 *
 *     clv_paco_options options = CLV_INIT(clv_paco_options);
 *     options.radius = 5;
 *
 * In C you can also write `{ .size = sizeof(clv_paco_options), .radius = 5 }`. The library refuses a `size`
 * of 0 with CLV_E_ARGUMENT. A struct from a newer header than the library is accepted as long as the fields
 * that the library does not know are zero; otherwise the call returns CLV_E_UNSUPPORTED.
 *
 * **Zero asks for the default** of such a field (NULL for a pointer, false for a bool); its comment says what the
 * default is. If zero is also a useful value, the struct has a bool NAME_given beside the field: set it to true, and
 * the field counts even if it is zero.
 *
 * **Frozen structs** have no `size`: small values, elements of arrays, and results that are returned by value
 * or written to memory of yours. Their layout changes only with the version of the shared library (the first two
 * numbers before version 1.0); further results come from new functions instead. Their comments say "Frozen".
 *
 * **Structs that the library owns** and shows through a pointer (clv_tensors_at, clv_model_get_config,
 * clv_probe_report_device, ...) may gain fields at their end in any release: read them through that pointer,
 * copy the fields that you need, and do not index an array of them yourself.
 */
#ifndef CLEAVE_INIT_H
#define CLEAVE_INIT_H

#ifdef __cplusplus
/** What CLV_INIT expands to in C++, which has no designated initialisers before C++20. */
template <typename T> inline T clv_init_struct()
{
    T value = T();
    value.size = sizeof(T);
    return value;
}
#define CLV_INIT(type) (clv_init_struct<type>())
#else
#define CLV_INIT(type)       \
    {                        \
        .size = sizeof(type) \
    }
#endif

#endif
