"""What the launches of a study say together: pure functions of its records."""
