# SPDX-License-Identifier: Apache-2.0
"""Makes wheels and source archives of the package (PEP 517 and 660), with nothing but Python's standard library.

If CLEAVE_WHEEL_BUNDLE names a folder that packaging/bundle.sh wrote, the wheel contains the library, the command and
all files that they depend on, from that folder; packaging/wheel.sh writes the folder and makes the wheel. Without the
variable, the wheel contains only Python code, fits every machine, and uses the library that is installed there.
"""
import base64
import hashlib
import io
import os
import platform
import re
import stat
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = re.search(r'__version__ = "([^"]+)"',
                    (HERE / "cleave" / "version.py").read_text(encoding="utf-8")).group(1)
NAME = f"cleave-{VERSION}"
METADATA = f"""Metadata-Version: 2.1
Name: cleave
Version: {VERSION}
Summary: NumPy in, NumPy out, on whatever OpenCL devices a machine has
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy>=1.22
Provides-Extra: progress
Requires-Dist: tqdm; extra == "progress"
Provides-Extra: tables
Requires-Dist: pandas; extra == "tables"
Description-Content-Type: text/markdown

"""
_TIME = (2020, 1, 1, 0, 0, 0)  # a fixed time stamp, so that the same sources give the same archive


def _bundle():
    folder = os.environ.get("CLEAVE_WHEEL_BUNDLE")
    return Path(folder) if folder else None


def _tag():
    if not _bundle():
        return "py3-none-any"
    libc, version = platform.libc_ver()
    if libc == "glibc":  # the glibc that the bundled files require, else the version of this machine
        version = os.environ.get("CLEAVE_WHEEL_GLIBC") or version
        return f"py3-none-manylinux_{version.replace('.', '_')}_{platform.machine()}"
    return f"py3-none-linux_{platform.machine()}"


def _metadata():
    return METADATA + (HERE / "README.md").read_text(encoding="utf-8")


def _sources():
    for path in sorted((HERE / "cleave").glob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            yield f"cleave/{path.name}", path


def _carried(bundle):
    """Yields (path in the wheel, path on disk) of each file of a bundle. A library goes in once, under its soname."""
    for folder in ("bin", "lib", "libexec", "share/licences"):
        for path in sorted((bundle / folder).rglob("*")):
            name = path.relative_to(bundle).as_posix()
            if folder == "lib" and not re.fullmatch(r"lib/[^/]+\.so(\.0)?\.\d+", name):
                continue
            if path.is_file():
                yield f"cleave/bundle/{name}", path


class _Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, executable=False):
        info = zipfile.ZipInfo(name, _TIME)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        self.record.append(f"{name},sha256={digest},{len(data)}\n")

    def finish(self):
        info = f"{NAME}.dist-info"
        self.add(f"{info}/METADATA", _metadata().encode())
        pure = "false" if _bundle() else "true"
        self.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: cleave\nRoot-Is-Purelib: {pure}\n"
                                  f"Tag: {_tag()}\n".encode())
        self.record.append(f"{info}/RECORD,,\n")
        self.zip.writestr(zipfile.ZipInfo(f"{info}/RECORD", _TIME), "".join(self.record))
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"{NAME}-{_tag()}.whl"
    wheel = _Wheel(os.path.join(wheel_directory, name))
    for inside, path in _sources():
        wheel.add(inside, path.read_bytes())
    if _bundle():
        for inside, path in _carried(_bundle()):
            wheel.add(inside, path.read_bytes(), os.access(path, os.X_OK))
    wheel.finish()
    return name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"{NAME}-py3-none-any.whl"
    wheel = _Wheel(os.path.join(wheel_directory, name))
    wheel.add("cleave.pth", f"{HERE}\n".encode())
    wheel.finish()
    return name


def build_sdist(sdist_directory, config_settings=None):
    name = f"{NAME}.tar.gz"
    with tarfile.open(os.path.join(sdist_directory, name), "w:gz") as archive:
        for inside, path in [*_sources(), *((n, HERE / n) for n in
                                            ("pyproject.toml", "backend.py", "README.md"))]:
            archive.add(path, f"{NAME}/{inside}")
        data = _metadata().encode()
        entry = tarfile.TarInfo(f"{NAME}/PKG-INFO")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return name
