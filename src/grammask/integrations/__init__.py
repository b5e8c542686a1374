"""grammask inside inference engines that people already run.

One module per engine, each importing its engine only when it is imported itself. What they share: ``wire`` (constraints
as JSON), ``following`` (a matcher that keeps up with an engine's history of tokens), ``masking`` (masks on torch
logits) and ``vocabularies`` (an engine's tokens, and whether they are still the ones a constraint was compiled for).
"""
