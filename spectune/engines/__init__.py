"""What a candidate means to an engine: arguments, rules, canonical form, and what the engine says back."""
