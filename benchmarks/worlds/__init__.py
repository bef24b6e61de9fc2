"""Machines whose true speeds are known: what a search is measured against."""
