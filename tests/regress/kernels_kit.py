# SPDX-License-Identifier: Apache-2.0
"""What the tests with drivers share."""
import glob
import os
import shutil

import kit


def pocl_alone():
    """An environment whose loader is shown PoCL's .icd file and no other; None: it is not here."""
    folders = [os.environ.get("OCL_ICD_VENDORS", ""), "/etc/OpenCL/vendors"]
    for path in [p for folder in folders for p in sorted(glob.glob(os.path.join(folder, "*.icd")))]:
        with open(path, encoding="utf-8") as file:
            if "pocl" in file.read():
                os.makedirs("vendors", exist_ok=True)
                shutil.copy(path, "vendors")
                kept = {name: value for name, value in kit.ENVIRONMENT.items()
                        if name not in ("POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR")}
                return dict(kept, OCL_ICD_VENDORS=os.path.abspath("vendors"))
    print("SKIPPED: PoCL is not here")
    return None
