"""Which names the SGLang versions have, and how a launch is written for each of them."""
