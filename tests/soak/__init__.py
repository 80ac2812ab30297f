"""A soak: real engines, real servers, and everything goes wrong at once. Effects are counted outside."""
