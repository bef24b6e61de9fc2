"""spectune: find the fastest SGLang launch configuration by launching the real engine and measuring it."""

__version__ = "0.1.0"
