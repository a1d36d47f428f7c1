#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the declarations of cl/common/builtins.clh with those of the same functions in Clang's opencl-c.h: the same
overloads, with the same attributes, with and without double and half.

usage: builtins.py BUILTINS.clh CC [OPENCL_C_H]
"""
import glob
import re
import subprocess
import sys

PLACES = ["/usr/share/pocl/include/opencl-c.h", "/usr/lib/llvm-*/lib/clang/*/include/opencl-c.h",
          "/usr/lib/clang/*/include/opencl-c.h"]
SKIPPED = 77


def find():
    found = [path for place in PLACES for path in sorted(glob.glob(place))]
    if not found:
        print("skipped: no opencl-c.h of PoCL or Clang is installed")
        sys.exit(SKIPPED)
    return found[0]


def preprocess(cc, path, defines):
    """Returns the text without directives and comments. What is included (types) is left out."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^\s*#\s*(include|pragma).*$", "", file.read(), flags=re.M)
    done = subprocess.run([cc, "-E", "-P", "-undef", "-x", "c", "-"] + ["-D" + d for d in defines], input=text,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{path}: {done.stderr}")
    return done.stdout


def declarations(text):
    """Returns {function: {(result, attributes, parameter types)}}."""
    found = {}
    for line in re.sub(r"\s+", " ", text).split(";"):
        attributes = frozenset(word.strip() for group in re.findall(r"__attribute__\(\((.*?)\)\)", line)
                               for word in group.split(","))
        bare = re.sub(r"__attribute__\(\(.*?\)\)", "", line)
        match = re.fullmatch(r"\s*(\w+) +(\w+) ?\((.*)\)\s*", bare)
        if not match:
            continue
        result, name, parameters = match.groups()
        types = []
        for parameter in parameters.split(","):
            words = re.findall(r"\w+|\*", parameter.replace("__private", ""))
            pointer = "*" in words
            types.append(tuple(words[:words.index("*") + 1] if pointer else words[:1]))
        found.setdefault(name, set()).add((result, attributes, tuple(types)))
    return found


def names_of(path):
    with open(path, encoding="utf-8") as file:
        return sorted(set(re.findall(r"#ifdef (CLV_(?:USES|HAS)_\w+)", file.read())))


def main():
    ours, cc = sys.argv[1], sys.argv[2]
    theirs = sys.argv[3] if len(sys.argv) > 3 else find()
    common = ["CL_VERSION_1_0=100", "CL_VERSION_1_1=110", "CL_VERSION_1_2=120", "CL_VERSION_2_0=200",
              "CL_VERSION_3_0=300", "__OPENCL_C_VERSION__=120", "__opencl_c_named_address_space_builtins=1"]
    wrong = 0
    for features in ([], ["cl_khr_fp64"], ["cl_khr_fp16"], ["cl_khr_fp64", "cl_khr_fp16"]):
        want = declarations(preprocess(cc, theirs, common + features))
        got = declarations(preprocess(cc, ours, common + features + names_of(ours)))
        count = 0
        for name, overloads in got.items():
            count += len(overloads)
            for one in sorted(overloads ^ want.get(name, set()), key=str):
                wrong += 1
                side = "only in builtins.clh" if one in overloads else "missing in builtins.clh"
                print(f"{' '.join(features) or 'float only'}: {name}: {side}: {one}")
        print(f"{' '.join(features) or 'float only'}: {len(got)} functions, {count} declarations")
        if len(got) < 150 or count < 1900:
            sys.exit("too few declarations were found")
    sys.exit(1 if wrong else 0)


main()
