"""Mail from mbox files, Maildirs and .eml files."""
