"""Owns the oracle: the state machine of SPEC 1-6 again, in plain Python, slow and obviously right.

Must not be fast and must not look at `coordinator/machine/lua`: it is worth something only because it was written
from SPEC alone. Readiness, blocking, counters of states and the stop are derived from the tasks' states each time.
The Redis machine is compared with it step by step in tests/machine/test_against_oracle.py.
"""

from tests.support.oracle.oracle import Answer, Oracle

__all__ = ["Answer", "Oracle"]
