"""MaskBench-style cases through several engines in one run.

A case is a JSON Schema with instances that are labelled valid or invalid. Each engine compiles the schema once; each
instance is then fed token by token, the mask being computed before every token, as a decoding loop would. A case passes
when every valid instance is accepted to its end and may end there, and every invalid one is refused somewhere.

Reading order: ``cases`` (what is asked), ``measure`` (one case through one engine), ``worker`` and ``pool`` (a process
for each engine, restarted when it dies), ``run`` (engines take turns on each case), ``summary`` and ``report`` (what
came out).
"""
