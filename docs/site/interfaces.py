# SPDX-License-Identifier: Apache-2.0
"""The pages of the C and Python interfaces: lists of what Sphinx takes from Doxygen and from docstrings."""
import inspect
import os
import re

from commands import escaped, title

HEADER = """.. _%s:

%s%s

.. code-block:: c

   #include <cleave/%s>

.. doxygenfile:: %s
   :sections: %s
"""
SECTIONS = "briefdescription detaileddescription innerclass public-attrib define enum func typedef var user-defined"


def headers(root):
    """Makes a page for each public header, whose second line says what is in it."""
    folder, found = os.path.join(root, "include", "cleave"), {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".h") or name in ("cleave.h", "export.h"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            about = re.search(r"^/\* (?!SPDX)(.*?)\*/", file.read(), re.MULTILINE | re.DOTALL)
        text = escaped(re.sub(r"\s*\n \*\s*", " ", about[1]).strip()) if about else ""
        found["c-%s.rst" % name[:-2]] = HEADER % (name.replace("_", "__").replace(".", "_8"), title(name), text, name,
                                                  name, SECTIONS)
    index = title("C interface") + "One page for each header; ``#include <cleave/cleave.h>`` includes all. " \
        ":doc:`/docs/library` begins with an example.\n\n.. toctree::\n   :maxdepth: 1\n\n"
    return {"c.rst": index + "".join("   %s\n" % name[:-4] for name in found), **found}


def modules():
    """Makes a page for each file of the package that defines public names."""
    import cleave  # from the sources, which sys.path names
    groups = {}
    for name in cleave.__all__:
        thing = getattr(cleave, name)
        home = getattr(thing, "__module__", "")
        if inspect.isclass(thing) or inspect.isfunction(thing):
            groups.setdefault(home.rpartition(".")[2].strip("_"), []).append((name, thing))
    found = {}
    for group, things in sorted(groups.items()):
        text = title("cleave: " + group.replace("_", " "))
        for name, thing in things:
            kind = "autoexception" if inspect.isclass(thing) and issubclass(thing, Exception) else \
                "autoclass" if inspect.isclass(thing) else "autofunction"
            text += ".. %s:: cleave.%s\n%s\n" % (kind, name, "" if kind == "autofunction" else "   :members:\n")
        found["python-%s.rst" % group] = text
    index = title("Python interface") + ":doc:`/docs/python` begins with an example.\n\n.. toctree::\n   " \
        ":maxdepth: 1\n\n"
    return {"python.rst": index + "".join("   %s\n" % name[:-4] for name in found), **found}
