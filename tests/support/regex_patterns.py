"""Random patterns with every construct, over the letters a, b and the hyphen."""

from __future__ import annotations

from hypothesis import strategies as st

atoms = st.sampled_from(["a", "b", "-", "[ab]", ".", r"\w", "[^a]", r"\W", ""])
quantifiers = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "{0,2}"])
anchors = st.sampled_from(["^", "$", r"\b", r"\B"])
look_arounds = st.sampled_from(["(?=", "(?!", "(?<=", "(?<!"])


def compositions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """One operator around patterns."""
    return st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, quantifiers),
        st.builds("{}{}{}".format, inner, anchors, inner),
        st.builds("{}{})".format, look_arounds, inner),
    )


patterns = st.recursive(atoms | anchors, compositions, max_leaves=8)
