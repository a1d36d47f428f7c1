/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between floats and numbers of 16 bits (IEEE 754 binary16). */
#include "base/half.h"

#include <math.h>
#include <string.h>

uint16_t clv_half_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return (uint16_t)(sign | 0x7e00);  /* NaN */
    if (bits >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and more */
    if (bits < 0x38800000) { /* denormal: counts of 2^-24; nearbyintf rounds */
        float magnitude;
        memcpy(&magnitude, &bits, sizeof magnitude);
        return (uint16_t)(sign | (uint32_t)nearbyintf(magnitude * 0x1p24f));
    }
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | ((bits >> 13) - (112u << 10)));
}

/* Moves exponent and mantissa to their places in a float. A float's exponent bias is larger by 112, and one
 * exact product corrects that, for subnormal numbers too. */
float clv_half_to_float(uint16_t half)
{
    uint32_t bits = (uint32_t)(half & 0x7FFF) << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    value *= 0x1p112f;
    memcpy(&bits, &value, sizeof bits);
    if ((half & 0x7C00) == 0x7C00) bits |= 0x7F800000; /* infinity, NaN */
    bits |= (uint32_t)(half & 0x8000) << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}
