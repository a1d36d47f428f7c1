#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the record of a machine from the output of `clinfo` on it, for machines that `cleave probe --save` cannot
reach.

    clinfo.py --source URL [--note TEXT] FILE > tests/platforms/machines/NAME.json

FILE is the output of clinfo (the one of Linux distributions, or AMD's), which may have other text around it. A value
that the text does not give stays out of the file: nothing is guessed.
"""
import argparse
import json
import re
import sys

MHZ = re.compile(r"(\d+) ?[Mm][Hh]z")


def lines_of(text):
    """Yields (depth, key, value) of each line in the form of clinfo."""
    for line in text.splitlines():
        line = re.sub(r"^> ?", "", line.rstrip())
        match = re.match(r"( *)(\S.*?)(?::?\s{2,}|:?\t+\s*|: )(\S.*)?$", line) or re.match(r"( *)(\S.*?):?()$", line)
        if match:
            yield len(match[1]), match[2].strip(), (match[3] or "").strip()


def parse(text):
    """Returns [(platform, [device])], each a {key: value}; keys of inner lines are "outer/inner"."""
    platforms, devices, section = {}, [], ""
    platform, device = None, None
    listing = True  # platforms are listed first, then devices by platform
    order = []
    for depth, key, value in lines_of(text):
        if key.startswith("NULL platform behavior"):
            break
        if key == "Platform Name":
            device, platform = None, value
            if value not in platforms:
                platforms[value] = {"Platform Name": value}
                order.append(value)
            elif not listing:
                listing = False
        elif key.startswith("Platform ") and device is None and platform is None:
            platforms.setdefault("", {})[key] = value  # AMD's clinfo names a platform after its version
        elif key.startswith("Platform ") and device is None:
            platforms[platform].setdefault(key, value)
        elif key == "Number of devices":
            listing = False
        elif platform is not None and (key == "Device Name" or key == "Device Type" and ("CL_" in value)):
            device = {"platform": platform}
            devices.append(device)
            section = ""
            device[key] = value
        elif device is not None:
            inner = depth >= 4
            if not inner:
                section = key
            device.setdefault("%s/%s" % (section, key) if inner else key, value)
    return order, platforms, devices


def amd_platforms(text):
    """Returns {name: (version, vendor)} of the platforms of AMD's clinfo, which prints profile and version before the
    name."""
    found = {}
    for block in re.split(r"(?=Platform Profile:)", text)[1:]:
        name = re.search(r"Platform Name:\s+(.*)", block)
        if name:
            found[name[1].strip()] = {
                key: (re.search(key + r":[ \t]+(.*)", block) or [None, ""])[1].strip() or None
                for key in ("Platform Version", "Platform Vendor", "Platform Profile", "Platform Extensions")}
    return found


def first(device, *keys):
    for key in keys:
        if device.get(key) not in (None, "", "(n/a)"):
            return device[key]
    return None


def number(value, pattern=r"(\d+)"):
    match = value and re.search(pattern, value)
    return int(match[1]) if match else None


def yes(value):
    return None if value is None else value in ("Yes", "1", "CL_TRUE")


def words(value):
    return value.split() if value is not None else None


def address(device):
    place = first(device, "Device Topology (AMD)", "Device Topology (NV)", "Device Topology (KHR)", "Device Topology")
    if not place:
        return None
    if match := re.search(r"B#(\d+), D#(\d+), F#(\d+)", place):
        return "0000:%02x:%02x.%x" % tuple(int(n) for n in match.groups())
    match = re.search(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", place)
    return match and "%s:%s:%s.%s" % (match[1] or "0000", match[2], match[3], match[4])


def architecture(device, name):
    if capability := first(device, "Compute Capability (NV)"):
        return "sm_" + capability.replace(".", "")
    if re.match(r"gfx[0-9a-f]+", name or ""):
        return name.split(":")[0]
    return None


def sizes(device):
    if together := first(device, "Max work item sizes"):
        return [int(n) for n in together.split("x")]
    apart = [number(device.get("Max work items dimensions/Max work items[%d]" % i)) for i in range(3)]
    return apart if all(apart) else None


def kind(device):
    value = first(device, "Device Type") or ""
    return [t for t in ("GPU", "CPU", "ACCELERATOR", "CUSTOM") if t in value.upper()] or None


def floats(device, width, what):
    for key in (width + "-precision Floating-point support", width + " precision floating point capability"):
        for name in what:
            if (value := device.get("%s/%s" % (key, name))) is not None:
                return yes(value)
    return None


def has(extensions, name):
    return None if extensions is None else name in extensions


def record(device, platform, ordinal):
    name = first(device, "Device Name", "Name")
    extensions = words(first(device, "Device Extensions", "Extensions"))
    local = first(device, "Local memory type")
    free = number(first(device, "Global free memory (AMD)"))
    integrated = yes(first(device, "Integrated memory (NV)"))
    svm = [word for word, keys in (
        ("coarse", ("Coarse-grained buffer sharing", "Coarse grain buffer")),
        ("fine", ("Fine-grained buffer sharing", "Fine grain buffer")),
        ("fine_system", ("Fine-grained system sharing", "Fine grain system")), ("atomics", ("Atomics",)))
        if any(device.get("%s/%s" % (s, k)) == "Yes" for k in keys
               for s in ("Shared Virtual Memory (SVM) capabilities", "SVM capabilities"))]
    vendor_id = first(device, "Device Vendor ID", "Vendor ID", "Device ID")
    if vendor_id:
        vendor_id = int(vendor_id.rstrip("h"), 16 if re.search(r"^0x|h$", vendor_id) else 10)
    clock = first(device, "Max clock frequency")
    partitions = first(device, "Device Partition/Supported partition types")
    return {
        "platform": platform, "ordinal": ordinal, "name": name,
        "board_name": first(device, "Device Board Name (AMD)", "Board name"),
        "vendor": first(device, "Device Vendor", "Vendor"), "vendor_id": vendor_id, "type": kind(device),
        "integrated": integrated, "integrated_source": "NVIDIA's own query" if integrated is not None else None,
        "pci": {"address": address(device)},
        "uuid": first(device, "Device UUID"), "driver_uuid": first(device, "Driver UUID"),
        "pci_device_id": number_of_hex(first(device, "Device PCI-e ID (AMD)")),
        "version": first(device, "Device Version", "Version"),
        "c_version": first(device, "Device OpenCL C Version", "Device OpenCL C version"),
        "profile": first(device, "Device Profile", "Profile"),
        "driver_version": first(device, "Driver Version", "Driver version"),
        "available": yes(first(device, "Device Available", "Available")),
        "compiler_available": yes(first(device, "Compiler Available", "Compiler available")),
        "compute": {
            "units": number(first(device, "Max compute units")),
            "clock_mhz": number(clock) or None,
            "wavefront": number(first(device, "Wavefront width (AMD)", "Warp size (NV)")),
            "max_work_group": number(first(device, "Max work group size")),
            "max_work_item_sizes": sizes(device),
            "preferred_multiple": number(first(
                device, "Preferred work group size multiple (kernel)", "Preferred work group size multiple",
                "Preferred work group size multiple (device)", "Kernel Preferred work group size multiple")),
            "arch": architecture(device, name),
            "address_bits": number(first(device, "Address bits")),
            "partition_max": number(first(device, "Device Partition/Max number of sub-devices")),
            "partition_by_counts": partitions and "by counts" in partitions,
        },
        "memory": {
            "global_bytes": number(first(device, "Global memory size")),
            "free_bytes": free and free * 1024,
            "free_source": "CL_DEVICE_GLOBAL_FREE_MEMORY_AMD" if free else None,
            "max_alloc_bytes": number(first(device, "Max memory allocation")),
            "local_bytes": number(first(device, "Local memory size")),
            "local_type": local and ("global" if local == "Global" else "local"),
            "constant_bytes": number(first(device, "Max constant buffer size", "Constant buffer size")),
            "unified": yes(first(device, "Unified memory for Host and Device")),
            "cache_bytes": number(first(device, "Global Memory cache size", "Cache size")),
            "ecc": yes(first(device, "Error Correction support", "Error correction support")),
            "base_align_bits": number(first(device, "Alignment of base address", "Alignment (bits) of base address")),
        },
        "features": {
            "fp16": has(extensions, "cl_khr_fp16"), "fp64": has(extensions, "cl_khr_fp64"),
            "fp64_emulated": floats(device, "Double", ("Support is emulated in software",))
            if has(extensions, "cl_khr_fp64") else None,
            "fma": floats(device, "Single", ("IEEE754-2008 fused multiply-add",)),
            "denorms_fp32": floats(device, "Single", ("Denormals", "Denorms")),
            "correctly_rounded_div": floats(device, "Single", ("Correctly-rounded divide and sqrt operations",)),
            "int64_atomics": has(extensions, "cl_khr_int64_base_atomics"),
            "float_atomics": has(extensions, "cl_ext_float_atomics"),
            "dot8": has(extensions, "cl_khr_integer_dot_product"),
            "images": yes(first(device, "Image support")),
            "svm": svm or None,
            "subgroups": has(extensions, "cl_khr_subgroups"),
            "printf_bytes": number(first(device, "printf() buffer size")),
            "out_of_order": yes(first(device, "Queue properties (on host)/Out-of-order execution",
                                      "Queue properties/Out-of-order execution",
                                      "Queue on Host properties/Out-of-Order", "Queue properties/Out-of-Order")),
            "profiling": yes(first(device, "Queue properties (on host)/Profiling", "Queue properties/Profiling",
                                   "Queue on Host properties/Profiling", "Queue on Host properties/Profiling :")),
            "timer_resolution_ns": number(first(device, "Profiling timer resolution")),
            "kernel_timeout": yes(first(device, "Execution capabilities/Kernel execution timeout (NV)")),
        },
        "extensions": extensions,
    }


def number_of_hex(value):
    return int(value, 16) if value else None


def without_nulls(value):
    if isinstance(value, dict):
        kept = {k: without_nulls(v) for k, v in value.items()}
        return {k: v for k, v in kept.items() if v is not None and v != {}}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


def machine(text, source, note):
    order, platforms, devices = parse(text)
    for name, facts in amd_platforms(text).items():
        platforms.setdefault(name, {"Platform Name": name}).update({k: v for k, v in facts.items() if v})
    rows, counts = [], {}
    for device in devices:
        name = device["platform"]
        rows.append(record(device, order.index(name), counts.get(name, 0)))
        counts[name] = counts.get(name, 0) + 1
    return without_nulls({
        "schema": "cleave.probe/1",
        "source": {"url": source, "note": note},
        "opencl": {"platforms": [
            {"ordinal": i, "name": name, "vendor": platforms[name].get("Platform Vendor"),
             "version": platforms[name].get("Platform Version"), "profile": platforms[name].get("Platform Profile"),
             "extensions": words(platforms[name].get("Platform Extensions"))} for i, name in enumerate(order)]},
        "devices": rows})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True, help="public address of the text")
    parser.add_argument("--note", help="what a reader of the file should know")
    parser.add_argument("file")
    a = parser.parse_args()
    with open(a.file, encoding="utf-8", errors="replace") as file:
        made = machine(file.read(), a.source, a.note)
    if not made["devices"]:
        sys.exit("%s: no device found: expected the output of clinfo" % a.file)
    json.dump(made, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
