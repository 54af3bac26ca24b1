"""What an account has on GitHub."""
