/* SPDX-License-Identifier: Apache-2.0 */
/* Tests PACO on the device under test against the reference. */
#include "host/synthetic/paco_pair.h"
#include "host/selftest/selftest.h"

enum { FRAMES = 24, HEIGHT = 41, WIDTH = 52, SEED = 4 };

static const struct {
    const char *name;
    clv_psf_mode psf_mode;
    clv_paco_convention convention;
    bool damaged;
} cases[] = {
    { "paco fixed", CLV_PSF_FIXED, CLV_PACO_PAPER, false },
    { "paco shift", CLV_PSF_SHIFT, CLV_PACO_PAPER, false },
    { "paco vip", CLV_PSF_SHIFT, CLV_PACO_VIP, false },
    { "paco, NaN and dead pixels", CLV_PSF_SHIFT, CLV_PACO_PAPER, true },
};

/* Computes the reference first, so that its time does not count as the device's. */
static void run_case(selftest *test, size_t index, const synthetic_adi *adi)
{
    const clv_paco_options options = { .size = sizeof options,
                                       .psf_mode = cases[index].psf_mode,
                                       .convention = cases[index].convention };
    paco_pair want, got = { 0 };
    paco_difference difference = { 0 };
    clv_status status = paco_pair_reference(adi, &options, &want);
    selftest_begin(test, "%s: a", cases[index].name);
    if (!status) status = paco_pair_compute(test->context, adi, &options, &got, NULL);
    if (!status) difference = paco_pair_compare(&got, &want, &options);
    selftest_end(test, status, difference.a, difference.a_limit);
    if (!status)
        selftest_also(test, difference.snr, difference.snr_limit, "%s: S/N", cases[index].name);
    paco_pair_clear(&want), paco_pair_clear(&got);
}

void selftest_paco(selftest *test)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        synthetic_adi adi;
        const clv_status status = synthetic_adi_create(FRAMES, HEIGHT, WIDTH, SEED, &adi);
        if (status) {
            selftest_begin(test, "%s", cases[i].name);
            selftest_end(test, status, 0, 0);
            continue;
        }
        if (cases[i].damaged) synthetic_adi_damage(&adi);
        run_case(test, i, &adi);
        synthetic_adi_clear(&adi);
    }
}
