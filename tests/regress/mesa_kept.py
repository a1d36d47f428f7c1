#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that vectors stay the same after damage to the files that Mesa keeps in the command's folder.

Mesa compares the checksum of each kept file, but not the kernel that the file belongs to: a file in the place of
another one ended every later run. Here files are emptied, cut, changed in one byte, filled with zeros, and exchanged. A
run that died inside the driver leaves no kernels of Mesa behind, and what Mesa adds or removes itself is no damage.

usage: mesa_kept.py CLEAVE CLI_TESTS [--every]    --every: each file in each way; else all files at once"""
import glob
import os
import shutil
import sys

import kernels_kit
import kit

sys.path.insert(0, sys.argv[2])
import text_embed  # noqa: E402

EVERY = "--every" in sys.argv
CACHE = kit.ENVIRONMENT["CLEAVE_CACHE_DIR"]
MESA = os.path.join(CACHE, "drivers", "mesa")
HERE = dict(kernels_kit.alone("rusticl", "rusticl") or sys.exit(77), RUSTICL_ENABLE="llvmpipe", CLEAVE_TUNE="0")


def embed():
    """Returns the vectors and the messages. Kernels that we kept from earlier runs would hide what Mesa does."""
    shutil.rmtree(os.path.join(CACHE, "programs"), ignore_errors=True)
    done = kit.run("embed", "model", "-i", "texts.txt", "-o", "v.npy", "--mode", "cpu", "--report", "r.json",
                   environment=HERE, timeout=600)
    said = done.stderr.decode(errors="replace")
    if done.returncode != 0:
        return None, "exit code %d: %s" % (done.returncode, said)
    if not any(share["chunks"] for job in kit.report("r.json")["jobs"] for share in job["shares"]):
        return None, "no device took part: %s" % said
    with open("v.npy", "rb") as file:
        return file.read(), said


def kept():
    """Returns the files that Mesa has written. A thread of Mesa's writes them, and the end of the process may leave an
    empty one, in which nothing can be damaged."""
    found = glob.glob(os.path.join(MESA, "*", "*", "*"))
    return sorted(path for path in found if os.path.isfile(path) and os.path.getsize(path))


def restore():
    shutil.rmtree(MESA)
    shutil.copytree("saved", MESA)
    if os.path.exists("sums"):
        shutil.copy("sums", MESA + ".sums")


def check(what, damaged):
    """Runs the test after `damaged` has been called with the path and number of each file."""
    for number, path in enumerate(FILES):
        damaged(path, number)
    vectors, said = embed()
    if vectors != WANTED:
        kit.wrong("%s: %s" % (what, said if vectors is None else "other vectors"))
    elif "damaged" not in said:
        kit.wrong("%s: damage is not told: %r" % (what, said))
    restore()


def bend(path, number):
    with open(path, "rb") as file:
        data = file.read()
    kit.write(path, list(kernels_kit.bent(data))[number % 4][1])


def exchange(path, number):
    shutil.copy(os.path.join("saved", os.path.relpath(FILES[number - 1], MESA)), path)


text_embed.make_model("model")
kit.write("texts.txt", "the cats\nunaffable running\nthe cat the cat\n")
WANTED, SAID = embed()
if WANTED is None:
    print("SKIPPED: rusticl does not compute here: %s" % SAID)
    sys.exit(77)
kit.same("the first run says", SAID, "")
FILES = kept()
kit.same("Mesa keeps its kernels in the command's folder", len(FILES) > 3, True)
os.remove(FILES[0])  # Mesa may remove files, and a run may be killed before it records what Mesa wrote
kit.write(os.path.join(os.path.dirname(FILES[1]), "0" * 38), b"nothing that Mesa would read")
kit.same("with a file more and one less", embed(), (WANTED, ""))
FILES = kept()
shutil.copytree(MESA, "saved")
if os.path.exists(MESA + ".sums"):
    shutil.copy(MESA + ".sums", "sums")
else:
    kit.wrong("nobody vouches for what Mesa keeps")
if EVERY:
    for chosen in kept():
        for way in range(4):
            check("%s, way %d" % (os.path.relpath(chosen, MESA), way),
                  lambda path, number, chosen=chosen, way=way: path == chosen and bend(path, way))
        check("%s exchanged" % os.path.relpath(chosen, MESA),
              lambda path, number, chosen=chosen: path == chosen and exchange(path, number))
check("all files, each in another way", lambda path, number: (exchange if number % 2 else bend)(path, number // 2))
for name in "pocl", "mesa":
    kit.write("%s.run-999999999" % os.path.join(CACHE, "drivers", name), "died\n")
done = kit.run("probe", "--list", environment=HERE)
kit.same("after a run that died inside a driver, Mesa's kernels", len(set(kept()) & set(FILES)), 0)
kit.same("this is told", done.stderr.count(b"died inside"), 1)
kit.finish()
