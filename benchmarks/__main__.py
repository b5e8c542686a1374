"""``python -m benchmarks``: the comparison on MaskBench-style cases."""

from __future__ import annotations

import sys

from benchmarks.maskbench.cli import main

sys.exit(main())
