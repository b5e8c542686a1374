"""An OpenAI-compatible server whose structured outputs hold. It needs the extra ``server``.

settings      what can be configured: by file, environment and flags
protocol/     the requests, as Pydantic models
wanted        from a request to a constraint
compiling     a cache of compiled constraints, filled in a worker
prompting     messages and tools to prompt tokens
scheduler/    continuous batching: requests join and leave between forward passes
endpoints/    one module for each family of URLs
proxy/        the same checks in front of an endpoint that cannot constrain
"""
