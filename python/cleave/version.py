# SPDX-License-Identifier: Apache-2.0
"""The version of the package, and of the library that it needs."""
__version__ = "0.2.0"
