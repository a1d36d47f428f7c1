#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that `cleave probe --json` and `clinfo --json` agree on every device of the installed drivers, or of the
drivers in the folder $CLEAVE_TEST_ICDS if it is set. The test is in Python because clinfo's JSON repeats keys, which
Cleave's own reader refuses.

usage: compare_clinfo.py COMMAND
Exit code 77: there is no clinfo with --json, or no device.
"""
import json
import os
import shutil
import subprocess
import sys

import testdata

LEAST_FIELDS = 25

# our name (group.key) and theirs; `plain` makes both values comparable
FIELDS = [
    ("name", "CL_DEVICE_NAME"), ("vendor", "CL_DEVICE_VENDOR"),
    ("vendor_id", "CL_DEVICE_VENDOR_ID"), ("type", "CL_DEVICE_TYPE"),
    ("version", "CL_DEVICE_VERSION"), ("numeric_version", "CL_DEVICE_NUMERIC_VERSION"),
    ("c_version", "CL_DEVICE_OPENCL_C_VERSION"), ("profile", "CL_DEVICE_PROFILE"),
    ("driver_version", "CL_DRIVER_VERSION"), ("uuid", "CL_DEVICE_UUID_KHR"),
    ("driver_uuid", "CL_DRIVER_UUID_KHR"), ("available", "CL_DEVICE_AVAILABLE"),
    ("compiler_available", "CL_DEVICE_COMPILER_AVAILABLE"),
    ("extensions", "CL_DEVICE_EXTENSIONS"),
    ("compute.units", "CL_DEVICE_MAX_COMPUTE_UNITS"),
    ("compute.clock_mhz", "CL_DEVICE_MAX_CLOCK_FREQUENCY"),
    ("compute.max_work_group", "CL_DEVICE_MAX_WORK_GROUP_SIZE"),
    ("compute.max_work_item_sizes", "CL_DEVICE_MAX_WORK_ITEM_SIZES"),
    ("compute.preferred_multiple", "CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE"),
    ("compute.subgroup_sizes", "CL_DEVICE_SUB_GROUP_SIZES_INTEL"),
    ("compute.address_bits", "CL_DEVICE_ADDRESS_BITS"),
    ("compute.partition_max", "CL_DEVICE_PARTITION_MAX_SUB_DEVICES"),
    ("compute.partition_by_counts", "CL_DEVICE_PARTITION_PROPERTIES"),
    ("memory.global_bytes", "CL_DEVICE_GLOBAL_MEM_SIZE"),
    ("memory.max_alloc_bytes", "CL_DEVICE_MAX_MEM_ALLOC_SIZE"),
    ("memory.local_bytes", "CL_DEVICE_LOCAL_MEM_SIZE"),
    ("memory.local_type", "CL_DEVICE_LOCAL_MEM_TYPE"),
    ("memory.constant_bytes", "CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE"),
    ("memory.cache_bytes", "CL_DEVICE_GLOBAL_MEM_CACHE_SIZE"),
    ("memory.unified", "CL_DEVICE_HOST_UNIFIED_MEMORY"),
    ("memory.ecc", "CL_DEVICE_ERROR_CORRECTION_SUPPORT"),
    ("memory.base_align_bits", "CL_DEVICE_MEM_BASE_ADDR_ALIGN"),
    ("features.images", "CL_DEVICE_IMAGE_SUPPORT"),
    ("features.il_spirv", "CL_DEVICE_IL_VERSION"),
    ("features.printf_bytes", "CL_DEVICE_PRINTF_BUFFER_SIZE"),
    ("features.out_of_order", "CL_DEVICE_QUEUE_ON_HOST_PROPERTIES"),
    ("features.profiling", "CL_DEVICE_QUEUE_ON_HOST_PROPERTIES"),
    ("features.timer_resolution_ns", "CL_DEVICE_PROFILING_TIMER_RESOLUTION"),
]


def plain(key, value):
    """Converts clinfo's notation of a value to ours."""
    if key == "type":
        return [bit[len("CL_DEVICE_TYPE_"):] for bit in value["type"] if not bit.endswith("DEFAULT")]
    if key == "numeric_version":
        return value["version"]
    if key == "compute.partition_by_counts":
        return "CL_DEVICE_PARTITION_BY_COUNTS" in (value or [])
    if key == "memory.local_type":
        return {"CL_GLOBAL": "global"}.get(value, "local")
    if key == "features.out_of_order":
        return "CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE" in value["queue_prop"]
    if key == "features.profiling":
        return "CL_QUEUE_PROFILING_ENABLE" in value["queue_prop"]
    if key in ("extensions", "features.il_spirv"):
        return value.split() or None
    if isinstance(value, str):
        return value.strip() or None
    return value


def same(key, ours, theirs):
    theirs = plain(key, theirs)
    if ours == theirs:
        return True
    # some drivers return 0 if they do not know the value
    return ours is None and theirs == 0


def run(*command):
    environment = dict(os.environ, CLEAVE_CACHE="0", RUSTICL_ENABLE="llvmpipe")
    if "CLEAVE_TEST_ICDS" in os.environ:
        environment["OCL_ICD_VENDORS"] = os.environ["CLEAVE_TEST_ICDS"]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False).stdout


if not shutil.which("clinfo"):
    testdata.skip("clinfo is not installed")
ours = json.loads(run(sys.argv[1], "probe", "--json"))
try:
    theirs = json.loads(run("clinfo", "--json"))
except json.JSONDecodeError:
    testdata.skip("this clinfo has no --json, or shows no platform")

failures = seen = 0
for platform, shown in zip(theirs["platforms"], theirs["devices"]):
    for ordinal, device in enumerate(shown.get("online", [])):
        name = platform["CL_PLATFORM_NAME"]
        mine = [d for d in ours["devices"] if d["ordinal"] == ordinal and
                ours["opencl"]["platforms"][d["platform"]]["name"] == name]
        if len(mine) != 1:
            sys.exit(f"{name}, device {ordinal}: {len(mine)} times in our report")
        equal = 0
        for key, query in FIELDS:
            value = mine[0]
            for part in key.split("."):
                value = value[part]
            if query not in device:
                continue  # clinfo did not ask, or the driver did not answer
            if same(key, value, device[query]):
                equal += 1
            else:
                print(f"{name}: {key} is {value}, clinfo's {query} is {device[query]}")
                failures += 1
        print(f"{name}, device {ordinal}: {equal} fields equal")
        failures += equal < LEAST_FIELDS
        seen += 1
if not seen:
    testdata.skip("no OpenCL device here")
sys.exit(1 if failures else 0)
