"""What happens to a study when something breaks: `python -m benchmarks.faults [--only WORDS] [--json FILE]`."""
