#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that --help, the man pages and the completions of bash and zsh name the same commands, options and
values, and that man, bash and zsh can read them.

usage: documents.py COMMAND DOCUMENTS
"""
import os
import re
import shutil
import subprocess
import sys

COMMAND, DOCUMENTS = sys.argv[1:3]
MISTAKES = []


def expect(what, wanted, got):
    if wanted != got:
        MISTAKES.append("%s: expected %s, got %s" % (what, wanted, got))


def run(*arguments, text=None):
    done = subprocess.run(arguments, input=text, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def read(name):
    with open(os.path.join(DOCUMENTS, name), encoding="utf-8") as file:
        return file.read()


def help_options(text):
    """Returns {long or short name: (short name or "", value or "")} of a help text."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"  (-\w)?(?:, )?(--[\w-]+)?(\[?=\S+|(?<=-\w) \S+)?(?:  |$)", line)
        if match and (match[1] or match[2]):
            found[match[2] or match[1]] = (match[1] or "", (match[3] or "").strip("[]= "))
    return found


def man_options(text):
    found = {}
    text = text.split(".SH ENVIRONMENT")[0]
    for line in re.findall(r"^\.TP\n(\\fB\\-.*)$", text, re.MULTILINE):
        line = re.sub(r"\\f[BIR]", "", line).replace("\\-", "-").replace("\\e", "\\")
        match = re.match(r"(-\w)?(?:, )?(--[\w-]+)?(.*)", line)
        found[match[2] or match[1]] = (match[1] or "", match[3].strip("[]= "))
    return found


def bash_completes(*words):
    """Returns what bash offers for the last word."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cleave\n' \
        'printf "%s\\n" "${COMPREPLY[@]}"'
    code, out, err = run("bash", "-c", script, "bash", os.path.join(DOCUMENTS, "cleave.bash"),
                         "cleave", *words)
    expect("bash, %s: exit code and stderr" % (words,), (0, ""), (code, err))
    return sorted(out.split())


def zsh_options(text):
    """Returns {command: {option}} of the completion script."""
    found = {}
    for name, body in re.findall(r"^        (\w+)\)\n            _arguments(.*?)^            ;;", text,
                                 re.MULTILINE | re.DOTALL):
        words = set()
        for line in body.splitlines():
            both = re.match(r"\s+'\((-\w) (--[\w-]+)\)'", line)
            one = re.match(r"\s+'(--?[\w-]+?)(?:=-?|\+)?\[", line)
            if both:
                words |= {both[1], both[2]}
            elif one:
                words.add(one[1])
        found[name] = words
    return found


def check_command(name, zsh):
    code, text, _ = run(COMMAND, name, "--help")
    expect("%s --help: exit code" % name, 0, code)
    options = help_options(text)
    if len(options) < 2:
        MISTAKES.append("%s --help: no options found" % name)
    expect("%s: man page" % name, options, man_options(read("man1/cleave-%s.1" % name)))
    expect("%s: bash" % name, sorted(options), bash_completes(name, "-"))
    shorts = {short for short, _ in options.values() if short}
    expect("%s: zsh" % name, sorted(set(options) | shorts), sorted(zsh.get(name, ())))
    for option, (short, value) in options.items():
        if re.fullmatch(r"[a-z0-9+-]+(,[a-z0-9+-]+)+", value):
            for words in (option, ""), (option, "="), (option, "=", ""):
                expect("%s: bash, values of %s" % (name, option), sorted(value.split(",")),
                       bash_completes(name, *words))
            if short:
                expect("%s: bash, values of %s" % (name, short), sorted(value.split(",")),
                       bash_completes(name, short, ""))
    return options


def check_readable(commands):
    """Checks that the programs that read these files report no error."""
    for name in ["cleave"] + ["cleave-" + command for command in commands]:
        if shutil.which("mandoc"):
            # mandoc would report the missing date, with which two builds of one version would differ
            _, out, err = run("mandoc", "-T", "lint", "-W", "warning",
                              os.path.join(DOCUMENTS, "man1", name + ".1"))
            lines = [line for line in (out + err).splitlines() if "missing date" not in line]
            expect("mandoc", [], lines)
    for shell, script in ("bash", "cleave.bash"), ("zsh", "_cleave"):
        if shutil.which(shell):
            code, _, err = run(shell, "-n", os.path.join(DOCUMENTS, script))
            expect("%s -n %s" % (shell, script), (0, ""), (code, err))
        else:
            print("no %s here: the syntax of %s was not checked" % (shell, script))


def main():
    _, text, _ = run(COMMAND, "--help")
    commands = re.findall(r"^  (\w+) +\S", text.split("Commands:")[1].split("Options:")[0],
                          re.MULTILINE)
    overview = read("man1/cleave.1")
    expect("cleave.1: commands", commands, re.findall(r"^\.BR cleave\\-(\w+)", overview, re.M))
    expect("cleave.1: options", help_options(text), man_options(overview))
    expect("bash: commands", sorted(commands), bash_completes(""))
    expect("bash: global options", sorted(help_options(text)), bash_completes("-"))
    expect("bash: after --icd", ["probe"], bash_completes("--icd", "=", "/x", "pro"))
    expect("bash: no options after --", [], bash_completes("probe", "--save", ""))
    zsh = read("_cleave")
    expect("zsh: commands", commands, re.findall(r"^        '(\w+):", zsh, re.MULTILINE))
    total = sum(len(check_command(name, zsh_options(zsh))) for name in commands)
    check_readable(commands)
    print("\n".join(MISTAKES) or "%d commands, %d options: help, man and completion agree" %
          (len(commands), total))
    return 1 if MISTAKES else 0


if __name__ == "__main__":
    sys.exit(main())
