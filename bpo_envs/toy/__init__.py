"""Toy tasks: decision processes that can be summed over, and two small text games to train on in seconds."""
