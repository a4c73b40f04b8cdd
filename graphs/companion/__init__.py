"""The companion: a personal assistant that edits its own core memory."""
