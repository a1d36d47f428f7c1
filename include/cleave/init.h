/* SPDX-License-Identifier: Apache-2.0 */
/**
 * How to start a struct that you fill in for the library.
 *
 * Every such struct begins with a field `size`, so that it can gain fields in later releases without
 * breaking programs that were compiled before. Start each one with CLV_INIT, which sets `size` and makes
 * everything else zero, the default:
 *
 *     clv_paco_options options = CLV_INIT(clv_paco_options);
 *     options.radius = 5;
 *
 * In C you can also write `{ .size = sizeof(clv_paco_options), .radius = 5 }`. The library refuses a
 * `size` of 0 with CLV_E_ARGUMENT. A struct from a newer header than the library is accepted as long as
 * the fields that the library does not know are zero; otherwise the call returns CLV_E_UNSUPPORTED.
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
