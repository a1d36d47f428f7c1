#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that what the documents of the root folder name is there.

    README.md, ARCHITECTURE.md, CONTRIBUTING.md: links and paths in backticks exist; commands
    `cleave NAME --option` and options are known to the command; README names the two commands of
    a newcomer and every command of `cleave --help`.

usage: readme.py ROOT CLEAVE
"""
import os
import re
import subprocess
import sys

DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
NEWCOMER = ["packaging/quickstart.sh demo", "packaging/quickstart.sh test"]
ROOMS = ("include/", "base/", "probe/", "runtime/", "cl/", "host/", "tests/", "bench/", "examples/",
         "packaging/", ".ci/", "python/")
MADE = ("build",)  # folders of a build, and words in capitals, stand for something


def paths_of(text):
    """What looks like a path of the repository: in links, and in backticks."""
    for target in re.findall(r"\]\(([^)#\s]+)\)", text):
        if "://" not in target:
            yield target
    for word in re.findall(r"`([^`\s]+)", text):
        if word.startswith(ROOMS) and not re.search(r"[A-Z]{3,}|[<>{}$]", word.split("/")[-1]):
            yield word.rstrip(".,;:)")


def exists(root, path):
    if "*" in path or path.startswith(MADE):
        return True
    folder, name = os.path.split(path)
    return os.path.exists(os.path.join(root, path)) or "NAME" in folder


def run(command, *arguments):
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False).stdout


def check_commands(text, command, help_text):
    names = re.findall(r"^  ([a-z]+) ", help_text, re.MULTILINE)
    for name, rest in re.findall(r"`cleave ([a-z]+)((?: [^`]*)?)`", text):
        if name not in names:
            yield "`cleave %s`: no such command" % name
            continue
        known = run(command, name, "--help") + help_text
        for option in re.findall(r"--[a-z][a-z-]+", rest):
            if option not in known:
                yield "`cleave %s` has no option %s" % (name, option)


def main():
    root, command = sys.argv[1:]
    help_text = run(command, "--help")
    wrong = []
    for document in DOCUMENTS:
        with open(os.path.join(root, document), encoding="utf-8") as file:
            text = file.read()
        wrong += ["%s: %s is not there" % (document, path) for path in sorted(set(paths_of(text)))
                  if not exists(root, path)]
        wrong += ["%s: %s" % (document, why) for why in check_commands(text, command, help_text)]
        if document == "README.md":
            wrong += ["README.md does not name: " + line for line in NEWCOMER if line not in text]
            wrong += ["README.md does not name: cleave " + name
                      for name in re.findall(r"^  ([a-z]+) ", help_text, re.MULTILINE)
                      if "cleave " + name not in text]
    print("\n".join(wrong) or "documents: everything they name is there")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
