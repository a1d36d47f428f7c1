#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the pages README, the guides beside it and docs/ against the sources and the command.

    README is short and names the two commands of a newcomer. Links lead to files and headings that
    exist, and so do paths in backticks. Commands and options are those of `cleave COMMAND --help`.
    docs/command.md has every command, variable and exit code of the man page. Blocks that are
    parts of source files still are. Every block runs or says why not. An empty line ends every table. Every page of
    docs/ can be reached from docs/index.md.

usage: check_pages.py ROOT CLEAVE DOCUMENTS    DOCUMENTS: the folder with man1/cleave.1
"""
import os
import re
import shlex
import subprocess
import sys

import pages

LONGEST_README = 120
NEWCOMER = ["packaging/quickstart.sh demo", "packaging/quickstart.sh test"]
ROOMS = ("include/", "base/", "probe/", "runtime/", "cl/", "host/", "tests/", "bench/", "examples/",
         "packaging/", ".ci/", "python/", "docs/")
LANGUAGES = ("sh", "python", "text", "c", "cmake", "")
ENDS_COMMAND = {"|", "||", "&", "&&", ";", "(", ")"}


def run(command, *arguments):
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False).stdout


# ---- links and paths -----------------------------------------------------------------------------

def anchors(text):
    """Returns what a link may name after '#': headings in lower case, with words joined by dashes."""
    for title in re.findall(r"^#+ +(.*)$", pages.without_blocks(text), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def check_links(root, page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", pages.without_blocks(text)):
        path, _, heading = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        full = os.path.normpath(os.path.join(root, os.path.dirname(page), path)) if path \
            else os.path.join(root, page)
        if not os.path.exists(full):
            yield "%s is not there" % target
        elif heading and heading not in anchors(pages.read(root, os.path.relpath(full, root))):
            yield "%s: no such heading" % target


def check_paths(root, text):
    """Checks paths in backticks. Words in capitals, and folders of a build, are placeholders."""
    for word in re.findall(r"`([^`\s]+)", pages.without_blocks(text)):
        if not word.startswith(ROOMS) or re.search(r"[A-Z]{3,}|[<>{}$*]", word):
            continue
        path = word.rstrip(".,;:)")
        if any(re.fullmatch(r"[A-Z]{3,}", part) for part in os.path.dirname(path).split("/")):
            continue
        if not os.path.exists(os.path.join(root, path)):
            yield "`%s` is not there" % path


# ---- commands ------------------------------------------------------------------------------------

class Help:
    """The commands of cleave, and the options of each, from their help texts."""

    def __init__(self, command):
        self.command, self.known = command, {}
        self.names = re.findall(r"^  ([a-z]+) ", run(command, "--help"), re.MULTILINE)

    def options(self, name):
        if name not in self.known:
            text = run(self.command, name, "--help")
            found = re.findall(r"^  (-\w)?(?:, )?(--[\w-]+)?", text, re.MULTILINE)
            self.known[name] = {word for pair in found for word in pair if word} | {"-h", "--help"}
        return self.known[name]


def commands_in(line):
    """Returns the words after each `cleave` of a shell line, up to the end of that command."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words, found = list(lexer), None
    for word in [*words, ";"]:
        if word in ENDS_COMMAND:
            if found is not None:
                yield found
            found = None
        elif found is not None:
            found.append(word)
        elif word == "cleave" or word.endswith("/cleave"):
            found = []


def shell_lines(text):
    """Returns the shell lines in code blocks and in backticks; continued lines of blocks are joined."""
    for block in pages.blocks(text):
        if block.language == "sh":
            yield from block.text.replace("\\\n", " ").splitlines()
    for words in re.findall(r"`(cleave [^`]*)`", pages.without_blocks(text)):
        yield " ".join(words.split())


def check_commands(text, known):
    for line in shell_lines(text):
        for words in commands_in(line):
            while words and words[0].startswith("-"):
                words = words[1:]  # options before the command belong to cleave itself
            name = words[0] if words else None
            if name is None or not re.fullmatch(r"[a-z]+", name):
                continue  # "cleave COMMAND --help"
            if name not in known.names:
                yield "`%s`: no command %s" % (line, name)
                continue
            for word in words[1:]:
                option = re.match(r"--[\w-]+|-[A-Za-z]\b", word)
                if option and option[0] not in known.options(name):
                    yield "`%s`: %s has no option %s" % (line, name, option[0])


