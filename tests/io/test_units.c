/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/tables/unit.c: units of flux in the ways that files write them. */
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/tables/unit.h"

#include <math.h>

static void equal_units_are_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *unit, *base;
        int power;
        double factor;
    } pairs[] = {
        { "Jy", "Jy", 1, 1 },
        { "mJy", "Jy", 1, 1e-3 },
        { "MJy", "mJy", 1, 1e9 },
        { "\xC2\xB5Jy", "Jy", 1, 1e-6 },
        { "uJy", "nJy", 1, 1e3 },
        { "1e-17 erg/s/cm2/A", "erg / (Angstrom s cm2)", 1, 1e-17 },
        { "10**-17 erg/(s cm2 Angstrom)", "1E-17 erg/s/cm^2/Ang", 1, 1 },
        { "10**(-20)*erg/s/cm**2/Angstrom", "1e-17 erg cm-2 s-1 ANGSTROM-1", 1, 1e-3 },
        { "10-17erg/cm2/s/A", "1x10^-17 erg.s^{-1}.cm^(-2).AA^-1", 1, 1 },
        { "W/m2/um", "erg/s/cm2/A", 1, 0.1 },
        { "W m-2 Hz-1", "Jy", 1, 1e26 },
        { "erg/s/cm2/Hz", "Jy", 1, 1e23 },
        { "flam", "erg/s/cm2/A", 1, 1 },
        { "10**+34 (s2 cm4 Angstrom2) / erg2", "1e-17 erg/s/cm2/A", -2, 1 },
        { "1/(1E-17 erg/s/cm^2/Ang/spaxel)^2", "1E-17 erg/s/cm^2/Ang/spaxel", -2, 1 },
        { "(10**(-20)*erg/s/cm**2/Angstrom)**2", "10**(-20)*erg/s/cm**2/Angstrom", 2, 1 },
        { "mJy2", "Jy", 2, 1e-6 },
        { "kADU", "DN", 1, 1e3 },
        { "counts", "ct", 1, 1 },
        { "e-/s", "electron s-1", 1, 1 },
        { "100 widgets", "widgets", 1, 100 },
        { "2.5 Jy", "Jy", 1, 2.5 },
        { "10.erg", "erg", 1, 10 },
        { "erg/cm2 s", "s erg/cm2", 1, 1 },
    };
    for (size_t i = 0; i < CLV_LEN(pairs); ++i) {
        double factor = 0;
        const clv_unit_match match =
            clv_unit_compare(pairs[i].unit, pairs[i].base, pairs[i].power, &factor);
        if (match != CLV_UNITS_EQUAL ||
            !(fabs(factor - pairs[i].factor) <= 1e-13 * pairs[i].factor))
            fail_msg("%s in %s: %d, %.17g", pairs[i].unit, pairs[i].base, match, factor);
    }
}

static void other_units_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *unit, *base;
        int power;
        clv_unit_match match;
    } pairs[] = {
        { "Jy", "erg/s/cm2/A", 1, CLV_UNITS_DIFFER },
        { "mag", "Jy", 1, CLV_UNITS_DIFFER },
        { "adu", "ct", 1, CLV_UNITS_DIFFER },
        { "1/Jy2", "erg/s/cm2/A", -2, CLV_UNITS_DIFFER },
        { "Jy", "Jy", -2, CLV_UNITS_DIFFER },
        { "Jy2", "Jy", -2, CLV_UNITS_DIFFER },
        { "erg/s/cm2/A", "erg/(s cm2) A", 1, CLV_UNITS_DIFFER },
        { "widgets", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "widgets", "Widgets", 1, CLV_UNITS_UNKNOWN },
        { "Jy**(1/2)", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "Jy^", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "(Jy", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "Jy)", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "Jy/", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "Jy//s", "Jy", 1, CLV_UNITS_UNKNOWN },
        /* 256^4 is 0 in an int */
        { "(((J**256)**256)**256)**256 Jy", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "0 Jy", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "1.2.3 Jy", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "Jy999999999999999999999", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "((((((((((((Jy))))))))))))", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "a b c d f g h i j k l m n o p", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "abcdefghijklmnopqrstuvwxyzabcdefgh", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "1e-300 1e-300 Jy", "Jy", 1, CLV_UNITS_UNKNOWN },
        { "Jy?", "Jy", 1, CLV_UNITS_UNKNOWN },
    };
    for (size_t i = 0; i < CLV_LEN(pairs); ++i) {
        double factor = 0;
        const clv_unit_match match =
            clv_unit_compare(pairs[i].unit, pairs[i].base, pairs[i].power, &factor);
        if (match != pairs[i].match)
            fail_msg("%s and %s: %d, %g", pairs[i].unit, pairs[i].base, match, factor);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_units_are_recognised),
        cmocka_unit_test(other_units_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
