"""The pure core, command by command."""
