# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of kernels that drivers keep between runs."""
import glob
import os
import shutil

import kit


def pocl_alone():
    """Returns an environment whose loader sees only PoCL's .icd file; None if it does not exist."""
    return alone("pocl", "PoCL")


def alone(word, name):
    """Does the same for the driver whose .icd file has that word in its contents or name."""
    folders = [os.environ.get("OCL_ICD_VENDORS", ""), "/etc/OpenCL/vendors"]
    for path in [p for folder in folders for p in sorted(glob.glob(os.path.join(folder, "*.icd")))]:
        with open(path, encoding="utf-8") as file:
            if word in (file.read() + os.path.basename(path)).lower():
                os.makedirs("vendors-" + word, exist_ok=True)
                shutil.copy(path, "vendors-" + word)
                kept = {name: value for name, value in kit.ENVIRONMENT.items()
                        if name not in ("POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR")}
                return dict(kept, OCL_ICD_VENDORS=os.path.abspath("vendors-" + word))
    print("SKIPPED: %s is not here" % name)
    return None


def bent(data):
    """Yields the ways in which a kept file is damaged."""
    yield "empty", b""
    yield "cut", data[:len(data) // 2]
    yield "changed", data[:len(data) // 2] + bytes([data[len(data) // 2] ^ 0x40]) + data[len(data) // 2 + 1:]
    yield "zeros", bytes(len(data))
