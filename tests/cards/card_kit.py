# SPDX-License-Identifier: Apache-2.0
"""Makes the environment in which PoCL answers as a simulated graphics card, for the tests of cards."""
import os
import shutil
import sys

CARDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cards.json")


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
    variables = {"OCL_ICD_VENDORS": folder, "OPENCL_LAYERS": layer, "CLEAVE_CACHE_DIR": cache,
                 "CLEAVE_CARD": "%s#%s" % (CARDS, card), "CLEAVE_CARD_LAUNCHES": os.path.join(folder, "launches")}
    return dict(os.environ, **variables, **more)


def need_layer(env):
    """Skips the test if the loader ignored the layer, after a program has run in this environment: the layer makes its
    file of launches when it is loaded. A card that is refused for another reason fails the test."""
    if not os.path.exists(env["CLEAVE_CARD_LAUNCHES"]):
        skip("this loader knows no OPENCL_LAYERS")
