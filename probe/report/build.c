/* SPDX-License-Identifier: Apache-2.0 */
/* Names the libraries and the commit with which this copy of Cleave was built; the build passes them in three
 * definitions. */
#include "probe/report/build.h"

#include <stddef.h>

const char *clv_build_with(void)
{
    return CLEAVE_BUILD_WITH;
}

const char *clv_build_without(void)
{
    return CLEAVE_BUILD_WITHOUT;
}

const char *clv_build_commit(void)
{
    return *CLEAVE_COMMIT ? CLEAVE_COMMIT : NULL;
}
