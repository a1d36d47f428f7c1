# SPDX-License-Identifier: Apache-2.0
"""Finds the documentation pages and the code blocks in them, for check_pages.py and run_pages.py.

A comment on the line above a block says what the tests do with it:

    <!-- not run: REASON -->    it is not run
    <!-- needs: NAME -->        it is run where NAME is at hand (run_pages.py knows the names)
    <!-- from: PATH -->         it is a part of that file, word for word
    <!-- demo table -->         it is the table that `cleave demo` prints

Every other block of shell or Python is run, in the order of the page. A block of `text` that follows
with nothing in between is what it prints; "..." in it stands for anything.
"""
import glob
import os
import re
from typing import NamedTuple, Optional

GUIDES = ["README.md", "python/README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<!--\s*(.*?)\s*-->")


class Block(NamedTuple):
    """A code block: its first line in the page, its language, the comment above it, its text, and the output that the
    page shows (None if it shows none)."""
    line: int
    language: str
    mark: str
    text: str
    prints: Optional[str]

    def marked(self, word):
        """Returns what follows `word:` in the comment above the block, or None."""
        return self.mark[len(word) + 1:].strip() if self.mark.startswith(word + ":") else None


def all_pages(root):
    """Returns every page by its path below `root`."""
    docs = sorted(glob.glob(os.path.join(root, "docs", "*.md")))
    return GUIDES + [os.path.relpath(path, root) for path in docs]


def read(root, page):
    with open(os.path.join(root, page), encoding="utf-8") as file:
        return file.read()


def blocks(text):
    """Returns the code blocks of a page in order."""
    fences = list(_FENCE.finditer(text))
    for fence, after in zip(fences, [*fences[1:], None]):
        above = _MARK.fullmatch(text[:fence.start()].rstrip("\n").rsplit("\n", 1)[-1].strip())
        follows = after is not None and after[1] == "text" and \
            not text[fence.end():after.start()].strip()
        yield Block(text[:fence.start()].count("\n") + 2, fence[1], above[1] if above else "",
                    fence[2], after[2] if follows else None)


def without_blocks(text):
    """Returns the page without its code blocks."""
    return _FENCE.sub("", text)
