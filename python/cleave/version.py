# SPDX-License-Identifier: Apache-2.0
"""Holds the version of the package, which is also the version of the library that it requires."""
__version__ = "0.2.0"
