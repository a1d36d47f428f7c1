/* SPDX-License-Identifier: Apache-2.0 */
/* Implements what all movie formats share: notices, pixel types, and the message for frames that end early. */
#include "host/io/formats/movie_parts.h"

#include "base/error.h"
#include "base/half.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void clv_movie_notice(clv_movie *movie, const char *format, ...)
{
    const size_t used = strlen(movie->facts.notices);
    va_list args;
    va_start(args, format);
    vsnprintf(movie->facts.notices + used, sizeof movie->facts.notices - used, format, args);
    va_end(args);
}

clv_type clv_movie_type(clv_type stored)
{
    return stored == CLV_U8 || stored == CLV_U16 || stored == CLV_I16 ? stored : CLV_F32;
}

size_t clv_movie_stored_size(clv_type stored, clv_narrow narrow)
{
    return narrow == CLV_NARROW_INT8 ? 1 : narrow == CLV_NARROW_HALF ? 2 : clv_type_size(stored);
}

const char *clv_movie_stored_name(clv_type stored, clv_narrow narrow)
{
    return narrow == CLV_NARROW_INT8   ? "int8"
           : narrow == CLV_NARROW_HALF ? "float16"
                                       : clv_type_name(stored);
}

void clv_movie_convert(clv_type stored, clv_narrow narrow, const void *in, size_t count, void *out)
{
    float *to = out;
    if (narrow == CLV_NARROW_INT8) {
        for (size_t i = 0; i < count; ++i)
            ((int16_t *)out)[i] = ((const int8_t *)in)[i];
        return;
    }
    if (narrow == CLV_NARROW_HALF) {
        for (size_t i = 0; i < count; ++i)
            to[i] = clv_half_to_float(((const uint16_t *)in)[i]);
        return;
    }
    switch (stored) {
    case CLV_I32:
        for (size_t i = 0; i < count; ++i)
            to[i] = (float)((const int32_t *)in)[i];
        break;
    case CLV_U32:
        for (size_t i = 0; i < count; ++i)
            to[i] = (float)((const uint32_t *)in)[i];
        break;
    case CLV_I64:
        for (size_t i = 0; i < count; ++i)
            to[i] = (float)((const int64_t *)in)[i];
        break;
    case CLV_F64:
        for (size_t i = 0; i < count; ++i)
            to[i] = (float)((const double *)in)[i];
        break;
    default:
        memcpy(out, in, count * clv_type_size(stored));
        break;
    }
}

clv_status clv_movie_short(const char *path, const char *what, size_t whole_frames)
{
    if (!whole_frames)
        return clv_fail(CLV_E_FORMAT, "%s: %s; not one frame can be read", path, what);
    return clv_fail(
        CLV_E_FORMAT,
        "%s: %s; the last readable frame is %zu (--partial processes the frames up to it)", path,
        what, whole_frames - 1);
}

clv_status clv_movie_only_one(const char *path, const clv_movie_options *options)
{
    const bool channel = options->channel_given && options->channel;
    if (!channel && !(options->z_given && options->z)) return CLV_OK;
    return clv_fail(CLV_E_ARGUMENT,
                    "%s: %s %zu was asked for, but this file has only one, number 0", path,
                    channel ? "channel" : "plane", channel ? options->channel : options->z);
}
