"""tales."""
