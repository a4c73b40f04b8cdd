"""Archive: what an assistant stored on purpose, and the whole conversation, both to be searched by the model."""