def check_reference(text, known, man):
    """Checks that the page of the command has everything that its man page lists."""
    for name in known.names:
        if "| `cleave %s` |" % name not in text:
            yield "no row for the command `cleave %s`" % name
    for section, words in ("ENVIRONMENT", r"[A-Z][A-Z_]{3,}"), ("EXIT STATUS", r"\d+"):
        body = man.split(".SH " + section)[1].split("\n.SH ")[0]
        names = [name for line in re.findall(r"^\.B (.*)$", body, re.MULTILINE)
                 for name in re.findall(words, line)]
        if not names:
            yield "the man page has no %s" % section
        for name in names:
            if not re.search(r"^\|[^|]*\b%s\b[^|]*\|" % name, text, re.MULTILINE):
                yield "no row for %s (%s of the man page)" % (name, section)


# ---- the rest ------------------------------------------------------------------------------------

def check_parts(root, text):
    for block in pages.blocks(text):
        source = block.marked("from")
        if source is None:
            continue
        if not os.path.isfile(os.path.join(root, source)):
            yield "line %d: %s is not there" % (block.line, source)
        elif block.text not in pages.read(root, source):
            yield "line %d: not a part of %s any more" % (block.line, source)


def check_blocks(page, text):
    """Checks that every block is run or says why it is not. run_pages.py runs README, python/README.md and docs/."""
    for block in pages.blocks(text):
        if block.language not in LANGUAGES:
            yield "line %d: a block of \"%s\"; expected one of %s" % (block.line, block.language, ", ".join(LANGUAGES))
        elif block.mark.split(":")[0] == "not run" and not block.marked("not run"):
            yield "line %d: the block is not run, without a reason" % block.line
        elif page in pages.GUIDES[2:] and block.language in ("sh", "python") and not block.marked("not run"):
            yield "line %d: nothing runs the blocks of this page" % block.line
        elif block.language == "c" and block.marked("from") is None and page.startswith("docs"):
            yield "line %d: a block of C that is no part of a file which the tests compile" % block.line


def check_tables(text):
    """Checks that an empty line ends each table. Without it, the next paragraph would become a row of the table."""
    lines = text.split("\n")
    for number, (row, after) in enumerate(zip(lines, lines[1:]), 2):
        if row.startswith("|") and after and not after.startswith("|"):
            yield "line %d: no empty line after a table" % number


def check_readme(text):
    lines = text.count("\n")
    if lines > LONGEST_README:
        yield "%d lines, expected at most %d: move something to docs/" % (lines, LONGEST_README)
    for line in NEWCOMER:
        if not re.search(r"^%s( |$)" % re.escape(line), text, re.MULTILINE):
            yield "has no line of shell: " + line
    if not re.search(r"!\[[^\]]+\]\([^)]+\)", text):
        yield "has no picture"


def check_index(root, text):
    for page in pages.all_pages(root):
        folder, name = os.path.split(page)
        if folder == "docs" and name != "index.md" and "](%s)" % name not in text:
            yield "no link to %s" % name


def main():
    root, command, documents = sys.argv[1:]
    known, wrong, count = Help(command), [], 0
    with open(os.path.join(documents, "man1", "cleave.1"), encoding="utf-8") as file:
        man = file.read()
    for page in pages.all_pages(root):
        text = pages.read(root, page)
        count += 1
        found = [*check_links(root, page, text), *check_paths(root, text),
                 *check_commands(text, known), *check_parts(root, text), *check_blocks(page, text), *check_tables(text)]
        if len(re.findall(r"^# ", pages.without_blocks(text), re.MULTILINE)) != 1:
            found.append("expected one title (a line that begins with '# ')")
        if page == "README.md":
            found += check_readme(text)
        elif page == os.path.join("docs", "index.md"):
            found += check_index(root, text)
        elif page == os.path.join("docs", "command.md"):
            found += check_reference(text, known, man)
        wrong += ["%s: %s" % (page, why) for why in found]
    print("\n".join(wrong) or "%d pages: what they name is there" % count)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
