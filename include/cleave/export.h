/* SPDX-License-Identifier: Apache-2.0 */
/* Macros of every public header: which functions the shared library exports, and C linkage for C++. */
#ifndef CLEAVE_EXPORT_H
#define CLEAVE_EXPORT_H

#if defined(__GNUC__)
#define CLV_API __attribute__((visibility("default")))
#define CLV_PRINTF(format_index, first_argument) \
    __attribute__((format(printf, format_index, first_argument)))
#else
#define CLV_API
#define CLV_PRINTF(format_index, first_argument)
#endif

#ifdef __cplusplus
#define CLV_BEGIN_DECLS extern "C" {
#define CLV_END_DECLS }
#else
#define CLV_BEGIN_DECLS
#define CLV_END_DECLS
#endif

#endif
