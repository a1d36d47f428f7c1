#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a small task of real text for `cleave finetune`: to which family of manual pages does a sentence belong?

usage: text_task.py FOLDER [FAMILY...]    FAMILY: what the names of pages begin with [git, openssl,
       perl, systemd, gcloud_compute]
       writes FOLDER/train.tsv and FOLDER/val.tsv: sentence TAB family

All sentences of a page are either for learning or for testing. The names of the families are replaced, so that they do
not give the answer away. The pages have other owners, so use the files only for measurements on this machine.
"""
import glob
import gzip
import hashlib
import os
import re
import sys

FAMILIES = ["git", "openssl", "perl", "systemd", "gcloud_compute"]
MOST, SHORTEST, LONGEST = 800, 40, 300


def plain(text):
    """Returns a page without markup, as paragraphs of running text."""
    text = re.sub(r"(?m)^\.\\\".*$", "", text)
    text = re.sub(r"(?m)^\.(SH|SS|sp|PP|IP|TP|RS|RE|nf|fi|TH|br|de|ie|el|if|ds|\.).*$", "\n\n", text)
    text = re.sub(r"(?m)^\.[A-Z]+ ?", "", text)
    text = re.sub(r"\\f[A-Z(\[][A-Z\]]?|\\&|\\m\[\]|\\m\[[a-z]+\]|\\s[-+0-9]+", "", text)
    text = text.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")
    return re.sub(r"\\[*(][A-Za-z\"'(]+", "", text)


def sentences(text, family):
    for paragraph in re.split(r"\n\s*\n", plain(text)):
        paragraph = re.sub(r"\s+", " ", paragraph).strip()
        for sentence in re.split(r"(?<=[.!?]) (?=[A-Z])", paragraph):
            words = re.findall(r"[A-Za-z]{2,}", sentence)
            if not SHORTEST <= len(sentence) <= LONGEST or len(words) < 7:
                continue
            if not re.match(r"[A-Z][a-z ]", sentence) or not sentence.endswith("."):
                continue
            names = "|".join(sorted({family, family.split("_")[0]}, key=len, reverse=True))
            yield re.sub(r"(?i)%s" % names, "it", sentence).replace("\t", " ")


def main():
    folder, families = sys.argv[1], sys.argv[2:] or FAMILIES
    lines = {"train": [], "val": []}
    for family in families:
        seen, parts = set(), {"train": [], "val": []}
        pages = glob.glob("/usr/share/man/man[1-8]/%s*" % family)
        for page in sorted(pages, key=lambda p: hashlib.sha256(p.encode()).digest()):
            opened = gzip.open if page.endswith(".gz") else open
            try:
                with opened(page, "rt", encoding="utf-8", errors="ignore") as file:
                    text = file.read()
            except OSError:
                continue
            share = "val" if hashlib.sha256(page.encode()).digest()[1] % 5 == 0 else "train"
            for sentence in sentences(text, family):
                if sentence not in seen:
                    seen.add(sentence)
                    parts[share].append((sentence, family))
        lines["train"] += parts["train"][:MOST]
        lines["val"] += parts["val"][:MOST // 4]
        print(family, len(parts["train"][:MOST]), len(parts["val"][:MOST // 4]), file=sys.stderr)
    os.makedirs(folder, exist_ok=True)
    for name, all_of in lines.items():
        with open(os.path.join(folder, name + ".tsv"), "w", encoding="utf-8") as file:
            file.writelines("%s\t%s\n" % line for line in all_of)


if __name__ == "__main__":
    main()
