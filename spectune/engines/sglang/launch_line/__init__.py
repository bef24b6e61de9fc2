"""A launch command in use, read as the shell and SGLang's own parser would read it; nothing is executed."""
