"""The scenarios, one file each. main.py says which share a server."""
