#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that outputs keep the permissions, owners and links that a user set, and that files of killed runs are removed.

Formerly a file of mode 0600 or 0640 became 0644 when it was written anew, and its owner was lost; a link to a file that
was not there yet was replaced by a file; `-o /dev/stdout >> file` replaced the file and lost what it held; temporaries
of killed runs stayed; PACO's maps could come from two different runs without a sign of it."""
import fcntl
import hashlib
import os
import stat
import subprocess
import time

import kit

LINE = ["link", kit.write("spots.csv", kit.SPOTS), "--search", "2", "-o"]
SOMEBODY = 12345


def good(*line, **options):
    done = kit.run(*line, **options)
    kit.same(" ".join(line), (done.returncode, done.stderr if done.returncode else b""), (0, b""))
    return done


def modes():
    os.umask(0o022)
    good(*LINE, "new.csv")
    kit.same("mode of a new file", oct(stat.S_IMODE(os.stat("new.csv").st_mode)), oct(0o644))
    for mode in 0o600, 0o640, 0o664, 0o604:
        kit.write("old.csv", "old")
        os.chmod("old.csv", mode)
        if os.geteuid() == 0:
            os.chown("old.csv", SOMEBODY, SOMEBODY)
        before = os.stat("old.csv")
        good(*LINE, "old.csv")
        after = os.stat("old.csv")
        kit.same("mode kept", oct(stat.S_IMODE(after.st_mode)), oct(mode))
        kit.same("owner kept", (after.st_uid, after.st_gid), (before.st_uid, before.st_gid))
        kit.same("written anew", open("old.csv", "rb").read(), open("new.csv", "rb").read())
    good("blobs", kit.movie(), "-o", "secret.csv")
    os.chmod("secret.csv", 0o600)
    good("blobs", "movie.npy", "-o", "secret.csv")
    kit.same("mode of blobs", oct(stat.S_IMODE(os.stat("secret.csv").st_mode)), oct(0o600))


def links():
    want = open("new.csv", "rb").read()
    os.mkdir("below")
    os.symlink("below/target.csv", "dangling.csv")
    os.symlink("dangling.csv", "twice.csv")
    good(*LINE, "twice.csv")
    for name in "dangling.csv", "twice.csv":
        kit.same(name + " is a link", os.path.islink(name), True)
    kit.same("what the links name", open("below/target.csv", "rb").read(), want)
    good(*LINE, "twice.csv")
    kit.same("and again", open("below/target.csv", "rb").read(), want)
    os.symlink("nowhere/target.csv", "lost.csv")
    kit.expect(1, "No such file", *LINE, "lost.csv")
    os.symlink("circle.csv", "circle.csv")
    kit.expect(1, None, *LINE, "circle.csv")


def clashes():
    """Tests that one file is not written twice: by a link to a file that does not exist, or by $CLEAVE_TRACE."""
    os.symlink("twofold.csv", "later.csv")
    movie = kit.movie("clash.npy", frames=4, size=32)
    line = ["blobs", movie, "--link", "3", "--tracks"]
    kit.expect(2, "a file that -o writes, too", *line, "later.csv", "-o", "twofold.csv")
    with open(movie, "rb") as file:
        before = file.read()
    for trace, part in ((movie, "is a file that MOVIE reads"), ("twofold.csv", "is a file that -o writes, too")):
        kit.expect(2, "CLEAVE_TRACE: %s %s" % (trace, part), "blobs", movie, "-o", "twofold.csv",
                   environment=dict(kit.PLAIN, CLEAVE_TRACE=trace))
    with open(movie, "rb") as file:
        kit.same("the movie", file.read(), before)
    kit.same("no output", os.path.exists("twofold.csv"), False)
    good("blobs", movie, "-o", "n" * 251 + ".csv")  # the longest name that a file can have


def standard_output():
    want = open("new.csv", "rb").read()
    os.symlink("/dev/stdout", "out.csv")
    for name in "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "out.csv", "-":
        kit.write("held.txt", "kept\n")
        with open("held.txt", "ab") as out:
            done = subprocess.run([kit.CLEAVE, *LINE, name], env=kit.PLAIN, stdout=out, stderr=subprocess.PIPE,
                                  check=False, timeout=60)
        kit.same(name, done.returncode, 0)
        kit.same("appended to what was there, " + name, open("held.txt", "rb").read(), b"kept\n" + want)
    kit.same("the link stays", os.path.islink("out.csv"), True)


def age(path):
    os.utime(path, (time.time() - 3600, time.time() - 3600))


def sweeping():
    stale = [".a.csv.77-0.cleave-part", ".b.npy.123456-3.cleave-part"]
    others = [".mine.123-4", "notes.cleave-part", ".young.csv.77-0.cleave-part"]
    for name in stale + others:
        kit.write(name, "left behind")
    for name in stale + others[:2]:
        age(name)
    os.symlink("spots.csv", ".link.77-0.cleave-part")
    good(*LINE, "new.csv")
    kit.same("swept", [name for name in stale if os.path.exists(name)], [])
    kit.same("kept", [name for name in others if not os.path.exists(name)], [])
    kit.same("a link is none of ours", os.path.exists("spots.csv"), True)

    os.makedirs("temporary/cleave-drivers-aaaaaa/one.d")
    kit.write("temporary/cleave-drivers-aaaaaa/one.d/driver.icd", "x")
    os.mkdir("temporary/cleave-drivers-of-mine")
    os.mkdir("temporary/cleave-probe-bbbbbb")
    os.mkdir("temporary/cleave-drivers-young1")
    for name in "cleave-drivers-aaaaaa", "cleave-probe-bbbbbb":
        age("temporary/" + name)
    kit.write("driver.icd", "libno-such-driver.so\n")
    held = os.open("temporary/cleave-probe-bbbbbb", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)  # as the process locks it that uses it
    for last in ["cleave-probe-bbbbbb"], []:
        kit.run("--icd", "driver.icd", "probe", "--list", environment=dict(
            kit.ENVIRONMENT, TMPDIR=os.path.abspath("temporary"), CLEAVE_CACHE="0"))
        kit.same("folders that are young or in use", sorted(os.listdir("temporary")),
                 ["cleave-drivers-of-mine", "cleave-drivers-young1"] + last)
        if last:
            os.close(held)


def paco_set():
    kit.make_inputs("made")
    line = ["paco", *("made/paco-%s.npy" % name for name in ("cube", "angles", "psf")), "-q"]
    good(*line, "-o", "maps")
    check_set("maps", 10)
    good(*line, "-o", "maps", "--format", "npy")
    check_set("maps", 10)


def check_set(folder, count):
    """Tests that the files that report.json names are those that were written with it."""
    digests = kit.report(folder + "/report.json")["sha256"]
    kit.same("files of the set", len(digests), count)
    for name, digest in digests.items():
        with open(os.path.join(folder, name), "rb") as file:
            kit.same(name, hashlib.sha256(file.read()).hexdigest(), digest)


modes()
links()
clashes()
standard_output()
sweeping()
paco_set()
kit.finish()
