"""What Hypothesis draws bounds and residue levels from: ordinary, extreme and awkward ones."""

from __future__ import annotations

from hypothesis import strategies as st

LEVELS = (1, 3, 5, 15, 63, 255)
ATOL = st.one_of(
    st.floats(1e-320, 1e308), st.integers(-1060, 1023).map(lambda e: 2.0**e), st.floats(1e-9, 1e3)
)
RTOL = st.one_of(
    st.floats(1e-15, 1e6), st.integers(-50, 20).map(lambda e: 2.0**e), st.floats(5e-324, 1e308)
)
BOUNDS = st.one_of(
    st.builds(lambda a: {"atol": a}, ATOL),
    st.builds(lambda r: {"rtol": r}, RTOL),
    st.builds(lambda a, r: {"atol": a, "rtol": r}, ATOL, RTOL),
    st.builds(lambda n: {"ulps": n}, st.integers(1, 2**62)),
)
