"""Measurements: ``python -m benchmarks`` runs MaskBench-style cases; docs/benchmarks.md tells about all of them."""
