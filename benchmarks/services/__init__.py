"""Services that tests and benchmarks start for themselves: a PostgreSQL, and a network that can be cut."""
