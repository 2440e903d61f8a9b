"""What judging takes: calls and tokens on a fixed sample, and samples a second against a server on loopback."""
