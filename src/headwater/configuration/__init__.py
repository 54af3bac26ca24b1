"""The configuration file: read to the letter, and edited so that every other byte stays."""
