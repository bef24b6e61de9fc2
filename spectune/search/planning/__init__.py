"""Which launch comes next, when it is enough, and what that will cost."""
