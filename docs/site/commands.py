# SPDX-License-Identifier: Apache-2.0
"""A page for each command of cleave, from its `--help`, which the command prints from its table of options."""
import re
import subprocess

_OPTION = re.compile(r"^  (?:(-\w)(?:, )?)?(?:(--[\w-]+)(\S*))?(?: {2,}(.*))?$")


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def escaped(text):
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def title(text, line="="):
    return "%s\n%s\n\n" % (text, line * len(text))


def option(short, long, value, text):
    names = ["%s %s" % (short, value.lstrip("=[").rstrip("]")) if value else short] if short else []
    names += [long + value] if long else []
    return ".. option:: %s\n\n   %s\n\n" % (", ".join(name.strip() for name in names), escaped(" ".join(text)))


def page(command, name):
    """Returns the help of one command as a page: usage, description, options."""
    before, _, after = run(command, name, "--help").partition("\nOptions:\n")
    usage, _, about = before.partition("\n\n")
    out = [".. program:: cleave %s\n\n" % name, title("cleave " + name),
           ".. code-block:: text\n\n   %s\n\n" % usage.replace("\n", "\n   ")]
    out += ["%s\n\n" % escaped(" ".join(part.split())) for part in about.split("\n\n") if part.strip()]
    found = []
    for line in after.splitlines():
        match = _OPTION.match(line)
        if match and (match[1] or match[2]):
            found.append((match[1], match[2], match[3] or "", [match[4]] if match[4] else []))
        elif line.startswith(" " * 6) and found:
            found[-1][3].append(line.strip())
        elif line.strip():
            raise ValueError("cleave %s --help: this line is neither an option nor its text: %s" % (name, line))
    if not found:
        raise ValueError("cleave %s --help lists no options" % name)
    return "".join([*out, title("Options", "-"), *(option(*one) for one in found)])


def pages_of(command):
    """Returns {name of the page: text}, with an index of all commands."""
    names = re.findall(r"^  ([a-z]+)  +(.*)$", run(command, "--help"), re.MULTILINE)
    if not names:
        raise ValueError("%s --help lists no commands" % command)
    index = [title("Options of all commands"),
             "These pages show what ``cleave COMMAND --help`` prints. :doc:`/docs/command` explains what commands "
             "share: devices, files, exit codes and variables.\n\n.. toctree::\n   :maxdepth: 1\n\n"]
    index += ["   cleave-%s\n" % name for name, _ in names]
    return {"commands.rst": "".join(index), **{"cleave-%s.rst" % name: page(command, name) for name, _ in names}}
