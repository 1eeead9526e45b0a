"""Attacks on published trees by known labels and relations."""
