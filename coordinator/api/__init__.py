"""Owns the HTTP edge: the API under /api/v1 and the pages at /. Decides nothing, writes only inbox entries."""
