"""Patterns by which the values of a column show what they are; regular expressions that Java and Python read alike."""

from __future__ import annotations

WHOLE = r"^[+-]?[0-9]{1,15}$"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
DIGITS = r"^[0-9]+$"
LEADING_ZERO = r"^0[0-9]+$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9].*)?$"
OTHER_DAY = r"^[0-9]{1,2}[./-][0-9]{1,2}[./-](19|20)[0-9]{2}$"
CODE = r"^[A-Za-z]{1,3}[0-9][0-9A-Za-z.\-]*$"  # such as codes of diagnoses: a letter or more, then digits
IDENTIFYING = {
    "an e-mail address": r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$",
    "a phone number": r"^\+?[0-9()][0-9 ()./-]{6,18}[0-9]$",
    "an IBAN": r"^[A-Z]{2}[0-9]{2}([ ]?[A-Z0-9]{4}){2,7}[ ]?[A-Z0-9]{1,4}$",
    "a social security number": r"^[0-9]{3}-[0-9]{2}-[0-9]{4}$",
    "an identifier of 128 bits (UUID)": r"^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$",
    "an address of the internet": r"^(([0-9]{1,3}\.){3}[0-9]{1,3}|https?://.+)$",
}
"""What identifies a person by its form. Phone numbers need a sign that plain whole numbers lack: see `profile`."""
PHONE = "a phone number"
SIGNED_PHONE = r"^[0-9]+$"  # digits alone are no phone number: amounts and years look so, too
