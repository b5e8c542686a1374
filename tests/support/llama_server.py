"""A real llama.cpp server on the loopback interface, with the weights of SmolLM2, for the tests of hosted models.

    python llama_server.py MODEL.gguf

prints its address and serves until standard input is closed.
"""

from __future__ import annotations

import sys


def main() -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx = 4096
    params.n_parallel = 2
    params.warmup = False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
