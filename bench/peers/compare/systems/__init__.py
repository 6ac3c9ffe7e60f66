# SPDX-License-Identifier: MIT
"""The systems that tokmap is compared with, one module each; ../driver.py says what a module has."""
