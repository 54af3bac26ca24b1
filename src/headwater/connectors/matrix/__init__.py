"""A Matrix account: its rooms, their members, messages, reactions and files."""
