/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which built-in functions a program is said to use. */
#include "test.h"

#include "runtime/program/declare.h"

#include <string.h>

static const char header[] = "#ifdef CLV_USES_exp\n#endif\n#ifdef CLV_USES_vload\n#endif\n"
                             "#ifdef CLV_HAS_char\n#endif\n";

static void expect(const char *program, const char *defines)
{
    clv_text out = { 0 };
    clv_declare_uses(header, program, &out);
    assert_string_equal(clv_text_get(&out), defines);
    clv_text_clear(&out);
}

static void names_are_words_or_have_a_number(void **state)
{
    (void)state;
    const char *const exp = "#define CLV_USES_exp\n", *const vload = "#define CLV_USES_vload\n";
    expect("", "");
    expect("exp", exp);
    expect("x=exp(y);", exp);
    expect("expand(y); my_exp(y); exp_lanes(y);", "");
    expect("expand(exp (y))", exp);
    expect("vload16(0, p)", vload);
    expect("JOIN(vload, LANES)", vload);
    expect("vload_half(0, p) vload4x", "");
    expect("uchar16", "#define CLV_HAS_char\n");
}

static void comments_do_not_count(void **state)
{
    (void)state;
    expect("/* exp(x) */ a // exp(x)", "");
    expect("/* a */ exp(x) /* b", "#define CLV_USES_exp\n");
    expect("// a\nexp(x)", "#define CLV_USES_exp\n");
    expect("a / exp(x) */", "#define CLV_USES_exp\n");
    expect("/*/ exp */", "");
    expect("//", "");
    expect("/", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_words_or_have_a_number),
        cmocka_unit_test(comments_do_not_count),
    };
    return cmocka_run_group_tests_name("declare", tests, NULL, NULL);
}
