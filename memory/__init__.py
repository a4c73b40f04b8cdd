"""Where memory is kept and found again: an embeddable library that knows no notebook and no graph."""
