"""Workloads, the load client and what it records. Nothing here knows what a candidate is.

Import from the modules: `prompts`, `prompt_sources` and `prompt_stream` (what is asked), `client` and `load` (how),
`level` and `records` (what came of it). This file stays empty, so that readers of records load no HTTP client.
"""
