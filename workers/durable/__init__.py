"""What a handler does that outlives its attempt: side effects, children, artifacts (SPEC 7, 8)."""
