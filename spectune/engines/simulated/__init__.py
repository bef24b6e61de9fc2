"""The simulated engine: SGLang's command line, log and HTTP API from the cost model of a profile file."""
