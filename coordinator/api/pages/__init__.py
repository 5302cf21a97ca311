"""Owns the pages at /: server-rendered HTML for people. Decides nothing; made of the same reads as the API."""
