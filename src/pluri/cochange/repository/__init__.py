"""What git knows: commits, changes, and the names of files."""
