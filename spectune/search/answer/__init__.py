"""What a study tells in the end: its verdict in words, picks, summary, and two studies side by side."""
