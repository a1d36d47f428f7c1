/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/formats/fits_cards.c: header cards of FITS files. */
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/formats/fits_cards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void cards_have_the_form_of_the_standard(void **state)
{
    (void)state;
    static const char forty[] = "0123456789012345678901234567890123456789";
    char eighty[81];
    clv_fits_cards cards = { 0 };
    snprintf(eighty, sizeof eighty, "%s%s", forty, forty);
    clv_fits_card_int(&cards, "NFRAMES", -61, "frames");
    clv_fits_card_double(&cards, "TENTH", 0.1, NULL);
    clv_fits_card_double(&cards, "ONE", 1, "in any locale");
    clv_fits_card_double(&cards, "SMALL", -1e-17, NULL);
    clv_fits_card_double(&cards, "LONG", 0.1 + 0.2, NULL);
    clv_fits_card_double(&cards, "NOTHING", NAN, "not finite");
    clv_fits_card_bool(&cards, "YES", true, NULL);
    clv_fits_card_string(&cards, "NAME", "it's", "quoted");
    clv_fits_card_string(&cards, "EMPTY", "", NULL);
    clv_fits_card_string(&cards, "UTF8", "\xC3\xA9", NULL);
    clv_fits_card_string(&cards, "CUT", eighty, "gone");
    clv_fits_card_int(&cards, "COMMENTD", 1, eighty);

    static const char *const want[] = {
        "NFRAMES =                  -61 / frames",
        "TENTH   =                  0.1",
        "ONE     =                  1.0 / in any locale",
        "SMALL   =               -1E-17",
        "LONG    =  0.30000000000000004",
        "NOTHING =                      / not finite",
        "YES     =                    T",
        "NAME    = 'it''s   '           / quoted",
        "EMPTY   = '        '",
        "UTF8    = '??      '",
        "CUT     = '01234567890123456789012345678901234567890123456789012345678901234567'",
        "COMMENTD=                    1 / 01234567890123456789012345678901234567890123456",
    };
    assert_int_equal(cards.count, CLV_LEN(want));
    for (size_t i = 0; i < CLV_LEN(want); ++i)
        assert_string_equal(cards.items[i].text, want[i]);
    assert_false(cards.failed);
    clv_fits_cards_clear(&cards);
}

static void a_key_is_set_once_and_history_wraps(void **state)
{
    (void)state;
    clv_fits_cards cards = { 0 };
    clv_fits_card_int(&cards, "A", 1, NULL);
    clv_fits_card_int(&cards, "B", 2, NULL);
    clv_fits_card_int(&cards, "A", 3, NULL);
    assert_int_equal(cards.count, 2);
    assert_string_equal(clv_fits_card_find(&cards, "A"), "A       =                    3");
    assert_null(clv_fits_card_find(&cards, "C"));

    clv_fits_card_history(&cards, "a line that is longer than seventy-two columns goes on at the "
                                  "last space before the border");
    clv_fits_card_history(&cards, "");
    assert_int_equal(cards.count, 5);
    assert_string_equal(
        cards.items[2].text,
        "HISTORY a line that is longer than seventy-two columns goes on at the last space");
    assert_string_equal(cards.items[3].text, "HISTORY before the border");
    assert_string_equal(cards.items[4].text, "HISTORY");
    clv_fits_cards_clear(&cards);
}

static void only_cards_that_still_hold_are_carried(void **state)
{
    (void)state;
    static const char *const yes[] = { "OBJECT  = 'x'",  "DATE-OBS= '2013'", "CTYPE1  = 'RA'",
                                       "CRPIX2  = 1.0",  "CD2_1   = 0.0",    "PC1_1   = 1.0",
                                       "PV2_10  = 1.0",  "CROTA2  = 0.0",    "MJD-OBS = 5.0",
                                       "BUNIT   = 'adu'" };
    static const char *const no[] = { "EXPTIME = 1", "CTYPE1A = 'RA'",
                                      "BSCALE  = 2", "NAXIS1  = 5",
                                      "CD1     = 1", "CTYPE   = 'x'",
                                      "OBJECTS = 1", "CD1_    = 1",
                                      "WCSAXES = 3", "",
                                      "END" };
    clv_fits_cards cards = { 0 };
    for (size_t i = 0; i < CLV_LEN(no); ++i)
        clv_fits_card_carry(&cards, no[i]);
    assert_int_equal(cards.count, 0);
    for (size_t i = 0; i < CLV_LEN(yes); ++i)
        clv_fits_card_carry(&cards, yes[i]);
    assert_int_equal(cards.count, CLV_LEN(yes));

    const size_t before = cards.count; /* ESO's keywords are told apart by all of their words */
    clv_fits_card_carry(&cards, "HIERARCH ESO DET DIT = 0.2 / seconds");
    clv_fits_card_carry(&cards, "HIERARCH ESO DET NDIT = 300");
    clv_fits_card_carry(&cards, "HIERARCH ESO DET DIT = 0.3");
    clv_fits_card_carry(&cards, "HIERARCH other thing = 1");
    assert_int_equal(cards.count, before + 2);
    assert_string_equal(cards.items[before].text, "HIERARCH ESO DET DIT = 0.3");
    cards.count = before;
    clv_fits_card_history(&cards, "cleave paco cube.fits angles.fits");
    assert_string_equal(cards.items[before].text, "HISTORY cleave paco cube.fits angles.fits");
    cards.count = before;

    cards.rank = 3;
    clv_fits_card_carry(&cards, "CD3_1   = 1.0");
    clv_fits_card_carry(&cards, "CTYPE4  = 'x'");
    const clv_fits_card *axis3 = &cards.items[CLV_LEN(yes)], *axis4 = axis3 + 1;
    assert_true(clv_fits_card_fits(&cards, axis3, 3));
    assert_false(clv_fits_card_fits(&cards, axis3, 2) || clv_fits_card_fits(&cards, axis3, 4));
    assert_false(clv_fits_card_fits(&cards, axis4, 4));
    cards.rank = 4; /* axis 3 of [C,T,H,W] is no axis of [C,H,W] */
    assert_false(clv_fits_card_fits(&cards, axis3, 3));
    clv_fits_cards_clear(&cards);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_have_the_form_of_the_standard),
        cmocka_unit_test(a_key_is_set_once_and_history_wraps),
        cmocka_unit_test(only_cards_that_still_hold_are_carried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
