#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small `cleave bench`: figures for every party, the same ones in JSON, HTML and Markdown.

usage: bench_report.py CLEAVE
"""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link"}


class Balance(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.drawings = [], 0

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.drawings += tag == "svg"

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise ValueError("</%s> closes something else" % tag)


def check(condition, why):
    if not condition:
        sys.exit("bench: " + why)


def main():
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: os.path.join(folder, "bench." + kind) for kind in ("json", "html", "md")}
        result = subprocess.run(
            [sys.argv[1], "bench", "paco", "--device", "0", "--sizes", "24x24x12,40x40x12,40x40x30",
             "--repeats", "2", "--no-cold", "-q", "--json", files["json"], "--html", files["html"],
             "--markdown", files["md"]], capture_output=True, text=True, check=False)
        check(result.returncode == 0, result.stderr)
        with open(files["json"], encoding="utf-8") as file:
            figures = json.load(file)
        with open(files["html"], encoding="utf-8") as file:
            page = file.read()
        with open(files["md"], encoding="utf-8") as file:
            tables = file.read()
    check(figures["schema"] == "cleave.bench/1", "schema is %r" % figures["schema"])
    text = json.dumps(figures)
    for name in ("24x24, T=12, fixed", "40x40, T=30, shift"):
        for where, what in (("JSON", text), ("HTML", page), ("Markdown", tables),
                            ("terminal", result.stdout)):
            check(name in what, "%s has no case %r" % (where, name))
    check("plain C" in result.stdout, "the reference is missing")
    parser = Balance()
    parser.feed(page)
    check(not parser.open, "HTML elements stay open: %s" % parser.open)
    check(parser.drawings >= 2, "%d plots" % parser.drawings)
    at = 0
    while (at := page.find("<svg", at)) >= 0:
        end = page.index("</svg>", at) + len("</svg>")
        drawing = page[at:end]
        xml.etree.ElementTree.fromstring(drawing)
        check("nan" not in drawing and "inf" not in drawing, "a plot holds nan or inf")
        at = end
    print("bench: three cases, the same in JSON, HTML, Markdown and on the terminal")


if __name__ == "__main__":
    main()
