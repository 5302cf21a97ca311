"""Owns the audit of a Python checkout: one module per question, all of them plain functions over files.

Must not import Crewline and must never import or run what it audits.
"""
