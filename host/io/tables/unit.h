/* SPDX-License-Identifier: Apache-2.0 */
/* Compares units of flux that files write in different ways: "1e-17 erg/s/cm^2/Ang", "10**-20 erg / (Angstrom s cm2)",
 * "mJy". */
#ifndef CLEAVE_HOST_IO_TABLES_UNIT_H
#define CLEAVE_HOST_IO_TABLES_UNIT_H

typedef enum clv_unit_match {
    CLV_UNITS_EQUAL,   /* they differ by a factor, perhaps 1 */
    CLV_UNITS_DIFFER,  /* both are understood, and neither can be converted into the other */
    CLV_UNITS_UNKNOWN, /* a text, or a name in it, is not understood */
} clv_unit_match;

/* Compares `unit` with the power `power` of the unit `base`. If they are equal apart from a factor, *factor is the
 * number of base^power in one `unit`; a power of ten is exact to the last bit or two. Names that are not known, such as
 * "widgets", are equal only to themselves. Upper and lower case differ (mJy, MJy). */
clv_unit_match clv_unit_compare(const char *unit, const char *base, int power, double *factor);

#endif
