"""What is measured about spectune itself; every module is a command that prints a table."""
