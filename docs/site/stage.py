#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lays out the folder that Sphinx reads: the pages of the sources, and pages made from the code.

    Pages keep their paths, so that the links between them hold. Files that they link to are copied beside them;
    a link to a folder becomes plain text. docs/index.md gets the tree of contents that the site shows. One page
    per command comes from its table of options, one per header from Doxygen, one per module from Python, and the
    history of measurements from bench/results.

usage: stage.py ROOT CLEAVE OUT    CLEAVE: the command; OUT: an empty folder
"""
import os
import re
import shutil
import sys

import commands
import history
import interfaces

GUIDES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md",
          "python/README.md"]
# What the side bar shows. Pages that are not named here follow the how-to.
CONTENTS = [
    ("Start", ["../README", "install"]),
    ("Tutorials", ["exoplanets", "microscopy", "stars", "texts", "generate", "arrays", "python", "library"]),
    ("How to", ["howto", "clusters"]),
    ("Reference", ["command", "reference/commands", "formats", "reference/c", "reference/python", "../python/README"]),
    ("Explanations", ["explained", "probe", "gpu-kernels"]),
    ("Performance", ["performance", "reference/history"]),
    ("Security and reliability", ["reliability", "../SECURITY"]),
    ("Take part", ["../CONTRIBUTING", "../ARCHITECTURE", "style", "../CODE_OF_CONDUCT", "../CHANGELOG"]),
]
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def copy(root, out, path):
    target = os.path.join(out, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(os.path.join(root, path), target)


def pages_of(root):
    found = list(GUIDES)
    for folder, _, names in os.walk(os.path.join(root, "docs")):
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(".md")]
    return sorted(found)


def mended(root, out, page, text, pages):
    """Returns the text with links that work in the site, and copies the files to which it links."""
    def link(match):
        picture, words, target = match.groups()
        path = target.partition("#")[0]
        if "://" in target or target.startswith("mailto:") or not path:
            return match[0]
        inside = os.path.normpath(os.path.join(os.path.dirname(page), path))
        full = os.path.join(root, inside)
        if inside in pages:
            return match[0]
        if os.path.isdir(full):
            return words
        if os.path.basename(inside) == "LICENSE" or inside.endswith(".md"):
            return words if inside not in history.pages(root) else match[0]
        copy(root, out, inside)
        return match[0]

    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def contents(pages):
    named = {"docs/index.md", *("docs/%s.md" % name for _, names in CONTENTS for name in names)}
    for caption, names in CONTENTS:
        if caption == "How to":
            names = names + [page[len("docs/"):-3] for page in pages if page.startswith("docs/") and page not in named]
        paths = ["/" + os.path.normpath("docs/" + name) for name in names]
        yield "```{toctree}\n:hidden:\n:caption: %s\n\n%s\n```\n" % (caption, "\n".join(paths))


def with_title(page, text):
    """Adds a title to what `cleave bench --markdown` writes, which is made to be part of other pages."""
    if re.search(r"^# ", text, re.MULTILINE):
        return text
    name = os.path.basename(page)[:-3]
    return "# %s\n\n%s" % (name, re.sub(r"^###", "##", text, flags=re.MULTILINE))


def main():
    root, command, out = sys.argv[1:]
    pages = pages_of(root)
    for page in pages + history.pages(root):
        with open(os.path.join(root, page), encoding="utf-8") as file:
            text = with_title(page, mended(root, out, page, file.read(), pages))
        if page == "docs/index.md":
            text += "\n" + "\n".join(contents(pages))
        target = os.path.join(out, page)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
    reference = os.path.join(out, "docs", "reference")
    os.makedirs(reference, exist_ok=True)
    made = {**commands.pages_of(command), **interfaces.headers(root), **interfaces.modules(), **history.page(root)}
    for name, text in made.items():
        with open(os.path.join(reference, name), "w", encoding="utf-8") as file:
            file.write(text)
    print("%d pages of the sources, %d made" % (len(pages), len(made)))


if __name__ == "__main__":
    main()
