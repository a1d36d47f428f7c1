/* SPDX-License-Identifier: Apache-2.0 */
/* Has the main function of the installed helper program, which applications that use the library start for the option
 * `isolate`. */
#include "probe/helper/child.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc > 2) clv_child_main(argc - 2, argv + 2);
    fprintf(stderr, "%s is started by libcleave; `cleave probe` is the command\n",
            argc ? argv[0] : "this");
    return 2;
}
