"""Programs that the command `attest` starts in the user's Python."""
