"""grammask inside vLLM, in two ways.

``processor``   a custom logits processor, found by vLLM through its entry point ``vllm.logits_processors``: a request
                names its constraint in ``SamplingParams.extra_args["grammask"]`` (``vllm_xargs`` over HTTP).
``backend``     a structured-output backend: vLLM's own ``response_format``, ``structured_outputs`` and tool calls reach
                grammask, with speculative decoding. ``plugin`` puts it in place when ``GRAMMASK_VLLM_BACKEND`` asks for
                it.

Written against vLLM 0.32, both model-runner interfaces.
"""
