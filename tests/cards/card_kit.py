# SPDX-License-Identifier: Apache-2.0
"""Makes the environment in which PoCL answers as a simulated graphics card, for the tests of cards."""
import os
import shutil
import sys

CARDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cards.json")
NO_LAYERS = "this loader knows no OPENCL_LAYERS"


def skip(why):
    print("SKIPPED: " + why, flush=True)
    sys.exit(77)


def environment(folder, layer, card, **more):
    """Returns the variables that make PoCL the card, with a cache in the folder. Skips the test if there is no PoCL."""
    icd = os.path.join(os.environ.get("CLEAVE_TEST_ICDS", ""), "pocl.icd")
    if not os.path.exists(icd):
        skip("CLEAVE_TEST_ICDS has no pocl.icd")
    shutil.copy(icd, folder)
    cache = os.path.join(folder, "cache")
    os.mkdir(cache, 0o700)
    return dict(os.environ, OCL_ICD_VENDORS=folder, OPENCL_LAYERS=layer, CLEAVE_CACHE_DIR=cache,
                CLEAVE_CARD="%s#%s" % (CARDS, card), **more)
