#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws messages and comments at random, so that an editor can review the English of the project.

usage: sample_words.py [SEED [COUNT [FOLDER ...]]]

It prints COUNT (40) messages, which are the texts in calls such as clv_fail and cli_error and in Python's exceptions,
and COUNT comments, which are the doc comments of include/, the first comments of C and OpenCL files, and the doc
strings of the Python package. Each is printed with its file and line. The same SEED (1) draws the same texts as long as
the sources do not change. FOLDERs limit the draw to files below them: "include" draws only doc comments of the public
headers. docs/style.md has the rules for the review.
"""
import ast
import pathlib
import random
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("include", "base", "probe", "runtime", "host", "cl", "python/cleave")
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
CALL = re.compile(r"\b((?:clv_fail|clv_log|cli_error|cli_warn|cli_say|cli_text_warn)\w*)\(")
TEXT = re.compile(r"\s*(?:[A-Z]\w*\s*)?%s(?:\s*(?:[A-Z]\w*\s*)?%s)*" % (LITERAL, LITERAL))
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def strip(comment):
    lines = [line.strip().lstrip("*").strip() for line in comment[2:-2].lstrip("*<").splitlines()]
    return "\n    ".join(line for line in lines if line)


def arguments(text, start):
    """Returns the text of a call's arguments, from after its opening parenthesis to the closing one."""
    depth, place = 1, start
    while depth and place < len(text):
        literal = re.compile(LITERAL).match(text, place)
        if literal:
            place = literal.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        place += 1
    return text[start:place - 1]


def messages(text):
    """Yields (offset, words) of each text with at least three words that a call gives to the user."""
    for call in CALL.finditer(text):
        for found in TEXT.finditer(arguments(text, call.end())):
            words = "".join(part[1:-1] for part in re.findall(LITERAL, found[0]))
            if len(re.findall(r"[A-Za-z]{2,}", words)) >= 3:
                yield call.start(), "%s: %s" % (call[1], words)


def comments(path, text):
    """Yields (offset, words) of the comments that document a public header or open a file. A comment after a
    declaration comes with the declaration."""
    first = True
    for found in COMMENT.finditer(text):
        words = strip(found[0])
        if words.startswith(("SPDX-License", "sizeof(")):
            continue
        if first or (path.parts[0] == "include" and found[0].startswith("/**")):
            code = text[text.rfind("\n", 0, found.start()) + 1:found.start()].strip()
            yield found.start(), code + " -- " + words if code else words
        first = False


def python_messages(tree):
    """Yields (line, words) of each exception that is raised with a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            words = ast.unparse(node.exc.args[0])
            if len(re.findall(r"[A-Za-z]{2,}", words)) >= 3:
                yield node.lineno, "%s: %s" % (ast.unparse(node.exc.func), words)


def python_comments(tree):
    """Yields (line, words) of each doc string."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            yield node.body[0].lineno, getattr(node, "name", "module") + ": " + \
                ast.get_docstring(node).replace("\n", "\n    ")


def main():
    seed, count = (int(value) for value in (sys.argv[1:3] + ["1", "40"][len(sys.argv[1:3]):]))
    kinds = {"messages": [], "comments": []}
    for path in sorted(path for folder in sys.argv[3:] or FOLDERS for path in (ROOT / folder).rglob("*")):
        if path.suffix not in (".c", ".h", ".cl", ".clh", ".py"):
            continue
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        if path.suffix == ".py":
            tree = ast.parse(text)
            for kind, found in (("messages", python_messages(tree)), ("comments", python_comments(tree))):
                kinds[kind] += ["%s:%d: %s" % (name, line, words) for line, words in found]
            continue
        for kind, found in (("messages", messages(text)), ("comments", comments(name, text))):
            kinds[kind] += ["%s:%d: %s" % (name, text.count("\n", 0, at) + 1, words) for at, words in found]
    for kind, texts in kinds.items():
        print("== %s: %d of %d, seed %d" % (kind, min(count, len(texts)), len(texts), seed))
        print("\n".join(random.Random(seed).sample(texts, min(count, len(texts)))), end="\n\n")


main()
