#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the links of a finished site: every page, file and anchor that a link names must exist.

usage: links.py FOLDER
"""
import os
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the names of its anchors."""

    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], {"", "top"}
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def main():
    root = os.path.realpath(sys.argv[1])
    pages = {}
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".html"):
                path = os.path.join(folder, name)
                pages[path] = Page(path)
    wrong, count = [], 0
    for path, page in sorted(pages.items()):
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = os.path.normpath(os.path.join(os.path.dirname(path), unquote(parts.path))) if parts.path else path
            if not os.path.exists(target) or os.path.commonpath([root, target]) != root:
                wrong.append("%s: %s is not there" % (os.path.relpath(path, root), link))
            elif target in pages and unquote(parts.fragment) not in pages[target].places:
                wrong.append("%s: %s: no such place" % (os.path.relpath(path, root), link))
    print("\n".join(wrong) or "%d links in %d pages lead somewhere" % (count, len(pages)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
