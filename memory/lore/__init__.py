"""lore."""
