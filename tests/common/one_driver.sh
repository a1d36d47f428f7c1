#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a test with one OpenCL driver, if this driver is among those to test on (platforms_export in
# packaging/platforms.sh), and otherwise in the environment as it is. Every process loads and asks each driver that is
# installed, and a fresh cache checks each of them: with PoCL, Mesa and Intel's runtime this takes four times as long as
# with PoCL alone, also where only PoCL computes.
#
#   one_driver.sh pocl|mesa|intel COMMAND [ARGUMENT...]
only=${CLEAVE_TEST_ICDS:+$CLEAVE_TEST_ICDS/only/$1}
if [ -n "$only" ] && [ -d "$only" ]; then
    export CLEAVE_TEST_ICDS="$only" OCL_ICD_VENDORS="$only" CLEAVE_TEST_PLATFORMS="$1"
fi
shift
exec "$@"
