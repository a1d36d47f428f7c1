# SPDX-License-Identifier: Apache-2.0
"""Sphinx's settings for the pages that docs/site/stage.py lays out; packaging/docs.sh calls both."""
import os
import re
import sys

sys.path.insert(0, os.environ["CLEAVE_PYTHON"])

project = "Cleave"
author = "the authors of Cleave"
version = release = os.environ["CLEAVE_VERSION"]
extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc"]
root_doc = "docs/index"
html_theme = "furo"
html_title = f"Cleave {version}"
highlight_language = "text"
smartquotes = False  # "--" is the beginning of an option
html_show_copyright = False
html_copy_source = False
html_last_updated_fmt = None
exclude_patterns = ["bench/peers/**"]
myst_heading_anchors = 4
breathe_projects = {"cleave": os.environ["CLEAVE_DOXYGEN_XML"]}
breathe_default_project = "cleave"
breathe_domain_by_extension = {"h": "c"}
breathe_show_include = False
# complex and imaginary are names of parameters
c_extra_keywords = ["alignas", "alignof", "bool", "noreturn", "static_assert", "thread_local"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True


def literal(lines):
    return ["::", "", *("   " + line for line in lines), ""]


def as_text(_app, _what, _name, _object, _options, lines):
    """Shows docstrings as plain text: paragraphs, examples, and sections and tables that keep their layout."""
    out, in_section = [], False
    for block in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        part = block.split("\n")
        if len(part) > 1 and re.fullmatch(r"-{3,}", part[1].strip()):
            out += [".. rubric:: " + part[0].strip(), ""]
            in_section, part = True, part[2:]
        if not part or part[0].lstrip().startswith(">>>"):
            out += [*part, ""]
        elif in_section or any(re.search(r"^ |\S {3,}\S", line) for line in part):
            out += literal(part)
        else:
            out += [re.sub(r"^([-+]|\d+\.)(?= )|[\\*`|_]", lambda found: "\\" + found[0], line) for line in part]
            out.append("")
    lines[:] = out


def as_words(_app, _environment, node, contents):
    """Shows as plain words the links of Doxygen to members of structs for which Breathe makes no anchor, such as
    pointers to functions."""
    return contents if re.search(r"_1a[0-9a-f]{32}$", node.get("reftarget", "")) else None


def setup(app):
    app.connect("autodoc-process-docstring", as_text)
    app.connect("missing-reference", as_words)
