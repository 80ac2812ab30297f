"""Named bugs as small edits of our source: what explorer and model must catch, and what each would cost a user."""
