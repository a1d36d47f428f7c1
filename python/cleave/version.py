# SPDX-License-Identifier: Apache-2.0
"""The package has the same version as the library that it is made for."""
__version__ = "0.2.0"
