"""Mail over IMAP."""
