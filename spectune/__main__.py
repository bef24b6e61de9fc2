"""`python -m spectune`."""

from spectune.cli import main

main()
