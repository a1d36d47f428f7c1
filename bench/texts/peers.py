# SPDX-License-Identifier: Apache-2.0
"""Folders as people have them, and families, by the programs in bench/peers."""
import os
import re
import subprocess
import sys

from common import HERE


def program(name, *arguments):
    done = subprocess.run([sys.executable, os.path.join(HERE, "..", "peers", name), *map(str, arguments)],
                          capture_output=True, text=True)
    return done.stdout, done.returncode


def check_folders(room):
    out, code = program("folders_sentences.py", room.cleave)
    equal, refused = len(re.findall(r" equal, ", out)), len(re.findall(r" refused ", out))
    yield "prompts, poolings and tokenizers of folders: right, or refused", \
        "%d equal, %d refused, %d other" % (equal, refused, out.count(" OTHER,")), code == 0


def check_mutations(room):
    out, code = program("mutations_sentences.py", room.cleave)
    counts = dict((verdict, int(count)) for count, verdict in re.findall(r"(\d+) (\w+)", out.splitlines()[-1]))
    yield "folders with one value or tensor changed: right, refused or told", \
        "%d equal, %d refused, %d told, %d refused by sentence-transformers alone, %d other" % tuple(
            counts.get(verdict, 0) for verdict in ("equal", "refused", "warned", "alone", "OTHER")), code == 0


def check_families(room, texts):
    out, code = program("families_sentences.py", room.cleave, "--texts", texts, "--seed", room.chance.randint(1, 9999))
    for family, wrong, count in re.findall(r"^(\S+) +(\d+) of (\d+) texts", out, re.M):
        cosine = re.search(r"^%s +least cosine ([\d.]+)" % re.escape(family), out, re.M)
        yield "%s: ids of random texts, cosine >= 0.999999" % family, \
            "%s of %s ids differ, cosine %s" % (wrong, count, cosine.group(1)), \
            wrong == "0" and float(cosine.group(1)) >= 0.999999
    yield "families: exit code", str(code), code == 0
